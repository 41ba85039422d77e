"""Estimates on logs of a control group: they cover, or they refuse."""

from __future__ import annotations

import os

import numpy as np
import pytest

from oclok.errors import InputError
from oclok.offline import Log, LoggedRound, doubly_robust, evaluate, replay
from oclok.oracles import TopK
from oclok.policies import C2UCB

#: Logs of each case; OCLOK_LOGS=60 for figures to quote.
LOGS = int(os.environ.get("OCLOK_LOGS", 20))


def test_the_policy_learns_the_first_half_and_is_judged_on_the_second(world) -> None:  # type: ignore[no-untyped-def]
    log = world.log(400, 0)
    policy = C2UCB()
    logged, robust, replayed = evaluate(log, policy)
    assert policy.round == 0
    assert logged.value == pytest.approx(np.mean([current.reward for current in log[200:]]))
    assert robust.value > logged.upper
    assert replayed.rounds == 200


@pytest.mark.parametrize("match", ["arms", "super_arm"])
def test_a_log_without_chance_is_refused_or_warned_about(world, match) -> None:  # type: ignore[no-untyped-def]
    """Always the same set of each kind of round, with probability 1."""
    certain = np.array([0.0, 0.0, 1.0, 1.0])
    for estimator in (doubly_robust, replay):
        doubted = 0
        for seed in range(LOGS):
            log = Log(
                LoggedRound(r.contexts, np.array([2, 3]), r.outcomes, TopK(2), certain, 1.0)
                for r in world.log(120, seed)
            )
            doubted += bool(estimator(world.Fixed(), log, match=match).warnings)
        print(f"{estimator.__name__}, {match}: {doubted} of {LOGS} logs without chance doubted")
        assert doubted >= 0.95 * LOGS


@pytest.mark.parametrize("match", ["arms", "super_arm"])
def test_logs_that_are_not_as_uniform_as_declared_are_found(world, match) -> None:  # type: ignore[no-untyped-def]
    for estimator in (doubly_robust, replay):
        doubted = 0
        for seed in range(LOGS):
            log = Log(
                LoggedRound(r.contexts, r.super_arm, r.outcomes, TopK(2), np.full(4, 0.5), 1 / 6)
                for r in world.log(600, seed)
            )
            doubted += bool(estimator(world.Fixed(), log, match=match).warnings)
        print(f"{estimator.__name__}, {match}: {doubted} of {LOGS} logs not uniform doubted")
        assert doubted >= 0.95 * LOGS


def test_right_propensities_raise_no_doubt(world) -> None:  # type: ignore[no-untyped-def]
    doubted = sum(
        bool(doubly_robust(world.Fixed(), world.log(300, seed)).warnings) for seed in range(40)
    )
    assert doubted <= 1


def test_unknown_policies_and_logs_of_shadow_mode_are_refused(world) -> None:  # type: ignore[no-untyped-def]
    log = world.log(40, 0)
    with pytest.raises(InputError, match="policy must be one of"):
        evaluate(log, "best")
    bare = Log(LoggedRound(c.contexts, c.super_arm, c.outcomes, TopK(2)) for c in log)
    with pytest.raises(InputError, match="no propensities"):
        evaluate(bare, "random")
