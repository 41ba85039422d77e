"""Columns of raw values as arrays, NaN where a value is missing; what does not fit is refused.

Arrays take a fast path. Lists, as they come from dicts and from pandas' object columns, are
checked by type, so that no text is taken for a number and no number for a time.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from oclok.agent.arms import Column
from oclok.errors import InputError
from oclok.typing import FloatArray
from oclok.validation import LARGEST_CONTEXT

#: The first Monday of NumPy's calendar: hours are counted from it.
_MONDAY = np.datetime64("1970-01-05T00:00:00", "us")


class ColumnError(InputError):
    """A value does not fit its feature.

    Attributes:
        position: of the arm whose value it is; None if it is the column as a whole.
    """

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.position = position


def as_numbers(column: Column) -> FloatArray:
    """Return numbers as floats, shape (M,); NaN where missing."""
    array = np.asarray(column) if _is_plain(column, (float, int, bool)) else None
    if array is None or array.dtype.kind not in "biuf":
        array = np.array([_as_number(v, i) for i, v in enumerate(column)])
    x = array.astype(np.float64)
    if np.count_nonzero(np.abs(x) > LARGEST_CONTEXT):
        position = int(np.argmax(np.abs(x) > LARGEST_CONTEXT))
        raise ColumnError(f"expected a finite number; got {x[position]}", position)
    return x


def as_booleans(column: Column) -> FloatArray:
    """Return truth values as 0.0 and 1.0, shape (M,); NaN where missing."""
    x = as_numbers(column)
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
    whole = _as_rows(column)
    if whole is not None and length in (None, whole.shape[1]):
        return whole
    rows: list[FloatArray | None] = []
    for position, value in enumerate(column):
        if is_missing(value):
            rows.append(None)
            continue
        row = _as_row(value, position)
        length = len(row) if length is None else length
        if len(row) != length:
            raise ColumnError(f"expected a list of {length} numbers; got {len(row)}", position)
        rows.append(row)
    if not length:
        raise ColumnError("expected lists of numbers; none of the arms has one")
    gap = np.full(length, np.nan)
    return np.array([gap if row is None else row for row in rows])


def as_hours(column: Column) -> FloatArray:
    """Return times as hours since a Monday, by their own clock, shape (M,); NaN where missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        times = column.astype("datetime64[us]")
    else:
        try:
            clock: Column = column if _are_zoneless(column) else _as_times(column)
            times = np.array(clock, dtype="datetime64[us]")
        except ValueError:  # a text that only looks like a time
            times = np.array(_as_times(column), dtype="datetime64[us]")
    hours = (times - _MONDAY) / np.timedelta64(1, "h")
    return np.asarray(hours, dtype=np.float64)


def is_missing(value: Any) -> bool:
    """Return whether a value of a list is missing."""
    return value is None or (isinstance(value, float) and value != value)


def is_list(value: Any) -> bool:
    """Return whether a value is a list of numbers, by its type."""
    return isinstance(value, np.ndarray) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes)
    )


def is_time(value: Any) -> bool:
    """Return whether a value is a time, or a text that starts as ISO 8601 times do."""
    if isinstance(value, str):
        return len(value) >= 10 and value[4] == value[7] == "-" and _parsed(value) is not None
    return isinstance(value, datetime.datetime | np.datetime64)


def _is_plain(column: Column, types: tuple[type, ...]) -> bool:
    return isinstance(column, np.ndarray) or set(map(type, column)) <= set(types)


def _as_number(value: Any, position: int) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, Real | np.bool_):
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


def _as_rows(column: Column) -> FloatArray | None:
    """Return lists of numbers as rows, all at once; None unless that is plainly what they are."""
    if not set(map(type, column)) <= {list, tuple, np.ndarray}:
        return None
    try:
        rows = np.array(list(column))
    except ValueError:
        return None
    is_good = rows.ndim == 2 and rows.dtype.kind in "biuf" and rows.size
    if not (is_good and (np.abs(rows) <= LARGEST_CONTEXT).all()):
        return None
    return rows.astype(np.float64)


def _as_row(value: Any, position: int) -> FloatArray:
    try:
        row = np.asarray(value)
    except ValueError:
        row = np.empty(0, dtype=object)
    if not is_list(value) or row.ndim != 1 or row.dtype.kind not in "biuf" or not row.size:
        raise ColumnError(f"expected a list of numbers; got {_short(value)}", position)
    if not (np.abs(row) <= LARGEST_CONTEXT).all():
        raise ColumnError(f"expected finite numbers; got {_short(value)}", position)
    return row.astype(np.float64)


def _are_zoneless(column: Column) -> bool:
    """Return whether all are times, or ISO 8601 texts, that NumPy reads as they are meant."""
    types = set(map(type, column))
    if types == {datetime.datetime}:
        return not any(time.tzinfo for time in column)
    if types != {str}:
        return False
    text = "".join(column)
    if text.count("-") != 2 * len(column) or not set(text) <= set("0123456789-T :."):
        return False
    return all(len(t) >= 10 and t[4] == t[7] == "-" and _parsed(t[:10]) for t in set(column))


def _as_times(column: Column) -> list[Any]:
    return [_as_time(value, position) for position, value in enumerate(column)]


def _as_time(value: Any, position: int) -> np.datetime64 | datetime.datetime:
    if is_missing(value) or value != value:  # NaT differs from itself
        return np.datetime64("NaT")
    if isinstance(value, np.datetime64):
        return value
    time = _parsed(value) if isinstance(value, str) else value
    if isinstance(time, datetime.datetime):
        return time.replace(tzinfo=None)
    raise ColumnError(f"expected a time, or an ISO 8601 text; got {_short(value)}", position)


def _parsed(text: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
