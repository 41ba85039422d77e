"""Distributions of outcomes: whether levels hold, for any kind of outcome."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.posterior.mixture.predictive import Predictive


def covered(predictive, y, rng):
    """Share of outcomes within the central 95%, ties broken at random."""
    low, high = predictive.around(y)
    u = low + rng.random(len(y)) * (high - low)
    return np.mean((u > 0.025) & (u < 0.975))


def test_binary_outcomes_are_covered_at_any_base_rate():
    rng = np.random.default_rng(0)
    for base in (0.01, 0.1, 0.5):
        p = np.clip(base * rng.uniform(0.5, 1.5, 20_000), 0, 1)
        y = (rng.random(20_000) < p).astype(float)
        found = Predictive(p, np.sqrt(p), 0.0, 1.0, np.empty(0), is_binary=True)
        assert covered(found, y, rng) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("draw", ["exponential", "standard_normal", "t"])
def test_errors_of_any_shape_are_covered_once_seen(draw):
    rng = np.random.default_rng(0)

    def errors(n):
        return rng.standard_t(3, n) if draw == "t" else getattr(rng, draw)(size=n)

    mean = rng.random(5_000)
    past = errors(2_000)
    found = Predictive(mean, np.ones(5_000), -np.inf, np.inf, past)
    assert covered(found, mean + errors(5_000), rng) == pytest.approx(0.95, abs=0.02)


def test_counts_are_covered():
    rng = np.random.default_rng(0)
    y, past = rng.poisson(1.5, 5_000), (rng.poisson(1.5, 500) - 1.5) / np.sqrt(1.5)
    mean, std = np.full(5_000, 1.5), np.full(5_000, np.sqrt(1.5))
    found = Predictive(mean, std, 0.0, np.inf, past, is_integer=True)
    assert covered(found, y, rng) == pytest.approx(0.95, abs=0.015)
    low, high = found.interval()
    assert (low == np.floor(low)).all()
    assert np.mean((y >= low) & (y <= high)) >= 0.94


def test_intervals_stay_within_the_range():
    mean = np.array([0.01, 0.5, 0.99])
    found = Predictive(mean, np.full(3, 0.4), 0.0, 1.0, np.empty(0))
    low, high = found.interval(0.9)
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert found.cdf([1.0, 1.0, 1.0]).tolist() == [1.0] * 3
    assert found.around([0.0, 0.0, 0.0])[0].tolist() == [0.0] * 3


def test_a_certain_binary_outcome_has_an_interval_of_one_value():
    found = Predictive(np.array([0.001, 0.5]), np.ones(2), 0.0, 1.0, np.empty(0), is_binary=True)
    low, high = found.interval()
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [0.0, 1.0]
