"""Bayesian linear regression in square-root form.

    Φ         features of the contexts at hand, (r, N)        y    their outcomes, (N,)
    S, m      root of the covariance of the weights, SSᵀ, (r, r); their mean, (r,)
    P         SᵀΦ, whitened features, (r, N)
    V         standard deviations of the noise, a diagonal matrix

Few outcomes are learned by the square-root Kalman update of Potter and Andrews (1968), many by a
Cholesky or a QR factorisation, with B = PV⁻¹ and e = V⁻¹(y - Φᵀm):

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

import numpy as np
from scipy.linalg.blas import ddot, dgemm, dgemv, dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf, dtpqrt

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.posterior.base import Innovations, signal_fraction
from oclok.posterior.linalg import add_to_diagonal, factor, gram
from oclok.threads import blas_threads
from oclok.typing import FloatArray

#: Up to this many outcomes the Kalman update is faster than a factorisation.
FEW = 64
#: PᵀP above this multiple of V² is left to a factorisation, and a BBᵀ whose trace is above that
#: to QR, where squaring would lose digits of S and of |z|² = |e|² - |c|².
LARGEST_RATIO, LARGEST_TRACE = 1e4, 1e6
#: Block size of the QR factorisation.
QR_BLOCK = 16


class Regression(Persistent):
    """The posterior of the weights of `rank` features; at first they are standard normal.

    m is replaced, never written to; S is updated in place. The `quadratic_form` of all outcomes
    learned is yᵀ(ΦᵀΦ + V²)⁻¹y = Σ|z|², their `information_gain` ½ log det(I + V⁻¹ΦᵀΦV⁻¹).
    """

    _is_finite = True

    def __init__(self, rank: int) -> None:
        self.S = np.asfortranarray(np.eye(rank))
        self.m = np.zeros(rank)
        self.quadratic_form = self.information_gain = 0.0

    def mean(self, phi: FloatArray) -> FloatArray:
        """Return Φᵀm, shape (N,)."""
        return np.asarray(dgemv(1.0, phi.T, self.m))

    def whiten(self, phi: FloatArray) -> FloatArray:
        """Return P, shape (r, N), with contiguous columns; Φ itself before any outcome."""
        if self.information_gain == 0.0:
            return phi
        return np.asarray(dgemm(1.0, self.S, phi.T, trans_a=1, trans_b=1))

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return samples of the weights, shape (r, count)."""
        Z = rng.standard_normal((len(self.m), count))
        return np.asarray(dgemm(1.0, self.S, Z) + self.m[:, None])

    def learn(self, P: FloatArray, error: FloatArray, noise: FloatArray) -> Innovations | None:
        """Learn by error y - Φᵀm (N,) and noise V (N,), all or none; None if N is above FEW."""
        if len(error) > FEW:
            self._by_factor(P, error, noise)
            return None
        A = gram(P)
        least = min(noise.tolist()) ** 2
        is_steep = max(A.diagonal().tolist()) > LARGEST_RATIO * least
        add_to_diagonal(A, noise * noise)
        C = factor(A, least)
        z = dtrsv(C, error, lower=1)
        noise_share = noise / C.diagonal()
        if is_steep:
            self._by_factor(P, error, noise)
        else:
            self._add(float(ddot(z, z)), -sum(np.log(noise_share).tolist()))
            self._by_kalman(P, C, z, noise)
        return z, signal_fraction(noise_share)

    def correct(self, P: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        """Change outcomes that were learned by `change`, (N,).

        The covariance does not depend on outcomes, and the mean is linear in them:
        m += SPV⁻²Δ. Σ|z|² is yᵀA⁻¹y: its root grows by at most |V⁻¹Δ|.
        """
        scaled = change / noise
        self.m = self.m + self.S @ (P @ (scaled / noise))
        self.quadratic_form = (math.sqrt(self.quadratic_form) + float(np.linalg.norm(scaled))) ** 2

    def discount(self, rate: float) -> None:
        """Multiply the precisions of all outcomes so far by `rate`.

        With G the information in the outcomes, (SSᵀ)⁻¹ = I + G and Gm's part of the data is
        scaled: (S'S'ᵀ)⁻¹ = I + γG = S⁻ᵀ((1-γ)SᵀS + γI)S⁻¹ and m' = γ((1-γ)SSᵀ + γI)⁻¹m.
        """
        inner = dsyrk(1.0 - rate, self.S, trans=1)
        outer = dsyrk(1.0 - rate, self.S)
        for A in (inner, outer):
            add_to_diagonal(A, rate)
        T, failed = dpotrf(inner)
        W, failed_too = dpotrf(outer)
        if failed or failed_too:
            raise NumericalError("the posterior's factor is not positive definite")
        self.m = rate * dtrsv(W, dtrsv(W, self.m, trans=1))
        self.S = dtrsm(1.0, T, self.S, side=1, overwrite_b=1)
        self.information_gain += float(np.log(T.diagonal()).sum())

    def _add(self, quadratic_form: float, gain: float) -> None:
        """Add to the sums; raise, before anything has changed, if they are not finite."""
        if not math.isfinite(quadratic_form + gain):
            raise NumericalError("the posterior's factor is not finite; are contexts too large?")
        self.quadratic_form += quadratic_form
        self.information_gain += gain

    def _by_kalman(self, P: FloatArray, C: FloatArray, z: FloatArray, noise: FloatArray) -> None:
        J = dgemm(1.0, self.S, dtrsm(1.0, C, P, side=1, lower=1, trans_a=1))
        add_to_diagonal(C, noise)
        Y = dtrsm(1.0, C, P, side=1, lower=1, trans_a=1)
        self.S = dgemm(-1.0, J, Y, trans_b=1, beta=1.0, c=self.S, overwrite_c=1)
        self.m = dgemv(1.0, J, z, beta=1.0, y=self.m)

    def _by_factor(self, P: FloatArray, error: FloatArray, noise: FloatArray) -> None:
        B, e = P / noise, error / noise
        T, c, quadratic_form = _by_cholesky(B, e) or _by_qr(B, e)
        self._add(quadratic_form, float(np.log(np.abs(T.diagonal())).sum()))
        self.S = dtrsm(1.0, T, self.S, side=1, overwrite_b=1)
        self.m = self.m + dgemv(1.0, self.S, c)


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
        F = dtpqrt(0, min(QR_BLOCK, r + 1), F, rows, overwrite_a=1, overwrite_b=1)[0]
    return np.asfortranarray(F[:r, :r]), F[:r, r], float(F[r, r]) ** 2
