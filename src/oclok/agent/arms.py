"""The arms of one decision: ids, and one column of values per feature name.

Arms are a pandas DataFrame indexed by id, or `{id: {feature: value}}`. `as_numbers`,
`as_categories`, … turn a column into an array with NaN for missing values. Arrays take a fast
path; lists are checked value by value, so that text never passes for a number.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from oclok.errors import ColumnError, InputError
from oclok.typing import FloatArray, IntArray
from oclok.validation import LARGEST_CONTEXT

ArmId: TypeAlias = str | int
#: A column: a NumPy array with a dtype of its own, or a list of Python values.
Column: TypeAlias = "np.ndarray[Any, Any] | list[Any]"
#: Types of one number; Decimal is what databases return.
NUMBERS: tuple[Any, ...] = (Real, Decimal, np.bool_)
#: Rows of a DataFrame up to which it is quicker to read all cells at once than column by column.
MOST_BY_CELL = 256
#: The first Monday of NumPy's calendar: hours are counted from it.
_START, _HOUR = datetime.datetime(1970, 1, 5), datetime.timedelta(hours=1)
_MONDAY = np.datetime64(_START, "us")


class Labels(list[Any]):
    """Values of a pandas categorical: labels, even where they are integers."""


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

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> Column:
        """Return the values of a column, one per arm."""
        if name not in self._known:
            raise InputError(
                f"arms have no column {name!r}; they have {', '.join(map(repr, self.names))}"
            )
        return self._read(name)

    def joined(self, context: Mapping[str, Any] | None) -> Arms:
        """Return the arms with features that are the same for all of them."""
        if context is None:
            return self
        if not isinstance(context, Mapping):
            raise InputError(
                "context must be a dict {feature: value} that all arms share; got "
                f"{type(context).__name__}"
            )
        if not context:
            return self
        both = [name for name in context if name in self._known]
        if both:
            raise InputError(f"context and arms both have {both[0]!r}; leave it out of one of them")

        def read(name: str) -> Column:
            return [context[name]] * len(self) if name in context else self._read(name)

        return Arms(self.ids, [*self.names, *_as_names(context)], read)

    def at(self, positions: IntArray) -> list[ArmId]:
        """Return the ids of the arms at these positions."""
        return [self.ids[position] for position in positions.tolist()]

    def positions(self, ids: Iterable[ArmId], argument: str) -> IntArray:
        """Return where arms with these `ids` stand; an id that is not there is an error."""
        if isinstance(ids, str | int):
            raise InputError(f"{argument} must be a list of arm ids; got {ids!r}")
        wanted = list(dict.fromkeys(map(as_id, ids)))
        place = {arm: position for position, arm in enumerate(self.ids)} if wanted else {}
        unknown = [arm for arm in wanted if arm not in place]
        if unknown:
            raise InputError(
                f"{argument} must name arms of this decision; {unknown[0]!r} is not one of its "
                f"{len(self)} arms"
            )
        return np.array([place[arm] for arm in wanted], dtype=np.intp)


def as_arms(arms: Any) -> Arms:
    """Return `arms`, a DataFrame indexed by id, `{id: {feature: value}}` or `Arms`, as `Arms`."""
    if isinstance(arms, Arms):
        return arms
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
    for arm, row in zip(ids, rows, strict=True):
        if type(row) is not dict and not isinstance(row, Mapping):
            raise InputError(f"arm {arm!r} must be a dict {{feature: value}}; got {row!r}")
    names: dict[str, None] = dict.fromkeys(rows[0])
    for row in rows:
        if row.keys() != names.keys():
            names.update(dict.fromkeys(row))
    return Arms(ids, _as_names(names), cache(lambda name: [row.get(name) for row in rows]))


def _from_frame(frame: Any) -> Arms:
    names = _as_names(frame.columns)
    if len(frame) > MOST_BY_CELL:
        series = dict(frame.items())
        return Arms(_as_ids(frame.index), names, lambda name: _from_series(series[name]))
    dtypes = frame.dtypes.tolist()
    cells = frame.to_numpy(dtype=None if len(set(dtypes)) == 1 else object)
    places = {name: place for place, name in enumerate(names)}

    def read(name: str) -> Column:
        place = places[name]
        dtype, values = dtypes[place], cells[:, place]
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            return np.asarray(values.astype(dtype))
        if dtype.kind == "O" and not hasattr(dtype, "categories"):
            return _without_gaps(values.tolist())
        return _from_series(frame.iloc[:, place])

    return Arms(_as_ids(frame.index), names, read)


def _from_series(series: Any) -> Column:
    """Return a pandas column as an array of numbers, booleans or times, or as a list."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind in "biufM":
            return np.asarray(series)
    elif dtype.kind == "M" and not hasattr(dtype, "pyarrow_dtype"):  # its own clock counts
        return np.asarray(series.dt.tz_localize(None))
    elif dtype.kind in "iuf" and not hasattr(series, "cat"):
        return np.asarray(series.to_numpy(dtype=float, na_value=np.nan))
    values = _without_gaps(series.tolist())
    return Labels(values) if hasattr(series, "cat") else values


