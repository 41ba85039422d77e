"""Encoded features against scikit-learn's preprocessing, and schemas of arms."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from oclok.agent.arms import Arms, as_arms
from oclok.agent.schema import (
    Boolean,
    Category,
    Feature,
    Ignored,
    Number,
    Schema,
    Timestamp,
    Vector,
)
from oclok.errors import InputError
from oclok.persistence import dumps, loads

numbers = st.floats(-1e6, 1e6) | st.integers(-1000, 1000)


def encoded(feature: Feature, column: object) -> np.ndarray:
    arms = Arms(list(range(len(column))), ["x"], lambda _: column)  # type: ignore[arg-type, return-value]
    return Schema({"x": feature}).encode(arms)


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
        (
            Number(mean=0, scale=1),
            [1.0, float("inf")],
            "expected a finite number, up to 1e100; got inf",
        ),
        (Number(mean=0, scale=1, missing=False), [None], "expected a value"),
        (Boolean(), [2], "expected True or False; got 2"),
        (Boolean(), [True, "yes"], "expected True or False; got 'yes'"),
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


def mixed(count: int = 30, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    start = pd.Timestamp("2026-01-01")
    frame = pd.DataFrame(
        {
            "price": rng.lognormal(3, 1, count),
            "age": rng.integers(18, 80, count),
            "city": rng.choice(["Oslo", "Rome", "Bonn"], count),
            "new": rng.random(count) < 0.5,
            "since": start + pd.to_timedelta(rng.integers(0, 5_000, count), unit="h"),
            "likes": list(rng.normal(size=(count, 3))),
            "name": [f"worker {i}" for i in range(count)],
        },
        index=[f"w{i}" for i in range(count)],
    )
    frame.loc["w1", "price"] = np.nan
    frame.loc["w2", "city"] = None
    return frame


KINDS = {
    "price": "number",
    "age": "number",
    "city": "category",
    "new": "boolean",
    "since": "timestamp",
    "likes": "list",
    "name": "ignored",
}


def test_texts_that_return_are_a_category_and_names_are_not():
    """Three of sixty businesses have another branch among the arms."""
    branches = [f"business {n % 57}" for n in range(60)]
    frame = pd.DataFrame({"business": branches, "address": map(str, range(60)), "stars": range(60)})
    features = Schema.infer(as_arms(frame)).features
    assert features["address"] == Ignored(declared=False)
    assert isinstance(features["business"], Category)


@pytest.mark.parametrize(("values", "buckets"), [(2, 8), (20, 20), (50, 32)])
def test_the_more_values_a_category_has_the_more_columns_others_share(values, buckets):
    fitted = Category().fitted([f"value {n % values}" for n in range(100)])
    assert fitted.buckets == buckets


def test_kinds_are_inferred() -> None:
    schema = Schema.infer(as_arms(mixed()))
    assert {name: f.kind for name, f in schema.features.items()} == KINDS


def test_a_frame_and_a_dict_of_dicts_are_the_same_arms() -> None:
    frame = mixed()
    rows = {key: dict(row) for key, row in frame.to_dict("index").items()}
    schema = Schema.infer(as_arms(frame))
    assert Schema.infer(as_arms(rows)) == schema
    np.testing.assert_array_equal(schema.encode(as_arms(rows)), schema.encode(as_arms(frame)))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.array([1, 2, None], dtype="Int64"), "number"),
        (pd.array([1.5, None, 2], dtype="Float64"), "number"),
        (pd.array([True, None, False], dtype="boolean"), "boolean"),
        (pd.array(["a", None, "b"], dtype="string"), "category"),
        (pd.Categorical(["a", None, "b"]), "category"),
        (pd.to_datetime(["2026-01-01", None, "2026-01-02"]).tz_localize("Asia/Tokyo"), "timestamp"),
        (["2026-01-01T10:00", None, "2026-01-02"], "timestamp"),
        ([datetime.datetime(2026, 1, 1), None, None], "timestamp"),
        ([True, None, False], "boolean"),
        ([1, None, 2.5], "number"),
        ([Decimal("1.5"), None, Decimal(2)], "number"),
        ([[1, 2], None, (3, 4)], "list"),
        (np.array([1, 2, 3], dtype=np.int8), "number"),
    ],
    ids=str,
)
def test_pandas_types_are_understood(column: object, kind: str) -> None:
    arms = as_arms(pd.DataFrame({"x": column}))
    schema = Schema.infer(arms)
    assert schema.features["x"].kind == kind
    X = schema.encode(arms)
    assert np.isfinite(X).all()
    has_gaps = pd.Series(column).isna().to_numpy()
    np.testing.assert_array_equal(X[:, -1] == 1, has_gaps)


@pytest.mark.parametrize("later", [3.5, "Rome", 7, True], ids=repr)
def test_a_column_without_a_value_at_first_takes_what_comes(later: object) -> None:
    schema = Schema.infer(as_arms({"a": {"x": None, "y": 1.0}, "b": {"x": None, "y": 2.0}}))
    X = schema.encode(as_arms({"a": {"x": later, "y": 1.0}, "b": {"x": None, "y": 1.0}}))
    assert (X[0] != X[1]).any()


def test_numbers_that_were_all_missing_at_first_are_numbers_later() -> None:
    schema = Schema.infer(as_arms(pd.DataFrame({"x": [np.nan, np.nan], "y": [1.0, 2.0]})))
    X = schema.encode(as_arms(pd.DataFrame({"x": [3.5, np.nan], "y": [1.0, 2.0]})))
    np.testing.assert_array_equal(X[:, :2], [[3.5, 0.0], [0.0, 1.0]])


def test_names_are_features_where_arms_have_nothing_else() -> None:
    schema = Schema.infer(as_arms({n: {"name": f"arm {n}"} for n in range(40)}))
    assert schema.features["name"].kind == "category"


def test_columns_are_matched_by_name() -> None:
    frame = mixed()
    schema = Schema.infer(as_arms(frame))
    expected = schema.encode(as_arms(frame))
    permuted = frame[list(frame.columns[::-1])]
    np.testing.assert_array_equal(schema.encode(as_arms(permuted)), expected)


def test_rows_do_not_know_of_each_other() -> None:
    frame = mixed()
    schema = Schema.infer(as_arms(frame))
    expected = schema.encode(as_arms(frame))
    some = schema.encode(as_arms(frame.iloc[[5, 1, 2]]))
    np.testing.assert_array_equal(some, expected[[5, 1, 2]])


def test_a_missing_and_a_surplus_column_are_named() -> None:
    schema = Schema.infer(as_arms(mixed()))
    wrong = mixed().drop(columns="age").rename(columns={"city": "town"})
    with pytest.raises(InputError, match=r"missing: 'age', 'city'; not in the schema: 'town'"):
        schema.encode(as_arms(wrong))


def test_an_error_names_feature_and_arm() -> None:
    schema = Schema.infer(as_arms({"a": {"x": 1.0}, "b": {"x": 2.0}}))
    with pytest.raises(InputError, match=r"feature 'x' of arm 'c': expected a number; got 'two'"):
        schema.encode(as_arms({"b": {"x": 2.0}, "c": {"x": "two"}}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"a": {"x": 1.0}, "b": {"x": "1"}},
            "feature 'x': expected numbers, .* or lists, of one kind; got float, str",
        ),
        ({"a": {}, "b": {}}, "arms must have a feature"),
        (
            {"a": {"x": [1.0]}, "b": {"x": [1.0, 2.0]}},
            "feature 'x' of arm 'b': expected a list of 1",
        ),
    ],
)
def test_what_cannot_be_inferred_is_said(rows: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema.infer(as_arms(rows))


def test_what_is_given_of_a_list_is_kept_and_the_rest_is_fitted() -> None:
    schema = Schema({"x": {"kind": "list", "mean": [1.0, 2.0]}})
    arms = as_arms({"a": {"x": [0.0, 0.0]}, "b": {"x": [2.0, 6.0]}})
    np.testing.assert_allclose(schema.fitted(arms).encode(arms), [[-1, -2 / 3, 0], [1, 4 / 3, 0]])


def test_a_schema_can_be_given() -> None:
    schema = Schema(
        {
            "price": {"kind": "number", "mean": 10, "scale": 2, "missing": False},
            "city": {"kind": "category", "values": ["Rome"]},
            "who": "ignored",
        }
    )
    arms = as_arms(
        {1: {"who": 5, "city": "Rome", "price": 14}, 2: {"price": 8, "city": "Bonn", "who": 0}}
    )
    np.testing.assert_array_equal(schema.fitted(arms).encode(arms), [[2, 1, 0], [-1, 0, 0]])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({}, "must be a dict"),
        (["price"], "must be a dict"),
        ({"price": "money"}, "feature 'price' must be one of number, boolean"),
        ({"price": {"mean": 3}}, "feature 'price' must be one of"),
        ({"price": {"kind": "number", "colour": 3}}, "feature 'price': a number is not set like"),
        ({"price": {"kind": "number", "scale": -1}}, "feature 'price': scale must be"),
        ({3: "number"}, "feature 3 must be"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(features: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema(features)


def test_a_schema_travels_as_json_and_in_a_file() -> None:
    schema = Schema.infer(as_arms(mixed()))
    assert Schema(json.loads(json.dumps(schema.to_json()))) == schema
    assert loads(dumps(schema)) == schema
    assert list(loads(dumps(schema)).features) == list(schema.features)  # type: ignore[attr-defined]


def test_integers_of_a_categorical_are_labels() -> None:
    frame = pd.DataFrame({"zone": pd.Categorical([1, 2, 1]), "x": [1, 2, 3]}, index=list("abc"))
    schema = Schema.infer(as_arms(frame))
    kinds = {name: feature.kind for name, feature in schema.features.items()}
    assert kinds == {"zone": "category", "x": "number"}
    encoded = schema.encode(as_arms({"d": {"zone": 2, "x": 1}}))
    np.testing.assert_array_equal(encoded, schema.encode(as_arms(frame.iloc[[1]].assign(x=1))))
