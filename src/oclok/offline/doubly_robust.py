"""Doubly robust: a model's prediction, corrected by what the log says of its errors.

    π       super arm that the policy chooses in a round      S   the one that was logged
    q_m     a regressor's prediction of the outcome of base arm m, fitted to other rounds
    r_m     outcome of a logged base arm                       p_m, P(S)   see `log`

Matching base arms, where rewards are sums:

    score = Σ_{m ∈ π} q_m  +  Σ_{m ∈ π ∩ S} (r_m - q_m) / p_m

Matching super arms, where they need not be:

    score = u(q, π)  +  1{π = S} (U(r) - u(q, S)) / P(S)

The mean of either is the policy's expected reward if the propensities are right, and above 0
for the arms that the policy chooses, however bad q is; the better q is, the smaller the variance
(Dudík, Langford and Li 2011). `Estimate.warnings` says when that looks wrong.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from oclok.errors import InputError, NumericalError
from oclok.offline.estimate import Estimate, estimate_from_scores, imbalance
from oclok.offline.log import Log
from oclok.offline.replay import Match, estimate_by_arms, super_arm_propensities
from oclok.policies.base import Policy
from oclok.typing import FloatArray, IntArray
from oclok.validation import as_probability

#: Folds of the cross-fitting of q.
FOLDS = 5


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
    as_probability(level, "level")
    if match not in ("super_arm", "arms"):
        raise InputError(f"match must be 'super_arm' or 'arms'; got {match!r}")
    if len(log) < 2 * FOLDS:
        raise InputError(f"at least {2 * FOLDS} rounds are needed; the log has {len(log)}")
    decisions = decide(policy, log)
    q = predictions(log, regressor)
    if match == "arms":
        return estimate_by_arms("doubly robust", log, decisions, q, level)
    matches = [np.array_equal(s.super_arm, d) for s, d in zip(log, decisions, strict=True)]
    weights = np.array(matches) / super_arm_propensities(log)
    scores = np.empty(len(log))
    for t, (current, chosen) in enumerate(zip(log, decisions, strict=True)):
        error = current.reward - current.value(q[t], current.super_arm)
        scores[t] = current.value(q[t], chosen) + weights[t] * error
    return estimate_from_scores(
        "doubly robust, matching super arms",
        scores,
        weights,
        level=level,
        rounds=len(log),
        assumes="rounds are independent draws from one world, the propensities of super arms are "
        "right",
        doubts=imbalance(log),
    )


def decide(policy: Policy, log: Log) -> list[IntArray]:
    """Return the super arm that a copy of `policy` chooses in each round, learning nothing."""
    decider = copy.deepcopy(policy)
    chosen = []
    for current in log:
        decision = decider.select(current.contexts, current.oracle)
        decider.discard(decision)
        chosen.append(decision.super_arm)
    return chosen


def predictions(log: Log, regressor: Any) -> list[FloatArray]:
    """Return q of all base arms of each round, from outcomes of other rounds."""
    from sklearn.base import clone

    model = regressor
    if model is None:
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = make_pipeline(StandardScaler(), Ridge())
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
