"""Arrays that grow by rows, dense or sparse, and loops over rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def __init__(self, dtype: Any = np.float64) -> None:
        self._buffer: NDArray[Any] = np.empty(0, dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> NDArray[Any]:
        """The rows so far: a view, valid until the next change."""
        return self._buffer[: self._size]

    @property
    def width(self) -> int | None:
        """Entries of a row; None before the first."""
        return int(self._buffer.shape[1]) if self._size else None

    def extend(self, rows: NDArray[Any]) -> None:
        """Add `rows` at the end."""
        self.put(self._size, rows)

    def put(self, start: int, rows: NDArray[Any]) -> None:
        """Write `rows` from row `start` on, over what is there or at the end."""
        if len(rows) == 0:
            return
        stop = start + len(rows)
        if stop > len(self._buffer):
            if not self._size:
                self._buffer = np.empty((0, *rows.shape[1:]), self._buffer.dtype)
            self._buffer = grown(self._buffer, max(stop, LEAST_CAPACITY))
        self._buffer[start:stop] = rows
        self._size = max(self._size, stop)

    def truncate(self, size: int) -> None:
        """Drop all rows from `size` on."""
        self._size = size
        if size == 0:
            self._buffer = np.empty(0, self._buffer.dtype)

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
        self._ends = GrowableArray(np.int64)  # row n ends at _ends[n + 1]
        self._ends.extend(np.zeros(1))
        self._values, self._columns = GrowableArray(), GrowableArray(np.int32)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def append(self, X: FloatArray) -> None:
        """Add rows, shape (K, D), at the end."""
        self.dimension = X.shape[1] or self.dimension
        row, column = np.nonzero(X)
        counts = np.bincount(row, minlength=len(X))
        self._extend(np.cumsum(counts), X[row, column], column)

    def __getitem__(self, rows: slice) -> FloatArray:
        """Return rows as a dense array, shape (K, D)."""
        ends = self._ends.array[rows.start : rows.stop + 1]
        X = np.zeros((rows.stop - rows.start, self.dimension))
        row, held = np.repeat(np.arange(len(X)), np.diff(ends)), slice(int(ends[0]), int(ends[-1]))
        X[row, self._columns.array[held]] = self._values.array[held]
        return X

    def take(self, rows: IntArray) -> FloatArray:
        """Return the rows at some positions as a dense array, shape (K, D)."""
        return self.kept(rows)[0 : len(rows)]

    def kept(self, rows: IntArray) -> SparseRows:
        """Return the rows at some positions only."""
        starts, counts = self._ends.array[rows], np.diff(self._ends.array)[rows]
        ends = np.cumsum(counts)
        places = np.repeat(starts - (ends - counts), counts) + np.arange(counts.sum())
        other = SparseRows()
        other.dimension = self.dimension
        other._extend(ends, self._values.array[places], self._columns.array[places])
        return other

    def _extend(self, ends: IntArray, values: FloatArray, columns: IntArray) -> None:
        """Add rows that end at `ends` of `values` and `columns`."""
        self._ends.extend(len(self._values) + ends)
        self._values.extend(values)
        self._columns.extend(columns)

    def _state(self) -> dict[str, Any]:
        names = {"end": self._ends, "values": self._values, "columns": self._columns}
        return {"dimension": self.dimension, **{name: a.array for name, a in names.items()}}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.dimension = state["dimension"]
        self._extend(state["end"][1:], state["values"], state["columns"])
