from __future__ import annotations

import datetime
import json

import numpy as np
import pandas as pd
import pytest

from oclok.agent.arms import as_arms
from oclok.agent.schema import Schema
from oclok.errors import InputError
from oclok.persistence import dumps, loads


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
            "feature 'x': expected values of one kind; got float, str",
        ),
        ({"a": {"x": None}}, "feature 'x': expected some values"),
        (
            {"a": {"x": [1.0]}, "b": {"x": [1.0, 2.0]}},
            "feature 'x' of arm 'b': expected a list of 1",
        ),
    ],
)
def test_what_cannot_be_inferred_is_said(rows: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema.infer(as_arms(rows))


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
