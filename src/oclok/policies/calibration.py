"""Whether a policy's confidence is deserved, judged by the outcomes as they arrive.

    z    residuals of outcomes, one step ahead: independent standard normal numbers if the model is
         right. For a posterior with a predictive distribution of its own they are the normal
         deviates of its probability integral transforms, randomised where outcomes are discrete.
    w    weights: 1, which shows wrong noise, or the share of f in the variance foreseen for each
         outcome, which shows a wrong kernel
    m    Σ w z² / Σ w, 1 if the model is right      n   (Σ w)² / Σ w²
    s²   variance of z² around m, at least 2, as it is for normal numbers

A model that is sure of the wrong thing sees m > 1 (overconfident), one that is unsure of what it
could know sees m < 1 (underconfident). The verdict says so if m differs from 1 by more than
c s / √n, with the boundary c of `oclok.confidence`, which holds at all times at once: `health` and
the page look again and again. A difference that is certain but small is no verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import erf

from oclok.confidence import anytime_p_value, boundary
from oclok.typing import FloatArray

#: Outcomes without which there is no verdict.
LEAST_OUTCOMES = 50
#: Probability that a model which is right is ever called otherwise.
FALSE_ALARM = 0.01
#: r of the boundary: the verdict is quickest at about 8 r outcomes.
TIGHT = 10.0
#: A spread within this factor of 1 is no verdict, however certain.
NOTABLE = 1.3

Confidence: TypeAlias = Literal["too early", "overconfident", "underconfident", "neither"]


@dataclass(frozen=True)
class Calibration:
    """How well predictions matched outcomes.

    Attributes:
        count: number of residuals.
        mean: their mean; 0 if calibrated.
        spread: root of their mean square; 1 if calibrated, above it overconfident.
        spread_interval: confidence interval of the spread that holds at all times at once.
        coverage: share of outcomes inside the central interval of each nominal level.
        verdict: "too early", "overconfident", "underconfident" or "neither".
        p_value: how likely a calibrated model is to ever show residuals as odd as these.
    """

    count: int
    mean: float
    spread: float
    spread_interval: tuple[float, float]
    coverage: dict[float, float]
    verdict: Confidence
    p_value: float

    @property
    def is_contradicted(self) -> bool:
        """Whether the data contradict what the model is sure of."""
        return self.verdict == "overconfident"

    def __str__(self) -> str:
        if self.verdict == "too early":
            return f"too early: {self.count} of {LEAST_OUTCOMES} outcomes"
        low, high = self.spread_interval
        shares = ", ".join(
            f"{share:.0%} in the {level:.0%} band" for level, share in self.coverage.items()
        )
        verdict = self.verdict.replace("neither", "neither over- nor underconfident")
        return (
            f"{verdict} (p = {self.p_value:.2g}): residuals spread {self.spread:.2f} times "
            f"what was predicted, 99% interval {low:.2f} to {high:.2f}; {shares}; "
            f"{self.count} outcomes"
        )


def calibrate(
    residuals: FloatArray, shares: FloatArray, levels: tuple[float, ...] = (0.5, 0.8, 0.95)
) -> Calibration:
    """Return the calibration that residuals z (N,) show: the verdict of health, page and metrics.

    `shares` (N,) are those of f in the variance foreseen; `levels` are nominal, of `coverage`.
    """
    n = len(residuals)
    if n == 0:
        nothing = dict.fromkeys(levels, math.nan)
        return Calibration(0, math.nan, math.nan, (0.0, math.inf), nothing, "too early", 1.0)
    squares = residuals**2
    tests = [_tested(squares, np.ones(n)), _tested(squares, shares)]
    verdict: Confidence = "neither"
    for m, low, high, _ in tests:
        if low > 1 and m >= NOTABLE**2:
            verdict = "overconfident"
        elif high < 1 and m <= NOTABLE**-2 and verdict == "neither":
            verdict = "underconfident"
    m, low, high, _ = tests[0]
    reached = erf(np.abs(residuals) / math.sqrt(2))
    return Calibration(
        count=n,
        mean=float(residuals.mean()),
        spread=math.sqrt(m),
        spread_interval=(math.sqrt(max(low, 0.0)), math.sqrt(high)),
        coverage={level: float((reached <= level).mean()) for level in levels},
        verdict=verdict if n >= LEAST_OUTCOMES else "too early",
        p_value=min(1.0, 2 * min(p for *_, p in tests)),
    )


def _tested(squares: FloatArray, weights: FloatArray) -> tuple[float, float, float, float]:
    """Return m, its confidence interval, and the p-value of m = 1."""
    total, power = float(weights.sum()), float(weights @ weights)
    if power == 0:
        return 1.0, 0.0, math.inf, 1.0
    n, m = total**2 / power, float(weights @ squares) / total
    variance = max(float(weights @ (squares - m) ** 2) / total, 2.0)
    error = math.sqrt(variance / n)
    width = float(boundary(n, FALSE_ALARM / 2, TIGHT)) * error
    return m, m - width, m + width, anytime_p_value(n, (m - 1) / error, TIGHT)
