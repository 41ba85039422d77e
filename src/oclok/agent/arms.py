"""The arms of one decision: ids, and one column of values per feature name.

Arms are a pandas DataFrame indexed by id, or `{id: {feature: value}}`. Both become columns here,
so that nothing after this file knows which it was. In a column that is not a NumPy array of
numbers, booleans or times, None is the only missing value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from oclok.errors import InputError
from oclok.typing import IntArray

ArmId: TypeAlias = str | int
#: A column: a NumPy array with a dtype of its own, or a list of Python values.
Column: TypeAlias = "np.ndarray[Any, Any] | list[Any]"


@dataclass(frozen=True)
class Arms:
    """Arms with names.

    Attributes:
        ids: one per arm, distinct; strings or integers.
        names: of the columns, in the order in which they came.
    """

    ids: list[ArmId]
    names: list[str]
    _read: Callable[[str], Column]

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Column:
        """Return the values of a column, one per arm."""
        if name not in self.names:
            raise InputError(
                f"arms have no column {name!r}; they have {', '.join(map(repr, self.names))}"
            )
        return self._read(name)

    def positions(self, ids: Iterable[ArmId], argument: str) -> IntArray:
        """Return where arms with these `ids` stand; an id that is not there is an error."""
        if isinstance(ids, str | int):
            raise InputError(f"{argument} must be a list of arm ids; got {ids!r}")
        place = {arm: position for position, arm in enumerate(self.ids)}
        wanted = list(dict.fromkeys(ids))
        unknown = [arm for arm in wanted if arm not in place]
        if unknown:
            raise InputError(
                f"{argument} must name arms of this decision; {unknown[0]!r} is not one of its "
                f"{len(self)} arms"
            )
        return np.array([place[arm] for arm in wanted], dtype=np.intp)


def as_arms(arms: Any) -> Arms:
    """Return `arms`, a DataFrame indexed by id or `{id: {feature: value}}`, as columns."""
    if isinstance(arms, Mapping):
        return _from_mapping(arms)
    if hasattr(arms, "columns") and hasattr(arms, "index"):
        return _from_frame(arms)
    raise InputError(
        "arms must be a pandas DataFrame indexed by arm id, or a dict {id: {feature: value}}; "
        f"got {type(arms).__name__}"
    )


def _from_mapping(arms: Mapping[Any, Mapping[str, Any]]) -> Arms:
    ids, rows = _as_ids(arms), list(arms.values())
    wrong = [i for i, row in enumerate(rows) if not isinstance(row, Mapping)]
    if wrong:
        raise InputError(
            f"arm {ids[wrong[0]]!r} must be a dict {{feature: value}}; got {rows[wrong[0]]!r}"
        )
    names: dict[str, None] = dict.fromkeys(rows[0])
    for row in rows:
        if row.keys() != names.keys():
            names.update(dict.fromkeys(row))

    return Arms(ids, _as_names(names), lambda name: [row.get(name) for row in rows])


def _from_frame(frame: Any) -> Arms:
    names = _as_names(frame.columns)
    series = dict(frame.items())
    return Arms(_as_ids(frame.index), names, lambda name: _from_series(series[name]))


def _from_series(series: Any) -> Column:
    """Return a pandas column as an array of numbers, booleans or times, or as a list."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind in "biufM":
            array: np.ndarray[Any, Any] = series.to_numpy()
            return array
    elif dtype.kind == "M":  # with a time zone: its own clock counts
        wall: np.ndarray[Any, Any] = series.dt.tz_localize(None).to_numpy()
        return wall
    elif dtype.kind in "iuf" and not hasattr(series, "cat"):
        numbers: np.ndarray[Any, Any] = series.to_numpy(dtype=float, na_value=np.nan)
        return numbers
    values: list[Any] = series.tolist()
    if len(set(map(type, values))) > 1:  # NaN, NaT and NA have types of their own
        for position in np.flatnonzero(series.isna().to_numpy()).tolist():
            values[position] = None
    return values


def _as_ids(ids: Iterable[Any]) -> list[ArmId]:
    """Return arm ids as plain strings and integers; distinct, or an error."""
    result = list(ids.tolist() if hasattr(ids, "tolist") else ids)
    if not result:
        raise InputError("no arms: at least one is needed")
    if not set(map(type, result)) <= {str, int}:
        result = [_as_id(arm) for arm in result]
    if len(set(result)) < len(result):
        seen: set[ArmId] = set()
        twice = next(arm for arm in result if arm in seen or seen.add(arm))  # type: ignore[func-returns-value]
        raise InputError(f"arm ids must be distinct; {twice!r} is there more than once")
    return result


def _as_id(arm: Any) -> ArmId:
    if isinstance(arm, str):
        return str(arm)
    if isinstance(arm, int | np.integer) and not isinstance(arm, bool):
        return int(arm)
    raise InputError(f"arm ids must be strings or integers; got {arm!r}")


def _as_names(names: Iterable[Any]) -> list[str]:
    result = list(names)
    wrong = [name for name in result if not isinstance(name, str)]
    if wrong:
        raise InputError(f"names of features must be strings; got {wrong[0]!r}")
    if len(set(result)) < len(result):
        twice = next(name for name in result if result.count(name) > 1)
        raise InputError(f"names of features must be distinct; {twice!r} is there more than once")
    return result
