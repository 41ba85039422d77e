"""Arrays that grow by rows, dense or sparse, and loops over rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

#: Rows that a growable array has room for at least.
LEAST_CAPACITY = 64


def chunks(count: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` rows that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def grown(array: Any, size: int, fill: float = 0, most: int | None = None) -> Any:
    """Return `array` with room for `size` rows, at least twice as many as before but at `most`.

    New rows hold `fill`; rows of 0 take no memory before they are written to.
    """
    if size <= len(array):
        return array
    room = max(size, 2 * len(array))
    if most is not None and 2 * room > most:
        room = most  # allocate the maximum now to avoid another copy
    result = np.zeros((room, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    if fill:
        result[len(array) :] = fill
    return result


class GrowableArray(Persistent):
    """An array that grows by rows; capacity doubles, so appending is amortised O(1) per row."""

    _is_finite = True

    def __init__(self) -> None:
        self._buffer: FloatArray = np.empty(0)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> FloatArray:
        """The rows so far: a view, valid until the next change."""
        return self._buffer[: self._size]

    @property
    def width(self) -> int | None:
        """Entries of a row; None before the first."""
        return int(self._buffer.shape[1]) if self._size else None

    def extend(self, rows: FloatArray) -> None:
        """Add `rows` at the end."""
        self.put(self._size, rows)

    def put(self, start: int, rows: FloatArray) -> None:
        """Write `rows` from row `start` on, over what is there or at the end."""
        if len(rows) == 0:
            return
        stop = start + len(rows)
        if stop > len(self._buffer):
            if not self._size:
                self._buffer = np.empty((0, *rows.shape[1:]))
            self._buffer = grown(self._buffer, max(stop, LEAST_CAPACITY))
        self._buffer[start:stop] = rows
        self._size = max(self._size, stop)

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


class SparseRows(Persistent):
    """A growing (N, D) matrix, stored sparse (CSR) and read dense.

    One-hot features take a third of the memory.

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
