from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from oclok.errors import InputError, NumericalError
from oclok.offline import Log, LoggedRound, doubly_robust
from oclok.offline.estimators import FOLDS
from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import C2UCB

WRONG = DummyRegressor(strategy="constant", constant=3.0)


@pytest.mark.parametrize("regressor", [None, WRONG], ids=["ridge", "wrong"])
@pytest.mark.parametrize("match", ["super_arm", "arms"])
def test_it_is_unbiased_and_covers_the_truth_however_wrong_the_model_is(
    world, many_logs, match, regressor
):
    # The full study has 1,000 logs of several kinds each; it is in benchmarks/offline.py.
    estimates = [
        doubly_robust(world.Fixed(), log, match=match, regressor=regressor, level=0.8)
        for log in many_logs[False]
    ]
    errors = np.array([estimate.value for estimate in estimates]) - world.true_value()
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(50)
    covered = np.mean([e.lower <= world.true_value() <= e.upper for e in estimates])
    assert 0.63 < covered < 0.97  # three standard errors of 50 logs


@pytest.mark.parametrize("match", ["super_arm", "arms"])
def test_scores_are_those_of_a_plain_transcription(world, match):
    log = world.log(40, 7)
    scores = []
    for t, current in enumerate(log):
        others = Log(r for s, r in enumerate(log) if s % FOLDS != t % FOLDS)
        q = Ridge(2.0).fit(*others.observations).predict(current.contexts)
        chosen, logged = world.best(current.contexts), current.super_arm.tolist()
        r = dict(zip(logged, current.outcomes, strict=True))
        if match == "arms":
            both = [m for m in chosen if m in r]
            correction = sum((r[m] - q[m]) / current.propensities[m] for m in both)
        else:
            error = sum(r.values()) - q[logged].sum()
            correction = error / current.super_arm_propensity if chosen == logged else 0.0
        scores.append(q[chosen].sum() + correction)
    estimate = doubly_robust(world.Fixed(), log, match=match, regressor=Ridge(2.0))
    assert estimate.value == pytest.approx(np.mean(scores))


def test_a_good_model_makes_a_narrow_interval(world):
    log = world.log(300, 0)
    good, wrong = (
        doubly_robust(world.Fixed(), log, regressor=model)
        for model in (DecisionTreeRegressor(min_samples_leaf=5), WRONG)
    )
    assert good.upper - good.lower < 0.5 * (wrong.upper - wrong.lower)


def test_by_super_arms_the_reward_need_not_be_a_sum(world):
    oracle = TopK(2, reward=np.tanh)
    estimate = doubly_robust(
        world.Fixed(), world.log(2000, 0, oracle=oracle), match="super_arm", level=0.99
    )
    rng = np.random.default_rng(0)
    truth = 0.0
    for kind, share in zip(world.kinds, [0.5, 0.3, 0.2], strict=True):
        means = world.f(kind)[world.best(kind)].sum()
        truth += share * np.tanh(means + 0.4 * np.sqrt(2) * rng.normal(size=400_000)).mean()
    assert estimate.lower < truth < estimate.upper
    assert estimate.upper - estimate.lower < 0.15
    with pytest.raises(InputError, match="sum of the outcomes"):
        doubly_robust(world.Fixed(), world.log(20, 0, oracle=oracle))


def test_a_policy_that_learns_is_judged_as_it_is(world):
    policy = C2UCB(TopK(2))
    policy.observe(*world.log(100, 0).observations)
    before = dumps(policy)
    estimate = doubly_robust(policy, world.log(600, 1), level=0.99)
    assert dumps(policy) == before
    truth = 0.0
    for kind, share in zip(world.kinds, [0.5, 0.3, 0.2], strict=True):
        truth += share * world.f(kind)[policy.select(kind).super_arm].sum()
    assert estimate.lower < truth < estimate.upper


def test_arms_that_could_not_be_logged_are_noticed():
    rng = np.random.default_rng(0)
    contexts = np.array([[0.0], [1.0], [2.0], [3.0]])
    # Arms 1 and 2 share all logging, arm 3, which the policy likes as well, is never chosen.
    log = Log(
        LoggedRound(contexts, [m], [rng.normal()], TopK(1), [0.0, 0.5, 0.5, 0.0])
        for m in rng.integers(1, 3, size=300)
    )

    class Undecided(C2UCB):
        def _score(self, contexts, t, rng):
            belief = super()._score(contexts, t, rng)
            belief.index[:] = [0, 0, t % 2, (t + 1) % 2]
            return belief

    warnings = doubly_robust(Undecided(), log).warnings
    assert any("could not be logged" in str(warning) for warning in warnings)


def test_wrong_propensities_are_noticed(world):
    log = Log(
        LoggedRound(r.contexts, r.super_arm, r.outcomes, r.oracle, np.full(4, 0.9))
        for r in world.log(400, 0)
    )
    assert "propensities are wrong" in repr(doubly_robust(world.Fixed(), log))


def test_too_few_rounds_a_model_that_fails_and_wrong_arguments_are_refused(world):
    with pytest.raises(InputError, match="at least 10 rounds"):
        doubly_robust(world.Fixed(), world.log(9, 0))
    with pytest.raises(NumericalError, match="cannot be fitted to the log"):
        doubly_robust(world.Fixed(), world.log(20, 0), regressor=Ridge(alpha=-1.0))
    with pytest.raises(InputError, match="match"):
        doubly_robust(world.Fixed(), world.log(20, 0), match="slate")
