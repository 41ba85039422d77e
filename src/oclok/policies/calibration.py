"""Whether a policy's confidence is deserved, told from the outcomes as they arrive.

    z    standardised one-step-ahead residuals of outcomes: independent standard normal numbers
         if kernel and noise are right

A model that is sure of the wrong thing sees |z| too large (overconfident), one that is unsure
of what it could know sees |z| too small (underconfident).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, erf

from oclok.typing import FloatArray

#: The verdict is wrong on a calibrated model about this often.
FALSE_ALARM = 0.01


@dataclass(frozen=True)
class Calibration:
    """How well predictions matched outcomes.

    Attributes:
        count: number of residuals.
        mean: their mean; 0 if calibrated.
        spread: root of their mean square; 1 if calibrated, above it overconfident.
        spread_interval: 99% confidence interval of the spread.
        coverage: share of outcomes inside the central interval of each nominal level.
        verdict: "overconfident", "underconfident" or "neither".
        p_value: how likely a calibrated model is to show residuals as odd as these.
    """

    count: int
    mean: float
    spread: float
    spread_interval: tuple[float, float]
    coverage: dict[float, float]
    verdict: Literal["overconfident", "underconfident", "neither"]
    p_value: float

    def __str__(self) -> str:
        if self.count == 0:
            return "not judged: no outcomes yet that were foreseen"
        low, high = self.spread_interval
        shares = ", ".join(
            f"{share:.0%} in the {level:.0%} band" for level, share in self.coverage.items()
        )
        is_neither = self.verdict == "neither"
        verdict = "neither over- nor underconfident" if is_neither else self.verdict
        return (
            f"{verdict} (p = {self.p_value:.2g}): residuals spread {self.spread:.2f} times "
            f"what was predicted, 99% interval {low:.2f} to {high:.2f}; {shares}; "
            f"{self.count} outcomes"
        )


def calibrate(
    residuals: FloatArray, shares: FloatArray, levels: tuple[float, ...] = (0.5, 0.8, 0.95)
) -> Calibration:
    """Return the calibration shown by standardised residuals.

    Two tests, each at half the false alarms: all residuals alike, which sees wrong noise, and
    weighted by how much of f was in what was foreseen, which sees a wrong kernel. Under the model
    Σz² is χ² with N degrees of freedom, and Σwz² nearly a multiple of one (Satterthwaite).

    Args:
        residuals: z, shape (N,).
        shares: w, share of f in the variance foreseen for each; shape (N,).
        levels: nominal levels of `coverage`.
    """
    n = len(residuals)
    if n == 0:
        nothing = dict.fromkeys(levels, math.nan)
        return Calibration(0, math.nan, math.nan, (0.0, math.inf), nothing, "neither", 1.0)
    squares = residuals**2
    total = float(squares.sum())
    tests = [_excess(squares, np.ones(n)), _excess(squares, shares)]
    p_value, excess = min(tests)
    p_value = min(1.0, 2 * p_value)
    verdict: Literal["overconfident", "underconfident", "neither"] = "neither"
    if p_value < FALSE_ALARM:
        verdict = "overconfident" if excess > 0 else "underconfident"
    tail = FALSE_ALARM / 2
    low, high = (math.sqrt(total / chdtri(n, q)) for q in (tail, 1 - tail))
    reached = erf(np.abs(residuals) / math.sqrt(2))
    return Calibration(
        count=n,
        mean=float(residuals.mean()),
        spread=math.sqrt(total / n),
        spread_interval=(low, high),
        coverage={level: float((reached <= level).mean()) for level in levels},
        verdict=verdict,
        p_value=p_value,
    )


def _excess(squares: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return a two-sided p-value of Σwz², and how far it is above what is expected."""
    sum_1, sum_2 = float(weights.sum()), float(weights @ weights)
    if sum_2 == 0:
        return 1.0, 0.0
    freedom = sum_1**2 / sum_2
    statistic = float(weights @ squares) * sum_1 / sum_2
    p_value = 2 * min(chdtr(freedom, statistic), chdtrc(freedom, statistic))
    return min(1.0, float(p_value)), statistic - freedom
