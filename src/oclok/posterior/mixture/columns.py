"""Contexts as the default model sees them: columns level, long tails drawn in, dead ones left out.

    X    contexts as they come, (M, D)
    U    the columns that vary, each mapped into about [-½, ½], (M, active)

A column of two values is scaled. Any other goes through a piecewise linear map, by its place in the
bulk of the values and, the more unevenly these are spread, by its rank, so that neither units nor a
few huge values matter, and what is spread evenly stays as it is. The map of a column is monotone:
thresholds of trees can be mapped back.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

#: Knots of the map of a column.
KNOTS = 17
#: What is outside of this share of the values, in the middle, is drawn in logarithmically …
BULK = 0.9
#: … beyond this fraction of the bulk's width.
TAIL = 0.25
#: Largest weight of the rank, and how it grows with the largest difference between rank and place
#: in the bulk; the rest is the place. Ranks of a sample would roughen what is spread evenly.
RANK, UNEVEN = 0.75, 2.0
#: Contexts that are kept to see how columns are spread.
OFFERED = 512


#: Knots beyond the ends, in ranges of the column.
_BEYOND = np.array([1.0, 10.0])


class Offered(Persistent):
    """A uniform sample of the contexts offered so far (Vitter's algorithm R).

    Args:
        seed: of the choice among more than `OFFERED`.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._count = 0
        self.contexts: FloatArray = np.empty((0, 0))

    def see(self, X: FloatArray) -> None:
        """Take note of contexts X (M, D)."""
        free = OFFERED - len(self.contexts)
        if free and len(X):
            start = X[:free]
            self.contexts = np.vstack([self.contexts, start]) if self._count else start.copy()
        rest = X[free:]
        arrival = self._count + min(free, len(X)) + np.arange(len(rest))
        place = self._rng.integers(0, arrival + 1)
        self.contexts[place[place < OFFERED]] = rest[place < OFFERED]
        self._count += len(X)


class ColumnMap(Persistent):
    """The map of contexts (M, D) to U (M, active), fixed once it is made.

    Args:
        reference: contexts like those to come, (N, D).
    """

    def __init__(self, reference: FloatArray) -> None:
        low, high = reference.min(axis=0), reference.max(axis=0)
        self.dimension = reference.shape[1]
        self.active: IntArray = np.flatnonzero(high > low)
        ordered = np.sort(reference[:, self.active], axis=0)
        self._low, self._high = low[self.active], high[self.active]
        distinct = 1 + (np.diff(ordered, axis=0) > 0).sum(axis=0)
        #: Active columns of more than two values.
        self.graded: IntArray = np.flatnonzero(distinct > 2)
        grids = [_grid(ordered[:, d]) for d in self.graded]
        self._sizes = np.array([len(knots) for knots, _ in grids], dtype=np.intp)
        self._knots = np.concatenate([knots for knots, _ in grids] or [np.empty(0)])
        self._values = np.concatenate([values for _, values in grids] or [np.empty(0)])
        U = self.apply(reference)
        self.middle: FloatArray = U.mean(axis=0)
        self.variance: FloatArray = U.var(axis=0)

    def apply(self, X: FloatArray) -> FloatArray:
        """Return U (M, active) of contexts X (M, D)."""
        x = X[:, self.active]
        U: FloatArray = np.clip((x - self._low) / (self._high - self._low) - 0.5, -1.0, 1.0)
        for d, (knots, values) in zip(self.graded, self._grids, strict=True):
            U[:, d] = np.interp(x[:, d], knots, values)
        return U

    def undo(self, column: IntArray, u: FloatArray) -> FloatArray:
        """Return the values of active columns, shape (N,), that are mapped to u (N,)."""
        x: FloatArray = (u + 0.5) * (self._high - self._low)[column] + self._low[column]
        for d, (knots, values) in zip(self.graded, self._grids, strict=True):
            rows = column == d
            x[rows] = np.interp(u[rows], values, knots)
        return x

    @cached_property
    def _grids(self) -> list[tuple[FloatArray, FloatArray]]:
        starts = np.cumsum(self._sizes) - self._sizes
        places = [
            slice(start, start + size) for start, size in zip(starts, self._sizes, strict=True)
        ]
        return [(self._knots[place], self._values[place]) for place in places]

    def _state(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_grids"}


def _grid(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return knots and their values for a column of sorted values x (N,), more than two."""
    n = len(x)
    knots = np.unique(x)
    if len(knots) > KNOTS:
        knots = np.unique(x[np.linspace(0, n - 1, KNOTS).round().astype(np.intp)])
    rank = np.searchsorted(x, knots, "left") + np.searchsorted(x, knots, "right")
    rank = (rank - rank[0]) / (rank[-1] - rank[0])
    outside = int((1 - BULK) / 2 * n)
    low, high = x[outside], x[n - 1 - outside]
    values = rank
    if low < high:
        bulk = (knots - low) / (high - low)
        share = min(RANK, UNEVEN * float(np.abs(rank - np.clip(bulk, 0.0, 1.0)).max()))
        bulk += _drawn_in(bulk - 1.0) - _drawn_in(-bulk)
        values = share * rank + (1 - share) * bulk
    beyond = _BEYOND * (knots[-1] - knots[0])
    knots = np.concatenate([knots[0] - beyond[::-1], knots, knots[-1] + beyond])
    reach = _BEYOND + _drawn_in(_BEYOND)
    return knots, np.concatenate([values[0] - reach[::-1], values, values[-1] + reach]) - 0.5


def _drawn_in(excess: FloatArray) -> FloatArray:
    """Return what makes distances beyond the bulk, where above 0, grow logarithmically."""
    excess = np.maximum(excess, 0.0)
    result: FloatArray = TAIL * np.log1p(excess / TAIL) - excess
    return result
