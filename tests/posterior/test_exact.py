from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from oclok.errors import ContextError, InputError, OclokError
from oclok.persistence import dumps
from oclok.posterior import ExactPosterior
from oclok.posterior.linalg import factor


def scikit_learn(kernel: Any, noise_std: float, X: Any, y: Any, x: Any) -> tuple[Any, Any]:
    judge = GaussianProcessRegressor(kernel, alpha=noise_std**2, optimizer=None).fit(X, y)
    return judge.predict(x, return_std=True)


def learn(posterior: ExactPosterior, X: np.ndarray, y: np.ndarray, cuts: list[int]) -> None:
    edges = [0, *sorted(set(cuts)), len(X)]
    for start, stop in pairwise(edges):
        posterior.update(X[start:stop], y[start:stop])


def data(N: int, D: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((N, D))
    return X, np.sin(4 * X.sum(axis=1)) + 0.1 * rng.standard_normal(N), rng.random((20, D))


@settings(max_examples=12, deadline=None)
@given(
    D=st.integers(1, 10),
    cuts=st.lists(st.integers(1, 39), max_size=8),
    noise_std=st.floats(0.05, 2.0),
    seed=st.integers(0, 1000),
)
def test_it_is_scikit_learns_posterior_whatever_the_batches(
    make_kernel: Callable[[int], Any], D: int, cuts: list[int], noise_std: float, seed: int
) -> None:
    X, y, x = data(40, D, seed)
    posterior = ExactPosterior(make_kernel(D), noise_std)
    learn(posterior, X, y, cuts)
    mean, std = posterior.predict(x)
    expected_mean, expected_std = scikit_learn(make_kernel(D), noise_std, X, y, x)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("D", "batches"), [(1, 3), (4, 40), (10, 400)])
def test_it_is_scikit_learns_posterior_at_2000_outcomes(
    make_kernel: Callable[[int], Any], D: int, batches: int
) -> None:
    X, y, x = data(2000, D, seed=D)
    posterior = ExactPosterior(make_kernel(D), 0.1)
    cuts = np.sort(np.random.default_rng(D).choice(np.arange(1, 2000), batches - 1, replace=False))
    learn(posterior, X, y, cuts.tolist())
    mean, std = posterior.predict(x)
    expected_mean, expected_std = scikit_learn(make_kernel(D), 0.1, X, y, x)
    np.testing.assert_allclose(mean, expected_mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(std, expected_std, rtol=0, atol=1e-8)


def test_covariance_is_scikit_learns(make_kernel: Callable[[int], Any]) -> None:
    X, y, x = data(50, 3, seed=2)
    posterior = ExactPosterior(make_kernel(3), 0.2)
    learn(posterior, X, y, [20])
    judge = GaussianProcessRegressor(make_kernel(3), alpha=0.04, optimizer=None).fit(X, y)
    expected = judge.predict(x, return_cov=True)[1]
    np.testing.assert_allclose(posterior.covariance(x), expected, rtol=0, atol=1e-8)


def test_a_white_kernel_means_what_it_means_to_scikit_learn() -> None:
    X, y, x = data(30, 2, seed=3)
    kernel = RBF(0.5) + WhiteKernel(0.3)
    posterior = ExactPosterior(kernel, 0.2)
    learn(posterior, X, y, [11])
    for ours, theirs in zip(posterior.predict(x), scikit_learn(kernel, 0.2, X, y, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 79), max_size=10),
    looks=st.lists(st.integers(0, 79), max_size=4),
    seed=st.integers(0, 100),
)
def test_information_gain_is_half_the_log_determinant(
    cuts: list[int], looks: list[int], seed: int
) -> None:
    X, y, _ = data(80, 2, seed)
    posterior = ExactPosterior(RBF(0.4), 0.1)
    edges = [0, *sorted(set(cuts)), 80]
    for start, stop in pairwise(edges):
        for look in looks:
            posterior.predict(X[look : look + 9])
        posterior.update(X[start:stop], y[start:stop])
        seen = X[:stop]
        gain = 0.5 * np.linalg.slogdet(np.eye(stop) + RBF(0.4)(seen) / 0.01)[1]
        assert posterior.information_gain == pytest.approx(gain, rel=1e-8)


