"""Regret bounds: Theorem 1 as a number, Corollary 1 as curves (Section 4 of the paper).

Notation
    T    rounds                          K    most base arms in a super arm
    D    dimension of a context          ν    smoothness of the Matérn kernel
    σ    noise_std                       B    Lipschitz constant of the expected reward
    γ    information gain                λ*   largest eigenvalue of the covariance matrices of f at
                                              the super arms, each given the rounds before it
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from oclok.errors import InputError
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import as_count, as_nonnegative, as_positive, as_vector


def regret_bound(
    rounds: int,
    k: int,
    beta: float,
    information_gain: float,
    largest_eigenvalue: float,
    noise_std: float,
    lipschitz: float = 1.0,
) -> float:
    """Return the regret that O'CLOK-UCB stays below with probability 1 - δ (Theorem 1).

    √(C K β_T T γ) with C = 8 B² (λ* + σ²).

    Args:
        rounds: T.
        k: K, the most base arms in a super arm.
        beta: β_T, the largest of β_1, …, β_T. Where β_t is made of the number of base arms in
            round t, that need not be the last.
        information_gain: γ_KT, such as the upper bound of `max_information_gain`; or the
            information gain of the outcomes that were seen, which is less and is all that the
            proof needs (its last step replaces it by γ_KT).
        largest_eigenvalue: λ*(K). It is at most K times the largest k(x, x).
        noise_std: σ.
        lipschitz: B of the oracle's expected reward, `oracle.lipschitz`.

    Examples:
        >>> round(regret_bound(100, 2, 20.0, 10.0, 0.99, 0.1, 1.0), 1)
        565.7
    """
    T, K = as_count(rounds, "rounds"), as_count(k, "k")
    beta = as_nonnegative(beta, "beta")
    gain = as_nonnegative(information_gain, "information_gain")
    eigenvalue = as_nonnegative(largest_eigenvalue, "largest_eigenvalue")
    noise_variance = as_positive(noise_std, "noise_std") ** 2
    C = 8 * as_positive(lipschitz, "lipschitz") ** 2 * (eigenvalue + noise_variance)
    return math.sqrt(C * K * beta * T * gain)


def linear_rate(
    rounds: ArrayLike, k: int, dimension: int, largest_eigenvalue: float = 1.0
) -> FloatArray:
    """Return √(λ* D K T), how regret grows with a linear kernel (Corollary 1).

    Up to a constant and powers of log T: a curve to draw beside measured regret, not a bound.
    `rounds` is T, a number or numbers, shape (N,); `k`, `dimension` and `largest_eigenvalue` are
    K, D and λ*.

    Examples:
        >>> linear_rate([100, 400], k=2, dimension=2)
        array([20., 40.])
    """
    T = _as_horizons(rounds)
    return _scale(k, largest_eigenvalue) * np.sqrt(as_count(dimension, "dimension") * T)


def rbf_rate(
    rounds: ArrayLike, k: int, dimension: int, largest_eigenvalue: float = 1.0
) -> FloatArray:
    """Return √(λ* K T logᴰ T), how regret grows with an RBF kernel (Corollary 1).

    Up to a constant and powers of log T that do not depend on D. See `linear_rate`.
    """
    T = _as_horizons(rounds)
    polylog: FloatArray = np.log(T) ** as_count(dimension, "dimension")
    return _scale(k, largest_eigenvalue) * np.sqrt(T * polylog)


def matern_rate(
    rounds: ArrayLike, k: int, dimension: int, nu: float, largest_eigenvalue: float = 1.0
) -> FloatArray:
    """Return √(λ* K) T^((D+ν)/(D+2ν)), how regret grows with a Matérn kernel (Corollary 1).

    Up to a constant and powers of log T. `nu` must be above 1, as there. See `linear_rate`.
    """
    T = _as_horizons(rounds)
    D = as_count(dimension, "dimension")
    smoothness = as_positive(nu, "nu")
    if smoothness <= 1:
        raise InputError(f"nu must be above 1 for Corollary 1 to hold; got {nu!r}")
    return _scale(k, largest_eigenvalue) * T ** ((D + smoothness) / (D + 2 * smoothness))


def _scale(k: int, largest_eigenvalue: float) -> float:
    return math.sqrt(as_positive(largest_eigenvalue, "largest_eigenvalue") * as_count(k, "k"))


def _as_horizons(rounds: ArrayLike) -> FloatArray:
    is_number = isinstance(rounds, Real) or (isinstance(rounds, np.ndarray) and rounds.ndim == 0)
    T = as_vector(np.array([rounds]) if is_number else rounds, "rounds")
    if T.min(initial=1.0) < 1:
        raise InputError(f"rounds must be at least 1; got {T.min():g}")
    return T.reshape(()) if is_number else T
