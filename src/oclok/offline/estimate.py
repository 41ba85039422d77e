"""The result of an offline evaluation: a number, its interval, and whether the log can answer.

    s_t     score of round t: its mean is the policy's expected reward in that round, (T,)
    w_t     weight of round t: by how much its outcomes count for the policy, mean 1, (T,)
    n_eff   (Σ w)² / Σ w², Kish's effective sample size
    ς       standard error of the mean of s
    γ, κ    skewness and excess kurtosis of s

Weights make scores skewed and long-tailed: most rounds say little, a few a lot. The interval is
where |g(x)| ≤ t + c, with x = (mean of s - truth) / ς and Hall's transformation

    g(x) = x + a x² + a² x³/3 + a/2,    a = γ / 3√T

which takes the skewness out of x (Hall 1992, "On the removal of skewness by transformation"). t is
Student's quantile with n_eff - 1 degrees of freedom: only rounds that count tell the spread. And

    c = (κ (z³/4 + 5z/12) - γ² (11z³/27 + 31z/72)) / T    if positive, z the normal quantile

is for the tails, from the expansion of the quantile of g(x) to order 1/T: the Cornish-Fisher term
of x, carried through g, plus (κ - 3γ²/2)(z³/3 + z/6), the covariance of γ, as estimated, with x
(Hall 1992, "The Bootstrap and Edgeworth Expansion", chapter 3). Without c, 95% intervals cover 93%
where tails are long.

Two checks of the propensities: weights average 1, and for every feature x of the base arms,
Σ x_m / p_m over those that were logged is Σ x_m over all that could be, in expectation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc, ndtri, stdtrit

from oclok.extras import needs
from oclok.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from oclok.offline.log import LoggedRound

#: Below this effective sample size an interval says little.
LEAST_EFFECTIVE = 30
#: Weights whose mean is this many standard errors from 1 contradict the propensities.
MOST_ERRORS = 4.0
#: Logs that are less likely than this, given their propensities, contradict them.
LEAST_LIKELY = 1e-4
#: Largest share of the policy's choices with propensity 0; above it the estimate is refused.
MOST_UNSUPPORTED = 0.01


class OverlapWarning(UserWarning):
    """The log has too little of what the policy would have chosen to answer for it."""


@dataclass(frozen=True)
class Estimate:
    """An offline estimate of a policy's expected reward per round.

    Attributes:
        method: of estimation.
        value: the estimate; NaN where the log cannot answer.
        lower, upper: ends of the interval that covers the true value with probability `level`.
        level: nominal coverage.
        rounds: number of rounds in the log.
        matched: number of rounds in which the policy chose (some of) the logged arms; 0 for a
            model's opinion, which needs no match.
        effective_sample_size: number of rounds, played by the policy itself, that the log is
            worth; NaN for a model's opinion.
        assumes: assumptions under which it holds.
        warnings: reasons not to trust it.
    """

    method: str
    value: float
    lower: float
    upper: float
    level: float
    rounds: int
    matched: int
    effective_sample_size: float
    assumes: str
    warnings: tuple[OverlapWarning, ...] = ()

    def table(self) -> pd.DataFrame:
        """Return the estimate as a table with one row, for `pandas.concat`."""
        with needs("agent"):
            import pandas as pd

        row = {**self.__dict__, "warnings": "; ".join(map(str, self.warnings))}
        return pd.DataFrame([row])

    def __repr__(self) -> str:
        size, overlap = self.effective_sample_size, ""
        if not math.isnan(size):
            overlap = f", {self.matched} matched, worth {size:.1f} rounds of this policy"
        lines = [
            f"{self.method}: {self.value:.4g} per round, "
            f"{self.level:.0%} interval {self.lower:.4g} to {self.upper:.4g}",
            f"  log of {self.rounds} rounds{overlap}",
            f"  assumes that {self.assumes}",
            *(f"  WARNING: {warning}" for warning in self.warnings),
        ]
        return "\n".join(lines)


def estimate_from_scores(
    method: str,
    scores: FloatArray,
    weights: FloatArray,
    log: Sequence[LoggedRound],
    level: float,
    assumes: str,
    *,
    checked: FloatArray | None = None,
    unsupported: float = 0.0,
) -> Estimate:
    """Return the estimate from scores s and weights w, each of shape (T,).

    `checked` are weights of all rounds, which average 1 if the propensities are right; w itself
    if left out. `unsupported` is the share of the policy's choices with propensity 0.
    """
    matched = int(np.count_nonzero(weights))
    effective = float(weights.sum() ** 2 / (weights**2).sum()) if matched else 0.0
    value = lower = upper = math.nan
    doubts = [*_imbalance(log), *_doubts(weights if checked is None else checked, effective)]
    if unsupported > MOST_UNSUPPORTED:
        missing = f"{unsupported:.0%} of what the policy chooses could not be logged: no estimate"
        doubts.insert(0, missing)
    elif effective >= 2:
        value = float(scores.mean())
        lower, upper = interval_of_mean(scores, effective - 1, level)
    warnings = tuple(map(OverlapWarning, doubts))
    numbers = (value, lower, upper, level, len(log), matched, effective)
    return Estimate(method, *numbers, assumes, warnings)


def _imbalance(log: Sequence[LoggedRound]) -> list[str]:
    """Return a warning if features of the logged base arms contradict the inclusion propensities.

    With d_t = Σ x_m / p_m over what was logged less Σ x_m over all with p_m > 0, T d̄ᵀ C⁻¹ d̄ is
    χ² distributed, where C is the covariance of d.
    """
    d = []
    for current in log:
        p = current.propensities
        if p is None or np.isnan(p).any():
            return []
        X = np.column_stack([np.ones(len(p)), current.contexts])
        chosen = current.super_arm
        d.append((X[chosen] / p[chosen, None]).sum(axis=0) - X[p > 0].sum(axis=0))
    differences = np.array(d)
    varies = differences.std(axis=0) > 1e-9 * (1 + np.abs(differences).max())
    is_off = bool((~varies & (np.abs(differences.mean(axis=0)) > 1e-6)).any())
    values = differences[:, varies]
    T, rank = values.shape
    if T > rank > 0 and not is_off:
        C = np.cov(values, rowvar=False).reshape(rank, rank)
        mean = values.mean(axis=0)
        statistic = float(T * mean @ np.linalg.pinv(C, rcond=1e-10, hermitian=True) @ mean)
        is_off = chdtrc(int(np.linalg.matrix_rank(C)), statistic) < LEAST_LIKELY
    wrong = (
        "features of the logged base arms, divided by their propensities, do not add up to those "
        "of all base arms: the propensities are wrong"
    )
    return [wrong] if is_off else []


def interval_of_mean(scores: FloatArray, freedom: float, level: float) -> tuple[float, float]:
    """Return an interval for the expectation of independent `scores`, which may be skewed."""
    mean, error = float(scores.mean()), _standard_error(scores)
    if error == 0:
        return mean, mean
    standardised = (scores - mean) / scores.std()
    skewness = float((standardised**3).mean())
    kurtosis = float((standardised**4).mean()) - 3
    a = skewness / (3 * math.sqrt(scores.size))
    z = float(ndtri((1 + level) / 2))
    tails = kurtosis * (z**3 / 4 + 5 * z / 12) - skewness**2 * (11 * z**3 / 27 + 31 * z / 72)
    reach = float(stdtrit(freedom, (1 + level) / 2)) + max(tails, 0.0) / scores.size
    return mean - _unskewed(reach, a) * error, mean - _unskewed(-reach, a) * error


def _unskewed(y: float, a: float) -> float:
    """Return the x with g(x) = y: g(x) - a/2 = ((1 + a x)³ - 1) / 3a."""
    z = y - a / 2
    if abs(a) < 1e-6:  # the cube root would cancel; what is left out is of order a
        return z
    return (math.cbrt(1 + 3 * a * z) - 1) / a


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size))


def _doubts(weights: FloatArray, effective: float) -> list[str]:
    doubts = []
    if effective < LEAST_EFFECTIVE:
        doubts.append(
            f"the log cannot answer: it is worth {effective:.1f} rounds of this policy, "
            f"{LEAST_EFFECTIVE} are needed for the interval to hold"
        )
    if weights.size > 1:
        mean, error = float(weights.mean()), _standard_error(weights)
        if abs(mean - 1) > max(MOST_ERRORS * error, 1e-6):
            doubts.append(
                f"weights average {mean:.3g} ± {error:.2g} where 1 is expected: the policy chooses "
                "base arms that could not be logged, or the propensities are wrong"
            )
    return doubts
