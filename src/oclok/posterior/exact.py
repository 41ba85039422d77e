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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from scipy.linalg.blas import ddot, dgemv, dtrsm

from oclok.arrays import GrowableArray, chunks
from oclok.errors import NumericalError
from oclok.posterior.base import Innovations, Posterior, signal_fraction
from oclok.posterior.bounds import EPSILON, TINY, error_bounds, kernel_rounding
from oclok.posterior.cholesky import GrowingCholesky
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of
from oclok.posterior.prediction import ContextsLike, Prediction, in_chunks
from oclok.typing import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Entries of V that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000
#: Outcomes that are appended at once.
APPENDED_AT_ONCE = 1_024


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ExactPrediction(Prediction):
    """A prediction with its V, shape (N, M).

    V for 5 contexts reads all of L, just as V for 100 does, so it is kept for the update.
    """

    V: FloatArray
    prior: Covariance
    factor: GrowingCholesky

    def at(self, positions: IntArray) -> ExactPrediction:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        rows, V = self._rows(positions), self.V[:, positions]
        return ExactPrediction(**rows, V=V, prior=self.prior, factor=self.factor)

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        return self._covariance.copy()

    @cached_property
    def _covariance(self) -> FloatArray:
        covariance = self.prior.of(self.contexts)
        if len(self.V):
            covariance -= gram(self.V)
        return covariance


class ExactPosterior(Posterior):
    """The Gaussian process posterior itself, with no approximation.

    Its errors are those of rounding, and 0 before any data.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation of the noise of an outcome.

    Examples:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> posterior = ExactPosterior(RBF(1.0), noise_std=0.1)
        >>> posterior.update([[0.0], [1.0]], [0.0, 1.0])
        >>> mean, std = posterior.predict([[0.5]])
        >>> mean.round(3), std.round(3)
        (array([0.546]), array([0.191]))
    """

    def __init__(self, kernel: Kernel | Covariance, noise_std: float) -> None:
        super().__init__(kernel, noise_std)
        self._L = GrowingCholesky()
        self._z = GrowableArray()
        self._gain = 0.0
        self._quadratic_form = 0.0
        self._trace = 0.0
        self._largest = 0.0
        self._reach = 0.0

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: ½ log det(I + σ⁻²K) = Σ log(L_nn / σ)."""
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
        if len(self) == 0:
            zeros, std = np.zeros(len(X)), std_of(self.prior.diagonal(X))
            return self._bound(np.empty((0, len(X))), X, zeros, std, zeros, zeros)
        V = self._L.solve(self.prior.between(self.observations.contexts, X))
        prior = self.prior.variance(X)
        std = prior - np.einsum("nm,nm->m", V, V)
        np.sqrt(np.maximum(std, 0.0, out=std), out=std)
        rounding_std = np.sqrt(kernel_rounding(len(self), self._reach) * prior) + TINY
        errors = error_bounds(
            std, 0.0, rounding_std, self._trace / self.noise_std**2, math.sqrt(self._quadratic_form)
        )
        mean = dgemv(1.0, V.T, self._z.array)
        return self._bound(V, X, mean, std, *errors)

    def _bound(self, V: FloatArray, *columns: FloatArray) -> ExactPrediction:
        return ExactPrediction(*columns, V=V, prior=self.prior, factor=self._L)  # type: ignore[arg-type]

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        if len(y) <= APPENDED_AT_ONCE:
            self.append(contexts, y, w)
            return
        before, sums = len(self), {name: getattr(self, name) for name in _SUMS}
        try:
            for rows in chunks(len(y), APPENDED_AT_ONCE):
                self.append(X[rows], y[rows], w[rows])
        except BaseException:
            self._L.truncate(before)
            self._z.truncate(before)
            self.observations.truncate(before)
            self.__dict__.update(sums)
            raise

    def learn(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Update, and return the `innovations` of the outcomes."""
        y, w = self.checked_outcomes(outcomes, None, len(self.checked(contexts)))
        return self.append(contexts, y, w)

    def append(self, contexts: ContextsLike, y: FloatArray, weights: FloatArray) -> Innovations:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; return innovations."""
        f = contexts if self._is_own(contexts) else self._predict(self.checked(contexts))
        X, S = f.contexts, f.covariance()
        noise_std = self.noise_std / np.sqrt(weights)
        noise = noise_std * noise_std
        prior = self.prior.largest(X)
        largest = max(self._largest, prior)
        rounding = EPSILON * (len(self) + len(X)) * largest
        excess = 0.0
        if rounding > min(noise.tolist()):
            # Noise below the rounding of K cannot be told from none, as for a `DotProduct` of
            # contexts of size 1e6, where k(x, x) is 1e12.
            excess = float(weights @ np.maximum(rounding - noise, 0.0))
            add_to_diagonal(S, np.maximum(noise, rounding))
        else:
            add_to_diagonal(S, noise)
        C = factor(S, self.noise_std**2)
        z = dtrsm(1.0, C, (y - f.mean)[:, None], lower=1)[:, 0]
        quadratic_form = float(ddot(z, z))
        if not math.isfinite(quadratic_form):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        noise_share = noise_std / C.diagonal()
        self._L.append(f.V.T, C)
        self._z.extend(z)
        self.observations.extend(X, y, weights)
        self._reach = max(self._reach, self.prior.reach(X))
        off = kernel_rounding(len(self), self._reach) * (prior + self.noise_std**2)
        self._trace += sum(weights.tolist()) * off + excess
        self._quadratic_form += quadratic_form
        self._gain -= sum(np.log(noise_share).tolist())
        self._largest = largest
        return z, signal_fraction(noise_share)

    def _is_own(self, contexts: ContextsLike) -> TypeGuard[ExactPrediction]:
        return isinstance(contexts, Prediction) and self.is_current(contexts)


#: Running sums over all outcomes.
_SUMS = ("_gain", "_quadratic_form", "_trace", "_largest", "_reach")
