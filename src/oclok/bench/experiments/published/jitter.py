"""The sparse posterior of GPflow, as the published scripts use it: with a jitter.

U    inducing points, (s, D), whether or not one is redundant
R    lower Cholesky factor of K(U, U) + 10⁻⁶ I, (s, s)

All else is as in `oclok.posterior.sparse`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky

from oclok.posterior import SparsePosterior
from oclok.typing import FloatArray

#: GPflow's default.
JITTER = 1e-6


class JitteredPosterior(SparsePosterior):
    """SO'CLOK-UCB's posterior with 10⁻⁶ on the diagonal of K(U, U), and no point left out.

    The arguments are those of `SparsePosterior`.
    """

    def _inducing_points(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        U = X.copy()
        if self._most < len(X):
            U = X[self._rng.choice(len(X), self._most, replace=False)]
        R = cholesky(self.prior.of(U) + JITTER * np.eye(len(U)), lower=True)
        return U, np.asfortranarray(R)
