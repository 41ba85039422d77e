"""The exact posterior: equations 1–3 of the paper, at a cost that grows with N².

    X, y     contexts (N, D) and outcomes (N,) so far
    σ        standard deviation of the noise
    L        Cholesky factor of K(X, X) + σ²I, (N, N); grows, is never computed again
    z        L⁻¹y, (N,)
    V        L⁻¹K(X, x) for new contexts x, (N, M)

    mean = Vᵀz        variance = k(x, x) - Σ V²        covariance = K(x, x) - VᵀV

New observations x, r append the rows [Vᵀ | C] to L, where C is the Cholesky factor of the Schur
complement S = K(x, x) - VᵀV + σ²I, and C⁻¹(r - Vᵀz) to z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import ddot, dgemv, dtrsm

from oclok.arrays import GrowableArray
from oclok.errors import NumericalError
from oclok.posterior.base import Innovations, signal_fraction
from oclok.posterior.bounds import EPSILON, TINY, error_bounds, kernel_rounding
from oclok.posterior.cholesky import GrowingCholesky
from oclok.posterior.incremental import IncrementalPosterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of
from oclok.posterior.prediction import ContextsLike, Prediction, in_chunks
from oclok.threads import blas_threads
from oclok.typing import FloatArray, Kernel

#: Entries of V that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExactPrediction(Prediction):
    """A prediction with its V, shape (N, M): solving for it again would read all of L."""

    V: FloatArray
    prior: Covariance
    factor: GrowingCholesky
    _columns = ("V",)
    _cached = ("_covariance",)

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        return self._covariance.copy()

    @cached_property
    def _covariance(self) -> FloatArray:
        covariance = self.prior.of(self.contexts)
        if len(self.V):
            covariance -= gram(self.V)
        return covariance


class ExactPosterior(IncrementalPosterior):
    """The Gaussian process posterior itself, with no approximation.

    Its errors are those of rounding, and 0 before any data. The arguments are those of `Posterior`.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> posterior = ExactPosterior(RBF(1.0), noise_std=0.1)
        >>> posterior.update([[0.0], [1.0]], [0.0, 1.0])
        >>> mean, std = posterior.predict([[0.5]])
        >>> mean.round(3), std.round(3)
        (array([0.546]), array([0.191]))
    """

    _at_once = _judged_at_once = 1_024

    def __init__(self, kernel: Kernel | Covariance, noise_std: float) -> None:
        super().__init__(kernel, noise_std)
        self._L = GrowingCholesky()
        self._z = GrowableArray()
        self._gain = self._quadratic_form = self._trace = self._largest = self._reach = 0.0

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: Σ log(L_nn / σ)."""
        return self._gain

    @property
    def inducing(self) -> FloatArray:
        """All contexts so far, shape (N, D)."""
        return self.contexts

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this posterior made `prediction` and has not changed since."""
        return (
            isinstance(prediction, ExactPrediction)
            and prediction.factor is self._L
            and len(prediction.V) == len(self._L)
        )

    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        return in_chunks(X, max(PREDICTED_AT_ONCE // max(len(self), 1), 64), self._predict)

    def _predict(self, X: FloatArray) -> ExactPrediction:
        V, mean = np.empty((0, len(X))), np.zeros(len(X))
        errors, variance = (mean, mean), self.prior.variance(X)
        if len(self):
            V = self.prior.between(self.observations.contexts, X)
            with blas_threads(float(len(V)) * V.size):
                self._L.solve(V)
            mean = dgemv(1.0, V.T, self._z.array)
            std = std_of(variance - np.einsum("nm,nm->m", V, V))
            rounding_std = np.sqrt(kernel_rounding(len(self), self._reach) * variance) + TINY
            s = self._trace / self.noise_std**2
            errors = error_bounds(std, 0.0, rounding_std, s, math.sqrt(self._quadratic_form))
        else:
            std = std_of(self.prior.diagonal(X))
        return ExactPrediction(X, mean, std, *errors, V=V, prior=self.prior, factor=self._L)

    def _checkpoint(self, count: int) -> Callable[[], None]:
        before, state = len(self._L), dict(self.__dict__)

        def roll_back() -> None:
            self.__dict__.update(state)
            self._L.truncate(before)
            self._z.truncate(before)

        return roll_back

    def _learn(self, contexts: ContextsLike, y: FloatArray, weights: FloatArray) -> Innovations:
        f = contexts
        if not (isinstance(f, ExactPrediction) and self.is_current(f)):
            f = self._predict(self.checked(f))
        X, S = f.contexts, f.covariance()
        noise_std = self.noise_std / np.sqrt(weights)
        noise = noise_std * noise_std
        prior = self.prior.largest(X)
        largest = max(self._largest, prior)
        rounding = EPSILON * (len(self) + len(X)) * largest
        # Noise below the rounding of K cannot be distinguished from none, as for a `DotProduct` of
        # contexts of size 1e6, where k(x, x) is 1e12.
        is_lost = rounding > min(noise.tolist())
        excess = np.maximum(rounding - noise, 0.0) if is_lost else 0.0
        add_to_diagonal(S, noise + excess)
        C = factor(S, self.noise_std**2)
        z = dtrsm(1.0, C, (y - f.mean)[:, None], lower=1)[:, 0]
        quadratic_form = float(ddot(z, z))
        if not math.isfinite(quadratic_form):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        noise_share = noise_std / C.diagonal()
        self._L.append(f.V.T, C)
        self._z.extend(z)
        self._reach = max(self._reach, self.prior.reach(X))
        off = kernel_rounding(len(self._L), self._reach) * (prior + self.noise_std**2)
        self._trace += sum((weights * (off + excess)).tolist())
        self._quadratic_form += quadratic_form
        self._gain -= sum(np.log(noise_share).tolist())
        self._largest = largest
        return z, signal_fraction(noise_share)
