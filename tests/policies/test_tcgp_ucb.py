from __future__ import annotations

import io
import itertools
import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.errors import FeedbackError, InfeasibleError, InputError, OracleError, OutcomeError
from oclok.oracles import Knapsack, SumOracle, TopK
from oclok.persistence import dumps
from oclok.policies import OClokUCB
from oclok.policies.tcgp_ucb import TCGPUCB, as_groups, as_pairs, as_thresholds
from oclok.posterior import ExactPosterior, Posterior, SparsePosterior
from oclok.testing import check_policy
from oclok.testing.assertions import check_alike

KERNEL = RBF(0.5)


def experienced(count: int = 40, seed: int = 0, **how: Any) -> TCGPUCB:
    """A policy that knows a good deal of both outcomes."""
    policy = TCGPUCB(**{"kernel": KERNEL, "noise_std": 0.1, "oracle": TopK(3), **how})
    X = np.random.default_rng(seed).random((count, 2))
    policy.observe(X, np.column_stack([np.sin(5 * X[:, 0]), 20 * np.cos(4 * X[:, 1])]))
    return policy


def test_indices_are_those_of_the_paper() -> None:
    policy = experienced(zeta=0.3, delta=0.1, group_kernel=Matern(0.7), group_noise_std=0.2)
    assert policy.group_posterior.kernel == Matern(0.7)
    assert policy.group_posterior.noise_std == 0.2
    X = np.random.default_rng(1).random((15, 2))
    beta = 2 * math.log(15 * math.pi**2 / (3 * 0.1))
    mean, std = policy.posterior.predict(X)
    np.testing.assert_allclose(policy.index(X), mean + math.sqrt(beta) / 0.7 * std, rtol=1e-12)
    mean, std = policy.group_posterior.predict(X)
    expected = mean + math.sqrt(beta) / 0.3 * std
    np.testing.assert_allclose(policy.group_index(X), expected, rtol=1e-12)


def test_without_groups_and_with_a_reward_factor_of_1_it_is_oclok_ucb() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = TCGPUCB(KERNEL, 0.1, TopK(4), zeta=0.0), OClokUCB(KERNEL, 0.1, TopK(4))
    for _ in range(60):
        contexts = rng.random((rng.integers(5, 40), 3))
        decision = ours.select(contexts)
        assert decision == theirs.select(contexts)
        outcomes = np.sin(contexts[decision.super_arm].sum(axis=1))
        ours.update(decision, outcomes)
        theirs.update(decision, outcomes)
    assert dumps(ours.posterior) == dumps(theirs.posterior)


def test_with_one_group_that_is_good_enough_it_chooses_as_without_groups() -> None:
    rng = np.random.default_rng(0)
    grouped, free = TCGPUCB(KERNEL, 0.1, TopK(4)), TCGPUCB(KERNEL, 0.1, TopK(4))
    for _ in range(40):
        contexts = rng.random((20, 2))
        decision = grouped.select(contexts, groups=np.zeros(20, dtype=int), threshold=-1e6)
        assert decision == free.select(contexts)
        outcomes = rng.standard_normal((4, 2))
        grouped.update(decision, outcomes)
        free.update(decision, outcomes)


@settings(max_examples=25, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=12, max_size=12),
    threshold=st.floats(-20, 20),
    seed=st.integers(0, 1000),
)
def test_no_arm_is_chosen_of_a_group_that_its_group_index_has_ruled_out(
    labels: list[int], threshold: float, seed: int
) -> None:
    policy = experienced()
    X = np.random.default_rng(seed).random((12, 2))
    groups = np.array(labels)
    group_index, index = policy.group_index(X), policy.index(X)
    good = [g for g in set(labels) if group_index[groups == g].mean() >= threshold]
    if not good:
        with pytest.raises(InfeasibleError, match="no group"):
            policy.select(X, groups=groups, threshold=threshold)
        assert policy.round == 0
        return
    allowed = np.flatnonzero(np.isin(groups, good))
    decision = policy.select(X, groups=groups, threshold=threshold)
    np.testing.assert_array_equal(decision.super_arm, allowed[TopK(3)(index[allowed])])


