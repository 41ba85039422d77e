"""What a policy would have earned: replay, and doubly robust estimates.

    π       super arm that the policy chooses in a round      S   the one that was logged
    q_m     a regressor's prediction of the outcome of base arm m, fitted to other rounds
    r_m     outcome of a logged base arm                       p_m, P(S)   see `log`

Matching base arms, where rewards are sums; replay has q = 0:

    score = Σ_{m ∈ π} q_m  +  Σ_{m ∈ π ∩ S} (r_m - q_m) / p_m

Matching super arms, where they need not be:

    score = u(q, π)  +  1{π = S} (U(r) - u(q, S)) / P(S)

The mean of either is the policy's expected reward if the propensities are right, and above 0
for the arms that the policy chooses, however bad q is; the better q is, the smaller the variance
(Dudík, Langford and Li 2011). `Estimate.warnings` says when that looks wrong.

A policy that learns changes with what it sees, so replay of super arms (Li et al. 2011) counts only
rounds with π = S; the others leave no trace. They must be kept with the same probability whatever
they look like, so a matching round is kept with probability P_min / P(S). The kept rounds are then
distributed as a live run. Few rounds match: 1 of C(M, K) if super arms were logged uniformly,
where base arms match with K/M.
"""
# Tested in tests/offline/test_replay.py: one test file for each of the two functions.
# Tested in tests/offline/test_doubly_robust.py: one test file for each of the two functions.

from __future__ import annotations

import copy
from typing import Any, Literal

import numpy as np

from oclok.errors import InputError, NumericalError
from oclok.offline.estimate import Estimate, estimate_from_scores
from oclok.offline.log import Log, LoggedRound
from oclok.policies.base import Policy
from oclok.typing import BoolArray, FloatArray, IntArray
from oclok.validation import as_probability

Match = Literal["super_arm", "arms"]

#: Folds of the cross-fitting of q.
FOLDS = 5
#: What an estimate assumes that matches super arms.
OF_SUPER_ARMS = "rounds are independent draws from one world, propensities of super arms are right"


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
    _check(match, level)
    learner = copy.deepcopy(policy)
    if match == "super_arm":
        return _replay_super_arms(learner, log, level, np.random.default_rng(seed))
    decisions = []
    for current in log:
        decision = learner.select(current.contexts, current.oracle)
        both, outcomes, _ = _overlap(current, decision.super_arm)
        learner.update(decision, np.where(both, outcomes, np.nan))
        if not both.all():
            learner.discard(decision)
        decisions.append(decision.super_arm)
    zero = [np.zeros(len(current.contexts)) for current in log]
    learns = "; the policy learns only from outcomes in the log"
    return _estimate_by_arms("replay", log, decisions, zero, level, learns)


