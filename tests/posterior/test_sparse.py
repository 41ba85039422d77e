from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from oclok.errors import ContextError, InputError, OclokError
from oclok.persistence import dumps
from oclok.posterior import ExactPosterior, SparsePosterior

CHOICES = ["random", "greedy"]


def data(N: int, D: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((N, D))
    return X, np.sin(4 * X.sum(axis=1)) + 0.1 * rng.standard_normal(N), rng.random((20, D))


def titsias(posterior: SparsePosterior, X: Any, y: Any, x: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the dense GP whose covariance is Q = K_xu K_uu⁻¹ K_ux.

    Titsias (2009), equation 6, says the same by an inverse of K_uu + σ⁻²K_ux K_xu, whose
    condition is the square of that of K_uu.
    """
    kernel, noise, U = posterior.kernel, posterior.noise_std**2, posterior.inducing
    Kux, k = kernel(U, X), kernel(U, x)
    solved = np.linalg.solve(kernel(U), k)
    Q = Kux.T @ np.linalg.solve(kernel(U), Kux) + noise * np.eye(len(X))
    q = Kux.T @ solved
    return q.T @ np.linalg.solve(Q, y), kernel(x) - q.T @ np.linalg.solve(Q, q)


@pytest.mark.parametrize("choose", CHOICES)
@settings(max_examples=6, deadline=None)
@given(D=st.integers(1, 10), cuts=st.lists(st.integers(1, 99), max_size=4), seed=st.integers(0, 99))
def test_it_is_the_textbook_posterior_through_its_inducing_points(
    make_kernel: Callable[[int], Any], choose: Any, D: int, cuts: list[int], seed: int
) -> None:
    X, y, x = data(100, D, seed)
    posterior = SparsePosterior(make_kernel(D), 0.2, inducing=5, choose=choose, seed=seed)
    edges = [0, *sorted(set(cuts)), 100]
    for start, stop in pairwise(edges):
        posterior.update(X[start:stop], y[start:stop])
    mean, covariance = titsias(posterior, X, y, x)
    np.testing.assert_allclose(posterior.predict(x).mean, mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        posterior.predict(x).std ** 2, np.diag(covariance), rtol=0, atol=1e-6
    )
    np.testing.assert_allclose(posterior.covariance(x), covariance, rtol=0, atol=1e-6)


@pytest.mark.parametrize("choose", CHOICES)
def test_information_gain_is_that_of_the_sparse_model(choose: Any) -> None:
    X, y, _ = data(80, 2, seed=0)
    posterior = SparsePosterior(RBF(0.3), 0.2, inducing=8, choose=choose, seed=0)
    posterior.update(X, y)
    Kux = RBF(0.3)(posterior.inducing, X)
    Q = Kux.T @ np.linalg.solve(RBF(0.3)(posterior.inducing), Kux)
    gain = 0.5 * np.linalg.slogdet(np.eye(80) + Q / 0.04)[1]
    assert posterior.information_gain == pytest.approx(gain, rel=1e-8)


@pytest.mark.parametrize("choose", CHOICES)
def test_hard_problems_agree_with_sixty_digits(hard: Any, choose: Any) -> None:
    posterior = SparsePosterior(hard.kernel, hard.noise_std, 12, choose, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for start in range(0, len(hard.X), 10):
            part = slice(start, start + 10)
            posterior.update(hard.X[part], hard.y[part])
        mean, std = posterior.predict(hard.x)
    expected = hard.judge.sparse(posterior.inducing, hard.X, hard.y, hard.x, hard.noise_std)
    prior = hard.prior_std
    assert (std <= prior * (1 + 1e-12)).all()
    np.testing.assert_allclose(mean / prior, expected[0] / prior, rtol=0, atol=1e-6)
    np.testing.assert_allclose(std / prior, expected[1] / prior, rtol=0, atol=1e-6)


def test_with_as_many_inducing_points_as_contexts_it_is_exact(hard: Any) -> None:
    """What is left out as redundant may not be seen in what the rest predicts."""
    posterior = SparsePosterior(hard.kernel, hard.noise_std, len(hard.X), "greedy")
    posterior.update(hard.X, hard.y)
    mean, std = posterior.predict(hard.x)
    expected_mean, expected_std, _ = hard.judge.posterior(hard.X, hard.y, hard.x, hard.noise_std)
    prior = hard.prior_std
    np.testing.assert_allclose(mean / prior, expected_mean / prior, rtol=0, atol=1e-5)
    np.testing.assert_allclose(std / prior, expected_std / prior, rtol=0, atol=1e-5)


@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("scale", [1.0, 1e6])
@pytest.mark.parametrize("kernel", [RBF(1.0), Matern(1.0, nu=0.5), DotProduct(1.0)])
def test_ten_thousand_outcomes_at_one_context_are_their_average(
    kernel: Any, scale: float, choose: Any
) -> None:
    rng = np.random.default_rng(0)
    place, y = scale * np.array([[0.3, 0.7]]), rng.standard_normal(10_000)
    posterior = SparsePosterior(kernel, 1e-4, choose=choose, seed=0)
    for part in np.split(y, 4):
        posterior.update(np.repeat(place, len(part), axis=0), part)
    assert posterior.rank == 1
    x = np.vstack([place, 1.1 * place, -place])
    mean, std = posterior.predict(x)
    k, prior = kernel(x, place)[:, 0], kernel.diag(x)
    noise_of_mean = 1e-8 / len(y)
    weight = k / (kernel.diag(place) + noise_of_mean)
    np.testing.assert_allclose(mean, weight * y.mean(), rtol=1e-6)
    np.testing.assert_allclose(
        std / np.sqrt(prior), np.sqrt(np.maximum(1 - weight * k / prior, 0)), rtol=0, atol=1e-7
    )


def test_random_inducing_points_are_drawn_uniformly_without_replacement() -> None:
    X = np.linspace(0, 1, 40)[:, None]
    posterior = SparsePosterior(Matern(0.01, nu=0.5), 0.1, inducing=10, seed=3)
    times = np.zeros(40)
    posterior.update(X[:39], np.zeros(39))
    posterior.update(X[39:], np.zeros(1))
    repeats = 400
    for _ in range(repeats):
        one = posterior.copy()
        posterior = one
        one.discount(1.0)  # learns the same anew
        drawn = np.searchsorted(X[:, 0], one.inducing[:, 0])
        assert len(set(drawn.tolist())) == 10
        times[drawn] += 1
    expected = repeats / 4
    assert ((times - expected) ** 2 / (expected * 0.75)).sum() < 80  # χ² with 39 degrees


def test_the_same_seed_draws_the_same_inducing_points() -> None:
    X, y, _ = data(60, 2, seed=0)
    first, second, other = (SparsePosterior(RBF(0.3), 0.1, 7, seed=s) for s in (4, 4, 5))
    for posterior in (first, second, other):
        for start in range(0, 60, 20):
            posterior.update(X[start : start + 20], y[start : start + 20])
    np.testing.assert_array_equal(first.inducing, second.inducing)
    assert not np.array_equal(first.inducing, other.inducing)


def test_inducing_points_are_drawn_afresh_at_each_update() -> None:
    X, y, _ = data(60, 2, seed=0)
    posterior = SparsePosterior(RBF(0.3), 0.1, 7, seed=4)
    posterior.update(X[:59], y[:59])
    before = posterior.inducing
    posterior.update(X[59:], y[59:])
    assert not np.array_equal(posterior.inducing, before)


def test_greedy_takes_the_context_with_the_largest_variance_left_again_and_again() -> None:
    X, y, _ = data(50, 2, seed=1)
    posterior = SparsePosterior(RBF(0.4), 0.1, 8, "greedy")
    posterior.update(X, y)
    taken = [0]
    for _ in range(7):
        k = RBF(0.4)(X, X[taken])
        left = 1 - np.einsum("nr,nr->n", k, np.linalg.solve(RBF(0.4)(X[taken]), k.T).T)
        taken.append(int(np.argmax(left)))
    np.testing.assert_array_equal(posterior.inducing, X[taken])


def test_a_white_kernel_keeps_the_covariance_one() -> None:
    X, y, x = data(40, 2, seed=2)
    posterior = SparsePosterior(RBF(0.5) + WhiteKernel(0.5), 0.2, 10, "greedy")
    posterior.update(X, y)
    mean, covariance = titsias(posterior, X, y, x)
    np.testing.assert_allclose(posterior.predict(x).mean, mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(x), covariance, rtol=0, atol=1e-6)


def test_contexts_without_any_prior_variance_leave_the_prior() -> None:
    posterior = SparsePosterior(DotProduct(0.0), 0.1)
    posterior.update([[0.0, 0.0], [0.0, 0.0]], [0.1, -0.1])
    mean, std = posterior.predict([[1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(mean, [0, 0], atol=1e-12)
    np.testing.assert_allclose(std, [1, 0], atol=1e-12)


def test_it_approaches_the_exact_posterior_with_more_inducing_points() -> None:
    X, y, x = data(150, 2, seed=3)
    exact = ExactPosterior(RBF(0.5), 0.1)
    exact.update(X, y)
    errors = []
    for inducing in (2, 10, 50):
        posterior = SparsePosterior(RBF(0.5), 0.1, inducing, "greedy")
        posterior.update(X, y)
        errors.append(np.abs(posterior.predict(x).mean - exact.predict(x).mean).max())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-4


@pytest.mark.parametrize("choose", CHOICES)
def test_contexts_that_do_not_fit_the_kernel_are_refused_and_forgotten(choose: Any) -> None:
    posterior = SparsePosterior(RBF([1.0, 2.0]), 0.1, choose=choose, seed=0)
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


@pytest.mark.parametrize("choose", CHOICES)
def test_a_failed_update_leaves_the_posterior_as_it_was(choose: Any, monkeypatch: Any) -> None:
    X, y, x = data(30, 2, seed=4)
    posterior = SparsePosterior(RBF(0.5), 0.1, 5, choose, seed=0)
    posterior.update(X[:20], y[:20])
    before = dumps(posterior)
    twin = posterior.copy()
    draw = SparsePosterior._inducing_points

    def fails(self: SparsePosterior, X: np.ndarray) -> Any:
        draw(self, X)
        raise KeyboardInterrupt

    monkeypatch.setattr(SparsePosterior, "_inducing_points", fails)
    with pytest.raises(KeyboardInterrupt):
        posterior.update(X[20:], y[20:])
    monkeypatch.undo()
    assert dumps(posterior) == before
    for one in (posterior, twin):
        one.update(X[20:], y[20:])
    np.testing.assert_array_equal([*posterior.predict(x)], [*twin.predict(x)])


def test_outcomes_too_large_to_square_are_refused_or_learned_but_never_nan() -> None:
    posterior = SparsePosterior(RBF(1.0), 0.1)
    posterior.update([[0.0]], [1.0])
    before = dumps(posterior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            posterior.update([[0.0], [1e-9], [0.5]], [1e308, 1e308, 1e308])
        except OclokError:
            assert dumps(posterior) == before
    assert np.isfinite([*posterior.predict([[0.0], [0.5]])]).all()


@pytest.mark.parametrize(
    "wrong", [{"inducing": 0}, {"inducing": 2.5}, {"inducing": True}, {"choose": "best"}]
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        SparsePosterior(RBF(1.0), 0.1, **wrong)