def test_contexts_predicted_just_before_their_update_make_no_difference() -> None:
    X, y, x = data(60, 2, seed=4)
    looked, blind = ExactPosterior(RBF(0.5), 0.1), ExactPosterior(RBF(0.5), 0.1)
    for start in range(0, 60, 6):
        part = slice(start, start + 6)
        looked.predict(np.vstack([x, X[part][::-1], X[part][:2]]))
        looked.update(X[part], y[part])
        blind.update(X[part], y[part])
    for a, b in zip(looked.predict(x), blind.predict(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_many_contexts_at_once_are_predicted_as_one_by_one(monkeypatch: Any) -> None:
    X, y, x = data(50, 2, seed=5)
    posterior = ExactPosterior(RBF(0.5), 0.1)
    posterior.update(X, y)
    mean, std = posterior.predict(np.tile(x, (15, 1)))
    monkeypatch.setattr("oclok.posterior.exact.PREDICTED_AT_ONCE", 100)
    chunked_mean, chunked_std = posterior.predict(np.tile(x, (15, 1)))
    np.testing.assert_allclose(chunked_mean, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(chunked_std, std, rtol=0, atol=1e-12)


def test_ten_thousand_outcomes_at_one_context_are_their_average() -> None:
    rng = np.random.default_rng(0)
    place, y = np.array([[0.3, 0.7]]), rng.standard_normal(10_000)
    posterior = ExactPosterior(RBF(1.0), noise_std=0.1)
    for part in np.split(y, 10):
        posterior.update(np.repeat(place, len(part), axis=0), part)
    x = np.vstack([place, place + 0.1, place + 2.0])
    mean, std = posterior.predict(x)
    k = RBF(1.0)(x, place)[:, 0]
    noise_of_mean = 0.1**2 / len(y)
    np.testing.assert_allclose(mean, k / (1 + noise_of_mean) * y.mean(), rtol=0, atol=1e-10)
    np.testing.assert_allclose(std**2, 1 - k**2 / (1 + noise_of_mean), rtol=0, atol=1e-10)
    assert posterior.information_gain == pytest.approx(0.5 * np.log1p(1 / noise_of_mean), rel=1e-8)


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_repeated_contexts_with_little_noise_are_their_averages(
    make_kernel: Callable[[int], Any], scale: float
) -> None:
    """K of n repeats of s contexts is that of the s averages, with noise variance σ²/n."""
    rng = np.random.default_rng(0)
    places, repeats, noise_std = scale * rng.random((4, 2)), 150, 1e-4
    y = rng.standard_normal((repeats, 4))
    kernel = make_kernel(2)
    posterior = ExactPosterior(kernel, noise_std)
    for row in np.split(y, 15):
        posterior.update(np.tile(places, (len(row), 1)), row.ravel())
    x = np.vstack([places, scale * rng.random((5, 2))])
    mean, std = posterior.predict(x)
    prior = np.sqrt(kernel.diag(x))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert (std <= prior).all()
    k, S = kernel(places, x), kernel(places) + noise_std**2 / repeats * np.eye(4)
    values, Q = np.linalg.eigh(S)
    if values[0] > 1e-10 * values[-1]:
        expected = k.T @ (Q / values) @ Q.T @ y.mean(axis=0)
        np.testing.assert_allclose(mean / prior, expected / prior, rtol=0, atol=1e-5)
        variance = kernel.diag(x) - np.einsum("nm,nm->m", k, (Q / values) @ Q.T @ k)
        np.testing.assert_allclose(
            std / prior, np.sqrt(np.maximum(variance, 0)) / prior, rtol=0, atol=1e-6
        )


def test_hard_problems_agree_with_sixty_digits(hard: Any) -> None:
    posterior = ExactPosterior(hard.kernel, hard.noise_std)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, len(hard.X), 5):
            part = slice(start, start + 5)
            posterior.predict(np.vstack([hard.X[part], hard.x]))
            posterior.update(hard.X[part], hard.y[part])
        mean, std = posterior.predict(hard.x)
    expected_mean, expected_std, gain = hard.judge.posterior(hard.X, hard.y, hard.x, hard.noise_std)
    prior = hard.prior_std
    assert (std <= prior).all()
    np.testing.assert_allclose(mean / prior, expected_mean / prior, rtol=0, atol=1e-6)
    np.testing.assert_allclose(std / prior, expected_std / prior, rtol=0, atol=1e-6)
    if hard.noise_std**2 > 1e-9 * prior.max() ** 2:
        assert posterior.information_gain == pytest.approx(gain, rel=1e-8)


def test_the_last_digits_lost_to_size_leave_the_factor_sound() -> None:
    """Rounding in covariances of 1e12 outweighs a noise variance of 1e-8."""
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.random((600, 3)), rng.standard_normal(600)
    posterior = ExactPosterior(DotProduct(1.0), 1e-4)
    for start in range(0, 600, 20):
        posterior.update(X[start : start + 20], y[start : start + 20])
    mean, std = posterior.predict(X)
    assert np.abs(mean).max() < 10
    assert (std <= 1e-5 * np.sqrt(DotProduct(1.0).diag(X))).all()


def test_a_failed_update_leaves_the_posterior_as_it_was(monkeypatch: Any) -> None:
    X, y, x = data(60, 2, seed=6)
    posterior = ExactPosterior(RBF(0.5), 0.1)
    posterior.update(X[:20], y[:20])
    before, predicted = dumps(posterior), posterior.predict(x)
    monkeypatch.setattr(ExactPosterior, "_at_once", 8)
    calls = []

    def fails_later(S: np.ndarray, least: float) -> np.ndarray:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return factor(S, least)

    monkeypatch.setattr("oclok.posterior.exact.factor", fails_later)
    with pytest.raises(KeyboardInterrupt):
        posterior.update(X[20:], y[20:])
    assert dumps(posterior) == before
    for a, b in zip(posterior.predict(x), predicted, strict=True):
        np.testing.assert_array_equal(a, b)
    posterior.update(X[20:], y[20:])
    for a, b in zip(posterior.predict(x), scikit_learn(RBF(0.5), 0.1, X, y, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)


def test_contexts_that_do_not_fit_the_kernel_are_refused_and_forgotten() -> None:
    posterior = ExactPosterior(RBF([1.0, 2.0]), 0.1)
    before = dumps(posterior)
    for call in (
        lambda: posterior.update([[0.1, 0.2, 0.3]], [1.0]),
        lambda: posterior.predict([[0.1, 0.2, 0.3]]),
        lambda: posterior.covariance([[0.1, 0.2, 0.3]]),
    ):
        with pytest.raises(ContextError, match="2"):
            call()
        assert dumps(posterior) == before
    posterior.update([[0.1, 0.2]], [1.0])
    assert len(posterior) == 1


def test_outcomes_too_large_to_square_are_refused_or_learned_but_never_nan() -> None:
    posterior = ExactPosterior(RBF(1.0), 0.1)
    posterior.update([[0.0]], [1.0])
    before = dumps(posterior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            posterior.update([[0.0], [1e-9]], [1e308, -1e308])
        except OclokError:
            assert dumps(posterior) == before
    assert np.isfinite([*posterior.predict([[0.0], [0.5]])]).all()


def test_later_changes_of_the_kernel_do_not_matter() -> None:
    kernel = RBF(1.0)
    posterior = ExactPosterior(kernel, 0.1)
    posterior.update([[0.0]], [1.0])
    expected = posterior.predict([[0.5]])
    kernel.length_scale = 0.01
    for other in (posterior, posterior.copy()):
        np.testing.assert_array_equal([*other.predict([[0.5]])], [*expected])


@pytest.mark.parametrize("kernel", [RBF, None, "RBF", 1.0, np.eye(2)])
def test_what_is_no_kernel_is_refused_at_once(kernel: Any) -> None:
    with pytest.raises(InputError, match="kernel"):
        ExactPosterior(kernel, 0.1)


@pytest.mark.parametrize("noise_std", [0, -1.0, np.nan, np.inf, "0.1", None, True, 1e-200, 1e200])
def test_noise_without_a_positive_finite_variance_is_refused_at_once(noise_std: Any) -> None:
    with pytest.raises(InputError, match="noise_std"):
        ExactPosterior(RBF(1.0), noise_std)
