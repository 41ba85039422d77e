from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from oclok.errors import NumericalError
from oclok.persistence import dumps
from oclok.policies.linear import LinearRegression, with_constant


def data(seed: int = 0, n: int = 60, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("penalty", [1e-4, 1.0, 30.0])
def test_the_mean_is_ridge_regression_however_the_data_are_split(penalty):
    X, y = data()
    regression = LinearRegression(4, penalty)
    for part in np.split(np.arange(60), [1, 2, 20, 45]):
        regression.update(X[part], y[part])
    judge = Ridge(alpha=penalty, fit_intercept=False).fit(X, y)
    new, _ = data(1)
    np.testing.assert_allclose(regression.mean(new), judge.predict(new), rtol=1e-9, atol=1e-12)


def test_widths_and_samples_are_those_of_the_dense_formula():
    X, y = data()
    regression = LinearRegression(4, 0.7)
    regression.update(X, y)
    inverse = np.linalg.inv(0.7 * np.eye(4) + X.T @ X)
    new, _ = data(2, n=6)
    covariance = new @ inverse @ new.T
    np.testing.assert_allclose(regression.width(new), np.sqrt(np.diag(covariance)), rtol=1e-10)
    rng = np.random.default_rng(0)
    samples = np.array([regression.sample(new, 0.5, rng) for _ in range(20_000)])
    np.testing.assert_allclose(np.cov(samples.T), 0.25 * covariance, atol=4e-4)
    np.testing.assert_allclose(samples.mean(axis=0), regression.mean(new), atol=2e-3)


def test_a_failed_update_changes_nothing():
    X, y = data()
    regression = LinearRegression(4, 1.0)
    regression.update(X, y)
    before = dumps(regression)
    with np.errstate(all="ignore"), pytest.raises(NumericalError):
        regression.update(np.full((1, 4), 1e200), np.array([1.0]))
    assert dumps(regression) == before


def test_a_constant_is_appended():
    np.testing.assert_array_equal(with_constant(np.array([[2.0], [3.0]])), [[2, 1], [3, 1]])
