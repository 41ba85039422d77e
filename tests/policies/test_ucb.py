from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from oclok import UCB, Agent
from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.posterior import DictionaryPosterior, ExactPosterior
from oclok.testing import check_policy

RNG = np.random.default_rng(0)
X, x = RNG.random((15, 2)), RNG.random((8, 2))
Y = np.sin(5 * X[:, 0])


@pytest.mark.parametrize("width", [0.0, 1.0, 2.5])
def test_the_index_is_mean_plus_width_times_std(width: float) -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(2), width)
    policy.observe(X, Y)
    judge = GaussianProcessRegressor(RBF(0.5), alpha=0.01, optimizer=None).fit(X, Y)
    mean, std = judge.predict(x, return_std=True)
    np.testing.assert_allclose(policy.index(x), mean + width * std, atol=1e-9)


def test_a_width_of_zero_is_greedy() -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(2), width=0.0)
    policy.observe(X, Y)
    decision = policy.select(x)
    assert set(decision.super_arm) == set(np.argsort(-policy.posterior.predict(x).mean)[:2])


def test_pending_arms_make_their_neighbours_less_interesting() -> None:
    policy = UCB(RBF(0.5), 0.1, TopK(1), width=2.0, condition_on_chosen=True)
    first = policy.select(x)
    assert set(policy.select(x).super_arm) != set(first.super_arm)


@pytest.mark.parametrize("wrong", [-1.0, np.nan, "wide"])
def test_a_width_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="width"):
        UCB(RBF(0.5), 0.1, TopK(2), wrong)  # type: ignore[arg-type]


def test_it_conforms() -> None:
    check_policy(lambda: UCB(RBF(0.5), 0.1, TopK(3), condition_on_chosen="guaranteed"))


def test_an_oracle_in_the_place_of_the_kernel_is_an_error_that_says_where_it_goes():
    with pytest.raises(InputError, match=r"UCB\(oracle=TopK"):
        UCB(TopK(2))


def test_where_nothing_can_be_proven_a_decision_says_nothing_of_exactness() -> None:
    assert UCB(oracle=TopK(2)).select(x).is_exact is None
    arms = {str(n): {"x": row[0], "y": row[1]} for n, row in enumerate(x)}
    assert "is_exact" not in Agent(TopK(2)).decide(arms).to_dict()
    assert UCB(RBF(0.5), 0.1, TopK(2)).select(x).is_exact


def learned(outcomes: int, k: int = 5, **settings: object) -> UCB:
    """Return a policy without a width that has learned a sine, seen at random."""
    policy = UCB(RBF(0.2), 0.1, TopK(k), **settings)
    rng = np.random.default_rng(1)
    seen = rng.random((outcomes, 2))
    policy.observe(seen, np.sin(5 * seen[:, 0]) + 0.1 * rng.normal(size=outcomes))
    return policy


@pytest.mark.parametrize(("outcomes", "explorers", "width"), [(199, 2, 1.0), (800, 1, 0.0)])
def test_without_a_width_some_arms_explore(outcomes: int, explorers: int, width: float) -> None:
    policy = learned(outcomes, outcome_range=(-9.0, 9.0))
    arms = np.vstack([x, [[0.3, 3.0]]])  # nothing is known of the last one
    mean, std = policy.posterior.predict(arms)
    index, plain = policy.index(arms), mean + width * std
    best = math.inf if width else policy.posterior.outcomes[-200:].max()
    wide = np.maximum(np.minimum(mean + 2 * std, best), plain)
    explore = np.argsort(-wide)[:explorers]
    assert len(arms) - 1 in explore
    assert mean[-1] + 2 * std[-1] > policy.posterior.outcomes[-200:].max()
    np.testing.assert_allclose(index[explore], wide[explore], atol=1e-4)
    others = np.setdiff1d(np.arange(len(arms)), explore)
    np.testing.assert_allclose(index[others], plain[others], atol=1e-4)


def test_no_arm_is_tried_for_its_spread_alone() -> None:
    # Both arms may be as good as the best so far. The one with the higher mean explores, and the
    # other one is left to its mean, for all its spread.
    policy = UCB(RBF(1.0), 0.1, TopK(5))
    policy.observe(np.zeros((800, 2)), np.ones(800))
    arms = [[0.5, 0.0], [9.0, 9.0]]
    mean, std = policy.posterior.predict(arms)
    assert mean[0] > mean[1]
    assert 1.0 < mean[0] + 2 * std[0] < mean[1] + 2 * std[1]
    np.testing.assert_allclose(policy.index(arms), [1.0, mean[1]], atol=1e-5)


@pytest.mark.parametrize(("outcomes", "share"), [(200, 2 / 5), (800, 1 / 5), (3_200, 1 / 10)])
def test_the_share_of_arms_that_explore_falls_as_outcomes_pile_up(
    outcomes: int, share: float
) -> None:
    policy = learned(outcomes, k=1, outcome_range=(-9.0, 9.0))
    arms = np.array([[np.pi / 10, 0.5], [0.3, 3.0]])  # the second one is not known, and no better
    chosen = [int(policy.select(arms).super_arm[0]) for _ in range(101)]
    assert sum(chosen[1:]) == pytest.approx(100 * share, abs=1.0)


