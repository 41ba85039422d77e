"""Oracles that their constructor arguments describe completely.

That is what lets arguments name columns, base arms be included or excluded, and an oracle be
written as JSON, saved and shown, all in one place. A class that derives from `ParametricOracle`
keeps each argument as an attribute of the same name, lists in `per_arm` those with one value per
base arm, ends its constructor with `_prepare_if_resolved()`, and derives in `_prepare` what its
solver needs from the arguments, `_include` and `_exclude`.
"""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from oclok.errors import InputError, OracleError, UnresolvedError
from oclok.oracles.arguments import arguments_of, call_text, to_json
from oclok.oracles.base import Oracle, Solution, SumOracle
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_positions, as_positive

#: Solvers are exact up to this, in terms of the largest index per base arm that two super arms
#: differ by (tolerances of HiGHS: 1e-10), …
ERROR_OF_LARGEST_INDEX = 1e-9
#: … plus this, in terms of the sum of all |indices| (the knapsack's pruning: 1.1e-11; the
#: rounding of sums of up to 900,000 indices: 2⁻⁵³ each).
ERROR_OF_INDEX_SUM = 1e-10

_NOTHING = np.empty(0, dtype=np.intp)


class ParametricOracle(Oracle):
    """An oracle whose arguments may name columns and which can include and exclude base arms."""

    per_arm: ClassVar[tuple[str, ...]] = ()

    _include: IntArray = _NOTHING
    _exclude: IntArray = _NOTHING
    _is_resolved: bool = False

    def _prepare(self) -> None:
        """Derive what the solver needs; called once all arguments are known."""

    def _prepare_if_resolved(self) -> None:
        self._is_resolved = not self.columns
        if self._is_resolved:
            self._prepare()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that arguments stand for, each once; `resolve` replaces them."""
        values = (getattr(self, name) for name in self.per_arm)
        return tuple(dict.fromkeys(value for value in values if isinstance(value, str)))

    def resolve(self, column: Callable[[str], ArrayLike]) -> Self:
        """Return the oracle with its `columns` replaced by what `column(name)` returns, (M,)."""
        if not self.columns:
            return self
        found = {name: column(name) for name in self.columns}
        return type(self)(**{**arguments_of(self), **self._with_columns(found)})

    def _with_columns(self, found: dict[str, ArrayLike]) -> dict[str, Any]:
        """Return the arguments that name columns, with the columns in their place."""
        values = {name: getattr(self, name) for name in self.per_arm}
        return {name: found[v] for name, v in values.items() if isinstance(v, str)}

    def given(self, include: ArrayLike = (), exclude: ArrayLike = ()) -> Self:
        """Return the oracle whose super arms contain all of `include` and none of `exclude`.

        It solves at about the same cost. `value` is that of the whole super arm, and `alpha` holds
        for it, among those that remain. `InfeasibleError`, here or when called, if none does.
        """
        self._check_resolved()
        wanted = as_positions(include, "include", self.size)
        unwanted = as_positions(exclude, "exclude", self.size)
        twin = copy.copy(self)
        twin._include = np.union1d(self._include, wanted)
        twin._exclude = np.union1d(self._exclude, unwanted)
        both = np.intersect1d(twin._include, twin._exclude)
        if both.size:
            raise InputError(f"position {both[0]} is in both include and exclude")
        twin._prepare()
        return twin

    def choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Return the base arms to add to those `chosen` so far; none when that is a super arm."""
        self._check_resolved()
        if self._include.size and (missing := np.setdiff1d(self._include, chosen)).size:
            return missing
        return self._choose_next(index, chosen)

    def _choose_next(self, index: FloatArray, chosen: IntArray) -> IntArray:
        """Choose the next base arms when all that must be included are in `chosen`."""
        return super().choose_next(index, chosen)

    def to_json(self) -> dict[str, Any]:
        """Return the oracle as plain values for `json.dumps`; `oracle_from_json` reads them."""
        if self._include.size or self._exclude.size:
            raise OracleError("an oracle with base arms included or excluded has no JSON form")
        return to_json(self)

    def __repr__(self) -> str:
        fixed = {"include": self._include, "exclude": self._exclude}
        fixed = {name: positions for name, positions in fixed.items() if positions.size}
        return super().__repr__() + (f".{call_text('given', fixed)}" if fixed else "")

    def is_feasible(self, super_arm: ArrayLike) -> bool:
        """Return whether `super_arm` may be played."""
        self._check_resolved()
        chosen = self._positions(super_arm)
        if chosen is None or np.isin(self._exclude, chosen).any():
            return False
        return bool(np.isin(self._include, chosen).all()) and self._allows(chosen)

    @abstractmethod
    def _allows(self, chosen: IntArray) -> bool:
        """Return whether the base arms at these positions may be played together."""

    def _is_free(self, size: int) -> BoolArray:
        """Return which of `size` base arms are neither included nor excluded."""
        for positions in (self._include, self._exclude):
            if positions.size and positions[-1] >= size:
                raise OracleError(
                    f"position {positions[-1]} is included or excluded; there are {size} base arms"
                )
        free = np.ones(size, dtype=bool)
        free[self._include] = free[self._exclude] = False
        return free

    def _as_index(self, index: ArrayLike) -> FloatArray:
        self._check_resolved()
        return super()._as_index(index)

    def _check_resolved(self) -> None:
        if not self._is_resolved:
            raise UnresolvedError(
                f"{self!r} needs {', '.join(map(repr, self.columns))} of the base arms: "
                "resolve(column) returns an oracle that has them"
            )

    def _state(self) -> dict[str, Any]:
        given = {"include": self._include, "exclude": self._exclude}
        return {**arguments_of(self), **{k: v for k, v in given.items() if v.size}}

    def _restore(self, state: dict[str, Any]) -> None:
        arguments = dict(state)
        self._include = arguments.pop("include", _NOTHING)
        self._exclude = arguments.pop("exclude", _NOTHING)
        self.__init__(**arguments)  # type: ignore[misc]


class ExactSumOracle(ParametricOracle, SumOracle):
    """An oracle for the largest sum of indices whose solver is exact up to the errors above."""

    alpha = 1.0

    def value(self, means: ArrayLike, super_arm: ArrayLike) -> float:
        """Return the sum of `means` over `super_arm`."""
        self._check_resolved()
        return super().value(means, super_arm)

    def is_stable(self, index: FloatArray, super_arm: IntArray, error: FloatArray) -> bool:
        """Return whether `super_arm` is provably chosen for any index within `error` of this.

        Let the chosen arms have the least index possible and the others the greatest. If the
        solver still chooses S, then S is best for every index f in between: for any rival T,
        f(S) - f(T) = f(S∖T) - f(T∖S) is smallest at that corner. The margin added to `error` on
        each arm of S∖T and T∖S exceeds the solver's own error, so that S is strictly best.
        """
        self._check_resolved()
        error = np.where(self._is_free(index.size), error, 0.0)  # the others are not a choice
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(index) + error
            margin = ERROR_OF_LARGEST_INDEX * size.max(initial=0.0)
            margin += ERROR_OF_INDEX_SUM * size.sum()
            corner = index + (error + margin)
            corner[super_arm] = (index - (error + margin))[super_arm]
        if not (margin > 0 and np.isfinite(corner).all()):
            return False
        try:
            found = self.solve(corner)
            return found.gap == 0 and np.array_equal(found.super_arm, super_arm)
        except OracleError:
            return False


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
