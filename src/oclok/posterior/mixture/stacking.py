"""How much Gaussian processes and trees count: the share that would have foreseen outcomes best.

g, h    errors of Gaussian processes and trees, each before the outcome was learned
w       share of the Gaussian processes; s² the smaller of the two mean squares

w minimises Σ (w g + (1 - w) h)² + λ s² (w - w₀)²    in [LEAST, 1]

Errors are those of arms that were chosen. There, among neighbours, trees do well even where they
are lost elsewhere, so Gaussian processes keep a share.
"""

from __future__ import annotations

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray

#: w₀, and λ: outcomes that it is worth, where both differ by as much as they err.
SHARE, PRIOR = 0.65, 6.0
#: Least share of the Gaussian processes.
LEAST = 0.4
#: An outcome counts this much less with each that follows.
DISCOUNT = 0.995


class Stack(Persistent):
    """The share of Gaussian processes in a mixture with trees."""

    def __init__(self) -> None:
        self._sums = np.zeros(4)  # of gg, gh, hh and 1

    def see(self, g: FloatArray, h: FloatArray, weights: FloatArray) -> None:
        """Take note of errors and their weights, each of shape (N,)."""
        self._sums *= DISCOUNT ** weights.sum()
        self._sums += np.array(
            [weights @ (g * g), weights @ (g * h), weights @ (h * h), weights.sum()]
        )

    @property
    def share(self) -> float:
        """The share w."""
        _, gh, hh, _ = self._sums
        smaller, apart = self._terms()
        if not apart > 0:
            return SHARE
        return float(np.clip((hh - gh + SHARE * PRIOR * smaller) / apart, LEAST, 1.0))

    @property
    def variance(self) -> float:
        """How uncertain the share is."""
        smaller, apart = self._terms()
        return float(smaller / apart) if apart > 0 else 1 / PRIOR

    def _terms(self) -> tuple[float, float]:
        """Return s², and Σ (g - h)² + λ s²."""
        gg, gh, hh, count = self._sums
        smaller = min(gg, hh) / max(count, 1.0)
        return smaller, gg - 2 * gh + hh + PRIOR * smaller
