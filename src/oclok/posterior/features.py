"""Bayesian linear regression on features of a dictionary of contexts, in square-root form.

    U         dictionary, (r, D)                    σ    standard deviation of the noise
    R         lower Cholesky factor of K(U, U), (r, r)
    φ(x)      R⁻¹k(U, x), features of a context; Φ those of the contexts at hand, (r, N)
    ρ(x)      k(x, x) - |φ(x)|², what the dictionary leaves of the prior variance; ≥ 0
    S, m      root of the covariance of the features' weights, SSᵀ, (r, r); their mean, (r,)
    P         SᵀΦ, whitened features, (r, N)

    mean = φᵀm        variance = ρ + |Sᵀφ|²

With V the diagonal matrix of the noise's standard deviations, σ / √weight, few outcomes y are
learned by Andrews' update (1968), many by a Cholesky or a QR factorisation, with B = PV⁻¹ and
e = V⁻¹(y - Φᵀm):

    CCᵀ = PᵀP + V²       z = C⁻¹Ve              m += SPC⁻ᵀz       S -= SPC⁻ᵀ(C + V)⁻¹Pᵀ

    TᵀT = I + BBᵀ        c = T⁻ᵀBe              |z|² = |e|² - |c|²
                                                                  S  = ST⁻¹,  then m += Sc
    some orthogonal matrix times [ I   0 ] = [ T   c  ]
                                 [ Bᵀ  e ]   [    |z| ]

QR squares nothing. The other two square P, and are used where that is not much larger than V²,
which it ceases to be once something is known. None forms SSᵀ or its inverse.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf, dtpqrt

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram
from oclok.posterior.pivoted import pivots_among
from oclok.threads import blas_threads
from oclok.typing import FloatArray

#: Observations that are learned at once, and how many count as few: with a dictionary of 125,
#: 5 take half the time by Andrews' update that they take by Cholesky, 64 as long, 200 three times.
BATCH, FEW = 2_048, 64
#: PᵀP above this multiple of V² is left to a factorisation, and a BBᵀ whose trace is above that
#: to QR: rounding would tell in S, and in |z|² = |e|² - |c|². With a dictionary of 120, 500
#: outcomes take 0.8 ms by Cholesky and 1.5 by QR.
LARGEST_RATIO, LARGEST_TRACE = 1e4, 1e6
#: Block size of the QR factorisation.
BLOCK = 16


class FeatureModel(Persistent):
    """What is known of f through the features of a dictionary.

    Attributes:
        trace: Σ w ρ(x) of all outcomes learned, w their weights.
        prior: largest prior variance in the dictionary.
        surprise: Σ|z|² of all outcomes learned, which is yᵀ(ΦᵀΦ + V²)⁻¹y.
        information_gain: ½ log det(I + V⁻¹ΦᵀΦV⁻¹).
    """

    def __init__(
        self, covariance: Covariance, noise_std: float, U: FloatArray, R: FloatArray
    ) -> None:
        self.covariance = covariance
        self.noise_std = noise_std
        self.U = U
        self._k_U = covariance.to(U)
        self.R = np.asfortranarray(R)
        self.S = np.asfortranarray(np.eye(len(U)))
        self.m = np.zeros(len(U))
        self.prior = covariance.largest(U)
        self.trace = self.surprise = self.information_gain = 0.0

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_k_U"}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _k_U=state["covariance"].to(state["U"]))

    @property
    def rank(self) -> int:
        """Size of the dictionary."""
        return len(self.U)

    @property
    def weight_norm(self) -> float:
        """A bound on |a|, a = (ΦᵀΦ + σ²I)⁻¹y: aᵀ(ΦᵀΦ + σ²I)a = Σ|z|², so |a|² ≤ Σ|z|²/σ²."""
        return math.sqrt(self.surprise) / self.noise_std

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ (r, M) and ρ (M,) of contexts X (M, D)."""
        phi = dtrsm(1.0, self.R, self._k_U(X).T, lower=1, overwrite_b=1)
        residual = self.covariance.diagonal(X)
        residual -= np.einsum("rm,rm->m", phi, phi)
        return phi, np.maximum(residual, 0.0, out=residual)

    def whiten(self, phi: FloatArray) -> FloatArray:
        """Return Sᵀφ, shape (r, M)."""
        result: FloatArray = dgemm(1.0, self.S, phi, trans_a=1)
        return result

    def mean(self, phi: FloatArray) -> FloatArray:
        """Return φᵀm, shape (M,)."""
        result: FloatArray = dgemv(1.0, phi, self.m, trans=1)
        return result

    def absorb(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn outcomes y (N,), of noise variance σ² / weights, seen at contexts X (N, D)."""
        for start in range(0, len(X), BATCH):
            part = slice(start, start + BATCH)
            phi, residual = self.features(X[part])
            P = self.whiten(phi) if self.information_gain else phi  # S = I before all outcomes
            self.absorb_features(phi, P, residual, y[part], weights[part])

    def absorb_features(
        self,
        phi: FloatArray,
        whitened: FloatArray,
        residual: FloatArray,
        y: FloatArray,
        weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Learn outcomes at contexts with features φ, whitened ones P (r, N), residuals ρ (N,).

        Returns:
            z and the diagonal of C, each of shape (N,); None if the outcomes are not few.
        """
        noise = self.noise_std / np.sqrt(weights)
        error = y - self.mean(phi)
        if len(y) > FEW:
            self._set(self._by_factor(whitened, error, noise), float(weights @ residual))
            return None
        A = gram(whitened)
        least = min(noise.tolist()) ** 2
        is_steep = max(A.diagonal().tolist()) > LARGEST_RATIO * least
        add_to_diagonal(A, noise * noise)
        C = factor(A, least)
        z = dtrsm(1.0, C, error[:, None], lower=1)[:, 0]
        diagonal = C.diagonal().copy()
        if is_steep:
            learned = self._by_factor(whitened, error, noise)
        else:
            learned = self._by_andrews(whitened, C, z, noise)
        self._set(learned, float(weights @ residual))
        return z, diagonal

    def _set(self, learned: tuple[FloatArray, FloatArray, float, float], trace: float) -> None:
        """Take S, m and what was added to surprise, information gain and trace; all or none."""
        S, m, surprise, gain = learned
        if not math.isfinite(surprise + gain + trace):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        self.__dict__.update(
            S=S,
            m=m,
            surprise=self.surprise + surprise,
            information_gain=self.information_gain + gain,
            trace=self.trace + trace,
        )

    def _by_andrews(
        self, P: FloatArray, C: FloatArray, z: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, float, float]:
        gain = float(np.log(C.diagonal() / noise).sum())
        J = dgemm(1.0, self.S, dtrsm(1.0, C, P, side=1, lower=1, trans_a=1))
        add_to_diagonal(C, noise)
        Y = dtrsm(1.0, C, P, side=1, lower=1, trans_a=1)
        S = dgemm(-1.0, J, Y, trans_b=1, beta=1.0, c=self.S)
        return S, self.m + dgemv(1.0, J, z), float(z @ z), gain

    def _by_factor(
        self, P: FloatArray, error: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, float, float]:
        B, e = P / noise, error / noise
        T, c, surprise = _by_cholesky(B, e) or _by_qr(B, e)
        S = dtrsm(1.0, T, self.S, side=1)
        gain = float(np.log(np.abs(T.diagonal())).sum())
        return S, self.m + dgemv(1.0, S, c), surprise, gain

    def grown(self, candidates: FloatArray, tolerance: float) -> FeatureModel:
        """Return a model, not yet taught, whose dictionary leaves no ρ above `tolerance`.

        Its dictionary is pivoted anew out of this one's and the `candidates`. Adding pivots
        behind those there are would be quicker, but these end with the ones of least variance:
        features of far contexts enlarge their rounding errors beyond all bounds.
        """
        rows = np.vstack([self.U, candidates])
        U, R = pivots_among(self.covariance, rows, tolerance)
        return FeatureModel(self.covariance, self.noise_std, U, R)


def _by_cholesky(B: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray, float] | None:
    """Return T, c and |z|²; None where rounding would lose too much."""
    A = dsyrk(1.0, B)
    if not A.trace() <= LARGEST_TRACE:
        return None
    add_to_diagonal(A, 1.0)
    T, failed = dpotrf(A, overwrite_a=1)
    c = dtrsv(T, dgemv(1.0, B, e), trans=1)
    return None if failed else (T, c, max(float(e @ e - c @ c), 0.0))


def _by_qr(B: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Return T, c and |z|²."""
    r = len(B)
    rows = np.empty((len(e), r + 1), order="F")
    rows[:, :r] = B.T
    rows[:, r] = e
    F = np.zeros((r + 1, r + 1), order="F")
    add_to_diagonal(F[:r, :r], 1.0)
    with blas_threads(0.0):  # two threads take longer over tpqrt's narrow blocks
        F = dtpqrt(0, min(BLOCK, r + 1), F, rows, overwrite_a=1, overwrite_b=1)[0]
    return np.asfortranarray(F[:r, :r]), F[:r, r], float(F[r, r]) ** 2
