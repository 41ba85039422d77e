"""The features of an agent's arms, by name: inferred from the first arms, or given.

A schema is a value: fixed once it has seen arms, equal in every process, and JSON both ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oclok.agent.arms import Arms, Column, Labels, is_list, is_missing, is_time
from oclok.agent.features import (
    KINDS,
    Boolean,
    Category,
    Feature,
    Ignored,
    Number,
    Timestamp,
    Vector,
)
from oclok.errors import ColumnError, InputError
from oclok.persistence import Persistent
from oclok.typing import FloatArray

#: Texts of which more than this share are distinct, among at least so many arms, are names of
#: things and say nothing of other arms.
IDENTIFIER_SHARE, IDENTIFIER_ARMS = 0.9, 20


class Schema(Persistent):
    """Features by name, each with its kind, and what their values are scaled by.

    Args:
        features: `{name: kind}`, with the kind's own settings where they matter:
            `{"price": "number", "city": {"kind": "category", "values": ["Rome", "Oslo"]}}`.

    Examples:
        >>> from oclok.agent.arms import as_arms
        >>> arms = as_arms({"a": {"price": 10.0, "new": True}, "b": {"price": 30.0, "new": False}})
        >>> schema = Schema.infer(arms)
        >>> schema.encode(arms)
        array([[-1.,  0.,  1.,  0.],
               [ 1.,  0.,  0.,  0.]])
        >>> Schema(schema.to_json()) == schema
        True
    """

    def __init__(self, features: Mapping[str, str | Mapping[str, Any] | Feature]) -> None:
        if not isinstance(features, Mapping) or not features:
            raise InputError(f"features must be a dict {{name: kind}}; got {features!r}")
        self.features = {name: _as_feature(name, value) for name, value in features.items()}

    @classmethod
    def infer(cls, arms: Arms) -> Schema:
        """Return a schema for arms like these; any value may be missing later."""
        features = {}
        for name in arms.names:
            column = arms.column(name)
            features[name] = _told(name, arms, lambda column=column: _inferred(column))
        return cls(features).fitted(arms)

    def fitted(self, arms: Arms, also: frozenset[str] = frozenset()) -> Schema:
        """Return the schema with what its features lack taken from `arms`; `also`: see `encode`."""
        self._check_names(arms, also)
        schema = Schema(
            {
                name: _told(name, arms, lambda n=name, f=feature: f.fitted(arms.column(n)))
                for name, feature in self.features.items()
            }
        )
        if not schema.dimension:
            raise InputError(f"arms must have a feature that is not ignored; got {schema!r}")
        return schema

    def encode(self, arms: Arms, also: frozenset[str] = frozenset()) -> FloatArray:
        """Return the features of `arms` as numbers, shape (M, dimension).

        Args:
            arms: have all features of the schema, in any order, and no others,
            also: save these, which the oracle reads.
        """
        self._check_names(arms, also)
        X = np.zeros((len(arms), self.dimension))
        start = 0
        for name, feature in self.features.items():
            if feature.width:
                try:
                    feature.encode(arms.column(name), X[:, start : start + feature.width])
                except ColumnError as reason:
                    raise _named(name, arms, reason) from None
            start += feature.width
        return X

    @property
    def dimension(self) -> int:
        """D, how many columns of numbers the features become."""
        return sum(feature.width for feature in self.features.values())

    def slices(self) -> dict[str, slice]:
        """Return which columns of numbers each feature becomes."""
        result, start = {}, 0
        for name, feature in self.features.items():
            result[name] = slice(start, start + feature.width)
            start += feature.width
        return result

    def to_json(self) -> dict[str, Any]:
        """Return the schema as plain values, to be given to `Schema` again."""
        return {name: feature.to_json() for name, feature in self.features.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.features == other.features

    def __hash__(self) -> int:
        return hash(tuple(self.features.items()))

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {feature.kind}" for name, feature in self.features.items())
        return f"Schema({kinds})"

    def _check_names(self, arms: Arms, also: frozenset[str] = frozenset()) -> None:
        if self.features.keys() == set(arms.names):
            return
        missing = [name for name in self.features if name not in arms.names]
        surplus = [n for n in arms.names if n not in self.features and n not in also]
        wrong = []
        if missing:
            wrong.append(f"missing: {', '.join(map(repr, missing))}")
        if surplus:
            wrong.append(f"not in the schema: {', '.join(map(repr, surplus))}")
        if wrong:
            raise InputError(
                f"arms must have the features {', '.join(map(repr, self.features))}; "
                + "; ".join(wrong)
            )

    def _state(self) -> dict[str, Any]:
        # A list keeps the order, and names may start with any character.
        return {"features": [[name, f.to_json()] for name, f in self.features.items()]}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__init__(dict(state["features"]))  # type: ignore[misc]


def _as_feature(name: Any, value: str | Mapping[str, Any] | Feature) -> Feature:
    if isinstance(value, Feature):
        return value
    settings: dict[str, Any] = {"kind": value}
    if isinstance(value, Mapping):
        settings = dict(value)
    kind: Any = KINDS.get(settings.pop("kind", ""))
    if not isinstance(name, str) or kind is None:
        raise InputError(
            f"feature {name!r} must be one of {', '.join(KINDS)}, or a dict with one as its kind; "
            f"got {value!r}"
        )
    try:
        feature: Feature = kind(
            **{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()}
        )
    except TypeError:
        raise InputError(f"feature {name!r}: a {kind.kind} is not set like {value!r}") from None
    except InputError as reason:
        raise InputError(f"feature {name!r}: {reason}") from None
    return feature


def _inferred(column: Column) -> Feature:
    """Return the kind of feature that the values of a column look like."""
    if isinstance(column, np.ndarray):
        kinds = {"b": Boolean(), "M": Timestamp()}
        return kinds.get(column.dtype.kind, Number())
    values = [value for value in column if not is_missing(value)]
    types = set(map(type, values))
    if not values:
        raise ColumnError("expected some values among the first arms; all are missing")
    are_labels = isinstance(column, Labels)
    if types <= {bool, np.bool_}:
        return Boolean()
    if not are_labels and all(issubclass(t, int | float | np.number | np.bool_) for t in types):
        return Number()
    if not are_labels and all(is_time(value) for value in values):
        return Timestamp()
    if are_labels or all(issubclass(t, str) for t in types):
        is_name = len(values) >= IDENTIFIER_ARMS and (
            len(set(values)) > IDENTIFIER_SHARE * len(values)
        )
        return Ignored(declared=False) if is_name else Category()
    if all(is_list(value) for value in values):
        return Vector()
    seen = ", ".join(sorted(t.__name__ for t in types))
    raise ColumnError(f"expected values of one kind; got {seen}")


def _told(name: str, arms: Arms, made: Any) -> Feature:
    """Return what `made()` makes; an error names the feature and the arm."""
    try:
        feature: Feature = made()
    except ColumnError as reason:
        raise _named(name, arms, reason) from None
    return feature


def _named(name: str, arms: Arms, reason: ColumnError) -> InputError:
    whose = "" if reason.position is None else f" of arm {arms.ids[reason.position]!r}"
    return InputError(f"feature {name!r}{whose}: {reason}")
