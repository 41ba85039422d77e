from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.arrays import GrowableArray, chunks, grown
from oclok.persistence import dumps, loads


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["extend", "truncate"]), st.integers(0, 90)), max_size=12
    ),
    D=st.sampled_from([(), (1,), (3,)]),
)
def test_rows_are_what_a_list_would_hold(steps: list[tuple[str, int]], D: tuple[int, ...]) -> None:
    rows, plain = GrowableArray(), np.empty((0, *D))
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
    assert isinstance(loaded, GrowableArray)
    np.testing.assert_array_equal(loaded.array, rows.array)
    assert dumps(loaded) == dumps(rows)


def test_rows_forgotten_leave_no_trace_not_even_their_width() -> None:
    rows = GrowableArray()
    rows.extend(np.zeros((5, 3)))
    rows.truncate(0)
    assert dumps(rows) == dumps(GrowableArray())
    rows.extend(np.ones((2, 4)))
    np.testing.assert_array_equal(rows.array, np.ones((2, 4)))


@given(count=st.integers(0, 50), size=st.integers(1, 20))
def test_chunks_cover_all_rows_once_and_none_is_too_large(count: int, size: int) -> None:
    parts = [list(range(count))[rows] for rows in chunks(count, size)]
    assert [row for part in parts for row in part] == list(range(count))
    assert all(0 < len(part) <= size for part in parts)


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_grown_keeps_what_is_there_and_fills_the_rest(dtype: type) -> None:
    array = np.arange(6, dtype=dtype).reshape(3, 2)
    assert grown(array, 3) is array
    larger = grown(array, 4, -1)
    assert (larger.dtype, larger.shape) == (array.dtype, (6, 2))  # room for twice as many
    np.testing.assert_array_equal(larger[:3], array)
    assert (larger[3:] == -1).all()
    assert len(grown(array, 5, most=7)) == 7
