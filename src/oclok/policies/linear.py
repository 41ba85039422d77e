"""Linear policies: ridge regression with a covariance, and C²UCB and Thompson sampling on it.

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
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies.base import Belief, Policy
from oclok.typing import FloatArray, Seed
from oclok.validation import as_noise_std, as_positive


class LinearPolicy(Policy):
    """A policy with a linear model; a constant is appended to each context, as an intercept."""

    #: λ of the ridge estimate.
    penalty: float
    _regression: LinearRegression | None = None

    def _learn(self, contexts: FloatArray, outcomes: FloatArray) -> None:
        features, regression = self._model(contexts)
        regression.update(features, outcomes)
        self._regression = regression

    def _model(self, contexts: FloatArray) -> tuple[FloatArray, LinearRegression]:
        """Return the features of `contexts`, and the regression: the prior before any data."""
        features = self._features(contexts)
        return features, self._regression or LinearRegression(features.shape[1], self.penalty)

    def _features(self, contexts: FloatArray) -> FloatArray:
        return with_constant(contexts)


class C2UCB(LinearPolicy):
    """C²UCB (Qin, Chen and Zhu 2014): contextual combinatorial UCB with a linear model.

    The index of a base arm is θ̂ᵀx + α √(xᵀV⁻¹x), where θ̂ is the ridge estimate from all
    outcomes so far and V = λI + Σ xxᵀ (their Algorithm 1).

    Args:
        width: α, the same in every round.
        penalty: λ of the ridge estimate.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = C2UCB(oracle=TopK(1))
        >>> policy.observe([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> policy.select([[0.5], [2.0]]).super_arm
        array([1])
    """

    def __init__(
        self, oracle: Oracle | None = None, *, width: float = 1.0, penalty: float = 1.0
    ) -> None:
        super().__init__(oracle)
        self.width = as_positive(width, "width")
        self.penalty = as_positive(penalty, "penalty")

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        features, regression = self._model(contexts)
        mean = regression.mean(features)
        return Belief(mean + self.width * regression.width(features), mean)


class LinearThompson(LinearPolicy):
    """Thompson sampling with a linear model (Agrawal and Goyal 2013; for sets Wen et al. 2015).

    Each round draws one θ from the posterior N(θ̂, σ²V⁻¹); the index of a base arm is θᵀx.

    Args:
        noise_std: σ, standard deviation of the outcomes' noise.
        prior_std: standard deviation of each weight before any data.

    Examples:
        >>> from oclok.oracles import TopK
        >>> policy = LinearThompson(noise_std=0.1, oracle=TopK(1), seed=0)
        >>> policy.observe([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
        >>> policy.select([[0.5], [2.0]]).super_arm
        array([1])
    """

    _is_random = True

    def __init__(
        self,
        noise_std: float,
        oracle: Oracle | None = None,
        *,
        prior_std: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(oracle, seed)
        self.noise_std = as_noise_std(noise_std)
        self.prior_std = as_positive(prior_std, "prior_std")

    @property
    def penalty(self) -> float:  # type: ignore[override]
        """λ of the ridge estimate, by noise and prior."""
        return (self.noise_std / self.prior_std) ** 2

    def _score(self, contexts: FloatArray, t: int, rng: np.random.Generator) -> Belief:
        features, regression = self._model(contexts)
        std = self.noise_std * regression.width(features)
        index = regression.sample(features, self.noise_std, rng)
        return Belief(index, regression.mean(features), std)


class LinearRegression(Persistent):
    """Ridge regression on D features with penalty λ, at a cost that does not grow with N."""

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
        return np.asarray(np.sqrt(np.einsum("dm,dm->m", whitened, whitened)))

    def sample(self, features: FloatArray, scale: float, rng: np.random.Generator) -> FloatArray:
        """Return θᵀx, shape (M,), for one θ ~ N(θ̂, scale² V⁻¹), at `features`, shape (M, D)."""
        z = rng.standard_normal(self._theta.size)
        theta: FloatArray = self._theta + scale * solve_triangular(self._L, z, lower=True, trans=1)
        return features @ theta


def with_constant(contexts: FloatArray) -> FloatArray:
    """Return `contexts`, shape (M, D), with a column of ones, shape (M, D + 1)."""
    return np.column_stack([contexts, np.ones(len(contexts))])
