"""Contexts, outcomes and weights learned so far, in arrays that grow with spare room."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.errors import FeedbackError
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray


class Rows(Persistent):
    """An array that grows by rows; capacity doubles, so appending is amortised O(1) per row."""

    def __init__(self) -> None:
        self._buffer: FloatArray = np.empty(0)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> FloatArray:
        """The rows so far: a view, valid until the next call of `extend`."""
        return self._buffer[: self._size]

    @property
    def width(self) -> int | None:
        """Entries of a row; None before the first."""
        return int(self._buffer.shape[1]) if self._size else None

    def at(self, rows: slice | IntArray) -> FloatArray:
        """Return the rows at positions."""
        return self.array[rows]

    def extend(self, rows: FloatArray) -> None:
        """Add `rows` at the end."""
        self.put(self._size, rows)

    def put(self, start: int, rows: FloatArray) -> None:
        """Write `rows` from row `start` on, over what is there or at the end."""
        if len(rows) == 0:
            return
        needed = start + len(rows)
        if needed > len(self._buffer):
            capacity = max(needed, 2 * len(self._buffer), 64)
            grown = np.empty((capacity, *rows.shape[1:]))
            if self._size:
                grown[: self._size] = self._buffer[: self._size]
            self._buffer = grown
        self._buffer[start:needed] = rows
        self._size = max(self._size, needed)

    def truncate(self, size: int) -> None:
        """Drop all rows from `size` on."""
        self._size = size
        if size == 0:
            self._buffer = np.empty(0)

    def keep_last(self, size: int) -> None:
        """Drop all but the last `size` rows."""
        if size < self._size:
            self._buffer = self._buffer[self._size - size : self._size].copy()
            self._size = size

    def _state(self) -> dict[str, Any]:
        return {"rows": self.array}

    def _restore(self, state: dict[str, Any]) -> None:
        self._buffer = np.array(state["rows"])
        self._size = len(self._buffer)


class Observations(Persistent):
    """All that was observed: contexts (N, D), outcomes (N,) and their weights (N,).

    An outcome of weight w has noise variance σ² / w; by default w = 1.

    Args:
        rows: where the contexts are, if others have them, too; perhaps more than were learned
            here. Most of what an outcome takes is its context.
    """

    def __init__(self, rows: Rows | None = None) -> None:
        self._X, self._y, self._weights = Rows() if rows is None else rows, Rows(), Rows()

    def __len__(self) -> int:
        return len(self._y)

    @property
    def dimension(self) -> int | None:
        """D, or None before the first outcome."""
        return self._X.width if len(self) else None

    @property
    def rows(self) -> Rows:
        """Where the contexts are; others may be ahead."""
        return self._X

    @property
    def contexts(self) -> FloatArray:
        """Shape (N, D); a view, valid until the next change."""
        return self._X.at(slice(len(self)))

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
        return self._X.at(rows), self.outcomes[rows], self.weights[rows]

    def extend(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> None:
        """Add outcomes y (N,) seen at X (N, D)."""
        self._X.put(len(self), X)
        self._y.extend(y)
        self._weights.extend(np.ones(len(y)) if weights is None else weights)

    def replace(self, y: FloatArray, weights: FloatArray) -> None:
        """Replace all outcomes and weights, each (N,); the contexts stay."""
        self.outcomes[:], self.weights[:] = y, weights

    def truncate(self, size: int) -> None:
        """Drop all but the first `size`."""
        for rows in (self._X, self._y, self._weights):
            rows.truncate(size)

    def find(self, X: FloatArray, y: FloatArray) -> IntArray:
        """Return distinct positions of outcomes y (K,) seen at X (K, D), the latest of each."""
        found: list[int] = []
        for row, outcome in zip(X, y, strict=True):
            likely = np.flatnonzero(self.outcomes == outcome)
            same = likely[(self._X.at(likely) == row).all(axis=1)]
            same = same[~np.isin(same, found)]
            if not len(same):
                raise FeedbackError(
                    f"no outcome {outcome} was learned at the context {row.tolist()}"
                )
            found.append(int(same[-1]))
        return np.array(found, dtype=np.intp)
