from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok.bench.experiments.published.jitter import JITTER, JitteredPosterior
from oclok.posterior import ExactPosterior, SparsePosterior
from oclok.testing import check_posterior

RNG = np.random.default_rng(0)
X, Y, NEW = RNG.random((40, 2)), RNG.normal(size=40), RNG.random((7, 2))


def learned(posterior):
    posterior.update(X[:25], Y[:25])
    posterior.update(X[25:], Y[25:])
    return posterior


@pytest.mark.parametrize(("kernel", "inducing"), [(RBF(0.2), 8), (RBF(1.0), 20), (RBF(1.0), 99)])
def test_it_is_the_collapsed_posterior_with_a_jitter(kernel, inducing):
    # Titsias (2009), equation 6, with K(U, U) + 1e-6 I in the place of K(U, U).
    posterior = learned(JitteredPosterior(kernel, 0.1, inducing, seed=3))
    U = posterior.inducing
    K = kernel(U) + JITTER * np.eye(len(U))
    A = K + kernel(U, X) @ kernel(X, U) / 0.1**2
    k = kernel(NEW, U)
    mean, std = posterior.predict(NEW)
    np.testing.assert_allclose(mean, k @ np.linalg.solve(A, kernel(U, X) @ Y) / 0.1**2, atol=1e-6)
    covariance = kernel(NEW) - k @ np.linalg.solve(K, k.T) + k @ np.linalg.solve(A, k.T)
    np.testing.assert_allclose(std, np.sqrt(np.diag(covariance)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(NEW), covariance, atol=1e-7)


def test_points_are_past_contexts_drawn_without_replacement_and_none_is_left_out():
    posterior = learned(JitteredPosterior(RBF(1.0), 0.1, 30, seed=3))
    distinct = np.unique(posterior.inducing, axis=0)
    assert len(distinct) == posterior.rank == 30
    assert np.isin(distinct, X).all()
    assert learned(SparsePosterior(RBF(1.0), 0.1, 30, seed=3)).rank < 30


def test_points_that_are_one_and_the_same_are_no_obstacle():
    posterior = JitteredPosterior(RBF(1.0), 0.1, 4, seed=0)
    posterior.update(np.zeros((50, 1)), np.ones(50))
    mean, std = posterior.predict([[0.0]])
    assert mean == pytest.approx(50 / 50.01, rel=1e-4)
    assert np.isfinite(std)


def test_the_jitter_leaves_a_variance_that_more_points_do_not_take_away():
    # With all contexts as points, the posterior would be exact were it not for the jitter.
    kernel, many = RBF(1.0), np.random.default_rng(1).random((300, 2))
    outcomes = np.zeros(300)
    exact, jittered = ExactPosterior(kernel, 0.01), JitteredPosterior(kernel, 0.01, 300, seed=0)
    plain = SparsePosterior(kernel, 0.01, 300, seed=0)
    for posterior in (exact, jittered, plain):
        posterior.update(many, outcomes)
    stds = [posterior.predict(NEW).std for posterior in (exact, plain, jittered)]
    np.testing.assert_allclose(stds[1], stds[0], rtol=1e-3)
    assert (stds[2] > stds[0]).all()


def test_it_does_what_every_posterior_must():
    check_posterior(lambda: JitteredPosterior(RBF(0.5), 0.1, 20, seed=0), exact=False)


def test_the_same_seed_gives_the_same_posterior():
    one, two = (learned(JitteredPosterior(RBF(0.5), 0.1, 5, seed=7)) for _ in range(2))
    assert np.array_equal(one.inducing, two.inducing)
    assert np.array_equal(one.predict(NEW).mean, two.predict(NEW).mean)
