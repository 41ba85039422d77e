from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.agent.arms import as_arms
from oclok.errors import InputError


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
