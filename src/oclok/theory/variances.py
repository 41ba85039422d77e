"""Variances of f at many contexts while outcomes are seen one by one.

Notation
    X    (U, D)  contexts            P    (n,)  positions in X of the outcomes seen so far
    L    (n, n)  Cholesky factor of K(P, P) + σ²I
    W    (n, U)  L⁻¹K(P, X); the variance at X[u] is k(X[u], X[u]) - ‖W[:, u]‖²

An outcome at X[u] adds the row (k(X[u], X) - W[:, u]ᵀW) / L_nn to W, with L_nn² = var(X[u]) + σ².
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from oclok.errors import NumericalError
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Variances:
    """Variances of f at fixed contexts, given noisy outcomes at some of them.

    Args:
        kernel: prior covariance of f.
        contexts: shape (U, D).
        noise_variance: σ².
        capacity: the most outcomes that will be seen; memory is U · capacity floats.

    Attributes:
        values: shape (U,).
        information_gain: of the outcomes seen so far.
    """

    def __init__(
        self, kernel: Kernel, contexts: FloatArray, noise_variance: float, capacity: int
    ) -> None:
        self.values: FloatArray = kernel.diag(contexts)
        self.information_gain = 0.0
        self._kernel, self._X, self._noise_variance = kernel, contexts, noise_variance
        self._W = np.empty((capacity, len(contexts)))
        self._P: list[int] = []
        self._diagonal: list[float] = []

    def observe(self, u: int) -> None:
        """See a noisy outcome at context `u`."""
        n, noise = len(self._P), self._noise_variance
        self.information_gain += 0.5 * math.log1p(self.values[u] / noise)
        self._P.append(u)
        self._diagonal.append(math.sqrt(self.values[u] + noise))
        row = self._kernel(self._X[u : u + 1], self._X)[0] - self._W[:n, u] @ self._W[:n]
        self._W[n] = row / self._diagonal[-1]
        left = self.values - self._W[n] ** 2
        if left.min() < -noise:
            raise NumericalError(
                f"noise_std**2 = {noise:g} is below the rounding error of the kernel's variances, "
                f"{-left.min():.1g}; give a larger noise_std"
            )
        self.values = np.maximum(left, 0.0)

    def of_observed(self) -> FloatArray:
        """Return the variances, shape (n,), of f where it was observed, in that order.

        They are the diagonal of σ²I - σ⁴(K + σ²I)⁻¹. With a kernel that has white noise of its own
        they are less than `values` at the same contexts.
        """
        n, noise = len(self._P), self._noise_variance
        L = np.tril(self._W[:n, self._P].T, -1) + np.diag(self._diagonal)
        inverse = solve_triangular(L, np.eye(n), lower=True, check_finite=False)
        return np.asarray(noise - noise**2 * (inverse**2).sum(axis=0))
