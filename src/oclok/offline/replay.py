"""Replay: let a policy learn from a log, in the rounds where it chooses what was logged.

Two ways to match, both unbiased, for different things:

- **super arms** (Li et al. 2011). A round counts only if the policy chooses exactly the logged
  super arm S; the others leave no trace. Rounds must be kept with the same probability whatever
  they look like, so a matching round is kept with probability P_min / P(S). The kept rounds are
  then distributed as a live run of the policy, and the estimate is unbiased for its mean reward,
  whatever the reward is. Few rounds match: 1 of C(M, K) if super arms were logged uniformly.
- **base arms**. Every round counts, and the policy learns the outcomes of the base arms that
  both it and the log chose. The score of a round is Σ r_m / p_m over these. This is unbiased for
  the mean expected reward of the policy as it learns *from this log*, which is slower than live,
  if rewards are sums and an outcome does not depend on which other base arms are chosen. It needs
  K/M of a match where super arms need 1 / C(M, K).
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
        match: "super_arm" for the reward of the policy's first rounds live, as many as match;
            needs P(S), the propensities of super arms. "arms" for its reward while it learns from
            this log; needs inclusion propensities p_m and a reward that is a sum.
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
    decisions = []
    for current in log:
        decision = policy.select(current.contexts, current.oracle)
        both, outcomes, _ = _overlap(current, decision.super_arm)
        policy.update(decision, np.where(both, outcomes, np.nan))
        if not both.all():
            policy.discard(decision)
        decisions.append(decision.super_arm)
    zero = [np.zeros(len(current.contexts)) for current in log]
    learns = "; the policy learns only from outcomes in the log"
    return estimate_by_arms("replay", log, decisions, zero, level, learns)


def estimate_by_arms(
    method: str,
    log: Log,
    decisions: list[IntArray],
    q: list[FloatArray],
    level: float,
    also_assumes: str = "",
) -> Estimate:
    """Return the estimate whose scores are Σ q_m over the policy's arms + Σ (r_m - q_m) / p_m.

    The second sum is over arms that both the policy and the log chose.

    Args:
        method: in a word.
        log: with rewards that are sums.
        decisions: the policy's super arm of each round.
        q: predicted outcomes of all base arms of each round.
        level: nominal coverage.
        also_assumes: a further assumption.
    """
    scores, weights, unsupported = np.zeros((3, len(log)))
    for t, (current, chosen) in enumerate(zip(log, decisions, strict=True)):
        if not current.is_sum:
            raise InputError(
                f"match='arms' needs a reward that is the sum of the outcomes; in round {t} of "
                f"the log it is {current.reward:g}, and the sum {current.outcomes.sum():g}"
            )
        both, outcomes, p = _overlap(current, chosen)
        predicted = q[t][chosen]
        scores[t] = predicted.sum() + ((outcomes - predicted)[both] / p[both]).sum()
        weights[t] = (both / np.where(both, p, 1.0)).sum() / max(chosen.size, 1)
        unsupported[t] = np.count_nonzero(p == 0) / max(chosen.size, 1)
    return estimate_from_scores(
        f"{method}, matching base arms",
        scores,
        weights,
        level=level,
        rounds=len(log),
        assumes="rounds are independent draws from one world, the inclusion propensities are "
        f"right, and an outcome does not depend on which other base arms are chosen{also_assumes}",
        unsupported=float(unsupported.mean()),
        doubts=imbalance(log),
    )


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


def _overlap(current: LoggedRound, super_arm: IntArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return for each arm of `super_arm` whether it was logged, its outcome (else 0), and p_m."""
    if current.propensities is None:
        raise InputError(
            "the log has no inclusion propensities: give propensity=, or uniform=True if super "
            "arms were logged uniformly at random"
        )
    seen = np.zeros(len(current.contexts))
    seen[current.super_arm] = current.outcomes
    both = np.isin(super_arm, current.super_arm)
    return both, seen[super_arm], current.propensities[super_arm]
