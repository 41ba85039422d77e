"""What columns make of raw values is judged with the features, in test_features.py."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

from oclok.agent.columns import (
    ColumnError,
    as_categories,
    as_hours,
    as_numbers,
    as_vectors,
    is_list,
    is_missing,
    is_time,
)


def test_numbers_of_all_types_are_numbers() -> None:
    column = [1, 2.5, True, np.float32(0.5), np.int8(3), Fraction(1, 4), None, float("nan")]
    np.testing.assert_array_equal(as_numbers(column), [1, 2.5, 1, 0.5, 3, 0.25, np.nan, np.nan])


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
