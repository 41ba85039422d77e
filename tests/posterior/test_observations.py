from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.errors import FeedbackError
from oclok.persistence import dumps, loads
from oclok.posterior.observations import Observations, Rows


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["extend", "truncate"]), st.integers(0, 90)), max_size=12
    ),
    D=st.sampled_from([(), (1,), (3,)]),
)
def test_rows_are_what_a_list_would_hold(steps: list[tuple[str, int]], D: tuple[int, ...]) -> None:
    rows, plain = Rows(), np.empty((0, *D))
    for step, (kind, count) in enumerate(steps):
        if kind == "extend":
            new = step + np.random.default_rng(step).random((count, *D))
            rows.extend(new)
            plain = np.concatenate([plain, new])
            new[...] = -1.0
        elif count <= len(plain):
            rows.truncate(count)
            plain = plain[:count]
        assert len(rows) == len(plain)
        if len(plain):
            np.testing.assert_array_equal(rows.array, plain)
    loaded = loads(dumps(rows))
    assert isinstance(loaded, Rows)
    np.testing.assert_array_equal(loaded.array, rows.array)
    assert dumps(loaded) == dumps(rows)


def test_rows_forgotten_leave_no_trace_not_even_their_width() -> None:
    rows = Rows()
    rows.extend(np.zeros((5, 3)))
    rows.truncate(0)
    assert dumps(rows) == dumps(Rows())
    rows.extend(np.ones((2, 4)))
    np.testing.assert_array_equal(rows.array, np.ones((2, 4)))


def test_the_latest_of_equal_outcomes_is_found_each_once() -> None:
    known = Observations()
    known.extend(np.array([[0.0], [1.0], [0.0], [0.0]]), np.array([5.0, 5.0, 5.0, 6.0]))
    assert known.find(np.zeros((2, 1)), np.array([5.0, 5.0])).tolist() == [2, 0]
    with pytest.raises(FeedbackError, match=r"no outcome 6\.0"):
        known.find(np.ones((1, 1)), np.array([6.0]))


def test_after_all_outcomes_were_dropped_contexts_may_have_another_dimension() -> None:
    observations = Observations()
    observations.extend(np.zeros((3, 2)), np.zeros(3))
    observations.truncate(0)
    assert observations.dimension is None
    observations.extend(np.ones((1, 5)), np.zeros(1))
    np.testing.assert_array_equal(observations.contexts, np.ones((1, 5)))
