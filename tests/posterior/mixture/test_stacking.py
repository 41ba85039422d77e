"""The share of Gaussian processes: what would have foreseen best."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.posterior.mixture.stacking import LEAST, SHARE, Stack


def share(g_error, h_error, noise, n=400, seed=0):
    rng = np.random.default_rng(seed)
    e = noise * rng.standard_normal(n)
    stack = Stack()
    g, h = (e + error * rng.standard_normal(n) for error in (g_error, h_error))
    stack.see(g, h, np.ones(n))
    return stack.share


def test_before_any_error_the_share_is_the_prior_one():
    assert Stack().share == SHARE


def test_what_errs_less_counts_more_even_below_the_noise():
    assert share(0.1, 1.0, noise=0.0) > 0.95
    assert share(1.0, 0.1, noise=0.0) == LEAST
    assert share(0.1, 0.6, noise=1.0) > 0.8


def test_independent_errors_of_one_size_are_averaged():
    assert share(1.0, 1.0, noise=0.1) == pytest.approx(0.5, abs=0.1)


def test_errors_of_nothing_leave_it_as_it_is():
    stack = Stack()
    stack.see(np.zeros(5), np.zeros(5), np.ones(5))
    assert stack.share == SHARE


def test_the_share_becomes_certain():
    assert Stack().variance == pytest.approx(1 / 6)
    rng = np.random.default_rng(0)
    stack = Stack()
    stack.see(rng.standard_normal(200), rng.standard_normal(200), np.ones(200))
    assert stack.variance < 0.01