def _without_gaps(values: list[Any]) -> list[Any]:
    """Return values with None for NaN, NaT and NA, which have types of their own."""
    if len(set(map(type, values))) == 1:
        return values
    return [None if is_missing(value) else value for value in values]


def _as_ids(ids: Iterable[Any]) -> list[ArmId]:
    """Return arm ids as plain strings and integers; distinct, or an error."""
    result = list(ids.tolist() if hasattr(ids, "tolist") else ids)
    if not result:
        raise InputError("no arms: at least one is needed")
    if not set(map(type, result)) <= {str, int}:
        result = [as_id(arm) for arm in result]
    _check_distinct(result, "arm ids")
    return result


def as_id(arm: Any) -> ArmId:
    """Return an arm id as a plain string or integer; True and 1.0 are no ids."""
    if type(arm) is str or type(arm) is int:
        return arm
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
    _check_distinct(result, "names of features")
    return result


def _check_distinct(values: list[Any], what: str) -> None:
    if len(set(values)) < len(values):
        [(twice, _)] = Counter(values).most_common(1)
        raise InputError(f"{what} must be distinct; {twice!r} is there more than once")


def as_numbers(column: Column) -> FloatArray:
    """Return numbers as floats, shape (M,); NaN where missing."""
    is_array = isinstance(column, np.ndarray) and column.dtype.kind in "biuf"
    try:
        is_plain = is_array or _is_plain(column, (float, int, bool, type(None)))
        x = np.array(column, dtype=np.float64) if is_plain else None
    except OverflowError:  # an integer beyond all floats, refused below with its position
        x = None
    if x is None:
        x = np.array([_as_number(value, position) for position, value in enumerate(column)])
    if np.count_nonzero(np.abs(x) > LARGEST_CONTEXT):
        position = int(np.argmax(np.abs(x) > LARGEST_CONTEXT))
        most = f"{LARGEST_CONTEXT:g}".replace("+", "")
        raise ColumnError(f"expected a finite number, up to {most}; got {x[position]}", position)
    return x


def as_booleans(column: Column) -> FloatArray:
    """Return truth values as 0.0 and 1.0, shape (M,); NaN where missing."""
    try:
        x = as_numbers(column)
    except ColumnError as reason:
        place = reason.position
        seen = "" if place is None else f"; got {_short(column[place])}"
        raise ColumnError(f"expected True or False{seen}", place) from None
    wrong = ~((x == 0) | (x == 1) | np.isnan(x))
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ColumnError(f"expected True or False; got {x[position]:g}", position)
    return x


def as_categories(column: Column) -> list[str | int | None]:
    """Return values as strings and integers; None where missing."""
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if _is_plain(values, (str, int, bool, type(None))):
        return values
    return [_as_category(value, i) for i, value in enumerate(values)]


