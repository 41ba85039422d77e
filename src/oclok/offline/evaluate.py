"""What another policy would have earned on an agent's log: replay and doubly robust estimates."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from oclok.errors import InputError
from oclok.offline.estimate import Estimate, interval_of_mean
from oclok.offline.estimators import Match, doubly_robust, replay
from oclok.offline.log import Log
from oclok.policies import UCB, Policy, Random, ThompsonSampling

#: Policies by the names of the command line.
POLICIES: dict[str, Callable[[], Policy]] = {
    "ucb": UCB,
    "greedy": lambda: UCB(width=0.0),
    "thompson": lambda: ThompsonSampling(seed=0),
    "random": lambda: Random(seed=0),
}


def evaluate(log: Log, policy: str | Policy = "greedy", level: float = 0.95) -> list[Estimate]:
    """Return what was earned on the second half of a log, and what a policy would have earned.

    The policy learns the first half before it is judged on the second.

    Args:
        log: see `read_log`.
        policy: one of "ucb", "greedy", "thompson" and "random", or a policy, which is not changed.
        level: nominal coverage of the intervals.
    """
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise InputError(f"policy must be one of {', '.join(POLICIES)}; got {policy!r}")
        policy = POLICIES[policy]()
    half = len(log) // 2
    if half < 10:
        raise InputError(f"a log of at least 20 complete decisions is needed; it has {len(log)}")
    train, test = log[:half], log[half:]
    learner = copy.deepcopy(policy)
    learner.observe(*train.observations)
    rewards, rounds = np.array([current.reward for current in test]), len(test)
    assumes = "rounds are independent draws from one world"
    ends = interval_of_mean(rewards, rounds - 1, level)
    logged = Estimate(
        "as logged", float(rewards.mean()), *ends, level, rounds, rounds, float(rounds), assumes
    )
    match: Match = "arms"
    if not all(current.is_sum and current.propensities is not None for current in test):
        match = "super_arm"
        if any(current.super_arm_propensity is None for current in test):
            raise InputError("the log has no propensities: another system decided, in shadow mode")
    return [
        logged,
        doubly_robust(learner, test, match=match, level=level),
        replay(learner, test, match=match, level=level),
    ]
