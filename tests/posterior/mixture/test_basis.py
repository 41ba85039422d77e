"""Regression on basis functions against scikit-learn's Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oclok.persistence import dumps, loads
from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture import basis
from oclok.posterior.mixture.basis import BasisRegression, GivenKernel

NOISE = 0.05


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(5 * X[:, 0]) + 0.2 * rng.standard_normal(n), rng.random((9, 2))


def made(kernel):
    return BasisRegression(GivenKernel(Covariance(kernel)), NOISE)


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.4, nu=2.5) + 1.0, DotProduct(1.0) ** 2])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_mean_covariance_and_evidence_are_those_of_the_gaussian_process(kernel, size):
    X, y, x = data()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    regression = made(kernel)
    squares = log_det = 0.0
    for start in range(0, len(y), size):
        rows = slice(start, start + size)
        z, part = regression.learn(X[rows], y[rows], weights[rows])
        squares, log_det = squares + z @ z, log_det + part
    judge = GaussianProcessRegressor(kernel, alpha=NOISE / weights, optimizer=None).fit(X, y)
    mean, covariance = judge.predict(x, return_cov=True)
    features = regression.features(x)
    found, variance = regression.moments(features)
    np.testing.assert_allclose(found, mean, atol=1e-3)
    np.testing.assert_allclose(regression.covariance(features), covariance, atol=1e-4)
    np.testing.assert_allclose(features.left + variance, np.diag(covariance), atol=1e-4)
    evidence = -0.5 * squares - log_det - 0.5 * len(y) * np.log(2 * np.pi)
    assert evidence == pytest.approx(judge.log_marginal_likelihood_value_, abs=0.01)


def test_a_smooth_kernel_takes_few_basis_functions():
    X, y, _ = data(300)
    regression = made(RBF(1.0))
    regression.learn(X, y, np.ones(300))
    assert len(regression) < 40


def test_beyond_the_limit_it_is_less_certain_and_goes_on_learning(monkeypatch):
    monkeypatch.setattr(basis, "AMPLE", 12)
    monkeypatch.setattr(basis, "LIMIT", 12)
    X, y, x = data(400)
    limited = made(RBF(0.2))
    judge = GaussianProcessRegressor(RBF(0.2), alpha=NOISE, optimizer=None).fit(X, y)
    for start in range(0, 400, 5):
        limited.learn(X[start : start + 5], y[start : start + 5], np.ones(5))
    mean, std = judge.predict(x, return_std=True)
    features = limited.features(x)
    found, variance = limited.moments(features)
    variance += features.left
    assert len(limited) == 12
    assert (variance > std**2).all()
    assert (np.abs(found - mean) < 4 * np.sqrt(variance)).all()


def test_corrected_and_discounted_outcomes_are_as_if_learned_so():
    X, y, x = data()
    wrong = y.copy()
    wrong[[3, 40]] += [5.0, -2.0]
    one, other = made(RBF(0.3)), made(RBF(0.3))
    one.learn(X, wrong, np.ones(60))
    one.correct(X[[3, 40]], np.array([-5.0, 2.0]), np.ones(2))
    one.discount(0.5)
    one.learn(x, np.zeros(9), np.ones(9))
    other.learn(X, y, np.full(60, 0.5))
    other.learn(x, np.zeros(9), np.ones(9))
    for found, right in zip(
        one.moments(one.features(x)), other.moments(other.features(x)), strict=True
    ):
        np.testing.assert_allclose(found, right, atol=1e-7)
    assert one.gain == pytest.approx(other.gain, abs=1e-3)


def test_samples_have_mean_and_covariance():
    X, y, x = data(20)
    regression = made(RBF(0.3))
    regression.learn(X, y, np.ones(20))
    features = regression.features(x)
    samples = regression.sample(features, 4_000, np.random.default_rng(0))
    mean, variance = regression.moments(features)
    variance += features.left
    assert (np.abs(samples.mean(axis=0) - mean) < 5 * np.sqrt(variance / 4_000)).all()
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.15)


def test_a_loaded_one_goes_on_with_the_same_numbers():
    X, y, x = data()
    regression = made(RBF(0.3))
    regression.learn(X[:30], y[:30], np.ones(30))
    loaded = loads(dumps(regression))
    for one in (regression, loaded):
        one.learn(X[30:], y[30:], np.ones(30))
    np.testing.assert_array_equal(
        regression.moments(regression.features(x)), loaded.moments(loaded.features(x))
    )
