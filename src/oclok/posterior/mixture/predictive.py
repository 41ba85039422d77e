"""The distribution of outcomes to come, as the outcomes so far would have it.

Outcomes of two values are one or the other, with the mean as probability, short of certainty.
Others are the mean plus the standard deviation times z, where z is distributed as the errors of
past predictions were, each in its own standard deviation: as skewed and as heavy-tailed as these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from oclok.typing import ArrayLike, FloatArray

#: Errors that a normal distribution of z counts for.
NORMAL = 20.0
#: Width by which each past error is smoothed.
SMOOTH = 0.02
#: No outcome of two is more certain than by this.
DOUBT = 0.01
#: Where the distribution of z is tabulated.
_Z = np.linspace(-12.0, 12.0, 961)


@dataclass(frozen=True, eq=False)
class Predictive:
    """Distributions of outcomes at M contexts.

    Attributes:
        mean, std: of the outcome, noise included; shape (M,).
        lower, upper: ends of the range of outcomes; infinite where not known.
        errors: z of past predictions.
        is_binary: outcomes are `lower` or `upper`.
        is_integer: outcomes are integers.
    """

    mean: FloatArray
    std: FloatArray
    lower: float
    upper: float
    errors: FloatArray
    is_binary: bool = False
    is_integer: bool = False

    def cdf(self, outcomes: ArrayLike) -> FloatArray:
        """Return P(Y ≤ y), shape (M,)."""
        return self.around(outcomes)[1]

    def around(self, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return P(Y < y) and P(Y ≤ y), each of shape (M,)."""
        y = np.asarray(outcomes, dtype=np.float64)
        if self.is_binary:
            below = upto = 1 - self._probability
        elif self.is_integer:
            edges = np.stack([np.ceil(y) - 0.5, np.floor(y) + 0.5])
            below, upto = self._cumulative((edges - self.mean) / self.std)
        else:
            below = upto = self._cumulative((y - self.mean) / self.std)
        below = np.where(y > self.upper, 1.0, np.where(y <= self.lower, 0.0, below))
        return below, np.where(y >= self.upper, 1.0, np.where(y < self.lower, 0.0, upto))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends that leave out at most (1 - level) / 2 on either side."""
        tail = 0.5 * (1 - level)
        if self.is_binary:
            p = self._probability
            low = np.where(1 - p > tail, self.lower, self.upper)
            return low, np.where(p > tail, self.upper, self.lower)
        ends = np.interp([tail, 1 - tail], self._table, _Z)
        low, high = self.mean + ends[0] * self.std, self.mean + ends[1] * self.std
        if self.is_integer:
            low, high = np.ceil(low - 0.5), np.floor(high + 0.5)
        return np.clip(low, self.lower, self.upper), np.clip(high, self.lower, self.upper)

    @property
    def _probability(self) -> FloatArray:
        """P(Y = upper)."""
        share = (self.mean - self.lower) / (self.upper - self.lower)
        return np.clip(share, DOUBT, 1 - DOUBT)

    def _cumulative(self, z: FloatArray) -> FloatArray:
        """Return P(Z ≤ z), interpolated between the points of the table on either side."""
        if 2 * z.size > len(_Z):
            return np.interp(z, _Z, self._table)
        right = np.clip(np.searchsorted(_Z, z), 1, len(_Z) - 1)
        low, high = self._at(_Z[np.stack([right - 1, right])])
        share = np.clip((z - _Z[right - 1]) / (_Z[right] - _Z[right - 1]), 0.0, 1.0)
        return np.asarray(low + share * (high - low))

    @cached_property
    def _table(self) -> FloatArray:
        return self._at(_Z)

    def _at(self, z: FloatArray) -> FloatArray:
        past = ndtr((z[..., None] - self.errors) / SMOOTH).sum(axis=-1)
        F: FloatArray = (NORMAL * ndtr(z) + past) / (NORMAL + len(self.errors))
        return F
