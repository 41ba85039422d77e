from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior
from oclok.posterior.conditioning import Conditioned


def learned(kind: str, kernel: Any, count: int, noise_std: float = 0.1, seed: int = 0) -> Posterior:
    rng = np.random.default_rng(seed)
    posterior: Posterior = (
        ExactPosterior(kernel, noise_std)
        if kind == "exact"
        else DictionaryPosterior(kernel, noise_std)
    )
    if count:
        X = rng.random((count, 2))
        posterior.update(X, np.sin(5 * X[:, 0]))
    return posterior


def really_updated(posterior: Posterior, *contexts: np.ndarray) -> Posterior:
    """A posterior that has seen made-up outcomes there: its variances do not depend on them."""
    other = posterior.copy()
    for number, X in enumerate(contexts):
        other.update(X, np.full(len(X), 7.0 - number))
    return other


KERNELS = [RBF(0.5), 2.0 * Matern([0.3, 0.6], nu=1.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("kind", ["exact", "dictionary"])
@pytest.mark.parametrize("count", [0, 40, 400])
def test_chosen_and_pending_arms_count_as_if_they_had_been_seen(
    kernel: Any, kind: str, count: int
) -> None:
    rng = np.random.default_rng(1)
    posterior = learned(kind, kernel, count)
    X, pending = rng.random((30, 2)), rng.random((12, 2))
    conditioned = Conditioned(posterior, posterior.predict(X), pending)
    seen = [pending]
    for positions in ([4], [9, 2], [4], [17, 18, 19]):
        judge = really_updated(posterior, *seen)
        np.testing.assert_allclose(conditioned.std, judge.predict(X).std, rtol=0, atol=1e-8)
        conditioned.condition(np.array(positions))
        seen.append(X[positions])
    judge = really_updated(posterior, *seen)
    np.testing.assert_allclose(conditioned.std, judge.predict(X).std, rtol=0, atol=1e-8)


def test_the_posterior_may_have_a_dictionary() -> None:
    posterior = learned("dictionary", RBF(0.5), 400)
    assert posterior.rank < 200


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.lists(st.integers(0, 14), min_size=1, max_size=4, unique=True), max_size=5),
    pending=st.integers(0, 6),
)
def test_information_is_half_the_log_determinant_of_all_that_will_be_seen(
    steps: list[list[int]], pending: int
) -> None:
    rng = np.random.default_rng(2)
    posterior = learned("exact", RBF(0.4), 10)
    X, waiting = rng.random((15, 2)), rng.random((pending, 2))
    conditioned = Conditioned(posterior, posterior.predict(X), waiting if pending else None)
    for step in steps:
        conditioned.condition(np.array(step))
    seen = np.vstack([waiting, *(X[step] for step in steps)])
    expected = 0.0
    if len(seen):
        C = posterior.covariance(seen)
        expected = 0.5 * np.linalg.slogdet(np.eye(len(seen)) + C / posterior.noise_std**2)[1]
    assert conditioned.information == pytest.approx(expected, abs=1e-8)


def test_one_by_one_is_all_at_once() -> None:
    posterior = learned("exact", RBF(0.4), 10)
    X = np.random.default_rng(3).random((20, 2))
    at_once, one_by_one = (
        Conditioned(posterior, posterior.predict(X)),
        Conditioned(posterior, posterior.predict(X)),
    )
    at_once.condition(np.arange(6))
    for position in range(6):
        one_by_one.condition(np.array([position]))
    np.testing.assert_allclose(one_by_one.std, at_once.std, rtol=0, atol=1e-10)
    assert one_by_one.information == pytest.approx(at_once.information, rel=1e-10)


def test_conditioning_on_nothing_changes_nothing() -> None:
    posterior = learned("exact", RBF(0.4), 10)
    X = np.random.default_rng(3).random((20, 2))
    conditioned = Conditioned(posterior, posterior.predict(X))
    conditioned.condition(np.empty(0, dtype=np.intp))
    assert conditioned.information == 0
    np.testing.assert_allclose(conditioned.std, posterior.predict(X).std, rtol=0, atol=1e-10)


@pytest.mark.parametrize("noise_std", [1e-2, 1e-4, 1e-6, 1e-8])
def test_equal_arms_and_little_noise_leave_everything_finite(noise_std: float) -> None:
    X = np.repeat(np.random.default_rng(0).random((5, 2)), 6, axis=0)
    posterior = ExactPosterior(ConstantKernel(100.0) * RBF(0.5), noise_std)
    posterior.update(X[:10], np.ones(10))
    conditioned = Conditioned(posterior, posterior.predict(X), X[:12])
    for position in range(5):
        conditioned.condition(np.array([position]))
    assert np.isfinite(conditioned.information)
    assert conditioned.information >= 0
    assert np.isfinite(conditioned.std).all()
    assert (conditioned.std <= 10.0).all()
