"""Contexts and outcomes learned so far, in arrays that grow with spare room."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

#: Comparisons above which a search for rows costs more than it can save.
_WORTHWHILE = 1_000_000


class Rows(Persistent):
    """An array that grows by rows; room doubles, so that a row is copied twice on average."""

    def __init__(self) -> None:
        self._buffer: FloatArray = np.empty(0)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> FloatArray:
        """The rows so far: a view, valid until the next call of `extend`."""
        return self._buffer[: self._size]

    def extend(self, rows: FloatArray) -> None:
        """Add `rows` at the end."""
        if len(rows) == 0:
            return
        needed = self._size + len(rows)
        if needed > len(self._buffer):
            room = max(needed, 2 * len(self._buffer), 64)
            grown = np.empty((room, *rows.shape[1:]))
            if self._size:
                grown[: self._size] = self._buffer[: self._size]
            self._buffer = grown
        self._buffer[self._size : needed] = rows
        self._size = needed

    def truncate(self, size: int) -> None:
        """Forget all rows from `size` on."""
        self._size = size
        if size == 0:
            self._buffer = np.empty(0)

    def keep_last(self, size: int) -> None:
        """Forget all but the last `size` rows."""
        if size < self._size:
            self._buffer = self._buffer[self._size - size : self._size].copy()
            self._size = size

    def copy(self) -> Rows:
        """Return an independent copy."""
        other = Rows()
        other.extend(self.array)
        return other

    def _state(self) -> dict[str, Any]:
        return {"rows": self.array}

    def _restore(self, state: dict[str, Any]) -> None:
        self._buffer = np.array(state["rows"])
        self._size = len(self._buffer)


def frozen(rows: FloatArray) -> FloatArray:
    """Return `rows` if they are read-only, as all that come in through `as_contexts`, or a copy.

    What is kept with frozen contexts is found again by looking whether they are the same object.
    """
    if rows.flags.writeable:
        rows = rows.copy()
        rows.flags.writeable = False
    return rows


def are_same(known: FloatArray, rows: FloatArray) -> bool:
    """Return whether `rows` are those that are `known`: mostly they are the same object."""
    return known is rows or np.array_equal(known, rows)


def find_rows(known: FloatArray, rows: FloatArray) -> IntArray | None:
    """Return where each of `rows` (K, D) stands in `known` (M, D); None unless all do."""
    if known.size == 0 or known.shape[1] != rows.shape[1]:
        return None
    if known.size * len(rows) > _WORTHWHILE:
        return None
    same = (known == rows[:, None]).all(axis=2)
    positions: IntArray = same.argmax(axis=1)
    return positions if same[np.arange(len(rows)), positions].all() else None
