"""Contexts scaled to [0, 1] by the range of the arms offered, chosen or not; outcomes centred.

    low, high    least and largest value of each column, (D,): those in use, and those seen so far

A scale in use changes only when it is refreshed, since posteriors have learned with it. One thing
can change at any time: the span of a column that was constant so far, where all that was learned
is at 0 whatever the span.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.mixture.members import ScalePrior
from oclok.posterior.observations import Observations, Rows
from oclok.typing import FloatArray, IntArray

#: A scale is outgrown when a column's range has grown by this fraction; by that one if there are
#: so many outcomes that learning them anew would stall a round.
GROWTH, LARGE_GROWTH, MANY = 0.1, 1.0, 1_000
#: Up to so many outcomes an outgrown scale is refreshed at once, later when outcomes have doubled.
FEW = 100
#: How far out of the range in use contexts are told apart, in spans.
REACH = 1.0
#: Prior of the scale: shape, and rate in variances of the outcomes. Its mean is their variance, and
#: it is weak: worth four outcomes. A rate of 0.05 had 13% more regret on Hartmann6 (6 seeds).
SHAPE, RATE = 2.0, 1.0
#: Variance of the outcomes as long as they tell none. Small, so that oracles for probabilities can
#: tell sets of arms apart before any outcome: at 1, first rounds of movies cost 6% more.
UNTOLD = 0.01
#: Outcomes in a sample.
SAMPLED = 128
#: Contexts that are kept scaled. Up to about so many, posteriors ask for all of them every round.
KEPT = 2_048


class ContextScale(Persistent):
    """How contexts are scaled, and the range that has been seen since.

    Args:
        is_fixed: contexts stay as they are.
    """

    def __init__(self, is_fixed: bool = False) -> None:
        self._is_fixed = is_fixed
        self._used: FloatArray | None = None
        self._seen: FloatArray | None = None

    @property
    def dimension(self) -> int | None:
        """D, or None as long as nothing was seen."""
        return None if self._seen is None else int(self._seen.shape[1])

    def is_outgrown(self, count: int, doubled: bool = True) -> bool:
        """Return whether contexts seen since the scale was set ask for another.

        Args:
            count: how many outcomes were learned with it.
            doubled: whether these have doubled since it was last asked.
        """
        if not doubled and count > FEW:
            return False
        if self._used is None or self._seen is None or self._is_fixed:
            return False
        used, seen = np.diff(self._used, axis=0), np.diff(self._seen, axis=0)
        growth = GROWTH if count <= MANY else LARGE_GROWTH
        return bool((seen > (1 + growth) * used).any())

    def see(self, X: FloatArray) -> None:
        """Take note of contexts X (M, D)."""
        self._seen = self._range_with(X)
        if self._used is not None:
            self._used = self._ends_in_use(X)

    def refreshed(self, X: FloatArray | None = None) -> ContextScale:
        """Return the scale of all contexts seen, and of X (M, D)."""
        other = self.offered()
        if X is not None:
            other.see(X)
        other._used = other._seen
        return other

    def offered(self) -> ContextScale:
        """Return a scale that has seen the same contexts and is not in use yet."""
        other = ContextScale(self._is_fixed)
        other._seen = self._seen
        return other

    def apply(self, X: FloatArray) -> FloatArray:
        """Return X (M, D) scaled; by its own range as long as no scale is in use.

        What is farther out of range than `REACH` counts as that far out: polynomials fitted to
        a small range say absurd things beyond it.
        """
        if self._is_fixed:
            return X
        ends = self._ends_in_use(X)
        scaled: FloatArray = (X - ends[0]) / _span(ends)
        return np.clip(scaled, -REACH, 1 + REACH)

    def _ends_in_use(self, X: FloatArray) -> FloatArray:
        """Return the ends that scale X (M, D)."""
        if self._used is None:
            return _ends(X)
        low, high = self._used
        if (low < high).all():
            return self._used
        span = np.diff(self._range_with(X), axis=0)[0]
        return np.stack([low, np.where(low < high, high, low + span)])

    def _range_with(self, X: FloatArray) -> FloatArray:
        """Return the range of the contexts seen so far and X (M, D)."""
        return _ends(X if self._seen is None else np.vstack([self._seen, X]))

    def undo(self, x: FloatArray) -> FloatArray:
        """Return scaled contexts x (M, D) in the units that they came in."""
        if self._is_fixed or self._used is None:
            return x
        contexts: FloatArray = x * _span(self._used) + self._used[0]
        return contexts


@dataclass(frozen=True)
class Known:
    """All outcomes so far, centred, at contexts scaled."""

    observations: Observations
    scale: ContextScale
    offset: float

    def __len__(self) -> int:
        return len(self.observations)

    def at(self, rows: slice | IntArray = slice(None)) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return contexts, outcomes and weights at `rows`."""
        X, y, weights = self.observations.at(rows)
        return self.scale.apply(X), y - self.offset, weights

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.observations.contexts.shape[1])

    def scaled(self) -> ScaledRows:
        """Return the contexts for members that learn at this scale."""
        return ScaledRows(self.observations, self.scale)

    def sample(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return at most SAMPLED of them."""
        if len(self) <= SAMPLED:
            return self.at()
        return self.at(np.sort(rng.choice(len(self), SAMPLED, replace=False)))

    @cached_property
    def prior(self) -> ScalePrior:
        """The prior of the scale, in units of the outcomes' variance, as of when it is asked."""
        variance = float(self.observations.outcomes.var()) if len(self) else 0.0
        return ScalePrior(SHAPE, RATE * (variance if variance > 0 else UNTOLD))


class ScaledRows(Rows):
    """The contexts of a mixture as its members see them: beyond KEPT, scaled when asked for.

    Members learn the same outcomes in the same order, sooner or later, and share them.

    Args:
        observations: of the mixture; it learns first.
        scale: of the contexts; does not change, as members have learned with it.
    """

    def __init__(self, observations: Observations, scale: ContextScale) -> None:
        super().__init__()
        self._observations, self._scale = observations, scale

    @property
    def width(self) -> int | None:
        """D; None before the first."""
        return self._observations.dimension

    def at(self, rows: slice | IntArray) -> FloatArray:
        """Return contexts at positions."""
        if isinstance(rows, slice) and rows.stop <= KEPT:
            if len(self) < rows.stop:
                super().put(0, self._scaled(slice(rows.stop)))
            return super().at(rows)
        return self._scaled(rows)

    def put(self, start: int, rows: FloatArray) -> None:
        """Take note of what a member has learned from position `start` on."""
        if start <= len(self) and start + len(rows) <= KEPT:
            super().put(start, rows)

    def truncate(self, size: int) -> None:
        """Keep all rows, as others may have learned more; they are written over, or not seen."""

    def _scaled(self, rows: slice | IntArray) -> FloatArray:
        return self._scale.apply(self._observations.rows.at(rows))

    def _state(self) -> dict[str, Any]:
        return {"observations": self._observations, "scale": self._scale}

    def _restore(self, state: dict[str, Any]) -> None:
        super().__init__()
        self._observations, self._scale = state["observations"], state["scale"]


def _ends(X: FloatArray) -> FloatArray:
    return np.stack([X.min(axis=0), X.max(axis=0)])


def _span(ends: FloatArray) -> FloatArray:
    span = ends[1] - ends[0]
    return np.where(span > 0, span, 1.0)
