from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from oclok.errors import ContextError, InputError, OutcomeError
from oclok.validation import (
    as_contexts,
    as_count,
    as_outcomes,
    as_positions,
    as_positive,
    as_probability,
    as_vector,
)


@given(X=arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e99, 1e99)))
def test_finite_contexts_pass_as_they_are(X: np.ndarray) -> None:
    for given_as in (X, X.tolist(), pd.DataFrame(X), np.asfortranarray(X)):
        result = as_contexts(given_as, X.shape[1])
        assert result.dtype == np.float64
        assert result.flags.c_contiguous
        np.testing.assert_array_equal(result, X)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, np.float16, bool])
def test_numbers_of_any_kind_pass(dtype: Any) -> None:
    assert as_contexts(np.ones((2, 2), dtype=dtype)).dtype == np.float64


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ([[1.0, np.nan]], "row 0, column 1 is nan"),
        ([[1.0, 2.0], [-np.inf, 1.0]], "row 1, column 0 is -inf"),
        ([[1e101]], "1e.100.*row 0, column 0 is 1e.101"),
        ([1.0, 2.0], r"\(M, D\).*\(2,\)"),
        (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
        (np.zeros((0, 3)), "no base arms"),
        (np.zeros((3, 0)), r"at least one column.*\(3, 0\)"),
        ([[1, 2], [3]], "rectangular"),
        ([["a", 1.0]], "'a'"),
        ([[None, 1.0]], "None"),
        ([[1j]], "complex"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "datetime"),
        (pd.DataFrame({"x": [0.1], "city": ["Tokyo"]}), "'Tokyo'"),
        (pd.DataFrame({"x": [0.1, 1.0]}, dtype=object), r"object; convert .* \.astype\(float\)"),
        ([[Decimal(1)]], r"such as Decimal\('1'\)"),
        (pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}), "numbers|nan"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[False, True]]), "mask"),
        ({1.0, 2.0}, "numbers"),
        ("contexts", "numbers"),
        (object(), "numbers"),
    ],
    ids=itertools.count(),
)
def test_contexts_that_are_none_are_named(contexts: Any, message: str) -> None:
    with pytest.raises(ContextError, match=message):
        as_contexts(contexts)


def test_another_dimension_is_named() -> None:
    with pytest.raises(ContextError, match=r"3 columns.*\(1, 2\)"):
        as_contexts([[1.0, 2.0]], 3)


def test_outcomes_may_be_nan_only_where_that_is_allowed() -> None:
    assert np.isnan(as_outcomes([1.0, np.nan], 2, allow_nan=True)[1])
    with pytest.raises(OutcomeError, match="position 1 is nan"):
        as_outcomes([1.0, np.nan], 2)
    with pytest.raises(OutcomeError, match="position 0 is -inf"):
        as_outcomes([-np.inf, np.nan], 2, allow_nan=True)


@pytest.mark.parametrize("outcomes", [[1.0], [[1.0, 2.0]], 1.0, ["a", "b"], None, [[1.0], 2.0]])
def test_outcomes_that_are_none_are_refused(outcomes: Any) -> None:
    with pytest.raises(OutcomeError, match="outcomes must"):
        as_outcomes(outcomes, 2)


@given(st.sets(st.integers(0, 10**6), max_size=6))
def test_positions_are_sorted(positions: set[int]) -> None:
    result = as_positions(list(positions), "super_arm")
    assert result.dtype == np.intp
    assert result.tolist() == sorted(positions)


@pytest.mark.parametrize(
    "positions",
    [
        [0, 0],
        [-1],
        [5],
        [0.0],
        [True, False],
        [[0, 1]],
        3,
        None,
        ["0"],
        [[0], [1, 2]],
        [2**63],
        [2**64],
    ],
    ids=str,
)
def test_positions_that_are_none_are_refused(positions: Any) -> None:
    with pytest.raises(InputError, match="super_arm"):
        as_positions(positions, "super_arm", 5)


@pytest.mark.parametrize("values", [[1.0, np.nan], [[1.0, 2.0]], 2.0, ["a", "b"], [1.0, 2.0, 3.0]])
def test_vectors_that_are_none_are_refused(values: Any) -> None:
    with pytest.raises(InputError, match="costs"):
        as_vector(values, "costs", 2)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), 1e-300])
def test_positive_numbers_pass(value: Any) -> None:
    assert as_positive(value, "noise_std") == float(value)


@pytest.mark.parametrize(
    "value", [0, -1.0, np.nan, np.inf, True, "1", None, [1.0], 1j, Decimal(1), 10**400]
)
def test_what_is_no_positive_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="noise_std must be"):
        as_positive(value, "noise_std")


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, np.nan, "0.5", None])
def test_what_is_no_probability_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="delta must be"):
        as_probability(value, "delta")
    assert as_probability(0.5, "delta") == 0.5


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "1", None, np.float64(2)])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="k must be an integer of at least 1"):
        as_count(value, "k")
    assert as_count(np.int32(2), "k") == 2


def test_contexts_that_nobody_can_write_to_are_not_copied() -> None:
    X = np.ones((3, 2))
    X.flags.writeable = False
    assert as_contexts(X) is X
    for other in (X[:2], np.ones((3, 2)), X.astype(np.float32), np.asfortranarray(np.ones((3, 2)))):
        other.flags.writeable = False
        kept = as_contexts(other if other.base is not None else other.copy())
        assert kept.dtype == np.float64
        assert kept.flags.c_contiguous
        assert not kept.flags.writeable
