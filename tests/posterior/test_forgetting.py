from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

from oclok.errors import InputError
from oclok.persistence import dumps
from oclok.posterior import DictionaryPosterior, ExactPosterior, ForgettingPosterior
from oclok.testing import check_posterior

NOISE_STD = 0.2


def stream(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((count, 2))
    return X, np.sin(6 * X[:, 0]) + NOISE_STD * rng.standard_normal(count)


def dense(
    kernel: Any, X: np.ndarray, y: np.ndarray, noise: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, std and information gain of a GP whose outcomes have noise variances of their own."""
    K = kernel(X)
    weights = np.linalg.solve(K + np.diag(noise), kernel(X, x))
    variance = kernel.diag(x) - np.einsum("nm,nm->m", weights, kernel(X, x))
    gain = 0.5 * np.linalg.slogdet(np.eye(len(X)) + K / np.sqrt(np.outer(noise, noise)))[1]
    return weights.T @ y, np.sqrt(variance), gain


@settings(max_examples=25, deadline=None)
@given(
    batches=st.lists(st.integers(1, 12), min_size=1, max_size=40), window=st.sampled_from([16, 40])
)
def test_a_window_is_the_posterior_of_the_latest_outcomes(batches: list[int], window: int) -> None:
    X, y = stream(sum(batches))
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.5), NOISE_STD), window=window)
    count = 0
    for size in batches:
        posterior.update(X[count : count + size], y[count : count + size])
        count += size
        assert min(count, window) <= len(posterior) <= window * 9 / 8
    latest = slice(count - len(posterior), count)
    np.testing.assert_array_equal(posterior.contexts, X[latest])
    np.testing.assert_array_equal(posterior.outcomes, y[latest])
    judge = ExactPosterior(RBF(0.5), NOISE_STD)
    judge.update(X[latest], y[latest])
    x = np.random.default_rng(9).random((20, 2))
    for ours, theirs in zip(posterior.predict(x), judge.predict(x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)
    assert posterior.information_gain == pytest.approx(judge.information_gain, abs=1e-6)


def test_a_batch_above_the_window_is_cut_to_it() -> None:
    X, y = stream(200)
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.5), NOISE_STD), window=20)
    posterior.update(X, y)
    assert len(posterior) <= 22
    np.testing.assert_array_equal(posterior.outcomes, y[-len(posterior) :])


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.3, nu=1.5)], ids=str)
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99])
def test_discounting_is_a_gaussian_process_whose_old_outcomes_are_noisier(
    kernel: Any, discount: float
) -> None:
    X, y = stream(600)
    x = np.random.default_rng(9).random((20, 2))
    inner = DictionaryPosterior(kernel, NOISE_STD, max_rank=600)
    posterior = ForgettingPosterior(inner, discount=discount)
    for update in range(100):
        now = slice(6 * update, 6 * update + 6)
        posterior.update(X[now], y[now])
        age = update - np.arange(6 * update + 6) // 6
        weights = (discount**age)[-len(posterior) :]
        assert (discount**age)[: -len(posterior)].max(initial=0.0) < 1e-3
        judge = dense(
            kernel,
            X[now.stop - len(weights) : now.stop],
            posterior.outcomes,
            NOISE_STD**2 / weights,
            x,
        )
        for ours, theirs in zip(posterior.predict(x), judge[:2], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)
        assert posterior.information_gain == pytest.approx(judge[2], abs=1e-5)


@pytest.mark.parametrize("how", [{"window": 30}, {"discount": 0.8}], ids=str)
def test_far_from_data_the_prior_is_what_it_was(how: dict[str, Any]) -> None:
    posterior = ForgettingPosterior(DictionaryPosterior(4.0 * RBF(0.3), NOISE_STD), **how)
    X, y = stream(500)
    for start in range(0, 500, 5):
        posterior.update(X[start : start + 5], y[start : start + 5])
    mean, std = posterior.predict([[50.0, 50.0]])
    np.testing.assert_allclose([mean[0], std[0]], [0.0, 2.0], atol=1e-12)


@pytest.mark.parametrize("how", [{"window": 30}, {"discount": 0.8}], ids=str)
def test_what_was_forgotten_is_unknown_again(how: dict[str, Any]) -> None:
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.3), NOISE_STD), **how)
    posterior.update(np.full((6, 1), 9.0), np.full(6, 5.0))
    mean, std = posterior.predict([[9.0]])
    assert mean[0] > 4
    assert std[0] < 0.1
    for value in np.linspace(0.0, 1.0, 300):
        posterior.update([[value]], [0.0])
    mean, std = posterior.predict([[9.0]])
    np.testing.assert_allclose([mean[0], std[0]], [0.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("how", [{"window": 60}, {"discount": 0.9}], ids=str)
def test_what_it_keeps_does_not_grow_with_the_past(how: dict[str, Any]) -> None:
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.4), NOISE_STD), **how)
    rng = np.random.default_rng(0)
    bytes_after, most = {}, 0
    for update in range(1, 601):
        X = rng.random((30, 2))
        posterior.offer(X)
        posterior.update(X[:5], rng.standard_normal(5))
        if update > 200:
            most = max(most, len(posterior))
        if update in (200, 600):
            bytes_after[update] = len(dumps(posterior))
    assert most <= (68 if "window" in how else 5 * 66 * 9 / 8 + 5)
    assert bytes_after[600] <= 1.3 * bytes_after[200]


@pytest.mark.parametrize("how", [{"window": 60}, {"window": 500}], ids=str)
def test_with_room_for_all_outcomes_it_is_the_exact_posterior(how: dict[str, Any]) -> None:
    check_posterior(lambda: ForgettingPosterior(DictionaryPosterior(RBF(0.5), 0.1), **how))


def test_discounting_conforms() -> None:
    check_posterior(
        lambda: ForgettingPosterior(DictionaryPosterior(RBF(0.5), 0.1), discount=0.95), exact=False
    )


@pytest.mark.parametrize("how", [{"window": 40}, {"discount": 0.9}], ids=str)
def test_copies_and_other_kernels_go_on_by_themselves(how: dict[str, Any]) -> None:
    X, y = stream(400)
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.5), NOISE_STD), **how)
    fresh = ForgettingPosterior(DictionaryPosterior(Matern(0.4, nu=2.5), 0.3), **how)
    for start in range(0, 200, 4):
        posterior.update(X[start : start + 4], y[start : start + 4])
        fresh.update(X[start : start + 4], y[start : start + 4])
    other = posterior.with_kernel(Matern(0.4, nu=2.5), 0.3)
    state = dumps(posterior)
    for start in range(200, 400, 4):
        other.update(X[start : start + 4], y[start : start + 4])
        fresh.update(X[start : start + 4], y[start : start + 4])
    assert dumps(posterior) == state
    assert (other.window, other.rate) == (posterior.window, posterior.rate)
    for ours, theirs in zip(other.predict(X[:20]), fresh.predict(X[:20]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"window": 5, "discount": 0.5},
        {"window": 0},
        {"window": 2.5},
        {"discount": 0.0},
        {"discount": 1.0},
    ],
    ids=str,
)
def test_ways_to_forget_that_mean_nothing_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"window|discount"):
        ForgettingPosterior(DictionaryPosterior(RBF(1.0), 0.1), **how)


def test_bad_outcomes_change_nothing() -> None:
    X, y = stream(20)
    posterior = ForgettingPosterior(DictionaryPosterior(RBF(0.5), NOISE_STD), window=8)
    posterior.update(X, y)
    state = dumps(posterior)
    with pytest.raises(InputError):
        posterior.update(X[:2], [0.0, np.inf])
    assert dumps(posterior) == state


@pytest.mark.parametrize("how", [{"window": 400}, {"discount": 0.93}], ids=str)
@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.3, nu=1.5)], ids=str)
def test_many_outcomes_are_forgotten_in_steps(kernel: Any, how: dict[str, Any]) -> None:
    """What is remembered is what it says, at every step, and a copy goes on alike."""
    X, y = stream(1_500)
    inner = DictionaryPosterior(kernel, NOISE_STD, max_rank=2_000)
    posterior = ForgettingPosterior(inner, **how)
    other = posterior
    for start in range(0, len(X), 5):
        part = slice(start, start + 5)
        posterior.update(X[part], y[part])
        if other is not posterior:
            other.update(X[part], y[part])
        if start % 170 == 0:
            other = posterior.copy()
        known = posterior.observations
        count = len(known)
        np.testing.assert_array_equal(known.outcomes, y[part.stop - count : part.stop])
        if "window" in how:
            assert min(part.stop, 400) <= count <= 450
        np.testing.assert_array_equal(other.observations.weights, known.weights)
    assert len(posterior) < 700
    x = X[:20]
    judge = ExactPosterior(kernel, NOISE_STD)
    judge.update(known.contexts.copy(), known.outcomes.copy(), known.weights.copy())
    for ours, theirs in zip(posterior.predict(x), judge.predict(x), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
    for ours, theirs in zip(posterior.predict(x), other.predict(x), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