def test_that_holds_in_every_round_while_it_learns() -> None:
    rng = np.random.default_rng(2)
    policy = TCGPUCB(KERNEL, 0.1, TopK(3), zeta=0.7)
    ruled_out = 0
    for _ in range(60):
        X, groups = rng.random((20, 2)), rng.integers(0, 6, 20)
        thresholds = {g: rng.normal(2.0) for g in range(6)}
        index = policy.group_index(X)
        bad = {g for g in set(groups.tolist()) if index[groups == g].mean() < thresholds[g]}
        ruled_out += len(bad)
        decision = policy.select(X, groups=groups, threshold=thresholds)
        assert not bad & set(groups[decision.super_arm].tolist())
        f = np.column_stack([decision.contexts[:, 0], 4 * decision.contexts[:, 1]])
        policy.update(decision, f + 0.1 * rng.standard_normal(f.shape))
    assert ruled_out


def test_good_groups_are_never_ruled_out_as_often_as_promised() -> None:
    delta, seeds, missed = 0.3, 40, 0
    prior = ExactPosterior(KERNEL, 0.1)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, groups = rng.random((30, 2)), np.arange(30) // 5
        f, f_group = prior.sample(X, rng), prior.sample(X, rng)
        threshold = np.median(f_group)
        good = [g for g in range(6) if f_group[groups == g].mean() >= threshold]
        policy = TCGPUCB(KERNEL, 0.1, TopK(3), delta=delta, zeta=0.9)
        is_missed = False
        for _ in range(10):
            index = policy.group_index(X)
            is_missed |= any(index[groups == g].mean() < threshold for g in good)
            try:
                decision = policy.select(X, groups=groups, threshold=threshold)
            except InfeasibleError:
                break
            seen = np.column_stack([f, f_group])[decision.super_arm]
            policy.update(decision, seen + 0.1 * rng.standard_normal((3, 2)))
        missed += is_missed
    assert missed <= delta * seeds


def test_both_posteriors_learn_what_they_are_told() -> None:
    rng = np.random.default_rng(3)
    policy = TCGPUCB(KERNEL, 0.1, TopK(3))
    judges: tuple[Posterior, ...] = (ExactPosterior(KERNEL, 0.1), ExactPosterior(KERNEL, 0.1))
    decisions = [
        policy.select(rng.random((9, 2)), groups=["a", "b", "c"] * 3, threshold=-9.0)
        for _ in range(5)
    ]
    for position in (3, 0, 4, 1, 2):
        decision, outcomes = decisions[position], rng.standard_normal((3, 2))
        late = outcomes.copy()
        outcomes[position % 3] = np.nan
        late[np.arange(3) != position % 3] = np.nan
        policy.update(decision, outcomes)
        assert decision in policy.pending
        policy.update(decision, late)
        for piece in (outcomes, late):
            seen = ~np.isnan(piece[:, 0])
            for judge, column in zip(judges, piece.T, strict=True):
                judge.update(decision.contexts[seen], column[seen])
    assert policy.pending == []
    X = rng.random((10, 2))
    for posterior, judge in zip((policy.posterior, policy.group_posterior), judges, strict=True):
        assert len(posterior) == 15
        for ours, theirs in zip(posterior.predict(X), judge.predict(X), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8)


def test_without_groups_reward_outcomes_alone_will_do() -> None:
    policy = TCGPUCB(KERNEL, 0.1, TopK(2))
    X = np.random.default_rng(0).random((5, 2))
    policy.update(policy.select(X), [0.1, 0.2])
    policy.update(policy.select(X), [[0.1, 0.3], [0.2, 0.4]])
    policy.observe(X, np.zeros(5))
    policy.observe(X, np.zeros((5, 2)))
    assert (len(policy.posterior), len(policy.group_posterior)) == (14, 7)


