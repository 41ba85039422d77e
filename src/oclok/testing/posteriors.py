"""`check_posterior`: whether a class is a posterior, as policies need it.

X, y    contexts (N, D) and outcomes (N,) to learn        x    contexts to predict at, (M, D)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oclok.posterior.base import Posterior
from oclok.testing.assertions import (
    bad_contexts,
    bad_outcomes,
    check,
    check_close,
    check_equal,
    check_refused,
    reloaded,
    unchanged,
)
from oclok.typing import FloatArray

OBSERVATIONS = 60
PLACES = 25
#: Rounding in a difference of covariances, relative to the prior variance.
ROUNDING = 1e-9


def check_posterior(
    make: Callable[[], Posterior],
    *,
    dimension: int = 2,
    exact: bool = True,
    one_kernel: bool = True,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> None:
    """Raise an `AssertionError` that says what is wrong with the posteriors that `make` returns.

    Args:
        make: returns a new posterior that has learned nothing.
        dimension: D of the contexts to try; they lie in the unit cube.
        exact: the posterior claims to be the Gaussian process posterior itself, up to
            `tolerance`, whatever the order and the batches of its updates. False for an
            approximation, which is then only held to what every posterior must do.
        one_kernel: the prior is a Gaussian process with the posterior's kernel. False for a
            mixture that learns it, and with it how far f varies at all.
        tolerance: largest error of mean and std, in prior standard deviations.
        seed: seed of contexts and outcomes.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> from oclok.posterior import ExactPosterior
        >>> check_posterior(lambda: ExactPosterior(RBF(0.5), noise_std=0.1))
    """
    rng = np.random.default_rng(seed)
    X, x = rng.random((OBSERVATIONS, dimension)), rng.random((PLACES, dimension))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(OBSERVATIONS)
    data = _Data(X, y, x, one_kernel, tolerance)
    _check_prior(make(), data)
    _check_learning(make(), data)
    _check_bad_input(make(), data)
    _check_copies(make(), data)
    if exact:
        _check_textbook(make(), data)
        _check_batches(make, data, rng)
        _check_std_shrinks(make(), data)


@dataclass(frozen=True)
class _Data:
    X: FloatArray
    y: FloatArray
    x: FloatArray
    one_kernel: bool
    tolerance: float


def _check_prior(posterior: Posterior, data: _Data) -> None:
    x = data.x
    check(len(posterior) == 0, f"a new posterior must have learned 0; got {len(posterior)}")
    is_known = posterior.dimension in (None, x.shape[1])
    check(is_known, "before any data the dimension must be None, or the kernel's")
    check(posterior.rank == 0, f"before any data the rank must be 0; got {posterior.rank}")
    check_close(posterior.information_gain, 0.0, ROUNDING, "information gain before any data")
    with unchanged(posterior, "predict"):
        mean, std = posterior.predict(x)
    check_close(mean, np.zeros(len(x)), 0.0, "mean before any data")
    if data.one_kernel:
        K, prior = posterior.kernel(x), _prior_variance(posterior, x)
        most = float(prior.max())
        check_close(std, np.sqrt(prior), ROUNDING, "std before any data", np.sqrt(most))
        check_close(posterior.covariance(x), K, ROUNDING, "covariance before any data", most)


def _check_learning(posterior: Posterior, data: _Data) -> None:
    X, y, learned = data.X, data.y, 0
    for start, stop in ((0, 1), (1, 8), (8, len(X))):
        posterior.update(X[start:stop], y[start:stop])
        learned += stop - start
        check(len(posterior) == learned, f"len is {len(posterior)} after {learned} outcomes")
        check(posterior.dimension == X.shape[1], f"dimension is {posterior.dimension}")
        shape, expected = posterior.inducing.shape, (posterior.rank, X.shape[1])
        check(shape == expected, f"inducing has shape {shape}; expected {expected}")
        check(posterior.rank <= learned, f"rank {posterior.rank} exceeds {learned} outcomes")
        gain = posterior.information_gain
        check(np.isfinite(gain) and gain > 0, f"information gain is {gain} after outcomes")
        _check_moments(posterior, data.x, data.one_kernel)
        _check_moments(posterior, X[:learned], data.one_kernel)


def _check_moments(posterior: Posterior, x: FloatArray, one_kernel: bool) -> None:
    with unchanged(posterior, "predict or covariance"):
        mean, std = posterior.predict(x)
        covariance = posterior.covariance(x)
    again = tuple(posterior.predict(x))
    check_equal((mean, std), again, "two calls of predict in a row gave different numbers")
    M = len(x)
    for name, value in {"mean": mean, "std": std, "covariance": covariance}.items():
        shape = (M, M) if name == "covariance" else (M,)
        check(value.shape == shape, f"{name} has shape {value.shape}; expected {shape}")
        check(value.dtype == np.float64, f"{name} has dtype {value.dtype}; expected float64")
        check(np.isfinite(value).all(), f"{name} is not finite")
    prior = _prior_variance(posterior, x)
    scale = float(prior.max())
    check((std >= 0).all(), f"a std is negative: {std.min()}")
    if one_kernel:
        is_below = (std <= np.sqrt(prior) * (1 + ROUNDING)).all()
        check(is_below, "a std is above the prior's: data cannot take knowledge away")
    check_close(covariance, covariance.T, ROUNDING, "covariance and its transpose", scale)
    check_close(np.diag(covariance), std**2, ROUNDING, "diagonal of covariance and std²", scale)
    least = float(np.linalg.eigvalsh((covariance + covariance.T) / 2)[0])
    check(least >= -ROUNDING * scale * M, f"covariance has an eigenvalue of {least:.3g}")


def _check_bad_input(posterior: Posterior, data: _Data) -> None:
    some, seen = data.X[:5], data.y[:5]
    for what, bad in bad_contexts(some).items():
        if what != "contexts of another dimension":
            check_refused(posterior, what, posterior.update, bad, seen)
    posterior.update(data.X, data.y)
    for what, bad in bad_contexts(some).items():
        many = np.zeros(6 if "ragged" in what else 5)
        check_refused(posterior, what, posterior.update, bad, many)
        check_refused(posterior, what, posterior.predict, bad)
        check_refused(posterior, what, posterior.covariance, bad)
    for what, bad in bad_outcomes(seen).items():
        check_refused(posterior, what, posterior.update, some, bad)
    _check_moments(posterior, data.x, data.one_kernel)


def _check_copies(posterior: Posterior, data: _Data) -> None:
    X, y, half = data.X, data.y, len(data.X) // 2
    contexts, outcomes = X[:half].copy(), y[:half].copy()
    posterior.update(contexts, outcomes)
    with unchanged(posterior, "writing to the arrays that update was given"):
        contexts[:], outcomes[:] = 9.0, 9.0
    with unchanged(posterior, "writing to `inducing`"):
        posterior.inducing[:] = 9.0
    posterior.predict(X[half:])
    for name, other in (("copy", posterior.copy()), ("loaded copy", reloaded(posterior))):
        twin = reloaded(posterior)
        _check_same(other, posterior, data.x, f"a {name}")
        with unchanged(posterior, f"an update of its {name}"):
            other.update(X[half:], y[half:])
        twin.update(X[half:], y[half:])
        _check_same(other, twin, data.x, f"a {name} that learned on")


def _check_same(one: Posterior, other: Posterior, x: FloatArray, what: str) -> None:
    check(len(one) == len(other), f"{what} has learned {len(one)} outcomes, not {len(other)}")
    check(one.information_gain == other.information_gain, f"{what} has another information gain")
    for name, a, b in zip(("mean", "std"), one.predict(x), other.predict(x), strict=True):
        check(np.array_equal(a, b), f"{what} predicts another {name}, by {abs(a - b).max():.3g}")


def _check_textbook(posterior: Posterior, data: _Data) -> None:
    for n in (1, 7, len(data.X)):
        new = slice(len(posterior), n)
        posterior.update(data.X[new], data.y[new])
        _check_against_textbook(posterior, data, n, f"after {n} outcomes")


def _check_batches(make: Callable[[], Posterior], data: _Data, rng: np.random.Generator) -> None:
    X, y, N = data.X, data.y, len(data.X)
    for _ in range(3):
        posterior, order = make(), rng.permutation(N)
        for part in np.split(order, np.unique(rng.integers(1, N, size=5))):
            posterior.predict(X[rng.choice(N, size=9)])
            posterior.update(X[part], y[part])
        what = "after the same outcomes in another order and in batches"
        _check_against_textbook(posterior, data, N, what)


def _check_std_shrinks(posterior: Posterior, data: _Data) -> None:
    scale = float(np.sqrt(_prior_variance(posterior, data.x).max()))
    before = posterior.predict(data.x).std
    for row, outcome in zip(data.X[:20], data.y[:20], strict=True):
        posterior.update(row[None], [outcome])
        after = posterior.predict(data.x).std
        grown = float((after - before).max())
        check(grown <= data.tolerance * scale, f"a std grew by {grown:.3g} with one more outcome")
        before = after


def _check_against_textbook(posterior: Posterior, data: _Data, n: int, when: str) -> None:
    """Compare with mean = kᵀ(K + σ²I)⁻¹y and covariance = K(x, x) - kᵀ(K + σ²I)⁻¹k."""
    X, y, x, tolerance = data.X[:n], data.y[:n], data.x, data.tolerance
    kernel, noise = posterior.kernel, posterior.noise_std**2
    k = kernel(X, x)
    weights = np.linalg.solve(kernel(X) + noise * np.eye(n), k)
    covariance = kernel(x) - k.T @ weights
    mean, std = posterior.predict(x)
    scale = float(np.sqrt(_prior_variance(posterior, x).max()))
    check_close(mean, weights.T @ y, tolerance, f"mean {when}", scale)
    check_close(std, np.sqrt(np.diag(covariance)), tolerance, f"std {when}", scale)
    check_close(posterior.covariance(x), covariance, tolerance, f"covariance {when}", scale**2)
    gain = 0.5 * np.linalg.slogdet(np.eye(n) + kernel(X) / noise)[1]
    what = f"information gain {when}, against ½ log det(I + σ⁻²K)"
    check_close(posterior.information_gain, gain, tolerance, what, scale=max(1.0, float(gain)))


def _prior_variance(posterior: Posterior, x: FloatArray) -> FloatArray:
    return np.asarray(posterior.kernel.diag(x), dtype=np.float64)
