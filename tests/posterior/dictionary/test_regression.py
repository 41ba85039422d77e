"""Regression in square-root form against the normal equations."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.posterior.dictionary import regression
from oclok.posterior.dictionary.regression import FEW, Regression

RANK = 12


def drawn(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (RANK, count), of decaying size as those of a dictionary, and outcomes."""
    rng = np.random.default_rng(seed)
    decay = 10.0 ** -np.linspace(0, 4, RANK)
    phi = np.asfortranarray(decay[:, None] * rng.standard_normal((RANK, count)))
    return phi, rng.standard_normal(count)


def dense(
    phi: np.ndarray, y: np.ndarray, noise: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return mean and covariance of the weights, Σ|z|² and the information gain."""
    B = phi / noise
    A = np.eye(RANK) + B @ B.T
    mean = np.linalg.solve(A, B @ (y / noise))
    predicted = phi.T @ phi + np.diag(noise**2)
    surprise = y @ np.linalg.solve(predicted, y)
    return mean, np.linalg.inv(A), surprise, np.linalg.slogdet(A)[1] / 2


def learn(known: Regression, phi: np.ndarray, y: np.ndarray, noise: np.ndarray) -> None:
    known.learn(known.whiten(phi), y - known.mean(phi), noise)


@pytest.mark.parametrize("count", [1, 5, FEW, FEW + 1, 300])
@pytest.mark.parametrize("noise_std", [1e-3, 0.1, 1.0])
def test_it_is_the_posterior_of_the_normal_equations(count: int, noise_std: float) -> None:
    phi, y = drawn(0, count)
    noise = noise_std * np.random.default_rng(1).uniform(0.5, 2.0, count)
    known = Regression(RANK)
    split = -(-count // 3)
    for part in (slice(0, split), slice(split, count)):
        if len(y[part]):
            learn(known, phi[:, part], y[part], noise[part])
    mean, covariance, surprise, gain = dense(phi, y, noise)
    np.testing.assert_allclose(known.m, mean, rtol=1e-6, atol=1e-7 * np.abs(mean).max())
    np.testing.assert_allclose(known.S @ known.S.T, covariance, rtol=1e-6, atol=1e-9)
    assert known.quadratic_form == pytest.approx(surprise, rel=1e-6)
    assert known.information_gain == pytest.approx(gain, rel=1e-9)


@pytest.mark.parametrize("noise_std", [1e-5, 1e-3, 0.1])
@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("largest_trace", [regression.LARGEST_TRACE, -1.0])
def test_kalman_cholesky_and_qr_lose_no_digits_to_each_other(
    noise_std: float, spread: float, largest_trace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    phi, y = drawn(2, 40)
    noise = noise_std * 10 ** np.random.default_rng(3).uniform(-spread / 2, spread / 2, 40)
    few, many = Regression(RANK), Regression(RANK)
    learn(few, phi, y, noise)
    monkeypatch.setattr(regression, "FEW", 0)
    monkeypatch.setattr(regression, "LARGEST_TRACE", largest_trace)
    learn(many, phi, y, noise)
    x, _ = drawn(4, 9)
    np.testing.assert_allclose(few.mean(x), many.mean(x), rtol=0, atol=1e-9)
    norms = (np.linalg.norm(known.whiten(x), axis=0) for known in (few, many))
    np.testing.assert_allclose(*norms, rtol=1e-7)
    assert few.information_gain == pytest.approx(many.information_gain, rel=1e-9)
    assert few.quadratic_form == pytest.approx(many.quadratic_form, rel=1e-9)


def test_where_nothing_surprises_outcomes_count_all_the_same() -> None:
    phi, y = drawn(5, 200)
    known = Regression(RANK)
    learn(known, phi, 0.0 * y, np.full(200, 0.2))
    _, covariance, _, _ = dense(phi, 0.0 * y, np.full(200, 0.2))
    np.testing.assert_allclose(known.S @ known.S.T, covariance, rtol=1e-8)
    assert known.quadratic_form == 0


@pytest.mark.parametrize(("noise_std", "by_qr"), [(0.1, False), (1e-4, True)])
def test_only_little_noise_calls_for_qr(
    noise_std: float, by_qr: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    qr = regression.dtpqrt
    monkeypatch.setattr(regression, "dtpqrt", lambda *args, **k: calls.append(1) or qr(*args, **k))
    phi, y = drawn(6, 200)
    learn(Regression(RANK), phi, y, np.full(200, noise_std))
    assert bool(calls) == by_qr


def test_discounting_is_learning_with_more_noise() -> None:
    phi, y = drawn(7, 50)
    noise = np.full(50, 0.3)
    known = Regression(RANK)
    learn(known, phi, y, noise)
    known.discount(0.25)
    mean, covariance, _, gain = dense(phi, y, 2.0 * noise)
    np.testing.assert_allclose(known.m, mean, atol=1e-10)
    np.testing.assert_allclose(known.S @ known.S.T, covariance, atol=1e-12)
    assert known.information_gain == pytest.approx(gain)


def test_samples_have_mean_and_covariance() -> None:
    phi, y = drawn(8, 30)
    known = Regression(RANK)
    learn(known, phi, y, np.full(30, 0.5))
    W = known.sample(40_000, np.random.default_rng(9))
    np.testing.assert_allclose(W.mean(axis=1), known.m, atol=0.03)
    np.testing.assert_allclose(np.cov(W), known.S @ known.S.T, atol=0.04)
