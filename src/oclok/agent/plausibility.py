"""Outcomes that cannot be right: so far from all others that a unit, or a digit, went wrong.

    y      latest outcomes, the new ones included, (n,)               c   their median
    d      |y - c|, in ascending order                                e   outliers granted
    S      spread: the larger of d[n-1-e] and the median of all d > 0

An outcome is implausible if it is further than F·S both from c and from what the model expects
there. F = 20 and d at the 95% quantile put the limit at about 39 standard deviations of normal
outcomes, and keep false alarms below one in a thousand for lognormal (σ ≤ 2), Pareto (α ≥ 2) and
Student (ν ≥ 2) outcomes. The median of the d > 0 is what matters where nearly all outcomes are
equal: a click among fifty zeros is one of its kind, so nothing is concluded from fewer than three.
"""

from __future__ import annotations

import math

import numpy as np

from oclok.typing import BoolArray, FloatArray

#: Least outcomes, and outcomes that differ from the median, for a judgement.
LEAST, LEAST_DIFFERENT = 5, 3
#: F: an outcome may be this many spreads away; more while there are few outcomes.
SPREADS = 20.0
#: Share of outcomes that may be wrong.
OUTLIERS = 0.05


def implausible(outcomes: FloatArray, expected: FloatArray | None = None) -> BoolArray:
    """Return which of the latest `outcomes`, shape (n,), cannot be right given all of them.

    Those near the model's mean, `expected`, are plausible wherever they are.
    """
    n = len(outcomes)
    far = np.zeros(n, dtype=bool)
    if n < LEAST:
        return far
    centre = float(np.median(outcomes))
    distance = np.abs(outcomes - centre)
    different = distance[distance > 0]
    if len(different) < LEAST_DIFFERENT:
        return far
    granted = max(math.ceil(OUTLIERS * n), min(4, n // LEAST))
    spread = max(
        float(np.partition(distance, n - 1 - granted)[n - 1 - granted]), float(np.median(different))
    )
    limit = SPREADS * (1 + SPREADS / n) * spread
    far = distance > limit
    if expected is not None and far.any():
        far &= ~(np.abs(outcomes - expected) <= limit)
    return far