BAD_OUTCOMES: dict[str, Any] = {
    "one column, with groups": [0.1, 0.2],
    "three columns": np.zeros((2, 3)),
    "a row too many": np.zeros((3, 2)),
    "a row too few": np.zeros((1, 2)),
    "half a pair": [[0.1, np.nan], [0.2, 0.3]],
    "the other half": [[np.nan, 0.1], [0.2, 0.3]],
    "infinite": [[0.1, np.inf], [0.2, 0.3]],
    "strings": [["a", "b"], ["c", "d"]],
    "ragged": [[0.1], [0.2, 0.3]],
    "nothing": None,
}


@pytest.mark.parametrize("what", BAD_OUTCOMES)
def test_bad_outcomes_are_refused_and_change_nothing(what: str) -> None:
    policy = experienced(oracle=TopK(2))
    decision = policy.select(np.eye(2), groups=[0, 1], threshold=-90.0)
    state = dumps(policy)
    with pytest.raises(OutcomeError):
        policy.update(decision, BAD_OUTCOMES[what])
    assert dumps(policy) == state


def test_outcomes_given_twice_are_refused_and_change_nothing() -> None:
    policy = experienced(oracle=TopK(2))
    decision = policy.select(np.eye(2), groups=[0, 1], threshold=-90.0)
    policy.update(decision, [[0.1, 0.2], [np.nan, np.nan]])
    state = dumps(policy)
    with pytest.raises(FeedbackError, match="given before"):
        policy.update(decision, [[0.1, 0.2], [0.3, 0.4]])
    assert dumps(policy) == state
    policy.update(decision, [[np.nan, np.nan], [0.3, 0.4]])
    with pytest.raises(FeedbackError, match="not pending"):
        policy.update(decision, [[0.1, 0.2], [0.3, 0.4]])


@pytest.mark.parametrize("fails", ["posterior", "group_posterior"])
def test_if_one_posterior_cannot_learn_neither_does(fails: str) -> None:
    class Stubborn(ExactPosterior):
        def update(self, contexts: Any, outcomes: Any, weights: Any = None) -> None:
            raise ArithmeticError

        def learn(self, contexts: Any, outcomes: Any) -> Any:
            raise ArithmeticError

    policy = TCGPUCB(
        oracle=TopK(2),
        **{
            name: (Stubborn if name == fails else ExactPosterior)(KERNEL, 0.1)
            for name in ("posterior", "group_posterior")
        },
    )
    decision = policy.select(np.eye(2), groups=[0, 1], threshold=-9.0)
    with pytest.raises(ArithmeticError):
        policy.update(decision, np.zeros((2, 2)))
    with pytest.raises(ArithmeticError):
        policy.observe(np.eye(2), np.zeros((2, 2)))
    assert (len(policy.posterior), len(policy.group_posterior)) == (0, 0)
    assert policy.pending == [decision]


def test_the_group_posterior_learns_in_place() -> None:
    policy = TCGPUCB(KERNEL, 0.1, TopK(2))
    posterior = policy.group_posterior
    decision = policy.select(np.eye(2), groups=[0, 1], threshold=-9.0)
    policy.update(decision, np.zeros((2, 2)))
    policy.observe(np.eye(2), np.zeros((2, 2)))
    assert policy.group_posterior is posterior  # and not a copy, which would take O(N²)
    assert len(posterior) == 4


BAD_ROUNDS: dict[str, dict[str, Any]] = {
    "no threshold": {"groups": [0, 1]},
    "no groups": {"threshold": 0.5},
    "too few groups": {"groups": [0], "threshold": 0.5},
    "groups with two axes": {"groups": [[0], [1]], "threshold": 0.5},
    "groups that are fractions": {"groups": [0.5, 1.0], "threshold": 0.5},
    "ragged groups": {"groups": [[0], [1, 2]], "threshold": 0.5},
    "an infinite threshold": {"groups": [0, 1], "threshold": np.inf},
    "a threshold that is text": {"groups": [0, 1], "threshold": "high"},
    "a group without threshold": {"groups": [0, 1], "threshold": {0: 0.5}},
    "thresholds in an array": {"groups": [0, 1], "threshold": [0.5, 0.5]},
}


