"""The sparse posterior of GPflow, as the published scripts use it: with a jitter.

X, y    contexts (N, D) and outcomes (N,) so far, of weights w    σ    std of the noise
U       inducing points, (s, D)
R       lower Cholesky factor of K(U, U) + 10⁻⁶ I, (s, s)
φ(x)    R⁻¹k(U, x), features of a context; Φ those of X, (s, N)
B       lower Cholesky factor of σ²I + Φ diag(w) Φᵀ, (s, s)
c       B⁻¹Φ diag(w) y, (s,)

mean = (B⁻¹φ)ᵀc        variance = k(x, x) - |φ|² + σ²|B⁻¹φ|²
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from oclok.posterior import Posterior, Prediction
from oclok.posterior.prediction import Asked
from oclok.typing import ArrayLike, FloatArray
from oclok.validation import as_count

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: GPflow's default.
JITTER = 1e-6


class JitteredPosterior(Posterior):
    """SO'CLOK-UCB's posterior with 10⁻⁶ on the diagonal of K(U, U), and no point left out.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation of the noise of an outcome.
        inducing: s, how many inducing points to draw at each update.
        seed: seed of the draws.
        is_uniform: whether points are uniform in the unit cube; else they are past contexts.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_std: float,
        inducing: int,
        seed: int | np.random.SeedSequence | None = None,
        *,
        is_uniform: bool = False,
    ) -> None:
        super().__init__(kernel, noise_std)
        self.is_uniform = is_uniform
        self._count = as_count(inducing, "inducing")
        self._rng = np.random.default_rng(seed)
        self._U = self._R = self._B = np.empty((0, 0))
        self._c = np.empty(0)

    @property
    def information_gain(self) -> float:
        """I(r; f) under the sparse model, in nats: ½ log det(I + σ⁻²ΦᵀΦ)."""
        return float(np.log(np.diag(self._B)).sum()) - self.rank * math.log(self.noise_std)

    @property
    def inducing(self) -> FloatArray:
        """The inducing points in use, shape (rank, D)."""
        return self._U.copy()

    def empty(
        self, kernel: Kernel | None = None, noise_std: float | None = None
    ) -> JitteredPosterior:
        """Return a posterior that has learned nothing, with the same random state."""
        other = JitteredPosterior(
            kernel or self.kernel,
            noise_std or self.noise_std,
            self._count,
            is_uniform=self.is_uniform,
        )
        other._rng = copy.deepcopy(self._rng)
        return other

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        variance = self.prior.diagonal(X)
        if len(self) == 0:
            return Prediction(X, np.zeros(len(X)), np.sqrt(variance))
        phi, whitened = self._features(X)
        variance -= np.sum(phi**2, axis=0)
        variance += self.noise_std**2 * np.sum(whitened**2, axis=0)
        return Prediction(X, self._c @ whitened, np.sqrt(np.maximum(variance, 0.0)))

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        covariance = self.prior.of(X)
        if len(self):
            phi, whitened = self._features(X)
            covariance += self.noise_std**2 * (whitened.T @ whitened) - phi.T @ phi
        return covariance

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        self.observations.extend(X, y, w)
        known = self.observations
        self._U = U = self._points(known.contexts)
        self._R = cholesky(self.prior.of(U) + JITTER * np.eye(len(U)), lower=True)
        phi = np.sqrt(known.weights) * self._phi(known.contexts)
        self._B = cholesky(phi @ phi.T + self.noise_std**2 * np.eye(len(U)), lower=True)
        sums = phi @ (np.sqrt(known.weights) * known.outcomes)
        self._c = solve_triangular(self._B, sums, lower=True)

    def _points(self, X: FloatArray) -> FloatArray:
        """Return new inducing points."""
        if self.is_uniform:
            return self._rng.random((self._count, X.shape[1]))
        if len(X) <= self._count:
            return X.copy()
        return X[self._rng.choice(len(X), self._count, replace=False)]

    def _phi(self, X: FloatArray) -> FloatArray:
        """Return φ(x), shape (s, M)."""
        return np.asarray(solve_triangular(self._R, self.prior.between(X, self._U).T, lower=True))

    def _features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ(x) and B⁻¹φ(x), each (s, M)."""
        phi = self._phi(X)
        return phi, solve_triangular(self._B, phi, lower=True)
