from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from oclok.errors import DataError, InputError
from oclok.offline import Log, LoggedRound
from oclok.oracles import TopK

COLUMNS = {"round": "day", "chosen": "shown", "outcome": "sold"}


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "day": ["mon"] * 4 + ["tue"] * 3,
            "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            "shown": [0, 1, 1, 0, 1, 0, 0],
            "sold": [np.nan, 0.2, 0.3, np.nan, 0.5, np.nan, 7.7],
        }
    )


def test_rounds_are_read_as_they_stand_in_the_table():
    log = Log.from_frame(frame(), **COLUMNS)
    assert [current.super_arm.tolist() for current in log] == [[1, 2], [0]]
    assert [current.outcomes.tolist() for current in log] == [[0.2, 0.3], [0.5]]
    assert [current.contexts.tolist() for current in log] == [
        [[1], [2], [3], [4]],
        [[5], [6], [7]],
    ]
    assert [current.oracle.k for current in log] == [2, 1]
    assert [current.propensities for current in log] == [None, None]
    contexts, outcomes = log.observations
    assert contexts.tolist() == [[2], [3], [5]]
    assert outcomes.tolist() == [0.2, 0.3, 0.5]


def test_uniform_logging_has_the_propensities_of_counting():
    log = Log.from_frame(frame(), **COLUMNS, uniform=True)
    assert log[0].propensities.tolist() == [0.5] * 4
    assert log[0].super_arm_propensity == 1 / math.comb(4, 2)
    assert log[1].super_arm_propensity == 1 / 3


def test_propensities_are_read_from_columns_and_are_no_features():
    table = frame().assign(p=[np.nan, 0.4, 0.5, 0.0, 0.9, 0.1, np.nan], q=[0.3] * 4 + [0.9] * 3)
    log = Log.from_frame(table, **COLUMNS, propensity="p", super_arm_propensity="q")
    assert log[0].contexts.shape == (4, 1)
    np.testing.assert_array_equal(log[0].propensities, [np.nan, 0.4, 0.5, 0.0])
    assert [current.super_arm_propensity for current in log] == [0.3, 0.9]


def test_a_slice_of_a_log_is_a_log():
    log = Log.from_frame(frame(), **COLUMNS)
    assert isinstance(log[1:], Log)
    assert len(log[1:]) == 1
    assert log[1:][0] is log[-1] is log[1]
    with pytest.raises(InputError, match="at least one round"):
        log[2:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shown": [0, 2, 1, 0, 1, 0, 0]}, "'shown' must be True or False"),
        ({"shown": [0, 0, 0, 0, 1, 0, 0]}, "no base arm was chosen in day = 'mon'"),
        ({"sold": [1, 1, np.nan, 1, 1, 1, 1]}, "'sold' must be finite; 1 values.*row 2"),
        ({"price": list("abcdefg")}, "'price' must be numeric"),
        ({"p": [0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.5]}, "day = 'mon': .* base arm 2 is 0.0"),
        ({"p": [0.5, 0.5, 0.5, 1.5, 0.5, 0.5, 0.5]}, "day = 'mon': .* base arm 3 is 1.5"),
        ({"p": [0.5, np.nan, 0.5, 0.5, 0.5, 0.5, 0.5]}, "'p' must be finite"),
        ({"P": [0.1, 0.1, 0.2, 0.1, 0.5, 0.5, 0.5]}, "'P' must be the same in all rows"),
        ({"P": [0.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.5]}, r"super_arm_propensity must be in \(0, 1\]"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_the_place(change, message):
    table = frame().assign(p=0.5, P=0.5).assign(**change)
    with pytest.raises(DataError, match=message):
        Log.from_frame(table, **COLUMNS, propensity="p", super_arm_propensity="P")


def test_uniform_logging_and_a_column_contradict_each_other():
    with pytest.raises(InputError, match="uniform=True"):
        Log.from_frame(frame().assign(p=0.5), **COLUMNS, propensity="p", uniform=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0], [1.0]], [1, 0], [1.0, 2.0], TopK(2)), "ascending"),
        (([[0.0], [1.0]], [2], [1.0], TopK(1)), "below 2"),
        (([[0.0], [1.0]], [1], [np.nan], TopK(1)), "outcomes must be finite"),
        (([[0.0], [1.0]], [1], [1.0], "top 1"), "oracle must be"),
        (([[0.0], [1.0]], [1], [1.0], TopK(1), [0.5]), r"shape \(2,\)"),
    ],
)
def test_a_round_that_is_wrong_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        LoggedRound(*arguments)


def test_rounds_of_different_dimensions_are_refused():
    one, two = (LoggedRound(np.zeros((2, d)), [0], [1.0], TopK(1)) for d in (1, 2))
    with pytest.raises(InputError, match=r"same columns; got \[1, 2\]"):
        Log([one, two])


def test_a_round_does_not_touch_or_watch_the_arrays_it_is_made_of():
    contexts, outcomes, p = np.zeros((2, 1)), np.array([1.0]), np.array([0.5, 0.5])
    current = LoggedRound(contexts, np.array([0]), outcomes, TopK(1), p)
    contexts[0, 0], outcomes[0], p[0] = 9.0, 9.0, 9.0
    assert (current.contexts[0, 0], current.outcomes[0], current.propensities[0]) == (0, 1, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        current.outcomes[0] = 2.0
