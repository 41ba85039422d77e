from __future__ import annotations

import numpy as np
import pytest

from oclok.errors import InputError
from oclok.offline import Log, LoggedRound, replay
from oclok.oracles import TopK
from oclok.persistence import dumps
from oclok.policies import C2UCB, Random


@pytest.mark.parametrize("match", ["super_arm", "arms"])
@pytest.mark.parametrize("uniform", [True, False])
def test_it_is_unbiased_and_covers_the_truth_as_often_as_it_says(world, many_logs, match, uniform):
    # The full study has 500 logs of several kinds each; it is in benchmarks/offline.py.
    estimates = [replay(world.Fixed(), g, match=match, level=0.8) for g in many_logs[uniform]]
    errors = np.array([estimate.value for estimate in estimates]) - world.true_value()
    assert abs(errors.mean()) < 3 * errors.std() / np.sqrt(50)
    covered = np.mean([e.lower <= world.true_value() <= e.upper for e in estimates])
    assert 0.63 < covered < 0.97  # three standard errors of 50 logs


def test_exactly_the_matching_rounds_count_where_all_super_arms_are_equally_likely(world):
    log = world.log(300, 1, uniform=True)
    same = [r for r in log if r.super_arm.tolist() == world.best(r.contexts)]
    estimate = replay(world.Fixed(), log)
    assert estimate.matched == estimate.effective_sample_size == len(same) > 30
    assert estimate.value == pytest.approx(np.mean([r.outcomes.sum() for r in same]))


def test_rounds_with_likelier_matches_are_not_kept_more_often():
    # Rounds of two arms match six times as often as those of four, and are worth nothing.
    rng = np.random.default_rng(0)

    def logged(arms):
        super_arm = np.sort(rng.choice(arms, 2, replace=False))
        P = 2 / (arms * (arms - 1))
        outcomes = np.full(2, float(arms == 4))
        return LoggedRound(
            rng.random((arms, 1)), super_arm, outcomes, TopK(2), super_arm_propensity=P
        )

    log = Log(logged(arms) for arms in rng.choice([2, 4], 1000))
    estimate = replay(Random(seed=0), log)
    assert estimate.lower < 1.0 < estimate.upper  # half of the rounds are worth 2
    naive = np.mean([r.outcomes.sum() for r in log if rng.random() < r.super_arm_propensity])
    assert naive < 0.5


def test_a_learning_policy_sees_what_it_would_have_seen_live(world):
    log = world.log(400, 3, uniform=True)
    policy = C2UCB(TopK(2))
    kept = []
    for current in log:  # by hand, without copies: C2UCB does not depend on the round
        if np.array_equal(policy.select(current.contexts).super_arm, current.super_arm):
            policy.update(policy.pending[-1], current.outcomes)
            kept.append(current.outcomes.sum())
    estimate = replay(C2UCB(), log)
    assert estimate.matched == len(kept)
    assert estimate.value == pytest.approx(np.mean(kept))


def test_rounds_that_do_not_match_do_not_count_as_rounds_of_the_policy():
    class Late(Random):
        seen: list[int] = []  # noqa: RUF012

        def _score(self, contexts, t, rng):
            self.seen.append(t)
            return super()._score(contexts, t, rng)

    contexts = [[0.0], [1.0], [2.0]]
    log = Log(
        LoggedRound(contexts, [m], [1.0], TopK(1), super_arm_propensity=1 / 3)
        for m in np.random.default_rng(0).integers(3, size=60)
    )
    estimate = replay(Late(seed=0), log)
    assert estimate.matched < 40
    assert Late.seen == sorted(Late.seen)
    assert max(Late.seen) <= estimate.matched + 1


def test_by_arms_a_policy_learns_what_both_chose_and_nothing_else(world):
    log = world.log(100, 4)
    policy = C2UCB(TopK(2))
    scores = []
    for current in log:
        decision = policy.select(current.contexts)
        outcomes = dict(zip(current.super_arm.tolist(), current.outcomes, strict=True))
        seen = [outcomes.get(m, np.nan) for m in decision.super_arm.tolist()]
        policy.update(decision, seen)
        scores.append(np.nansum(seen / current.propensities[decision.super_arm]))
    assert replay(C2UCB(), log, match="arms").value == pytest.approx(np.mean(scores))


def test_the_policy_that_was_given_is_left_alone(world):
    policy = C2UCB(TopK(2))
    before = dumps(policy)
    for match in ("super_arm", "arms"):
        replay(policy, world.log(50, 0), match=match)
    assert dumps(policy) == before


def test_a_policy_that_was_never_logged_gets_a_warning_and_no_number(world):
    log = world.log(200, 0)
    others = Log(r for r in log if not set(r.super_arm.tolist()) & set(world.best(r.contexts)))
    for match in ("super_arm", "arms"):
        estimate = replay(world.Fixed(), others, match=match)
        assert np.isnan(estimate.value)
        assert "cannot answer" in repr(estimate)


def test_propensities_that_are_missing_are_asked_for(world):
    bare = Log(LoggedRound(r.contexts, r.super_arm, r.outcomes, r.oracle) for r in world.log(20, 0))
    with pytest.raises(InputError, match="no propensities of super arms"):
        replay(world.Fixed(), bare)
    with pytest.raises(InputError, match="no inclusion propensities"):
        replay(world.Fixed(), bare, match="arms")


def test_by_arms_a_reward_must_be_a_sum(world):
    log = world.log(30, 0, oracle=TopK(2, reward=np.tanh))
    with pytest.raises(InputError, match="sum of the outcomes"):
        replay(world.Fixed(), log, match="arms")
    kept = replay(world.Fixed(), log)
    assert -1 < kept.value < 1 or np.isnan(kept.value)


@pytest.mark.parametrize("wrong", [{"match": "slate"}, {"level": 1.0}])
def test_wrong_arguments_are_named(world, wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        replay(world.Fixed(), world.log(20, 0), **wrong)