def doubly_robust(
    policy: Policy,
    log: Log,
    *,
    match: Match = "arms",
    regressor: Any = None,
    level: float = 0.95,
) -> Estimate:
    """Estimate the reward per round of a policy that decides as it is and learns no more.

    A policy that has learned from the very rounds it is judged on looks better than it is: train
    it on one part of the log and judge it on another.

    Args:
        policy: makes a decision in every round of the log; it is copied, not changed.
        log: rounds with known propensities.
        match: "arms" needs inclusion propensities p_m, a reward that is a sum, and outcomes that
            do not depend on which other base arms are chosen. "super_arm" needs P(S) and none of
            these, but far more rounds.
        regressor: a scikit-learn regressor for q; ridge regression on standardised contexts if
            left out.
        level: nominal coverage of the interval.

    Examples:
        >>> from oclok.offline import LoggedRound
        >>> from oclok.oracles import TopK
        >>> from oclok.policies import C2UCB
        >>> rng = np.random.default_rng(0)
        >>> contexts = np.array([[0.0], [1.0], [2.0]])
        >>> log = Log(
        ...     LoggedRound(contexts, [m], [m + rng.normal()], TopK(1), [1 / 3] * 3)
        ...     for m in rng.integers(3, size=600)
        ... )
        >>> policy = C2UCB()
        >>> policy.observe(*log[:100].observations)
        >>> estimate = doubly_robust(policy, log[100:])
        >>> estimate.lower < 2.0 < estimate.upper
        True
    """
    _check(match, level)
    if len(log) < 2 * FOLDS:
        raise InputError(f"at least {2 * FOLDS} rounds are needed; the log has {len(log)}")
    decisions = decide(policy, log)
    q = _predictions(log, regressor)
    if match == "arms":
        return _estimate_by_arms("doubly robust", log, decisions, q, level)
    P = _super_arm_propensities(log)
    scores, weights = np.empty((2, len(log)))
    for t, (current, chosen) in enumerate(zip(log, decisions, strict=True)):
        weights[t] = np.array_equal(current.super_arm, chosen) / P[t]
        error = current.reward - current.value(q[t], current.super_arm)
        scores[t] = current.value(q[t], chosen) + weights[t] * error
    method = "doubly robust, matching super arms"
    return estimate_from_scores(method, scores, weights, log, level, OF_SUPER_ARMS)


def decide(policy: Policy, log: Log) -> list[IntArray]:
    """Return the super arm that a copy of `policy` chooses in each round, learning nothing."""
    decider = copy.deepcopy(policy)
    chosen = []
    for current in log:
        decision = decider.select(current.contexts, current.oracle)
        decider.discard(decision)
        chosen.append(decision.super_arm)
    return chosen


def _check(match: str, level: float) -> None:
    as_probability(level, "level")
    if match not in ("super_arm", "arms"):
        raise InputError(f"match must be 'super_arm' or 'arms'; got {match!r}")


def _replay_super_arms(
    policy: Policy, log: Log, level: float, rng: np.random.Generator
) -> Estimate:
    P = _super_arm_propensities(log)
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
    scores, weights = np.array(rewards), np.ones(len(rewards))
    method = "replay, matching super arms"
    return estimate_from_scores(method, scores, weights, log, level, OF_SUPER_ARMS, checked=checked)


def _estimate_by_arms(
    method: str,
    log: Log,
    decisions: list[IntArray],
    q: list[FloatArray],
    level: float,
    also_assumes: str = "",
) -> Estimate:
    """Return the estimate of matching base arms, given π and q of each round."""
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
    assumes = (
        "rounds are independent draws from one world, the inclusion propensities are right, and "
        f"an outcome does not depend on which other base arms are chosen{also_assumes}"
    )
    method, missing = f"{method}, matching base arms", float(unsupported.mean())
    return estimate_from_scores(method, scores, weights, log, level, assumes, unsupported=missing)


def _super_arm_propensities(log: Log) -> FloatArray:
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
    both = np.isin(super_arm, current.super_arm)
    return both, current.seen[super_arm], current.propensities[super_arm]


def _predictions(log: Log, regressor: Any) -> list[FloatArray]:
    """Return q of all base arms of each round, from outcomes of other rounds."""
    from sklearn.base import clone
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), Ridge()) if regressor is None else regressor
    q: list[FloatArray] = [np.empty(0)] * len(log)
    for fold in range(FOLDS):
        train = Log(current for t, current in enumerate(log) if t % FOLDS != fold)
        try:
            fitted = clone(model).fit(*train.observations)
        except Exception as reason:  # whatever a regressor may raise
            raise NumericalError(f"{model!r} cannot be fitted to the log: {reason}") from reason
        test = [log[t].contexts for t in range(fold, len(log), FOLDS)]
        predicted = np.asarray(fitted.predict(np.vstack(test)), dtype=np.float64).reshape(-1)
        ends = np.cumsum([len(contexts) for contexts in test])
        q[fold::FOLDS] = np.split(predicted, ends[:-1])
    return q