@pytest.mark.parametrize("what", BAD_ROUNDS)
def test_rounds_that_mean_nothing_are_refused_and_change_nothing(what: str) -> None:
    policy = experienced()
    state = dumps(policy)
    with pytest.raises(InputError, match=r"groups?|threshold"):
        policy.select(np.eye(2), **BAD_ROUNDS[what])
    assert dumps(policy) == state


def test_a_group_index_needs_a_zeta_above_0() -> None:
    policy = TCGPUCB(KERNEL, 0.1, TopK(1), zeta=0.0)
    with pytest.raises(InputError, match="zeta"):
        policy.select(np.eye(2), groups=[0, 1], threshold=0.0)
    assert policy.round == 0


@pytest.mark.parametrize(
    "how",
    [
        {"zeta": 1.0},
        {"zeta": -0.1},
        {"zeta": math.nan},
        {"zeta": "half"},
        {"group_posterior": KERNEL},
        {"group_posterior": ExactPosterior(KERNEL, 0.1), "group_kernel": KERNEL},
        {"group_noise_std": -1.0},
        {"group_kernel": "RBF"},
    ],
    ids=itertools.count(),
)
def test_settings_that_mean_nothing_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TCGPUCB(KERNEL, 0.1, **how)


def test_two_posteriors_must_be_two_of_one_dimension() -> None:
    two, three = ExactPosterior(KERNEL, 0.1), ExactPosterior(KERNEL, 0.1)
    two.update(np.zeros((1, 2)), [0.0])
    three.update(np.zeros((1, 3)), [0.0])
    with pytest.raises(InputError, match="dimension"):
        TCGPUCB(posterior=two, group_posterior=three)
    with pytest.raises(InputError, match="same one"):
        TCGPUCB(posterior=two, group_posterior=two)


def test_any_oracle_chooses_among_the_arms_that_remain() -> None:
    policy = experienced(count=60)
    X = np.array([[0.2, 0.9], [0.2, 0.1], [0.3, 0.1], [0.8, 0.1], [0.4, 0.1]])
    costs, groups = np.array([0.1, 1.0, 2.0, 3.0, 1.5]), ["low", "x", "x", "y", "y"]
    index = policy.index(X)
    best = Knapsack(costs[1:], budget=3.0)(index[1:]) + 1
    decision = policy.select(X, Knapsack(costs, budget=3.0), groups=groups, threshold=5.0)
    np.testing.assert_array_equal(decision.super_arm, best)
    assert 0 in Knapsack(costs, budget=3.0)(index)


def test_an_oracle_that_cannot_exclude_arms_is_refused() -> None:
    class Stiff(SumOracle):
        alpha = 1.0

        def _solve(self, index: Any) -> Any:
            return np.array([0])

        def is_feasible(self, super_arm: Any) -> bool:
            return True

    policy = experienced(count=60, oracle=Stiff())
    X = np.array([[0.2, 0.9], [0.2, 0.1]])
    assert policy.select(X, groups=["low", "x"], threshold=-99.0).super_arm.tolist() == [0]
    with pytest.raises(OracleError, match="cannot include or exclude"):
        policy.select(X, groups=["low", "x"], threshold=5.0)
    assert policy.round == 1


def test_a_decision_is_exact_only_if_groups_were_told_apart_for_sure() -> None:
    X, groups = np.random.default_rng(0).random((9, 2)), np.arange(9) // 3
    exact = experienced(group_posterior=ExactPosterior(KERNEL, 0.1))
    assert exact.select(X, groups=groups, threshold=0.0).is_exact
    assert exact.certificate().from_widths < math.inf
    sparse = experienced(group_posterior=SparsePosterior(KERNEL, 0.1, 10, seed=0))
    assert sparse.select(X).is_exact
    assert not sparse.select(X, groups=groups, threshold=0.0).is_exact
    assert sparse.certificate().from_widths == math.inf


