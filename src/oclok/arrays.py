"""Arrays that grow by rows, and loops over rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray

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
