from __future__ import annotations

import numpy as np
import pytest

from oclok.confidence import anytime_p_value, boundary


@pytest.mark.parametrize("tight", [10.0, 50.0])
def test_a_random_walk_leaves_the_boundary_rarely_and_not_never(tight: float) -> None:
    rng = np.random.default_rng(0)
    n = np.arange(1, 3_001)
    c = boundary(n, 0.1, tight)
    left = [
        np.any(np.abs(np.cumsum(rng.standard_normal(3_000))) > c * np.sqrt(n)) for _ in range(500)
    ]
    assert 0.02 < np.mean(left) <= 0.1


def test_the_p_value_is_the_level_of_the_boundary() -> None:
    for n in (10.0, 100.0, 1e4):
        assert anytime_p_value(n, float(boundary(n, 0.03, 20.0)), 20.0) == pytest.approx(0.03)
    assert anytime_p_value(10.0, 0.0, 20.0) == 1.0
