from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oclok.arrays import GrowableArray, SparseRows, chunks, grown
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


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4), st.randoms())
def test_sparse_rows_read_as_they_were_written(
    parts: list[int], dimension: int, random: object
) -> None:
    rng = np.random.default_rng(random.randint(0, 2**32))  # type: ignore[attr-defined]
    written, rows = np.zeros((0, dimension)), SparseRows()
    for count in parts:
        X = rng.standard_normal((count, dimension)) * (rng.random((count, dimension)) < 0.4)
        written = np.vstack([written, X])
        rows.append(X)
        rows = loads(dumps(rows))  # type: ignore[assignment]
    rows.append(np.ones((1, dimension)))
    written = np.vstack([written, np.ones((1, dimension))])
    assert len(rows) == len(written)
    first = int(rng.integers(len(rows)))
    last = int(rng.integers(first, len(rows) + 1))
    np.testing.assert_array_equal(rows[first:last], written[first:last])
    some = np.flatnonzero(rng.random(len(rows)) < 0.5)
    np.testing.assert_array_equal(rows.take(some), written[some])
    kept = rows.kept(some)
    kept.append(written[:1])
    np.testing.assert_array_equal(kept[0 : len(kept)], np.vstack([written[some], written[:1]]))
