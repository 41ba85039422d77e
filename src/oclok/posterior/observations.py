"""Contexts, outcomes and weights learned so far."""

from __future__ import annotations

import numpy as np

from oclok.arrays import GrowableArray
from oclok.errors import FeedbackError
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray


class Observations(Persistent):
    """All that was observed: contexts (N, D), outcomes (N,) and their weights (N,).

    An outcome of weight w has noise variance σ² / w; by default w = 1. Several posteriors may share
    the contexts, `rows`, and some be ahead of others.
    """

    def __init__(self, rows: GrowableArray | None = None) -> None:
        self._X = GrowableArray() if rows is None else rows
        self._y, self._weights = GrowableArray(), GrowableArray()

    def __len__(self) -> int:
        return len(self._y)

    @property
    def dimension(self) -> int | None:
        """D, or None before the first outcome."""
        return self._X.width if len(self) else None

    @property
    def rows(self) -> GrowableArray:
        """The contexts, perhaps shared; others may be ahead."""
        return self._X

    @property
    def contexts(self) -> FloatArray:
        """Shape (N, D); a view, valid until the next change."""
        return self._X.array[: len(self)]

    @property
    def outcomes(self) -> FloatArray:
        """Shape (N,); a view, valid until the next change."""
        return self._y.array

    @property
    def weights(self) -> FloatArray:
        """Shape (N,); a view, valid until the next change."""
        return self._weights.array

    def at(self, rows: slice | IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return contexts, outcomes and weights at `rows`."""
        return self.contexts[rows], self.outcomes[rows], self.weights[rows]

    def extend(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> None:
        """Add outcomes y (N,) seen at X (N, D)."""
        self._X.put(len(self), X)
        self._y.extend(y)
        self._weights.extend(np.ones(len(y)) if weights is None else weights)

    def truncate(self, size: int) -> None:
        """Drop all but the first `size`. Contexts are copied, as others may share them."""
        kept = [each.copy() for each in self.at(slice(size))]
        Observations.__init__(self)
        self.extend(*kept)

    def find(self, X: FloatArray, y: FloatArray) -> IntArray:
        """Return distinct positions of outcomes y (K,) seen at X (K, D), the latest of each."""
        found: list[int] = []
        for row, outcome in zip(X, y, strict=True):
            likely = np.flatnonzero(self.outcomes == outcome)
            same = likely[(self.contexts[likely] == row).all(axis=1)]
            same = same[~np.isin(same, found)]
            if not len(same):
                raise FeedbackError(
                    f"no outcome {outcome} was learned at the context {row.tolist()}"
                )
            found.append(int(same[-1]))
        return np.array(found, dtype=np.intp)
