"""The exact posterior: equations 1–3 of the paper, at a cost that grows with N².

    X, y     contexts (N, D) and outcomes (N,) so far
    σ        standard deviation of the noise
    L        Cholesky factor of K(X, X) + σ²I, (N, N); grows, is never computed again
    z        L⁻¹y, (N,)
    V        L⁻¹K(X, x) for new contexts x, (N, M)

    mean = Vᵀz        variance = k(x, x) - Σ V²        covariance = K(x, x) - VᵀV

New observations x, r append the rows [Vᵀ | C] to L, where C is the Cholesky factor of
S = K(x, x) - VᵀV + σ²I, and C⁻¹(r - Vᵀz) to z.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.blas import dgemv, dtrsm

from oclok.errors import NumericalError
from oclok.posterior.base import Bounded, Posterior
from oclok.posterior.cholesky import PANEL, GrowingCholesky
from oclok.posterior.linalg import add_to_diagonal, factor, gram, std_of
from oclok.posterior.observations import Rows, are_same, find_rows, frozen
from oclok.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: Entries of V that are worked on at once: 32 MB.
CHUNK = 4_000_000
#: Observations that are appended at once.
BATCH = 1_024


class ExactPosterior(Posterior):
    """The Gaussian process posterior itself, with no approximation.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`.
        noise_std: standard deviation of the noise of an outcome.

    Example:
        >>> from sklearn.gaussian_process.kernels import RBF
        >>> posterior = ExactPosterior(RBF(1.0), noise_std=0.1)
        >>> posterior.update([[0.0], [1.0]], [0.0, 1.0])
        >>> mean, std = posterior.predict([[0.5]])
        >>> mean.round(3), std.round(3)
        (array([0.546]), array([0.191]))
    """

    def __init__(self, kernel: Kernel, noise_std: float) -> None:
        super().__init__(kernel, noise_std)
        self._z = Rows()
        self._L = GrowingCholesky()
        self._gain = 0.0
        self._largest = 0.0
        self._solved: tuple[FloatArray, FloatArray] | None = None
        self._chosen: tuple[FloatArray, FloatArray] | None = None
        self._joint: tuple[FloatArray, FloatArray] | None = None

    @property
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: ½ log det(I + σ⁻²K) = Σ log(L_nn / σ)."""
        return self._gain

    @property
    def inducing(self) -> FloatArray:
        """All contexts so far, shape (N, D)."""
        return self.contexts

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        self._solved = None
        variance = self._prior.diagonal(X)
        mean = np.zeros(len(X))
        if len(self) == 0:
            return mean, std_of(variance)
        step = max(CHUNK // len(self), 64)
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            V = self._whiten(X[part])
            mean[part] = self._mean(V)
            variance[part] -= np.einsum("nm,nm->m", V, V)
        if len(X) <= step:
            self._solved = (frozen(X), V)
        return mean, std_of(variance)

    def _expect(self, X: FloatArray, chosen: IntArray | None, at: FloatArray | None) -> None:
        """Keep what the last `_predict` did for the `chosen` ones of X."""
        if at is None or len(at) == 0 or self._solved is None:
            return
        known, V = self._solved
        if are_same(known, X):
            self._chosen = (frozen(at), V[:, chosen])

    def _predict_bounded(self, X: FloatArray) -> Bounded:
        return Bounded(*self._predict(X), 0.0, 0.0)

    def _predict_known(self, X: FloatArray) -> FloatArray:
        return self._mean(self._solved_for(X)) if len(self) else np.zeros(len(X))

    def _covariance(self, X: FloatArray) -> FloatArray:
        if self._joint is not None and are_same(self._joint[0], X):
            return self._joint[1].copy()
        covariance = self._prior.of(X)
        if len(self):
            V = self._solved_for(X)
            covariance -= gram(V)
        if len(X) <= PANEL:
            self._joint = (frozen(X), covariance.copy())
        return covariance

    def _update(self, X: FloatArray, y: FloatArray) -> None:
        self._update_weighted(X, y, np.ones(len(y)))

    def _update_judged(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        foreseen_std = self._update_weighted(X, y, np.ones(len(y)))
        return self._z.array[-len(y) :].copy(), foreseen_std

    def _update_weighted(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> FloatArray:
        """Learn outcomes whose noise has variance σ² / weights; return the diagonal of C, (N,)."""
        before, gain, largest = len(self), self._gain, self._largest
        noise = self.noise_std**2 / weights
        try:
            if len(X) <= BATCH:
                return self._append(X, y, noise)
            parts = [slice(start, start + BATCH) for start in range(0, len(X), BATCH)]
            return np.concatenate([self._append(X[i], y[i], noise[i]) for i in parts])
        except BaseException:
            self._L.truncate(before)
            for rows in (self._X, self._y, self._z):
                rows.truncate(before)
            self._gain, self._largest = gain, largest
            self._solved = self._chosen = self._joint = None
            raise

    def _append(self, X: FloatArray, y: FloatArray, noise: FloatArray) -> FloatArray:
        V = self._solved_for(X)
        S = self._covariance(X)
        residual = y - self._mean(V) if len(self) else y
        add_to_diagonal(S, np.maximum(noise, self._rounding(X)))
        C = factor(S, self.noise_std**2)
        whitened = dtrsm(1.0, C, residual[:, None], lower=1)[:, 0]
        if np.count_nonzero(np.isfinite(whitened)) < len(whitened):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        self._L.append(V.T, C)
        self._X.extend(X)
        self._y.extend(y)
        self._z.extend(whitened)
        self._solved = self._chosen = self._joint = None
        diagonal: FloatArray = C.diagonal()
        self._gain += float(np.log(diagonal / np.sqrt(noise)).sum())
        return diagonal

    def _whiten(self, X: FloatArray) -> FloatArray:
        """Return V = L⁻¹K(X, x), shape (N, M)."""
        return self._L.solve(self._prior.between(self._X.array, X))

    def _solved_for(self, X: FloatArray) -> FloatArray:
        """Return V for X, taken from the last `predict` where its contexts were part of that.

        A solve for 5 contexts reads all of L just as one for 100 does: it would cost 40% of
        the `predict` before it (N = 1,250).
        """
        if len(self) == 0:
            return np.empty((0, len(X)))
        if self._chosen is not None and are_same(self._chosen[0], X):
            return self._chosen[1]
        for solved in (self._chosen, self._solved):
            positions = None if solved is None else find_rows(solved[0], X)
            if solved is not None and positions is not None:
                return solved[1][:, positions]
        return self._whiten(X)

    def _mean(self, V: FloatArray) -> FloatArray:
        mean: FloatArray = dgemv(1.0, V.T, self._z.array)
        return mean

    def with_kernel(self, kernel: Kernel, noise_std: float) -> ExactPosterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        other = ExactPosterior(kernel, noise_std)
        if len(self):
            other._update(self._X.array, self._y.array)
        return other

    def _rounding(self, X: FloatArray) -> float:
        """Return the rounding error of K: noise below it, in variance, cannot be told from none.

        It matters for a `DotProduct` of contexts of size 1e6, where k(x, x) is 1e12.
        """
        self._largest = max(self._largest, self._prior.largest(X))
        return float(np.finfo(np.float64).eps) * (len(self) + len(X)) * self._largest

    def _state(self) -> dict[str, Any]:
        """Return the state, and drop what `predict` left behind.

        So the saved posterior and the one that goes on take the same path, to the last bit.
        """
        self._solved = self._joint = None
        return dict(self.__dict__)
