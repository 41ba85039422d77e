"""The Nyström model against plain dense linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from oclok import persistence
from oclok.posterior.dictionary.nystrom import LEARNED_AT_ONCE, NystromModel
from oclok.posterior.dictionary.selection import covering_model
from oclok.posterior.kernels import Covariance

KERNELS = [RBF(0.6), Matern(0.8, nu=2.5), DotProduct(0.5) + 0.3 * RBF(0.4)]


def model_of(kernel: Any, U: np.ndarray, tolerance: float = 0.0) -> NystromModel:
    return NystromModel(Covariance(kernel), 0.2, U, np.linalg.cholesky(kernel(U)), tolerance)


def dense(
    kernel: Any, U: np.ndarray, X: np.ndarray, y: np.ndarray, noise: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Regression with covariance Q = K(·, U) K(U, U)⁻¹ K(U, ·) and `noise` variances (N,)."""
    inverse = np.linalg.inv(kernel(U))
    Q, q = kernel(X, U) @ inverse @ kernel(U, X), kernel(X, U) @ inverse @ kernel(U, x)
    A = Q + np.diag(noise)
    variance = kernel.diag(x) - np.einsum("nm,nm->m", q, np.linalg.solve(A, q))
    gain = (np.linalg.slogdet(A)[1] - np.log(noise).sum()) / 2
    return q.T @ np.linalg.solve(A, y), variance, gain


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=15, deadline=None)
@given(N=st.integers(1, 40), rank=st.integers(1, 8), seed=st.integers(0, 999))
def test_moments_are_those_of_the_dense_formulas(kernel: Any, N: int, rank: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U, X, x = rng.random((rank, 2)), rng.random((N, 2)), 2 * rng.random((6, 2)) - 0.5
    y, weights = rng.standard_normal(N), rng.uniform(0.3, 3.0, N)
    model = model_of(kernel, U)
    for part in np.array_split(np.arange(N), min(N, 2)):
        model.update(X[part], y[part], weights[part])

    prediction = model.predict(x)
    mean, variance, gain = dense(kernel, U, X, y, 0.04 / weights, x)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(prediction.std**2, variance, atol=1e-7)
    assert model.information_gain == pytest.approx(gain, rel=1e-7, abs=1e-7)
    Phi = model.features(X)[0]
    E = kernel(X) - Phi.T @ Phi
    assert model.trace == pytest.approx(weights @ np.diag(E), abs=1e-6)  # rounding included


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(5))
def test_the_weight_norm_bounds_the_weights(kernel: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    U, X, y = rng.random((7, 2)), rng.random((30, 2)), rng.standard_normal(30)
    model = model_of(kernel, U)
    model.update(X, y, np.ones(30))
    phi = model.features(X)[0]
    A = phi.T @ phi + 0.04 * np.eye(30)
    a = np.linalg.solve(A, y)
    assert a @ A @ a == pytest.approx(model.regression.quadratic_form)
    bound = np.sqrt(model.regression.quadratic_form) / model.noise_std
    assert np.linalg.norm(a) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("count", [200, 400])
def test_growing_leaves_nothing_above_the_tolerance(count: int) -> None:
    rng = np.random.default_rng(0)
    kernel, candidates = RBF(0.5), rng.random((count, 2))
    model = model_of(kernel, rng.random((5, 2)), 1e-6)
    grown = covering_model(model, [candidates], 400)
    assert grown is not None
    np.testing.assert_allclose(grown.R @ grown.R.T, kernel(grown.U), atol=1e-12)
    np.testing.assert_array_equal(np.triu(grown.R, 1), 0)
    for rows in (model.U, candidates):
        assert grown.largest_residual(rows) <= 1e-6
    assert grown.information_gain == 0


def test_growing_by_what_is_known_adds_nothing() -> None:
    model = model_of(RBF(0.5), np.random.default_rng(0).random((5, 2)), 1e-10)
    grown = covering_model(model, [model.U], 400)
    assert grown is not None
    assert sorted(grown.U.tolist()) == sorted(model.U.tolist())


def test_batches_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.random((LEARNED_AT_ONCE + 500, 2)), rng.standard_normal(LEARNED_AT_ONCE + 500)
    whole, parts = (model_of(RBF(0.6), X[:8]) for _ in range(2))
    whole.update(X, y, np.ones(len(y)))
    for start in range(0, len(X), 37):
        part = slice(start, start + 37)
        parts.update(X[part], y[part], np.ones(len(y[part])))
    assert parts.information_gain == pytest.approx(whole.information_gain, rel=1e-10)
    assert parts.regression.quadratic_form == pytest.approx(
        whole.regression.quadratic_form, rel=1e-10
    )
    for model in (whole, parts):
        model.discount(1.0)  # settles how much is rounded
    assert parts.trace == pytest.approx(whole.trace, rel=1e-10)
    x = rng.random((20, 2))
    np.testing.assert_allclose(parts.predict(x).mean, whole.predict(x).mean, atol=1e-10)


def test_a_model_that_was_saved_is_the_same_to_the_bit() -> None:
    rng = np.random.default_rng(2)
    model = model_of(RBF(0.6), rng.random((8, 2)))
    model.update(rng.random((50, 2)), rng.standard_normal(50), np.ones(50))
    other = persistence.loads(persistence.dumps(model))
    X, y = rng.random((9, 2)), rng.standard_normal(9)
    for each in (model, other):
        each.update(X, y, np.ones(9))
    np.testing.assert_array_equal(other.regression.S, model.regression.S)
    np.testing.assert_array_equal(other.regression.m, model.regression.m)
    assert other.trace == model.trace


def test_correcting_an_outcome_is_learning_the_right_one() -> None:
    rng = np.random.default_rng(3)
    X, y, weights = rng.random((30, 2)), rng.standard_normal(30), rng.uniform(0.3, 3.0, 30)
    right, wrong = (model_of(RBF(0.6), X[:8]) for _ in range(2))
    right.update(X, y, weights)
    wrong.update(X, np.where(np.arange(30) == 7, y + 5.0, y), weights)
    wrong.correct(X[[7]], y[[7]] + 5.0, y[[7]])
    np.testing.assert_array_equal(wrong.outcomes, y)
    x = rng.random((20, 2))
    for one, other in zip(wrong.predict(x), right.predict(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    assert wrong.regression.quadratic_form >= right.regression.quadratic_form
