"""How a generation catches up, and what outcomes kernels are fitted to."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture.basis import GivenKernel
from oclok.posterior.mixture.generation import PER_UPDATE, Generation, sampled, unit_of
from oclok.posterior.mixture.members import Member
from oclok.posterior.mixture.relevance import MOST
from oclok.posterior.observations import Observations


def known(n=300):
    rng = np.random.default_rng(0)
    X = rng.random((n, 1))
    observations = Observations()
    observations.extend(X, 50 + 7 * np.sin(30 * X[:, 0]) + rng.standard_normal(n))
    return observations


def test_it_learns_the_past_bit_by_bit_and_outpaces_what_comes():
    observations = known()
    made = Generation([Member(GivenKernel(Covariance(RBF(0.1))), 0.1)], observations.outcomes)
    made.catch_up(observations, np.ones(300), new=1)
    assert made.learned == PER_UPDATE
    made.catch_up(observations, np.ones(300), new=50)
    assert made.learned >= PER_UPDATE + 100
    while made.learned < 300:
        made.catch_up(observations, np.ones(300), new=1)
    X = observations.contexts
    mean = (
        made.offset
        + made.unit * made.members[0].regression.moments(made.members[0].regression.features(X))[0]
    )
    assert np.corrcoef(mean, np.sin(30 * X[:, 0]))[0, 1] > 0.95


def test_a_sample_is_limited():
    X, y, weights = sampled(known(2 * MOST), np.ones(2 * MOST), np.random.default_rng(0))
    assert X.shape == (MOST, 1)
    assert len(y) == len(weights) == MOST


def test_a_sample_leaves_out_what_adds_little():
    worth = np.tile([1.0, 0.1], 50)
    X, _, _ = sampled(known(100), worth, np.random.default_rng(0))
    np.testing.assert_array_equal(X, known(100).contexts[::2])


def test_the_unit_of_equal_outcomes_is_their_size():
    assert unit_of(np.array([3.0, 3.0])) == 3.0
    assert unit_of(np.zeros(2)) == 1.0
    assert unit_of(np.array([-1.0, 1.0])) == 1.0


def test_the_unit_of_outcomes_that_differ_is_their_spread_however_far_from_0_they_are():
    assert unit_of(1e11 + np.array([-1.0, 1.0])) == 1.0
    assert unit_of(np.full(7, 0.1)) == 0.1  # the mean of which is rounded