def test_with_a_ceiling_ties_go_by_the_mean() -> None:
    policy = UCB(RBF(0.1), 0.1, TopK(1), outcome_range=(0.0, 0.1))
    policy.observe([[0.0]], [0.1])
    near, far = policy.index([[0.0], [9.0]])
    assert far < near <= 0.1


def test_an_arm_known_to_succeed_is_not_passed_over_for_one_that_might() -> None:
    policy = UCB(RBF(0.1), 0.1, TopK(1), outcome_range=(0.0, 1.0))
    policy.observe(np.zeros((100, 1)), np.full(100, 0.97))
    mean, std = policy.posterior.predict([[0.0], [9.0]])
    assert mean[0] + 2 * std[0] < 1.0 < mean[1] + 2 * std[1]
    for _ in range(5):
        assert policy.select([[0.0], [9.0]]).super_arm == [0]


def test_decisions_before_the_first_outcome_differ() -> None:
    policy, arms = UCB(oracle=TopK(5)), RNG.random((50, 2))
    chosen = {int(arm) for _ in range(20) for arm in policy.select(arms).super_arm}
    assert len(chosen) > 35  # 44 of 50 if drawn anew in each round
    assert UCB(oracle=TopK(5)).select(arms).super_arm.tolist() == [0, 1, 2, 3, 4]


def test_an_end_that_only_arms_alike_have_met_is_put_to_the_test() -> None:
    # The outcome is the day of the week. Fridays looked best at first, and chosen ever since, they
    # met the same outcome so often that it looks like the largest one possible.
    policy, rng = UCB(oracle=TopK(5)), np.random.default_rng(0)
    days = np.array([1, 2, 3, 4, 4, 5, 5, 5, 5, 5] * 3)
    policy.observe(np.eye(7)[days - 1], days.astype(float))
    assert policy.posterior.range[1] == 5.0
    met = []
    for _ in range(9):
        days = rng.integers(1, 8, 60)
        decision = policy.select(np.eye(7)[days - 1])
        met.append(days[decision.super_arm].max())
        policy.update(decision, days[decision.super_arm].astype(float))
    assert max(met[:8]) == 5
    assert met[8] > 5
    assert policy.posterior.range[1] == math.inf


def test_where_everything_tried_is_alike_something_new_is_tried() -> None:
    policy, rng = UCB(oracle=TopK(5)), np.random.default_rng(0)
    policy.observe(rng.random((300, 2)), 0.1 * rng.normal(size=300))
    arms = np.vstack([rng.random((60, 2)), [[3.0, 3.0]]])
    for t in range(1, 28):
        decision = policy.select(arms)
        if t in (9, 27):
            assert 60 in decision.super_arm
        policy.update(decision, 0.1 * rng.normal(size=5))


def test_a_model_that_sees_differences_is_not_tested() -> None:
    policy = learned(800)
    assert not policy.posterior.is_doubtful(policy.posterior.predict(RNG.random((50, 2))))


def test_a_corrected_outcome_is_no_ceiling() -> None:
    contexts = np.arange(10.0)[:, None]
    policy = UCB(oracle=TopK(1))
    policy.observe(contexts, [0.0] * 5 + [1.0] * 5)
    mean, std = policy.posterior.predict([[99.0]])
    assert policy.index([[99.0]])[0] <= 1.0 < mean[0] + std[0]
    policy.correct(contexts[9:], [1.0], [3.0])
    mean, std = policy.posterior.predict([[99.0]])
    assert policy.index([[99.0]]) == pytest.approx(mean + 2 * std)


def test_a_wrong_range_is_refused() -> None:
    with pytest.raises(InputError, match="outcome_range"):
        UCB(outcome_range=(1.0, 0.0))


def test_a_loaded_policy_explores_as_the_saved_one_would(tmp_path: Path) -> None:
    def play(policy: UCB, rounds: range) -> list[list[int]]:
        super_arms = []
        for t in rounds:
            rng = np.random.default_rng(t)
            decision = policy.select(rng.random((12, 2)))
            policy.update(decision, np.sin(9 * decision.contexts[:, 0]) + 0.1 * rng.normal(size=2))
            super_arms.append(decision.super_arm.tolist())
        return super_arms

    policy = UCB(RBF(0.2), 0.1, TopK(2))
    play(policy, range(105))
    policy.save(tmp_path / "policy")
    loaded = UCB.load(tmp_path / "policy")
    assert play(loaded, range(105, 140)) == play(policy, range(105, 140))


def test_decisions_called_exact_are_those_of_the_exact_posterior() -> None:
    fast = UCB(posterior=DictionaryPosterior(RBF(0.5), 0.1, tolerance=1e-4), oracle=TopK(3))
    exact = UCB(posterior=ExactPosterior(RBF(0.5), 0.1), oracle=TopK(3))
    called = 0
    for t in range(150):
        rng = np.random.default_rng(t)
        arms = rng.random((30, 2))
        decision, judge = fast.select(arms), exact.select(arms)
        if decision.is_exact:
            called += 1
            assert decision.super_arm.tolist() == judge.super_arm.tolist()
        outcomes = np.sin(9 * judge.contexts[:, 0]) + 0.1 * rng.normal(size=3)
        fast.observe(judge.contexts, outcomes)
        exact.observe(judge.contexts, outcomes)
    assert called > 50


def test_a_policy_without_a_width_conforms() -> None:
    check_policy(lambda: UCB(RBF(0.5), 0.1, TopK(3)))
