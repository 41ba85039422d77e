from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from oclok.bench.datasets import foursquare, tokyo

VENUES = Path(__file__).resolve().parents[4] / "shared/data/foursquare/TKY_venues.csv.xz"


def test_locations_fill_the_unit_square_and_never_leave_it():
    drawn = tokyo.mixture().sample(50_000, np.random.default_rng(0))
    assert drawn.shape == (50_000, 2)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert np.ptp(drawn, axis=0).min() > 0.95


def test_a_mixture_is_what_its_parameters_say():
    factors = np.array([[[0.05, 0.0], [0.03, 0.04]], [[0.02, 0.0], [0.0, 0.02]]])
    mixture = tokyo.Mixture(
        "two", np.array([0.25, 0.75]), np.array([[0.3, 0.3], [0.7, 0.8]]), factors
    )
    drawn = mixture.sample(40_000, np.random.default_rng(1))
    first = drawn[drawn.sum(axis=1) < 1.05]
    assert len(first) / len(drawn) == pytest.approx(0.25, abs=0.01)
    np.testing.assert_allclose(first.mean(axis=0), [0.3, 0.3], atol=0.002)
    np.testing.assert_allclose(np.cov(first.T), factors[0] @ factors[0].T, atol=1e-4)


@pytest.mark.skipif(not VENUES.exists(), reason="the Foursquare venues are not here")
def test_the_mixture_has_the_moments_of_the_check_ins():
    rng = np.random.default_rng(0)
    real = foursquare.load(VENUES).sample(100_000, rng)
    made = tokyo.mixture().sample(100_000, rng)
    np.testing.assert_allclose(made.mean(axis=0), real.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.cov(made.T), np.cov(real.T), atol=0.002)
    shares = [np.histogram2d(*part.T, bins=4, range=[[0, 1]] * 2)[0] / 1e5 for part in (real, made)]
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06
