from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oclok.persistence import dumps, loads
from oclok.posterior.observations import Rows


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
