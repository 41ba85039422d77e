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
        p_value: how likely a calibrated model is to show a spread as far from 1 as this.
    """

    count: int
    mean: float
    spread: float
    spread_interval: tuple[float, float]
    coverage: dict[float, float]
    verdict: Literal["overconfident", "underconfident", "neither"]
    p_value: float

    def __str__(self) -> str:
        low, high = self.spread_interval
        shares = ", ".join(
            f"{share:.0%} in the {level:.0%} band" for level, share in self.coverage.items()
        )
        return (
            f"{self.verdict} (p = {self.p_value:.2g}): residuals spread {self.spread:.2f} times "
            f"what was predicted, 99% interval {low:.2f} to {high:.2f}; {shares}; "
            f"{self.count} outcomes"
        )


def judge(residuals: FloatArray, levels: tuple[float, ...] = (0.5, 0.8, 0.95)) -> Calibration:
    """Return the calibration shown by standardised residuals, shape (N,).

    Σz² of N independent standard normal numbers is χ² with N degrees of freedom, which gives the
    interval of the spread and the p-value of the verdict.
    """
    n = len(residuals)
    if n == 0:
        nothing = dict.fromkeys(levels, math.nan)
        return Calibration(0, math.nan, math.nan, (0.0, math.inf), nothing, "neither", 1.0)
    total = float(residuals @ residuals)
    p_value = min(1.0, 2 * min(chdtr(n, total), chdtrc(n, total)))
    tail = FALSE_ALARM / 2
    low, high = (math.sqrt(total / chdtri(n, q)) for q in (tail, 1 - tail))
    reached = erf(np.abs(residuals) / math.sqrt(2))
    verdict: Literal["overconfident", "underconfident", "neither"] = "neither"
    if p_value < FALSE_ALARM:
        verdict = "overconfident" if total > n else "underconfident"
    return Calibration(
        count=n,
        mean=float(residuals.mean()),
        spread=math.sqrt(total / n),
        spread_interval=(low, high),
        coverage={level: float((reached <= level).mean()) for level in levels},
        verdict=verdict,
        p_value=float(p_value),
    )
