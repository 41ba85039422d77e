"""The sparse posterior of SO'CLOK-UCB: Titsias' (2009) collapsed bound with s inducing points.

    X, y    contexts (N, D) and outcomes (N,) so far        σ    standard deviation of the noise
    U       inducing points, (r, D): s contexts out of X, less those that add nothing
    R       lower Cholesky factor of K(U, U), (r, r)
    φ(x)    R⁻¹k(U, x), features of a context; Φ those of X, (r, N)
    B       lower Cholesky factor of σ²I + ΦΦᵀ, (r, r)
    c       B⁻¹Φy, (r,)

    mean = (B⁻¹φ)ᵀc        variance = k(x, x) - |φ|² + σ²|B⁻¹φ|²

Random inducing points include near-duplicates, for which K(U, U) has no Cholesky factor in
floating point. A pivoted one leaves out the points whose variance given the others is
below what can be seen through the noise, and no jitter is needed.
"""

from __future__ import annotations

import copy
import math
from typing import Literal, Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from oclok.errors import InputError
from oclok.posterior.base import Posterior
from oclok.posterior.linalg import add_to_diagonal, std_of
from oclok.posterior.pivoted import LEAST_PIVOT, pivoted_cholesky
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.threads import blas_threads
from oclok.typing import ArrayLike, FloatArray, Kernel, Seed
from oclok.validation import as_count

#: A point is redundant when the others leave it less than this fraction of the prior variance and
#: of the noise variance, but not less than rounding error of the prior variance.
REDUNDANT, REDUNDANT_IN_NOISE = 1e-9, 1e-6


class SparsePosterior(Posterior):
    """A posterior through a few inducing points, chosen afresh at each update.

    Args:
        kernel, noise_std: as for `Posterior`.
        inducing: s, how many inducing points to choose.
        choose: "random" draws them uniformly without replacement from all contexts so far, as
            the paper does; "greedy" takes the context with the largest variance given those
            already taken, again and again.
        seed: seed of the random choice.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> posterior = SparsePosterior(RBF(1.0), noise_std=0.1, inducing=2, choose="greedy")
        >>> posterior.update([[0.0], [0.1], [1.0]], [0.0, 0.1, 1.0])
        >>> posterior.inducing
        array([[0.], [1.]])
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_std: float,
        inducing: int = 50,
        choose: Literal["random", "greedy"] = "random",
        seed: Seed = None,
    ) -> None:
        super().__init__(kernel, noise_std)
        if choose not in ("random", "greedy"):
            raise InputError(f'choose must be "random" or "greedy"; got {choose!r}')
        self.choose = choose
        self._most = as_count(inducing, "inducing")
        self._rng = np.random.default_rng(0 if choose == "greedy" else seed)
        self._U = np.empty((0, 0))
        self._R = self._B = np.empty((0, 0))
        self._c = np.empty(0)

    @property
    def information_gain(self) -> float:
        """I(r; f) under the sparse model, in nats: ½ log det(I + σ⁻²ΦᵀΦ)."""
        return float(np.log(np.diag(self._B)).sum()) - self.rank * math.log(self.noise_std)

    @property
    def inducing(self) -> FloatArray:
        """The inducing points in use, shape (rank, D)."""
        return self._U.copy()

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Self:
        """Return a posterior that has learned nothing, with the same random state."""
        other = type(self)(
            kernel or self.kernel, noise_std or self.noise_std, self._most, self.choose
        )
        other._rng = copy.deepcopy(self._rng)
        return other

    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        variance = self.prior.diagonal(X)
        if len(self) == 0:
            return Prediction(X, np.zeros(len(X)), std_of(variance), joint=lambda: self.prior.of(X))
        phi, whitened = self._features(X)
        variance -= np.einsum("rm,rm->m", phi, phi)
        variance = np.maximum(variance, 0.0)
        variance += self.noise_std**2 * np.einsum("rm,rm->m", whitened, whitened)

        def covariance() -> FloatArray:
            known = self.noise_std**2 * (whitened.T @ whitened) - phi.T @ phi
            return self.prior.of(X) + known

        return Prediction(X, self._c @ whitened, std_of(variance), joint=covariance)

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        before, rng_state = len(self), self._rng.bit_generator.state
        self.observations.extend(X, y, w)
        try:
            self._condition()
        except BaseException:
            self.observations.truncate(before)
            self._rng.bit_generator.state = rng_state
            raise

    def _condition(self) -> None:
        """Choose inducing points and condition on all outcomes through them."""
        X, y, weights = self.observations.at(slice(None))
        root = np.sqrt(weights)
        U, R = self._inducing_points(X)
        with blas_threads(float(len(U)) ** 2 * len(X)):
            phi = dtrsm(1.0, R, self.prior.between(X, U).T, lower=1, overwrite_b=1)
            phi *= root
            gram = phi @ phi.T
            add_to_diagonal(gram, self.noise_std**2)
            B = dpotrf(gram, lower=1, clean=1)[0]
            c = dtrsm(1.0, B, (phi @ (root * y))[:, None], lower=1)[:, 0]
        self._U, self._R, self._B, self._c = U, R, B, c

    def _inducing_points(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the inducing points U and the Cholesky factor R of their covariance."""
        if self.choose == "random" and self._most < len(X):
            X = X[self._rng.choice(len(X), self._most, replace=False)]
        prior = self.prior.largest(X)
        redundant = min(REDUNDANT * prior, REDUNDANT_IN_NOISE * self.noise_std**2)
        redundant = max(redundant, LEAST_PIVOT * prior)
        pivots, F, _ = pivoted_cholesky(self.prior, X, self._most, redundant)
        return X[pivots], np.asfortranarray(F[:, pivots].T)

    def _features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ(x) and B⁻¹φ(x), each (r, M)."""
        with blas_threads(2.0 * self.rank * self.rank * len(X)):
            phi = dtrsm(1.0, self._R, self.prior.between(X, self._U).T, lower=1)
            return phi, dtrsm(1.0, self._B, phi, lower=1)
