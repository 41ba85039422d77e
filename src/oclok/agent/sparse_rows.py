"""A growing matrix in compressed sparse rows (CSR): one-hot features take a third of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.arrays import grown
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray


class SparseRows(Persistent):
    """A growing (N, D) matrix, stored sparse and read dense.

    Examples:
        >>> rows = SparseRows()
        >>> rows.append(np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
        >>> rows[1:3]
        array([[0., 0.],
               [3., 4.]])
    """

    def __init__(self) -> None:
        self.dimension = 0
        self._rows = 0
        self._end = np.zeros(1, dtype=np.int64)  # row n ends at _end[n + 1]
        self._values = np.zeros(0)
        self._columns = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return self._rows

    def append(self, X: FloatArray) -> None:
        """Add rows, shape (K, D), at the end."""
        self.dimension = X.shape[1] or self.dimension
        row, column = np.nonzero(X)
        start = int(self._end[self._rows])
        self._end = grown(self._end, self._rows + 1 + len(X))
        self._values = grown(self._values, start + len(row))
        self._columns = grown(self._columns, start + len(row))
        new = slice(start, start + len(row))
        self._values[new], self._columns[new] = X[row, column], column
        ends = start + np.cumsum(np.bincount(row, minlength=len(X)))
        self._end[self._rows + 1 : self._rows + 1 + len(X)] = ends
        self._rows += len(X)

    def __getitem__(self, rows: slice) -> FloatArray:
        """Return rows as a dense array, shape (K, D)."""
        ends = self._end[rows.start : rows.stop + 1]
        X = np.zeros((rows.stop - rows.start, self.dimension))
        held = slice(int(ends[0]), int(ends[-1]))
        X[np.repeat(np.arange(len(X)), np.diff(ends)), self._columns[held]] = self._values[held]
        return X

    def take(self, rows: IntArray) -> FloatArray:
        """Return the rows at some positions as a dense array, shape (K, D)."""
        return self.kept(rows)[0 : len(rows)]

    def kept(self, rows: IntArray) -> SparseRows:
        """Return the rows at some positions only."""
        starts, counts = self._end[rows], np.diff(self._end[: self._rows + 1])[rows]
        ends = np.cumsum(counts)
        places = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
        other = SparseRows()
        other.dimension, other._rows = self.dimension, len(rows)
        other._end = np.concatenate([[0], ends]).astype(np.int64)
        other._values, other._columns = self._values[places], self._columns[places]
        return other

    def _state(self) -> dict[str, Any]:
        size = int(self._end[self._rows])
        return {
            "dimension": self.dimension,
            "end": self._end[: self._rows + 1],
            "values": self._values[:size],
            "columns": self._columns[:size],
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.dimension, self._rows = state["dimension"], len(state["end"]) - 1
        self._end, self._values = state["end"], state["values"]
        self._columns = state["columns"]
