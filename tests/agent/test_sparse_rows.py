from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oclok.agent.sparse_rows import SparseRows
from oclok.persistence import dumps, loads


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4), st.randoms())
def test_rows_read_as_they_were_written(parts: list[int], dimension: int, random: object) -> None:
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
