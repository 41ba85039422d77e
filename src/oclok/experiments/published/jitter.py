"""The sparse posterior of GPflow, as the published scripts use it: with a jitter.

X, y    contexts (N, D) and outcomes (N,) so far        σ    standard deviation of the noise
U       inducing points, (s, D)
R       lower Cholesky factor of K(U, U) + 10⁻⁶ I, (s, s)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky

from oclok.posterior import SparsePosterior
from oclok.typing import FloatArray

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel

#: GPflow's default.
JITTER = 1e-6


class JitteredPosterior(SparsePosterior):
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
        super().__init__(kernel, noise_std, inducing, seed=seed)
        self.is_uniform = is_uniform

    def _inducing_points(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.is_uniform:
            X = self._rng.random((self._most, X.shape[1]))
        elif self._most < len(X):
            X = X[self._rng.choice(len(X), self._most, replace=False)]
        K = self._prior.of(X)
        K[np.diag_indices(len(X))] += JITTER
        return X.copy(), np.asfortranarray(cholesky(K, lower=True))
