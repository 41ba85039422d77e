"""The sparse posterior of GPflow, as the published scripts use it: with a jitter.

U    inducing points, (s, D), whether or not one is redundant
R    lower Cholesky factor of K(U, U) + 10⁻⁶ I, (s, s)

All else is as in `oclok.posterior.sparse`.
"""

from __future__ import annotations

import copy
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

    def empty(
        self, kernel: Kernel | None = None, noise_std: float | None = None
    ) -> JitteredPosterior:
        """Return a posterior that has learned nothing, with the same random state."""
        other = JitteredPosterior(
            kernel or self.kernel,
            noise_std or self.noise_std,
            self._most,
            is_uniform=self.is_uniform,
        )
        other._rng = copy.deepcopy(self._rng)
        return other

    def _inducing_points(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.is_uniform:
            U = self._rng.random((self._most, X.shape[1]))
        elif self._most < len(X):
            U = X[self._rng.choice(len(X), self._most, replace=False)]
        else:
            U = X.copy()
        R = cholesky(self.prior.of(U) + JITTER * np.eye(len(U)), lower=True)
        return U, np.asfortranarray(R)
