from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oclok.agent.recent import Recent
from oclok.persistence import dumps, loads


@given(st.lists(st.lists(st.floats(-9, 9), max_size=7), max_size=9), st.integers(1, 6))
def test_the_latest_numbers_are_kept(parts: list[list[float]], size: int) -> None:
    recent = Recent(size)
    for part in parts:
        recent.extend(part)
        recent = loads(dumps(recent))  # type: ignore[assignment]
    told = [number for part in parts for number in part]
    np.testing.assert_array_equal(recent.values, told[-size:])
    assert recent.count == len(told)
