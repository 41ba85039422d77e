"""The default kernel and its fit: gradients, shares, and what it finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from oclok.persistence import dumps, loads
from oclok.posterior.mixture.columns import ColumnMap
from oclok.posterior.mixture.relevance import (
    LEAST_NOISE,
    NOISE,
    RELEVANCE,
    VARIANCE,
    RelevanceFit,
    RelevanceKernel,
    prior_theta,
)


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[:, 3] = X[:, 3] > 0.5
    y = np.sin(6 * X[:, 0]) + X[:, 3] + 0.1 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, 200)


def made(n=60):
    X, y = data(n)
    return RelevanceFit(ColumnMap(X), X, y, WEIGHTS[:n])


def test_the_posterior_is_the_textbooks_and_slopes_are_its_differences():
    fit, (X, y) = made(), data()
    median = prior_theta(fit.columns)
    spread = np.array([RELEVANCE[1]] * 4 + [VARIANCE[1]] * 3 + [NOISE[1]])

    def log_posterior(theta):
        kernel = RelevanceKernel(fit.columns, theta)
        A = kernel.prepare(X)
        K = kernel.between(A, A) + np.diag(kernel.noise / WEIGHTS[:60])
        prior = -0.5 * (((theta - median) / spread) ** 2).sum()
        return multivariate_normal(cov=K).logpdf(y) + 30 * np.log(2 * np.pi) + prior

    theta = median + np.random.default_rng(2).normal(size=8) / 2
    value, slope = fit.log_posterior(theta)
    steps = 1e-5 * np.eye(8)
    differences = [(log_posterior(theta + s) - log_posterior(theta - s)) / 2e-5 for s in steps]
    assert value == pytest.approx(log_posterior(theta), rel=1e-4)
    np.testing.assert_allclose(slope, differences, atol=1e-4)  # in single precision


def test_a_covariance_with_its_diagonal():
    X, _ = data()
    kernel = RelevanceKernel(ColumnMap(X), made().best)
    A = kernel.prepare(X)
    K = kernel.between(A, A)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(A))
    np.testing.assert_allclose(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-9


def test_functions_vary_by_about_what_was_asked_for():
    """The variance between contexts is that of the three parts together."""
    X, _ = data(300)
    kernel = RelevanceKernel(ColumnMap(X), prior_theta(ColumnMap(X)))
    A = kernel.prepare(X)
    K = kernel.between(A, A)
    assert np.diag(K).mean() - K.mean() == pytest.approx(3 * 0.3, rel=0.25)


def test_a_fit_finds_the_columns_that_matter_and_the_noise():
    fit = made(200)
    start, _ = fit.log_posterior(fit.best)
    while fit.steps_left:
        fit.advance()
    assert fit.log_posterior(fit.best)[0] > start + 10
    relevance = RelevanceKernel(fit.columns, fit.best).relevance
    assert relevance[[0, 3]].min() > 3 * relevance[[1, 2]].max()
    assert LEAST_NOISE <= RelevanceKernel(fit.columns, fit.best).noise < 0.1


def test_a_loaded_fit_goes_on_the_same():
    fit = made()
    fit.advance()
    loaded = loads(dumps(fit))
    for each in (fit, loaded):
        each.advance()
        each.advance()
    np.testing.assert_array_equal(fit.best, loaded.best)
