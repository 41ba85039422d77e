"""Encoded features against scikit-learn's preprocessing."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from oclok.agent.features import Boolean, Category, Feature, Ignored, Number, Timestamp, Vector
from oclok.errors import InputError

numbers = st.floats(-1e6, 1e6) | st.integers(-1000, 1000)


def encoded(feature: Feature, column: object) -> np.ndarray:
    X = np.zeros((len(column), feature.width))  # type: ignore[arg-type]
    feature.encode(column, X)  # type: ignore[arg-type]
    return X


@settings(max_examples=50, deadline=None)
@given(st.lists(numbers | st.none(), min_size=2, max_size=20), st.lists(numbers | st.none()))
def test_numbers_are_those_of_scikit_learn(first: list, later: list) -> None:
    known = np.array([x for x in first if x is not None], dtype=float)
    if len(known) == 0 or known.std() <= 1e-9 * np.abs(known).max() + 1e-300:
        return
    column = np.array([*first, None], dtype=float)[:, None]  # one is missing: an indicator
    imputer = SimpleImputer(add_indicator=True).fit(column)
    scaler = StandardScaler().fit(known[:, None])
    X = imputer.transform(np.array(later, dtype=float)[:, None]) if later else np.zeros((0, 2))
    expected = np.column_stack([scaler.transform(X[:, :1]), X[:, 1]]) if later else X
    np.testing.assert_allclose(encoded(Number().fitted(first), later), expected, atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcd"), min_size=1), st.lists(st.sampled_from("abcdefg")))
def test_categories_are_those_of_scikit_learn(first: list[str], later: list[str]) -> None:
    values = tuple(sorted(set(first)))
    judge = OneHotEncoder(categories=[list(values)], handle_unknown="ignore", sparse_output=False)
    judge.fit(np.array(first)[:, None])
    feature = Category(values=values, missing=False)
    expected = judge.transform(np.array(later)[:, None]) if later else np.zeros((0, len(values)))
    np.testing.assert_array_equal(encoded(feature, later), expected)


def test_values_that_the_first_arms_did_not_have_can_be_told_apart() -> None:
    feature = Category().fitted(["a", "b", "a"])
    assert feature.values == ("a", "b")
    X = encoded(feature, ["a", "b", *(f"new {i}" for i in range(20)), None])
    np.testing.assert_allclose((X**2).sum(axis=1), 1.0)
    assert not X[2:22, :2].any()
    assert len(np.unique(X[2:22], axis=0)) > 10
    np.testing.assert_array_equal(X[22], np.eye(feature.width)[-1])
    np.testing.assert_array_equal(encoded(feature, ["new 3"])[0], X[5])


def test_declared_values_have_none_beside_them() -> None:
    feature = Category(values=("a", "b"))
    np.testing.assert_array_equal(
        encoded(feature, ["b", "z", None]), [[0, 1, 0], [0] * 3, [0, 0, 1]]
    )


def test_only_the_most_frequent_of_many_values_have_a_column() -> None:
    column = [f"v{i}" for i in range(200)] + ["often"] * 3
    feature = Category().fitted(column)
    assert feature.values is not None
    assert feature.values[0] == "often"
    assert len(feature.values) == 64


@pytest.mark.parametrize(
    "column",
    [
        [True, False, None],
        [1, 0, None],
        np.array([1.0, 0.0, np.nan]),
        [np.True_, np.False_, None],
    ],
)
def test_booleans_are_one_and_zero_and_between_where_missing(column: object) -> None:
    np.testing.assert_array_equal(encoded(Boolean(), column), [[1, 0], [0, 0], [0.5, 1]])


@pytest.mark.parametrize("of", [list, tuple, np.array])
def test_lists_are_standardised_number_by_number(of: type) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(3, [1, 10, 100], (20, 3))
    column = [of(row) for row in x]
    feature = Vector(missing=False).fitted(column)
    np.testing.assert_allclose(encoded(feature, column), StandardScaler().fit_transform(x))
    gaps = encoded(Vector().fitted([*column, None]), [None, column[0]])
    np.testing.assert_allclose(gaps[0], [0, 0, 0, 1])
    np.testing.assert_allclose(gaps[1, :3], StandardScaler().fit_transform(x)[0])


TIMES = ["2026-03-02T00:00", "2026-03-02 06:00:00", "2026-03-07T18:30:00.5", "1999-12-31"]


@pytest.mark.parametrize(
    "column",
    [
        TIMES,
        [datetime.datetime.fromisoformat(text) for text in TIMES],
        [pd.Timestamp(text) for text in TIMES],
        [np.datetime64(text.replace(" ", "T")) for text in TIMES],
        np.array([text.replace(" ", "T") for text in TIMES], dtype="datetime64[ms]"),
        [pd.Timestamp(text, tz="Asia/Tokyo") for text in TIMES],
        [text + ("T00:00" if len(text) == 10 else "") + "+09:00" for text in TIMES],
    ],
    ids=["text", "datetime", "Timestamp", "datetime64", "array", "zone", "text with zone"],
)
def test_times_are_points_on_two_circles(column: object) -> None:
    expected = []
    for text in TIMES:
        time = datetime.datetime.fromisoformat(text)
        hour = 2 * np.pi * (time.hour + time.minute / 60 + time.second / 3600) / 24
        hour += 2 * np.pi * time.microsecond / 3.6e9 / 24
        day = 2 * np.pi * time.weekday() / 7
        expected.append([np.sin(hour), np.cos(hour), np.sin(day), np.cos(day), 0])
    np.testing.assert_allclose(encoded(Timestamp(), column), expected, atol=1e-9)


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NaT, np.datetime64("NaT")], ids=repr)
def test_a_missing_time_is_in_the_middle_of_both(gap: object) -> None:
    np.testing.assert_array_equal(encoded(Timestamp(), [gap]), [[0, 0, 0, 0, 1]])


@pytest.mark.parametrize("constant", [0.0, 5.0, -1e9])
def test_a_number_that_did_not_vary_at_first_keeps_a_sensible_scale(constant: float) -> None:
    feature = Number().fitted([constant] * 3)
    X = encoded(feature, [constant, constant + (abs(constant) or 1.0)])
    np.testing.assert_allclose(X[:, 0], [0.0, 1.0])


@pytest.mark.parametrize(
    ("feature", "column", "message"),
    [
        (Number(mean=0, scale=1), ["3.5"], "expected a number; got '3.5'"),
        (Number(mean=0, scale=1), [1.0, float("inf")], "expected a finite number; got inf"),
        (Number(mean=0, scale=1, missing=False), [None], "expected a value"),
        (Number(), [None, None], "all are missing"),
        (Boolean(), [2], "expected True or False; got 2"),
        (Category(values=("a",)), [1.5], "expected a string or an integer; got 1.5"),
        (Category(values=("a",)), [["a"]], "expected a string or an integer"),
        (Vector(), [[1.0, 2.0], [1.0]], "expected a list of 2 numbers; got 1"),
        (Vector(), ["abc"], "expected a list of numbers; got 'abc'"),
        (Vector(), [[1.0, None]], "expected a list of numbers"),
        (Vector(), [[1.0, np.nan]], "expected finite numbers"),
        (Timestamp(), ["noon"], "expected a time, or an ISO 8601 text; got 'noon'"),
        (Timestamp(), [5.0], "expected a time"),
        (
            Timestamp(),
            ["2026-01-01T25:00"],
            "expected a time, or an ISO 8601 text; got '2026-01-01T",
        ),
        (Timestamp(), ["2026-01-01", "2026-02-30"], "expected a time, .* got '2026-02-30'"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(feature: Feature, column: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoded(feature.fitted(column), column)


@pytest.mark.parametrize(
    "settings",
    [
        {"kind": Number, "scale": 0.0},
        {"kind": Number, "scale": "1"},
        {"kind": Number, "mean": float("nan")},
        {"kind": Number, "missing": 1},
        {"kind": Category, "values": ("a", "a")},
        {"kind": Category, "values": "ab"},
        {"kind": Category, "values": (1.5,)},
        {"kind": Category, "buckets": -1},
        {"kind": Vector, "length": 0},
        {"kind": Vector, "length": 2, "mean": (1.0,)},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings: dict) -> None:
    kind = settings.pop("kind")
    with pytest.raises(InputError):
        kind(**settings)


def test_an_ignored_column_becomes_nothing() -> None:
    assert encoded(Ignored(), ["anything", 3]).shape == (2, 0)
