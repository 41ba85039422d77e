from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from oclok.agent.arms import (
    MOST_BY_CELL,
    Labels,
    as_arms,
    as_categories,
    as_hours,
    as_numbers,
    as_vectors,
    is_list,
    is_missing,
    is_time,
)
from oclok.agent.schema import Schema, Timestamp
from oclok.errors import ColumnError, InputError


def test_ids_may_be_strings_and_integers() -> None:
    assert as_arms({"a": {"x": 1}, 7: {"x": 2}, np.int64(8): {"x": 3}}).ids == ["a", 7, 8]
    assert as_arms(pd.DataFrame({"x": [1, 2]}, index=[10, 20])).ids == [10, 20]
    assert type(as_arms(pd.DataFrame({"x": [1]})).ids[0]) is int


def test_an_absent_value_is_a_missing_one() -> None:
    arms = as_arms({"a": {"x": 1}, "b": {"y": 2}})
    assert arms.names == ["x", "y"]
    assert arms.column("x") == [1, None]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([[1.0, 2.0]], "arms must be a pandas DataFrame .* got list"),
        ({}, "no arms"),
        (pd.DataFrame({"x": []}), "no arms"),
        ({"a": [1.0]}, "arm 'a' must be a dict"),
        ({1.5: {"x": 1}}, "strings or integers; got 1.5"),
        ({True: {"x": 1}}, "strings or integers; got True"),
        (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), "'a' is there more than once"),
        (
            pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)])),
            "strings or integers",
        ),
        ({"a": {3: 1.0}}, "names of features must be strings; got 3"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), "'x' is there more than once"),
    ],
)
def test_arms_that_make_no_sense_are_refused(arms: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_arms(arms)


def test_positions_are_found_by_id() -> None:
    arms = as_arms({"a": {"x": 1}, "b": {"x": 2}, 3: {"x": 2}})
    assert arms.positions([3, "a", 3], "include").tolist() == [2, 0]
    with pytest.raises(InputError, match="include must name arms of this decision; 'c' is not"):
        arms.positions(["c"], "include")
    with pytest.raises(InputError, match="include must be a list of arm ids; got 'ab'"):
        arms.positions("ab", "include")


def test_numbers_of_all_types_are_numbers() -> None:
    column = [1, 2.5, True, np.float32(0.5), np.int8(3), Fraction(1, 4), Decimal("0.1"), None]
    np.testing.assert_array_equal(as_numbers(column), [1, 2.5, 1, 0.5, 3, 0.25, 0.1, np.nan])
    np.testing.assert_array_equal(as_numbers([float("nan"), Decimal("nan")]), [np.nan, np.nan])


def test_an_error_has_the_position_of_the_arm() -> None:
    with pytest.raises(ColumnError) as caught:
        as_numbers([1.0, 2.0, "three"])
    assert caught.value.position == 2
    with pytest.raises(ColumnError) as caught:
        as_numbers([1.0, 10**400])
    assert caught.value.position == 1


def test_what_is_given_is_left_as_it_is() -> None:
    array = np.array([1.0, 2.0])
    as_numbers(array)[0] = 9.0
    assert array[0] == 1.0


def test_whole_floats_are_integers_as_pandas_makes_them_beside_missing_ones() -> None:
    assert as_categories(np.array([1.0, np.nan, 3.0])) == [1, None, 3]


def test_lists_may_be_of_several_types() -> None:
    expected = [[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]]
    np.testing.assert_array_equal(as_vectors([[1, 2], None, np.array([3, 4])], None), expected)


def test_hours_are_counted_from_a_monday() -> None:
    assert as_hours([datetime.datetime(1970, 1, 5, 6, 30)])[0] == 6.5
    assert as_hours(["2026-11-16"])[0] % (7 * 24) == 0  # a Monday


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2026-01-01", True), ("2026-01-01T10:00Z", True), ("2026-1-1", False), ("20260101", False)],
)
def test_a_text_is_a_time_if_it_looks_like_one(value: str, expected: bool) -> None:
    assert is_time(value) == expected


def test_kinds_of_values_are_told_apart() -> None:
    assert is_missing(None)
    assert is_missing(float("nan"))
    assert not is_missing("nan")
    assert is_list([1.0])
    assert not is_list("abc")
    assert is_time(np.datetime64("2026-01-01"))
    assert not is_time(5)


@pytest.mark.parametrize("wrong", [True, 1.0, None])
def test_what_equals_an_id_is_none_for_that(wrong: object) -> None:
    arms = as_arms({1: {"x": 1.0}, 2: {"x": 2.0}})
    with pytest.raises(InputError, match="arm ids must be strings or integers"):
        arms.positions([wrong], "include")
    assert arms.positions([np.int64(2)], "include").tolist() == [1]


def test_a_missing_time_of_pandas_is_missing() -> None:
    hours = as_hours([pd.NA, pd.NaT, pd.Timestamp("2026-01-05 07:30")])
    assert np.isnan(hours).tolist() == [True, True, False]
    assert is_missing(pd.NA)


@pytest.mark.parametrize("kind", ["date32[day][pyarrow]", "timestamp[us][pyarrow]", object])
@pytest.mark.parametrize("rows", [2, 2 * MOST_BY_CELL])
def test_dates_are_times(kind: str, rows: int) -> None:
    days = pd.Series([datetime.date(2026, 1, 5), datetime.date(2026, 1, 6)] * (rows // 2))
    arms = as_arms(pd.DataFrame({"day": days.astype(kind)}))
    assert (
        as_hours(arms.column("day"))[:2].tolist() == as_hours(["2026-01-05", "2026-01-06"]).tolist()
    )
    assert isinstance(Schema.infer(arms).features["day"], Timestamp)


@pytest.mark.parametrize("wrong", [pd.DataFrame({"x": [1.0]}), [1], "x"])
def test_a_context_that_is_no_dict_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="context must be a dict"):
        as_arms({"a": {"y": 1.0}}).joined(wrong)  # type: ignore[arg-type]


def test_a_short_frame_is_read_as_a_long_one() -> None:
    short = pd.DataFrame(
        {
            "integer": [2**60 + 1, 2, 3],
            "float": [0.1, np.nan, 3.0],
            "boolean": [True, False, True],
            "text": ["a", None, np.nan],
            "mixed": [1, "b", pd.NA],
            "label": pd.Categorical([1, 2, 1]),
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "time": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
            "zoned": pd.to_datetime(["2024-01-01", None, "2024-01-03"]).tz_localize("UTC"),
            "vector": [[1.0, 2.0], None, [3.0, 4.0]],
        }
    )
    long = pd.concat([short] * 100, ignore_index=True)
    assert len(short) <= MOST_BY_CELL < len(long)
    by_cell, by_column = as_arms(short), as_arms(long)
    for name in short:
        few, many = by_cell.column(name), by_column.column(name)[: len(short)]
        assert type(few) is type(many) or type(few) is Labels
        if isinstance(few, np.ndarray):
            assert few.dtype == many.dtype
            np.testing.assert_array_equal(few, many)
        else:
            assert few == many
