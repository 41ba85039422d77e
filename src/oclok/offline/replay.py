"""Replay: let a policy learn from a log, in the rounds where it chooses what was logged.

Two ways to match, both unbiased, for different things:

- **super arms** (Li et al. 2011). A round happens only if the policy chooses exactly the logged
  super arm S; all other rounds are as if they had never been. Rounds must be kept with the same
  probability whatever they look like, so a matching round is kept with probability P_min / P(S).
  What is kept is then distributed as a run of the policy in the live world, and the estimate is
  unbiased for the mean reward of such a run, whatever the reward is. Few rounds match:
  1 of C(M, K) if super arms were logged uniformly.
- **base arms**. Every round happens, and the policy learns the outcomes of the base arms that
  both it and the log chose. The score of a round is Σ r_m / p_m over these. This is unbiased for
  the mean expected reward of the policy as it learns *from this log*, which is slower than
  it would learn live, if rewards are sums and an outcome does not depend on which other
  base arms are chosen. It needs K/M of a match where super arms need 1 / C(M, K).
"""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np

from oclok.errors import InputError
from oclok.offline.estimate import Estimate, estimate_from_scores, imbalance
from oclok.offline.log import Log, LoggedRound
from oclok.policies.base import Policy
from oclok.typing import BoolArray, FloatArray, IntArray
from oclok.validation import as_probability

Match = Literal["super_arm", "arms"]


def replay(
    policy: Policy,
    log: Log,
    *,
    match: Match = "super_arm",
    level: float = 0.95,
    seed: int | np.random.SeedSequence = 0,
) -> Estimate:
    """Estimate the reward per round of a policy that learns as it goes.

    Args:
        policy: starts as it is; it is copied, not changed.
        log: its rounds must be independent draws from one world, logged with propensities that
            did not depend on the outcomes.
        match: "super_arm" for the reward that the policy would have over its first rounds live,
            as many as match; needs P(S), the propensities of super arms. "arms" for its reward
            while it learns from this log; needs inclusion propensities p_m and a reward that is
            a sum.
        level: nominal coverage of the interval.
        seed: decides which matching rounds are kept where P(S) differs between rounds.

    Examples:
        >>> from oclok.offline import LoggedRound
        >>> from oclok.oracles import TopK
        >>> from oclok.policies import Random
        >>> rng = np.random.default_rng(0)
        >>> contexts = [[0.0], [1.0], [2.0]]
        >>> log = Log(
        ...     LoggedRound(contexts, [m], [m + rng.normal()], TopK(1), super_arm_propensity=1 / 3)
        ...     for m in rng.integers(3, size=600)
        ... )
        >>> estimate = replay(Random(seed=0), log)
        >>> estimate.lower < 1.0 < estimate.upper
        True
    """
    as_probability(level, "level")
    learner = copy.deepcopy(policy)
    if match == "super_arm":
        return _replay_super_arms(learner, log, level, np.random.default_rng(seed))
    if match == "arms":
        return _replay_arms(learner, log, level)
    raise InputError(f"match must be 'super_arm' or 'arms'; got {match!r}")


def _replay_super_arms(
    policy: Policy, log: Log, level: float, rng: np.random.Generator
) -> Estimate:
    P = super_arm_propensities(log)
    kept = rng.random(len(log)) * P < P.min()
    rewards, checked = [], np.zeros(len(log))
    for t in np.flatnonzero(kept):
        current = log[int(t)]
        trial = copy.deepcopy(policy)  # a round that does not match must leave no trace
        decision = trial.select(current.contexts, current.oracle)
        if np.array_equal(decision.super_arm, current.super_arm):
            trial.update(decision, current.outcomes)
            policy = trial
            rewards.append(current.reward)
            checked[t] = 1 / P.min()
    return estimate_from_scores(
        "replay, matching super arms",
        np.array(rewards),
        np.ones(len(rewards)),
        level=level,
        rounds=len(log),
        assumes="rounds are independent draws from one world and the propensities of the logged "
        "super arms are right",
        checked=checked,
        doubts=imbalance(log),
    )


def _replay_arms(policy: Policy, log: Log, level: float) -> Estimate:
    check_sums(log)
    scores, weights = np.empty(len(log)), np.empty(len(log))
    unsupported = np.zeros(len(log))
    for t, current in enumerate(log):
        decision = policy.select(current.contexts, current.oracle)
        both, outcomes, p = overlap(current, decision.super_arm)
        unsupported[t] = share_unsupported(current, decision.super_arm)
        policy.update(decision, np.where(both, outcomes, np.nan))
        if not both.all():
            policy.discard(decision)
        scores[t] = (outcomes[both] / p[both]).sum()
        weights[t] = (both / p).sum() / max(len(decision), 1)
    return estimate_from_scores(
        "replay, matching base arms",
        scores,
        weights,
        level=level,
        rounds=len(log),
        assumes="rounds are independent draws from one world, the inclusion propensities are "
        "right, and an outcome does not depend on which other base arms are chosen; "
        "the policy learns only from outcomes in the log",
        unsupported=float(unsupported.mean()),
        doubts=imbalance(log),
    )


def overlap(current: LoggedRound, super_arm: IntArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return of each base arm in `super_arm` whether it was logged, its outcome and p_m.

    Outcomes are 0 and p_m is 1 where it was not. Each has shape (K,).
    """
    if current.propensities is None:
        raise InputError(
            "the log has no inclusion propensities: give propensity=, or uniform=True if super "
            "arms were logged uniformly at random"
        )
    logged = np.zeros(len(current.contexts), dtype=bool)
    logged[current.super_arm] = True
    seen = np.zeros(len(current.contexts))
    seen[current.super_arm] = current.outcomes
    both = logged[super_arm]
    outcomes, p = seen[super_arm], np.where(both, current.propensities[super_arm], 1.0)
    return both, outcomes, p


def share_unsupported(current: LoggedRound, super_arm: IntArray) -> float:
    """Return the share of `super_arm` that could not be logged: its propensity is 0."""
    assert current.propensities is not None
    return float((current.propensities[super_arm] == 0).mean()) if super_arm.size else 0.0


def super_arm_propensities(log: Log) -> FloatArray:
    """Return P(S) of each round, shape (T,)."""
    known = [current.super_arm_propensity for current in log]
    if any(P is None for P in known):
        raise InputError(
            "the log has no propensities of super arms: give super_arm_propensity=, or "
            "uniform=True if super arms were logged uniformly at random; with inclusion "
            "propensities, match='arms' is possible"
        )
    return np.array(known, dtype=np.float64)


def check_sums(log: Log) -> None:
    """Raise an `InputError` unless the reward of every logged super arm is a sum of outcomes."""
    for t, current in enumerate(log):
        if not current.is_sum:
            raise InputError(
                f"match='arms' needs a reward that is the sum of the outcomes; in round {t} of "
                f"the log it is {current.reward:g}, and the sum {current.outcomes.sum():g}"
            )
