"""Oracles that their constructor arguments describe completely.

That is what lets arguments name columns, base arms be included or excluded, and an oracle be
written as JSON, saved and shown, all in one place. A class that derives from `ParametricOracle`
keeps each argument as an attribute of the same name, lists in `per_arm` those with one value per
base arm, ends its constructor with `_prepare_if_resolved()`, and derives in `_prepare` what its
solver needs from the arguments, `_include` and `_exclude`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from oclok.errors import InputError, OracleError, UnresolvedError
from oclok.oracles.arguments import arguments_of, call_text
from oclok.oracles.base import Oracle
from oclok.oracles.json_form import to_json
from oclok.typing import ArrayLike, BoolArray, FloatArray, IntArray
from oclok.validation import as_positions

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

        It is for the same base arms and solves at about the same cost. `value` is that of the
        whole super arm, and `alpha` holds for it, among the super arms that remain.
        `InfeasibleError`, here or when it is called, if none does.
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
        if self._include.size:
            missing = np.setdiff1d(self._include, chosen)
            if missing.size:
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

    def _positions(self, super_arm: ArrayLike) -> IntArray | None:
        """Return `super_arm` as positions; None if an included arm is missing, or similar."""
        self._check_resolved()
        chosen = super()._positions(super_arm)
        if chosen is None or self._include.size == self._exclude.size == 0:
            return chosen
        if not np.isin(self._include, chosen).all() or np.isin(self._exclude, chosen).any():
            return None
        return chosen

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
