from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oclok.oracles.cover_cuts import cover_cut, exceeds

numbers = st.integers(-6, 6) | st.floats(-4, 4) | st.integers(-3, 3).map(lambda n: n + 1e-9)


@settings(max_examples=200, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=6), numbers, st.data())
def test_a_cut_rules_out_the_point_and_nothing_that_is_feasible(a, b, data):
    x = np.array(data.draw(st.lists(st.booleans(), min_size=len(a), max_size=len(a))))
    a = np.array(a, dtype=float)
    assume(exceeds(a[x], float(b)))
    cut = cover_cut(a, float(b), x)
    assert set(cut.coefficients) <= {-1.0, 0.0, 1.0}
    assert cut.coefficients @ x > cut.bound
    for point in product((0, 1), repeat=a.size):
        total = sum((Fraction(c) * int(p) for c, p in zip(a, point, strict=True)), Fraction(0))
        if total <= Fraction(b):
            assert cut.coefficients @ np.array(point) <= cut.bound


def test_one_cut_rules_out_all_sets_of_nearly_equal_weights():
    weights = 1 + 1e-9 * np.arange(1, 9)
    cut = cover_cut(weights, 3.0, np.arange(8) >= 5)
    assert cut.coefficients.tolist() == [1.0] * 8
    assert cut.bound == 2


@pytest.mark.parametrize(
    ("terms", "bound", "expected"),
    [
        ([0.1, 0.2], 0.3, True),
        ([1.0, 2.0], 3.0, False),
        ([1e16, 1.0, -1e16], 0.5, True),
        ([1e308, 1e308, -1e308], 1e308, False),
        ([], -0.0, False),
        ([5e-324], 0.0, True),
        ([1.0], np.inf, False),
    ],
)
def test_sums_are_compared_exactly(terms, bound, expected):
    assert exceeds(np.array(terms, dtype=float), bound) is expected
