"""The kinds of features, and how each becomes columns of numbers.

| kind      | values                                        | columns                            |
|-----------|-----------------------------------------------|------------------------------------|
| number    | numbers                                       | (x - mean) / scale                 |
| boolean   | True and False, or 0 and 1                    | 0 or 1                             |
| category  | strings or integers                           | one per value, `buckets` for others |
| list      | lists of `length` numbers: embeddings         | (x - mean) / scale, each           |
| timestamp | times, or ISO 8601 texts; their own clock     | sin, cos of the hour; of the weekday |
| ignored   | anything                                      | none                               |

Where a feature may be missing (`missing=True`) one more column says so, and the others are 0:
the mean. Mean, scale and values are taken once, from the first arms, and never change:
contexts of different days stay comparable. Same numbers as scikit-learn's `StandardScaler`,
`SimpleImputer(add_indicator=True)` and `OneHotEncoder(handle_unknown="ignore")`, which are the
judges in the tests; written in NumPy as those take 20 times as long on a hundred arms, and have no
form but pickle.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from oclok.agent.arms import (
    Column,
    as_booleans,
    as_categories,
    as_hours,
    as_numbers,
    as_vectors,
)
from oclok.errors import ColumnError, InputError
from oclok.typing import FloatArray
from oclok.validation import as_count, as_positive, as_vector

#: Columns that values of an inferred category share which were not among the first arms'. Each
#: such value gets two of them by its hash: 28 pairs, so that new values can still be told apart.
BUCKETS = 8
#: Values of a category, the most frequent ones, that get columns of their own.
MOST_VALUES = 64


@dataclass(frozen=True)
class Feature(ABC):
    """How one named column of values becomes columns of numbers.

    Attributes:
        missing: values may be missing: None, NaN, NaT or NA.
    """

    kind: ClassVar[str]
    missing: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.missing, bool):
            raise InputError(f"missing must be true or false; got {self.missing!r}")

    def fitted(self, column: Column) -> Feature:
        """Return the feature with what it lacks (mean, scale, values) taken from `column`."""
        return self

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns of numbers it becomes, the one for missing values included."""

    @abstractmethod
    def encode(self, column: Column, into: FloatArray) -> None:
        """Write the values of `column`, shape (M,), `into` zeros of shape (M, width)."""

    def to_json(self) -> dict[str, Any]:
        """Return the feature as plain values for JSON."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in state.items()}
        return {"kind": self.kind, **{k: v for k, v in plain.items() if v is not None}}

    def _note_missing(self, gaps: Any, into: FloatArray) -> None:
        """Set the last column where values are missing, or refuse them."""
        if self.missing:
            into[:, -1] = gaps
        elif gaps.any():
            raise ColumnError("expected a value (missing=False); got none", int(np.argmax(gaps)))


@dataclass(frozen=True)
class Number(Feature):
    """A number, standardised by the mean and scale of the first arms."""

    kind: ClassVar[str] = "number"
    mean: float | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_location(
            () if self.mean is None else (self.mean,),
            () if self.scale is None else (self.scale,),
        )

    def fitted(self, column: Column) -> Number:
        """Take mean and scale from `column` where they were not given."""
        if self.mean is not None and self.scale is not None:
            return self
        mean, scale = _location(as_numbers(column)[:, None])
        return replace(
            self,
            mean=mean[0] if self.mean is None else self.mean,
            scale=scale[0] if self.scale is None else self.scale,
        )

    @property
    def width(self) -> int:
        """One, and one for missing values."""
        return 1 + self.missing

    def encode(self, column: Column, into: FloatArray) -> None:
        """Standardise; 0 where missing."""
        x = as_numbers(column)
        gaps = np.isnan(x)
        into[:, 0] = np.where(gaps, 0.0, (x - _known(self.mean)) / _known(self.scale))
        self._note_missing(gaps, into)


@dataclass(frozen=True)
class Boolean(Feature):
    """True or False."""

    kind: ClassVar[str] = "boolean"

    @property
    def width(self) -> int:
        """One, and one for missing values."""
        return 1 + self.missing

    def encode(self, column: Column, into: FloatArray) -> None:
        """Write 1 for True, 0 for False and ½ where missing."""
        x = as_booleans(column)
        gaps = np.isnan(x)
        into[:, 0] = np.where(gaps, 0.5, x)
        self._note_missing(gaps, into)


@dataclass(frozen=True)
class Category(Feature):
    """One of a few values: one-hot.

    Attributes:
        values: those with a column of their own.
        buckets: columns that all other values share by hash; with 0, they are "none of those".
    """

    kind: ClassVar[str] = "category"
    values: tuple[str | int, ...] | None = None
    buckets: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        as_count(self.buckets, "buckets", least=0)
        if self.values is None:
            return
        if not isinstance(self.values, tuple) or len(set(self.values)) < len(self.values):
            raise InputError(f"values must be a list of distinct values; got {self.values!r}")
        if any(value is None for value in as_categories(list(self.values))):
            raise InputError("values must be strings or integers; got a missing one")

    def fitted(self, column: Column) -> Category:
        """Take the values, most frequent first, from `column` where they were not given."""
        if self.values is not None:
            return self
        counts: dict[Any, int] = {}
        for value in as_categories(column):
            counts[value] = counts.get(value, 0) + 1
        counts.pop(None, None)
        ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
        return replace(self, values=tuple(ranked[:MOST_VALUES]), buckets=BUCKETS)

    @property
    def width(self) -> int:
        """One per value, the buckets, and one for missing values."""
        return len(self.values or ()) + self.buckets + self.missing

    def encode(self, column: Column, into: FloatArray) -> None:
        """Write 1 in the column of each value, √½ in two buckets for one that has no column."""
        known: dict[Any, int] = {value: place for place, value in enumerate(self.values or ())}
        values = as_categories(column)
        codes = np.array([known.get(value, -1) for value in values], dtype=np.intp)
        rows = np.flatnonzero(codes >= 0)
        into[rows, codes[rows]] = 1.0
        gaps = np.zeros(len(values), dtype=bool)
        for row in np.flatnonzero(codes < 0).tolist():
            if values[row] is None:
                gaps[row] = True
            elif self.buckets:
                into[row, [len(known) + place for place in _hashed(values[row], self.buckets)]] = (
                    0.5**0.5
                )
        self._note_missing(gaps, into)


@dataclass(frozen=True)
class Vector(Feature):
    """A list of numbers of fixed length, such as an embedding; standardised number by number."""

    kind: ClassVar[str] = "list"
    length: int | None = None
    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_location(self.mean or (), self.scale or ())
        lengths = {len(numbers) for numbers in (self.mean, self.scale) if numbers is not None}
        if self.length is not None:
            lengths.add(as_count(self.length, "length"))
        if len(lengths) > 1:
            raise InputError(f"length, mean and scale must agree; got lengths {sorted(lengths)}")

    def fitted(self, column: Column) -> Vector:
        """Take length, mean and scale from `column` where they were not given."""
        if None not in (self.length, self.mean, self.scale):
            return self
        given = self.mean or self.scale
        x = as_vectors(column, self.length if given is None else len(given))
        mean, scale = _location(x)
        return replace(
            self,
            length=x.shape[1],
            mean=tuple(mean) if self.mean is None else self.mean,
            scale=tuple(scale) if self.scale is None else self.scale,
        )

    @property
    def width(self) -> int:
        """One per number, and one for missing values."""
        return (self.length or 0) + self.missing

    def encode(self, column: Column, into: FloatArray) -> None:
        """Standardise; 0 where missing."""
        x = as_vectors(column, self.length)
        gaps = np.isnan(x[:, 0])
        x = (x - np.array(self.mean)) / np.array(self.scale)
        into[:, : x.shape[1]] = np.where(gaps[:, None], 0.0, x)
        self._note_missing(gaps, into)


@dataclass(frozen=True)
class Timestamp(Feature):
    """A time: its hour and its weekday, each as a point on a circle."""

    kind: ClassVar[str] = "timestamp"

    @property
    def width(self) -> int:
        """Four, and one for missing values."""
        return 4 + self.missing

    def encode(self, column: Column, into: FloatArray) -> None:
        """Write sine and cosine of the hour and of the weekday; 0 where missing."""
        hours = as_hours(column)
        gaps = np.isnan(hours)
        angles = 2 * np.pi * np.where(gaps, 0.0, hours) / 24
        weekday = 2 * np.pi * np.floor(np.where(gaps, 0.0, hours) / 24) / 7
        four = np.column_stack([np.sin(angles), np.cos(angles), np.sin(weekday), np.cos(weekday)])
        into[:, :4] = np.where(gaps[:, None], 0.0, four)
        self._note_missing(gaps, into)


@dataclass(frozen=True)
class Ignored(Feature):
    """A column that the model does not see; an oracle may.

    Attributes:
        declared: by whoever made the agent; not inferred.
    """

    kind: ClassVar[str] = "ignored"
    declared: bool = True

    @property
    def width(self) -> int:
        """None."""
        return 0

    def encode(self, column: Column, into: FloatArray) -> None:
        """Write nothing."""


KINDS: dict[str, type[Feature]] = {
    cls.kind: cls for cls in (Number, Boolean, Category, Vector, Timestamp, Ignored)
}


def _check_location(mean: tuple[float, ...], scale: tuple[float, ...]) -> None:
    """Raise an `InputError` unless these are finite numbers, scales above 0."""
    if mean:
        as_vector(mean, "mean")
    for value in scale:
        as_positive(value, "scale")


def _location(x: FloatArray) -> tuple[list[float], list[float]]:
    """Return mean and standard deviation of each column; of a constant one, its size as scale."""
    known = x[~np.isnan(x).any(axis=1)]
    if not len(known):
        raise ColumnError("expected some values among the first arms; all are missing")
    mean, std = known.mean(axis=0), known.std(axis=0)
    is_constant = std <= 1e-12 * np.abs(known).max(axis=0)
    size = np.where(mean == 0, 1.0, np.abs(mean))
    return mean.tolist(), np.where(is_constant, size, std).tolist()


def _hashed(value: str | int | None, buckets: int) -> tuple[int, int]:
    """Return two distinct buckets of a value; the same in every process."""
    code = zlib.crc32(repr(value).encode())
    first = code % buckets
    second = (first + 1 + code // buckets % (buckets - 1)) % buckets if buckets > 1 else first
    return first, second


def _known(value: float | None) -> float:
    assert value is not None, "a feature is fitted before it encodes"
    return value
