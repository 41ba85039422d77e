"""Variances of f at many contexts while outcomes are seen one by one: as few as are asked for.

Notation
    X       (U, D)  contexts at which a variance may be asked for
    P       (n,)    positions in X of the outcomes seen so far, the last `n - m` not yet folded in
    W       (U, m)  whitened covariances, W Wᵀ = K(X, P) (K(P, P) + σ²I)⁻¹ K(P, X)
    L       (n, n)  Cholesky factor of K(P, P) + σ²I

The variance at X[u] is k(X[u], X[u]) - ‖W[u]‖². Folding outcomes into W for all contexts is a
matrix product and fast when done for many outcomes at once; in between, a context that is asked
for gets the missing n - m columns of its own row (`_columns`):

    [W, V] [L₁₁ 0; L₂₁ L₂₂]ᵀ = [K(X, P₁), K(X, P₂)]   ⇒   V = (K(X, P₂) - W L₂₁ᵀ) L₂₂⁻ᵀ
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from oclok.errors import NumericalError
from oclok.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Variances:
    """Variances of f at fixed contexts, given noisy outcomes at some of them.

    Variances only shrink, so one that is out of date bounds the true one from above: `largest`
    brings those at the top up to date until one of them is provably the largest.

    Args:
        kernel: prior covariance of f.
        contexts: shape (U, D).
        noise_variance: σ².
        capacity: the most outcomes that will be seen; memory is U · capacity floats.

    Attributes:
        values: shape (U,); exact after `fold`, upper bounds in general.
        information_gain: of the outcomes seen so far.
    """

    def __init__(
        self, kernel: Kernel, contexts: FloatArray, noise_variance: float, capacity: int
    ) -> None:
        self.values: FloatArray = kernel.diag(contexts)
        self.information_gain = 0.0
        self._kernel, self._X, self._noise_variance = kernel, contexts, noise_variance
        self._folded = self.values.copy()
        self._is_exact = np.ones(len(contexts), dtype=bool)
        self._P = np.empty(capacity, dtype=np.intp)
        self._W = np.empty((len(contexts), capacity))
        self._L = np.zeros((capacity, capacity))
        self._n = self._m = 0

    def largest(self, allowed: BoolArray) -> int:
        """Return where, among `allowed` (U,), the variance is largest; the first if several."""
        bounds = np.where(allowed, self.values, -np.inf)
        width = 16
        while not self._is_exact[u := int(np.argmax(bounds))]:
            width = min(2 * width, bounds.size)
            top = np.argpartition(bounds, bounds.size - width)[-width:]
            top = top[allowed[top] & ~self._is_exact[top]]
            self._update(top, self._columns(top))
            bounds[top] = self.values[top]
        return u

    def observe(self, u: int) -> None:
        """See a noisy outcome at context `u`, whose variance must be up to date."""
        n, m = self._n, self._m
        self._L[n, :m] = self._W[u, :m]
        self._L[n, m:n] = self._columns(np.array([u]))[0]
        self._L[n, n] = np.sqrt(self.values[u] + self._noise_variance)
        self._P[n] = u
        self._n += 1
        self._is_exact[:] = False
        self.information_gain += 0.5 * float(np.log1p(self.values[u] / self._noise_variance))

    def fold(self) -> None:
        """Bring all variances up to date."""
        everywhere = slice(None)  # a view: fancy indexing would copy W
        V = self._columns(everywhere)
        self._update(everywhere, V)
        self._folded = self.values.copy()
        self._W[:, self._m : self._n] = V
        self._m = self._n

    def of_observed(self) -> FloatArray:
        """Return the variances, shape (n,), of f where it was observed, in that order.

        For K + σ²I = LLᵀ they are the diagonal of σ²I - σ⁴(K + σ²I)⁻¹. With a kernel that has
        white noise of its own they are less than `values` at the same contexts.
        """
        n, noise = self._n, self._noise_variance
        inverse = _solve_lower(self._L[:n, :n], np.eye(n))
        diagonal: FloatArray = np.einsum("in,in->n", inverse, inverse)
        return noise - noise**2 * diagonal

    def _columns(self, which: IntArray | slice) -> FloatArray:
        n, m = self._n, self._m
        if n == m:
            return np.empty((len(self._X[which]), 0))
        L21, L22 = self._L[m:n, :m], self._L[m:n, m:n]
        C = self._kernel(self._X[which], self._X[self._P[m:n]]) - self._W[which, :m] @ L21.T
        return _solve_lower(L22, C.T).T

    def _update(self, which: IntArray | slice, V: FloatArray) -> None:
        exact = self._folded[which] - np.einsum("un,un->u", V, V)
        if exact.min(initial=0.0) < -self._noise_variance:
            raise NumericalError(
                f"noise_std**2 = {self._noise_variance:g} is below the rounding error of the "
                f"kernel's variances, {-exact.min():.1g}; give a larger noise_std"
            )
        self.values[which] = np.maximum(exact, 0.0)
        self._is_exact[which] = True


def _solve_lower(L: FloatArray, B: FloatArray) -> FloatArray:
    result: FloatArray = solve_triangular(L, B, lower=True, check_finite=False)
    return result
