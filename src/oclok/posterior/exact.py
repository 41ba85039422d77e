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
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import ddot, dgemv, dtrsm

from oclok.errors import NumericalError
from oclok.posterior.base import Posterior, due_to_f
from oclok.posterior.bounds import EPSILON, TINY, error_bounds, kernel_rounding
from oclok.posterior.cholesky import GrowingCholesky
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of
from oclok.posterior.observations import Observations, Rows
from oclok.posterior.prediction import Asked, Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Entries of V that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000
#: Outcomes that are appended at once.
APPENDED_AT_ONCE = 1_024


@dataclass(eq=False)
class Whitened:
    """V = L⁻¹K(X, x), shape (N, M), and K(x, x) - VᵀV once it was asked for."""

    V: FloatArray
    covariance: FloatArray | None = None

    def at(self, positions: IntArray) -> Whitened:
        """Return V for the contexts at `positions`."""
        return Whitened(self.V[:, positions])


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
        self._z = Rows()
        self._gain = 0.0
        self._surprise = 0.0
        self._trace = 0.0
        self._largest = 0.0
        self._reach = 0.0
        self._version = object()

    @classmethod
    def of(cls, prior: Covariance, noise_std: float, observations: Observations) -> ExactPosterior:
        """Return the posterior given `observations`, which it shares and adds to."""
        posterior = cls(prior, noise_std)
        known, posterior.observations = observations, Observations()
        if len(known):
            posterior.update(known.contexts, known.outcomes, known.weights)
        posterior.observations = known
        return posterior

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: ½ log det(I + σ⁻²K) = Σ log(L_nn / σ)."""
        return self._gain

    @property
    def inducing(self) -> FloatArray:
        """All contexts so far, shape (N, D)."""
        return self.contexts

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and std of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        if len(self) == 0:
            zeros, std = np.zeros(len(X)), std_of(self.prior.diagonal(X))
            nothing = Whitened(np.empty((0, len(X))))
            return Prediction(X, zeros, std, zeros, zeros, self._version, nothing)
        step = max(PREDICTED_AT_ONCE // len(self), 64)
        if len(X) > step:
            parts = [self.predict(X[i : i + step]) for i in range(0, len(X), step)]
            return Prediction.joined(X, parts)
        work, prior = self._whiten(X), self.prior.variance(X)
        std = prior - np.einsum("nm,nm->m", work.V, work.V)
        np.sqrt(np.maximum(std, 0.0, out=std), out=std)
        root = np.sqrt(kernel_rounding(len(self), self._reach) * prior) + TINY
        errors = error_bounds(
            std, 0.0, root, self._trace / self.noise_std**2, math.sqrt(self._surprise)
        )
        return Prediction(X, self._mean(work.V), std, *errors, self._version, work)

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        X, work = self._worked(contexts)
        return self._joint(X, work).copy()

    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, weights, len(X))
        if len(y) <= APPENDED_AT_ONCE:
            self.append(contexts, y, w)
            return
        before = len(self)
        sums = {name: getattr(self, name) for name in _SUMS}
        try:
            for start in range(0, len(y), APPENDED_AT_ONCE):
                part = slice(start, start + APPENDED_AT_ONCE)
                self.append(X[part], y[part], w[part])
        except BaseException:
            self._L.truncate(before)
            self._z.truncate(before)
            self.observations.truncate(before)
            self.__dict__.update(sums, _version=object())
            raise

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes."""
        X = self.checked(contexts)
        y, w = self.checked_outcomes(outcomes, None, len(X))
        return self.append(contexts, y, w)

    def append(
        self, contexts: Asked, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; return innovations."""
        X, work = self._worked(contexts)
        S = self._joint(X, work).copy()
        residual = y - self._mean(work.V) if len(self) else y
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
        whitened = dtrsm(1.0, C, residual[:, None], lower=1)[:, 0]
        surprise = float(ddot(whitened, whitened))
        if not math.isfinite(surprise):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        noise_share = noise_std / C.diagonal()
        self._L.append(work.V.T, C)
        self._z.extend(whitened)
        self.observations.extend(X, y, weights)
        self._reach = max(self._reach, self.prior.reach(X))
        off = kernel_rounding(len(self), self._reach) * (prior + self.noise_std**2)
        self._trace += sum(weights.tolist()) * off + excess
        self._surprise += surprise
        self._gain -= sum(np.log(noise_share).tolist())
        self._largest = largest
        self._version = object()
        return whitened, due_to_f(noise_share)

    def _joint(self, X: FloatArray, work: Whitened) -> FloatArray:
        """Return the joint covariance, computed once for all who are handed this work."""
        if work.covariance is None:
            work.covariance = self.prior.of(X)
            if len(self):
                work.covariance -= gram(work.V)
        return work.covariance

    def _worked(self, contexts: Asked) -> tuple[FloatArray, Whitened]:
        """Return contexts and their V, that of a prediction unless it is stale.

        V for 5 contexts reads all of L just as V for 100 does: it would cost 40% of the
        `predict` before it (N = 1,250).
        """
        X = self.checked(contexts)
        if isinstance(contexts, Prediction) and contexts.state is self._version:
            work = contexts.work
            if isinstance(work, Whitened):
                return X, work
        return X, self._whiten(X)

    def _whiten(self, X: FloatArray) -> Whitened:
        if len(self) == 0:
            return Whitened(np.empty((0, len(X))))
        return Whitened(self._L.solve(self.prior.between(self.observations.contexts, X)))

    def _mean(self, V: FloatArray) -> FloatArray:
        mean: FloatArray = dgemv(1.0, V.T, self._z.array)
        return mean

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_version"}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _version=object())


#: Running sums over all outcomes.
_SUMS = ("_gain", "_surprise", "_trace", "_largest", "_reach")
