"""The kind of outcomes, as far as those so far tell: range, and how spread follows the mean.

Outcomes of two values, and counts, vary less where their mean is near the end of the range; and f
varies less there, too. Standard deviations at a mean m are multiplied by

    √(p (1 - p) / q (1 - q))    two values, with p the place of m between them, q that of the mean
    √(m / mean)                 counts from 0 up

where the mean is that of all outcomes. Other outcomes vary alike wherever they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from oclok.typing import FloatArray

#: How often an extreme outcome has to be met to count as the end of the range. Zeros alone are no
#: ceiling: nothing has happened yet.
MET = 5
#: Outcomes, of more than two values, below which none are taken for integers.
LEAST_INTEGERS = 20
#: Smallest and largest factor.
LEAST, MOST = 0.2, 2.0


class OutcomeKind(NamedTuple):
    """Range, mean and kind of outcomes; ends of the range are infinite where not known."""

    low: float = -math.inf
    high: float = math.inf
    mean: float = 0.0
    is_binary: bool = False
    is_integer: bool = False

    @classmethod
    def of(cls, y: FloatArray) -> Self:
        """Return the kind of outcomes y (N,)."""
        if len(y) < MET:
            return cls()
        least, largest = float(y.min()), float(y.max())
        low = least if np.count_nonzero(y == least) >= MET else -math.inf
        high = largest if np.count_nonzero(y == largest) >= MET and y.any() else math.inf
        is_binary = low < high < math.inf and bool(((y == low) | (y == high)).all())
        is_integer = len(y) >= LEAST_INTEGERS and bool((y == np.floor(y)).all())
        return cls(low, high, float(y.mean()), is_binary, is_integer)

    def factor(self, mean: FloatArray) -> FloatArray:
        """Return what standard deviations at means (M,) are multiplied by."""
        if self.is_binary:
            p = np.clip((mean - self.low) / (self.high - self.low), 0.0, 1.0)
            q = (self.mean - self.low) / (self.high - self.low)
            relative = p * (1 - p) / (q * (1 - q))
        elif self.is_integer and self.low == 0.0 < self.mean:
            relative = np.maximum(mean, 0.0) / self.mean
        else:
            return np.ones(len(mean))
        return np.clip(np.sqrt(relative), LEAST, MOST)
