"""The latest so many numbers of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.persistence import Persistent
from oclok.typing import ArrayLike, FloatArray


class Recent(Persistent):
    """Keeps the latest `size` numbers it was given, in order.

    Examples:
        >>> recent = Recent(3)
        >>> recent.extend([1.0, 2.0, 3.0, 4.0])
        >>> recent.values
        array([2., 3., 4.])
        >>> recent.count
        4
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self._buffer = np.empty(0)

    @property
    def values(self) -> FloatArray:
        """The numbers, oldest first; shape (at most size,)."""
        return self._buffer[max(0, len(self._buffer) - self.size) :]

    def extend(self, numbers: ArrayLike) -> None:
        """Add `numbers`, latest last."""
        new = np.asarray(numbers, dtype=np.float64)
        self._buffer = np.concatenate([self.values, new])[-self.size :]
        self.count += len(new)

    def _state(self) -> dict[str, Any]:
        return {"size": self.size, "count": self.count, "values": self.values.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        self.size, self.count, self._buffer = state["size"], state["count"], state["values"]
