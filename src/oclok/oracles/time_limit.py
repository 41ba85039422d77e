"""Search within a time limit: the best set found so far, and what is proven about it."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from typing import Self

from oclok.oracles.base import Solution
from oclok.oracles.parametric import ParametricOracle
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_positive


class Deadline:
    """The moment at which a search must stop; never if `seconds` is None."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def remaining(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def has_passed(self) -> bool:
        """Whether the search must stop now."""
        return self._end is not None and time.monotonic() >= self._end


class TimeLimitedOracle(ParametricOracle):
    """An oracle that searches, for at most `time_limit` seconds per call if that is not None.

    A search that is cut short returns the best super arm found, and `solve` says how far it may
    be from the best; `alpha` is the guarantee of a search that ends by itself. If no super arm is
    found in time, a call raises an `OracleError`.
    """

    is_search = True
    time_limit: float | None

    @staticmethod
    def _as_limit(seconds: float | None) -> float | None:
        return None if seconds is None else as_positive(seconds, "time_limit")

    def limited(self, seconds: float) -> Self:
        """Return the oracle with a time limit of at most `seconds` per call."""
        twin = copy.copy(self)
        twin.time_limit = min(seconds, self.time_limit or seconds)
        return twin

    def solve(self, index: ArrayLike) -> Solution:
        """Return the super arm for `index` of shape (M,), and its proven gap."""
        return self._search(self._as_index(index), Deadline(self.time_limit))

    def _solve(self, index: FloatArray) -> IntArray:
        return self._search(index, Deadline(self.time_limit)).super_arm

    @abstractmethod
    def _search(self, index: FloatArray, deadline: Deadline) -> Solution:
        """Search until the deadline for the super arm of the largest value."""
