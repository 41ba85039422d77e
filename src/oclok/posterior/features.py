"""Bayesian linear regression on features of a dictionary of contexts, in square-root form.

    U         dictionary, (r, D)                    σ    standard deviation of the noise
    R         lower Cholesky factor of K(U, U), (r, r)
    φ(x)      R⁻¹k(U, x), features of a context; Φ those of all contexts so far, (r, N)
    ρ(x)      k(x, x) - |φ(x)|², what the dictionary leaves of the prior variance; ≥ 0
    F         upper triangular, (r+1, r+1), with

                  FᵀF = [ σ²I + ΦΦᵀ   Φy ]         F = [ Bᵀ  c ]
                        [ (Φy)ᵀ       yᵀy ]            [     s ]

    mean = (B⁻¹φ)ᵀc        variance = ρ + σ²|B⁻¹φ|²

An outcome whose noise has variance σ² / w is a row √w [φᵀ | r] like one of noise variance σ².
New rows are rotated into F by a QR factorisation that knows that F is triangular
(LAPACK's tpqrt): σ²I + ΦΦᵀ is never formed, so nothing is squared and nothing drifts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dtpqrt

from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.pivoted import pivoted_cholesky
from oclok.threads import blas_threads
from oclok.typing import FloatArray

#: Observations that are rotated into F at once.
BATCH = 2_048
#: Block size of that rotation.
BLOCK = 16


class FeatureModel(Persistent):
    """What is known of f through the features of a dictionary."""

    def __init__(
        self, covariance: Covariance, noise_std: float, U: FloatArray, R: FloatArray
    ) -> None:
        self.covariance = covariance
        self.noise_std = noise_std
        self.U = U
        self.R = np.asfortranarray(R)
        self.trace = 0.0
        self.prior = float(covariance.diagonal(U).max())
        F = np.zeros((self.rank + 1, self.rank + 1), order="F")
        F[np.diag_indices(self.rank)] = noise_std
        self._set(F)

    @property
    def rank(self) -> int:
        """Size of the dictionary."""
        return len(self.U)

    @property
    def information_gain(self) -> float:
        """½ log det(I + σ⁻²ΦΦᵀ)."""
        return float(np.log(np.abs(np.diag(self.B))).sum()) - self.rank * math.log(self.noise_std)

    @property
    def weight_norm(self) -> float:
        """A bound on |a|, a = (ΦᵀΦ + σ²I)⁻¹y: aᵀ(ΦᵀΦ + σ²I)a = s²/σ² and so |a| ≤ s/σ²."""
        return abs(self.s) / self.noise_std**2

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ (r, M) and ρ (M,) of contexts X (M, D)."""
        phi = dtrsm(1.0, self.R, self.covariance.between(X, self.U).T, lower=1, overwrite_b=1)
        residual = self.covariance.diagonal(X)
        residual -= np.einsum("rm,rm->m", phi, phi)
        return phi, np.maximum(residual, 0.0, out=residual)

    def whiten(self, phi: FloatArray) -> FloatArray:
        """Return B⁻¹φ, shape (r, M)."""
        result: FloatArray = dtrsm(1.0, self.B, phi, lower=1)
        return result

    def absorb(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn outcomes y (N,), of noise variance σ² / weights, seen at contexts X (N, D)."""
        for start in range(0, len(X), BATCH):
            part = slice(start, start + BATCH)
            self.absorb_features(*self.features(X[part]), y[part], weights[part])

    def absorb_features(
        self, phi: FloatArray, residual: FloatArray, y: FloatArray, weights: FloatArray
    ) -> None:
        """Learn outcomes seen at contexts with features φ (r, N) and residuals ρ (N,)."""
        rows = np.empty((len(y), self.rank + 1), order="F")
        rows[:, :-1] = phi.T
        rows[:, -1] = y
        rows *= np.sqrt(weights)[:, None]
        with blas_threads(2.0 * rows.size * len(self.F)):
            F = dtpqrt(0, min(BLOCK, len(self.F)), self.F, rows, overwrite_b=1)[0]
        self._set(F)
        self.trace += float(weights @ residual)

    def grown(self, candidates: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return U and R with those `candidates` added that leave no ρ above `tolerance`."""
        phi, _ = self.features(candidates)
        pivots, features, _ = pivoted_cholesky(
            self.covariance, candidates, self.rank + len(candidates), tolerance, known=phi
        )
        rank = len(features)
        R = np.zeros((rank, rank))
        R[: self.rank, : self.rank] = self.R
        R[self.rank :] = features[:, pivots].T
        return np.vstack([self.U, candidates[pivots]]), R

    def _set(self, F: FloatArray) -> None:
        r = self.rank
        self.F = F
        self.B = np.asfortranarray(F[:r, :r].T)
        self.c = F[:r, r].copy()
        self.s = float(F[r, r])

    def _state(self) -> dict[str, Any]:
        names = ("covariance", "noise_std", "U", "R", "trace", "prior", "F")
        return {name: getattr(self, name) for name in names}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set(self.F)