def as_vectors(column: Column, length: int | None) -> FloatArray:
    """Return lists of `length` numbers as rows, shape (M, length); NaN where missing."""
    rows = [None if is_missing(v) else _as_row(v, i) for i, v in enumerate(column)]
    known = [row for row in rows if row is not None]
    if length is None and not known:
        raise ColumnError("expected lists of numbers; none of the arms has one")
    length = len(known[0]) if length is None else length
    X = np.full((len(rows), length), np.nan)
    for position, row in enumerate(rows):
        if row is None:
            continue
        if len(row) != length:
            raise ColumnError(f"expected a list of {length} numbers; got {len(row)}", position)
        X[position] = row
    is_bad = ~(np.abs(X) <= LARGEST_CONTEXT).all(axis=1)
    is_bad[[row is None for row in rows]] = False
    if is_bad.any():
        position = int(np.argmax(is_bad))
        raise ColumnError(f"expected finite numbers; got {_short(column[position])}", position)
    return X


def as_hours(column: Column) -> FloatArray:
    """Return times as hours since a Monday, by their own clock, shape (M,); NaN where missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        hours = (column.astype("datetime64[us]") - _MONDAY) / np.timedelta64(1, "h")
        return np.asarray(hours, dtype=np.float64)
    times = (_as_time(value, position) for position, value in enumerate(column))
    return np.array([math.nan if time is None else (time - _START) / _HOUR for time in times])


def is_missing(value: Any) -> bool:
    """Return whether a value of a list is missing."""
    if value is None or (isinstance(value, float | Decimal | np.datetime64) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")  # pandas', which need not be installed


def is_list(value: Any) -> bool:
    """Return whether a value is a list of numbers, by its type."""
    return isinstance(value, np.ndarray) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    )


def is_time(value: Any) -> bool:
    """Return whether a value is a time, or a text that starts as ISO 8601 times do."""
    if isinstance(value, str):
        return len(value) >= 10 and value[4] == value[7] == "-" and _parsed(value) is not None
    return isinstance(value, datetime.date | np.datetime64)


def _is_plain(column: Column, types: tuple[type, ...]) -> bool:
    return set(map(type, column)) <= set(types)


def _as_number(value: Any, position: int) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, NUMBERS):
        try:
            return float(value)
        except OverflowError:
            raise ColumnError("expected a finite number; got a huge one", position) from None
    raise ColumnError(f"expected a number; got {_short(value)}", position)


def _as_category(value: Any, position: int) -> str | int | None:
    if is_missing(value):
        return None
    if isinstance(value, str | int):
        return value
    if isinstance(value, np.str_ | np.integer | np.bool_):
        plain: str | int = value.item()
        return plain
    if isinstance(value, float) and value.is_integer():  # integers beside missing ones, in pandas
        return int(value)
    raise ColumnError(f"expected a string or an integer; got {_short(value)}", position)


def _as_row(value: Any, position: int) -> FloatArray:
    try:
        row = np.asarray(value)
    except ValueError:
        row = np.empty(0, dtype=object)
    if not is_list(value) or row.ndim != 1 or row.dtype.kind not in "biuf" or not row.size:
        raise ColumnError(f"expected a list of numbers; got {_short(value)}", position)
    return row


def _as_time(value: Any, position: int) -> datetime.datetime | None:
    """Return a time by its own clock; None if it is missing."""
    time = _parsed(value) if isinstance(value, str) else value
    if type(time) is not datetime.datetime:
        if is_missing(value):
            return None
        if isinstance(time, np.datetime64):
            time = time.astype("datetime64[us]").item()
    if isinstance(time, datetime.datetime):
        return time.replace(tzinfo=None) if time.tzinfo else time
    if isinstance(time, datetime.date):
        return datetime.datetime(time.year, time.month, time.day)
    raise ColumnError(f"expected a time, or an ISO 8601 text; got {_short(value)}", position)


def _parsed(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