def test_the_certificate_bounds_the_regret_against_good_groups() -> None:
    rng = np.random.default_rng(5)
    prior = ExactPosterior(KERNEL, 0.1)
    X = rng.random((60, 2))
    f, f_group = prior.sample(X, rng), prior.sample(X, rng)
    policy = TCGPUCB(KERNEL, 0.1, TopK(3))
    regret = 0.0
    for _ in range(50):
        arms, groups = rng.choice(60, 20, replace=False), np.arange(20) // 4
        reached = np.bincount(groups, f_group[arms]) / 4
        threshold = float(np.median(reached))
        decision = policy.select(X[arms], groups=groups, threshold=threshold)
        good = f[arms][(reached >= threshold)[groups]]
        chosen = arms[decision.super_arm]
        regret += np.sort(good)[-3:].sum() - f[chosen].sum()
        seen = np.column_stack([f, f_group])[chosen] + 0.1 * rng.standard_normal((3, 2))
        policy.update(decision, seen)
    certificate = policy.certificate()
    assert regret <= certificate.from_widths <= certificate.from_information * (1 + 1e-9)
    assert certificate.probability == pytest.approx(0.9)


def test_a_loaded_policy_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    policy = experienced()
    waiting = policy.select(rng.random((9, 2)), groups=list("aabbccdde"), threshold=-9.0)
    policy.save(tmp_path / "policy")
    loaded = TCGPUCB.load(tmp_path / "policy")
    with pytest.raises(OutcomeError, match="2"):
        loaded.update(waiting, np.zeros(3))
    for one in (policy, loaded):
        one.update(waiting, np.ones((3, 2)))
    for _ in range(30):
        X, groups = rng.random((12, 2)), np.arange(12) // 3
        outcomes = rng.standard_normal((3, 2))
        decisions = [one.select(X, groups=groups, threshold=-15.0) for one in (policy, loaded)]
        np.testing.assert_array_equal(decisions[0].super_arm, decisions[1].super_arm)
        for one, decision in zip((policy, loaded), decisions, strict=True):
            one.update(decision, outcomes)
    check_alike(policy, loaded, "a loaded policy")


def test_what_it_keeps_of_rounds_does_not_grow() -> None:
    policy = experienced(oracle=TopK(2))
    sizes = []
    for _ in range(5):
        policy.update(policy.select(np.eye(2), groups=[0, 1], threshold=-99.0), np.zeros((2, 2)))
        policy.discard(policy.select(np.eye(2), groups=[0, 1], threshold=-99.0))
        state = json.loads(zipfile.ZipFile(io.BytesIO(dumps(policy))).read("state.json"))
        sizes.append(len(state["content"]["state"]["_grouped"]))
    assert sizes == [1] * 5


@pytest.mark.parametrize("zeta", [0.0, 0.5])
def test_it_conforms(zeta: float) -> None:
    check_policy(lambda: TCGPUCB(RBF(0.5), 0.1, TopK(3), zeta=zeta))


def test_labels_are_numbered() -> None:
    labels, group = as_groups(["b", "a", "b"], 3)
    assert [labels[g] for g in group] == ["b", "a", "b"]


@pytest.mark.parametrize("wrong", [["a"], [[1, 2, 3]], [0.5, 1.0, 2.0], [[1], [2, 3], 4]])
def test_labels_of_a_wrong_shape_or_kind_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        as_groups(wrong, 3)  # type: ignore[arg-type]


def test_thresholds_are_one_for_all_or_one_each() -> None:
    assert as_thresholds(0.5, ["a", "b"]).tolist() == [0.5, 0.5]
    assert as_thresholds({"b": 2.0, "a": 1.0}, ["a", "b"]).tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="'b' is missing"):
        as_thresholds({"a": 1.0}, ["a", "b"])
    with pytest.raises(InputError, match="need a threshold"):
        as_thresholds(None, ["a"])


def test_pairs_are_seen_together_or_not_at_all() -> None:
    nan = np.nan
    assert as_pairs(np.array([[1, 2], [nan, nan]]), 2, allow_nan=True).shape == (2, 2)
    with pytest.raises(OutcomeError, match="row 1"):
        as_pairs(np.array([[1, 2], [nan, 3]]), 2, allow_nan=True)
    with pytest.raises(OutcomeError):
        as_pairs(np.array([[1, 2], [nan, nan]]), 2)
    with pytest.raises(OutcomeError, match=r"\(2, 2\)"):
        as_pairs(np.array([1, 2]), 2, allow_nan=True)
