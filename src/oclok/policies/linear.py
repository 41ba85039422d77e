"""Bayesian linear regression, which the linear policies share: ridge regression with a covariance.

    x      a row of features, (D,)                     θ      the weights, f(x) = θᵀx, (D,)
    V      λI + Σ xxᵀ over all outcomes so far, (D, D)  b      Σ x r, (D,)
    L      Cholesky factor of V = LLᵀ                   θ̂      V⁻¹b: the ridge estimate

    mean = θ̂ᵀx        width = √(xᵀV⁻¹x) = ‖L⁻¹x‖

With noise of standard deviation σ and the prior θ ~ N(0, σ²/λ I), the posterior is
θ ~ N(θ̂, σ²V⁻¹), and σ · width is the standard deviation of f(x).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.typing import FloatArray


class LinearRegression(Persistent):
    """Ridge regression that learns outcome by outcome, at a cost that does not grow with N.

    Args:
        dimension: D, the number of features.
        penalty: λ, above 0.
    """

    def __init__(self, dimension: int, penalty: float) -> None:
        self._V = penalty * np.eye(dimension)
        self._b = np.zeros(dimension)
        self._L = np.sqrt(penalty) * np.eye(dimension)
        self._theta = np.zeros(dimension)

    def update(self, features: FloatArray, outcomes: FloatArray) -> None:
        """Learn `outcomes`, shape (N,), at `features`, shape (N, D): all or none."""
        V = self._V + features.T @ features
        b = self._b + features.T @ outcomes
        try:
            L = cholesky(V, lower=True)
        except (np.linalg.LinAlgError, ValueError) as reason:
            raise NumericalError(f"XᵀX of the features cannot be factored: {reason}") from None
        theta = solve_triangular(L, solve_triangular(L, b, lower=True), lower=True, trans=1)
        if not np.isfinite(theta).all():
            raise NumericalError("the ridge estimate is not finite; are outcomes too large?")
        self._V, self._b, self._L, self._theta = V, b, L, theta

    def mean(self, features: FloatArray) -> FloatArray:
        """Return θ̂ᵀx, shape (M,), at `features`, shape (M, D)."""
        return features @ self._theta

    def width(self, features: FloatArray) -> FloatArray:
        """Return √(xᵀV⁻¹x), shape (M,), at `features`, shape (M, D)."""
        whitened = solve_triangular(self._L, features.T, lower=True)
        width: FloatArray = np.sqrt(np.einsum("dm,dm->m", whitened, whitened))
        return width

    def sample(self, features: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
        """Return θᵀx, shape (M,), for one θ ~ N(θ̂, scale² V⁻¹), at `features`, shape (M, D)."""
        z = rng.standard_normal(self._theta.size)
        theta: FloatArray = self._theta + scale * solve_triangular(self._L, z, lower=True, trans=1)
        return features @ theta


def with_constant(contexts: FloatArray) -> FloatArray:
    """Return `contexts`, shape (M, D), with a column of ones, shape (M, D + 1)."""
    return np.column_stack([contexts, np.ones(len(contexts))])
