"""Nyström features of a dictionary, and Bayesian linear regression on them in square-root form.

    U         dictionary, (r, D)                    σ    standard deviation of the noise
    R         lower Cholesky factor of K(U, U), (r, r)
    φ(x)      R⁻¹k(U, x), features of a context; Φ those of the contexts at hand, (r, N)
    ρ(x)      k(x, x) - |φ(x)|², what the dictionary leaves of the prior variance; ≥ 0
    S, m      root of the covariance of the features' weights, SSᵀ, (r, r); their mean, (r,)
    P         SᵀΦ, whitened features, (r, N)

    mean = φᵀm        variance = ρ + |Sᵀφ|²         (DTC, with ρ kept in the variance)

With V the diagonal matrix of the noise's standard deviations, σ / √weight, few outcomes y are
learned by the square-root Kalman update of Potter and Andrews (1968), many by a Cholesky or a QR
factorisation, with B = PV⁻¹ and e = V⁻¹(y - Φᵀm):

    CCᵀ = PᵀP + V²       z = C⁻¹Ve              m += SPC⁻ᵀz       S -= SPC⁻ᵀ(C + V)⁻¹Pᵀ

    TᵀT = I + BBᵀ        c = T⁻ᵀBe              |z|² = |e|² - |c|²
                                                                  S  = ST⁻¹,  then m += Sc
    some orthogonal matrix times [ I   0 ] = [ T   c  ]
                                 [ Bᵀ  e ]   [    |z| ]

QR squares nothing. The other two square P, and are used where that is not much larger than V²,
which it ceases to be once something is known. None forms SSᵀ or its inverse.

Rounding: φ(x)ᵀφ(x') is off by at most ε(κ + |w|₁κ_U)(κ' + |w'|₁κ_U), where w = R⁻ᵀφ(x) are the
weights of f(U) in the interpolation of f(x), κ = √k(x, x), κ_U the largest κ in U and ε the
relative rounding of K. |w|₁ takes a solve with Rᵀ; with c the row sums of |R⁻¹| it is at most
Σ|φ_i|c_i ≤ √(r Σφ_i²c_i²), for the price of a product with a vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsyrk, dtrsm, dtrsv
from scipy.linalg.lapack import dpotrf, dtpqrt, dtrtri

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.posterior.base import distinct, due_to_f
from oclok.posterior.bounds import STATE_ROUNDING, Uncertainty, kernel_rounding, norm_bound
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram
from oclok.posterior.prediction import Prediction
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: Entries of φ that `predict` works on at once: 32 MB.
PREDICTED_AT_ONCE = 4_000_000
#: Outcomes that are learned at once, and how many count as few: with a dictionary of 125, the
#: Kalman update of 5 takes half the time of Cholesky's, of 64 the same, of 200 three times.
LEARNED_AT_ONCE, FEW = 2_048, 64
#: PᵀP above this multiple of V² is left to a factorisation, and a BBᵀ whose trace is above that
#: to QR: rounding would tell in S, and in |z|² = |e|² - |c|². With a dictionary of 120, 500
#: outcomes take 0.8 ms by Cholesky and 1.5 by QR.
LARGEST_RATIO, LARGEST_TRACE = 1e4, 1e6
#: Block size of the QR factorisation.
QR_BLOCK = 16


@dataclass(frozen=True)
class Features:
    """φ and Sᵀφ, each (r, M); √k(x, x), ρ and the root of its rounding, √ω, each (M,)."""

    phi: FloatArray
    whitened: FloatArray
    prior_std: FloatArray
    residual: FloatArray
    root: FloatArray
    is_tight: bool = False

    @cached_property
    def largest(self) -> float:
        """The largest ρ."""
        return float(self.residual.max(initial=0.0))

    def at(self, positions: IntArray) -> Features:
        """Return the features of the contexts at `positions`."""
        return Features(  # gathered by columns, which are contiguous
            self.phi.T[positions].T,
            self.whitened.T[positions].T,
            self.prior_std[positions],
            self.residual[positions],
            self.root[positions],
            self.is_tight,
        )


class NystromModel(Persistent):
    """What is known of f through the features of a dictionary.

    Attributes:
        trace: Σ w (ρ + ω) of all outcomes learned, w their weights.
        largest_prior: largest prior variance in the dictionary.
        surprise: Σ|z|² of all outcomes learned, which is yᵀ(ΦᵀΦ + V²)⁻¹y.
        information_gain: ½ log det(I + V⁻¹ΦᵀΦV⁻¹).
    """

    def __init__(
        self, covariance: Covariance, noise_std: float, U: FloatArray, R: FloatArray
    ) -> None:
        self.covariance = covariance
        self.noise_std = noise_std
        self.U = U
        self.R = np.asfortranarray(R)
        self.S = np.asfortranarray(np.eye(len(U)))
        self.m = np.zeros(len(U))
        self.largest_prior = covariance.largest(U)
        self.trace = self.surprise = self.information_gain = 0.0
        self._prepare()

    def _prepare(self) -> None:
        """Compute what follows from the dictionary alone."""
        self._k_U = self.covariance.to(self.U)
        row_sums = np.abs(dtrtri(self.R, lower=1)[0]).sum(axis=1)
        self._squares = np.stack([np.ones(len(self.U)), len(self.U) * row_sums**2])
        rounding = kernel_rounding(len(self.U), self.covariance.reach(self.U))
        self._rounding = math.sqrt(rounding), math.sqrt(rounding * self.largest_prior)
        self._version = object()

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in _DERIVED}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()

    @property
    def version(self) -> object:
        """Token of the state: another one after every change."""
        return self._version

    @property
    def rank(self) -> int:
        """Size of the dictionary."""
        return len(self.U)

    @property
    def inducing(self) -> FloatArray:
        """The dictionary, shape (r, D)."""
        return self.U.copy()

    def predict(self, X: FloatArray) -> Prediction:
        """Return mean and std of f at X (M, D), with bounds."""
        step = max(PREDICTED_AT_ONCE // self.rank, 64)
        if len(X) > step:
            parts = [self.predict(X[i : i + step]) for i in range(0, len(X), step)]
            return Prediction.joined(X, parts)
        with blas_threads(2.0 * self.rank**2 * len(X)):
            phi, *rest = self._nystrom(X)
            mean: FloatArray = dgemv(1.0, phi, self.m, trans=1)
            whitened: FloatArray = dgemm(1.0, self.S, phi, trans_a=1)
        work = Features(phi, whitened, *rest)
        variance = np.einsum("rm,rm->m", whitened, whitened)
        variance += work.residual
        return self._bounded(X, mean, np.sqrt(variance, out=variance), work)

    def features(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return φ (r, M) and ρ (M,) of X (M, D)."""
        phi, _, residual, _ = self._nystrom(X)
        return phi, residual

    def asked(self, prediction: Prediction) -> Prediction:
        """Return `prediction` with its features, computed again if it is stale."""
        work = self.worked(prediction)
        if work is prediction.work:
            return prediction
        X, mean = prediction.contexts, prediction.mean
        return Prediction(X, mean, mean, mean, mean, self._version, work)

    def tightened(self, prediction: Prediction) -> Prediction:
        """Return the prediction with ω by the interpolation weights of its contexts."""
        work = self.worked(prediction)
        if work.is_tight:
            return prediction
        tight = replace(work, root=self._tight(work), is_tight=True)
        return self._bounded(prediction.contexts, prediction.mean, prediction.std, tight)

    def worked(self, prediction: Prediction) -> Features:
        """Return the features behind `prediction`, computed again if it is stale."""
        if prediction.state is self._version and isinstance(prediction.work, Features):
            return prediction.work
        phi, *rest = self._nystrom(prediction.contexts)
        whitened = phi  # S = I before all outcomes
        if self.information_gain:
            whitened = dgemm(1.0, self.S, phi, trans_a=1)
        return Features(phi, whitened, *rest)

    def covariance_of(self, prediction: Prediction, tolerance: float) -> FloatArray:
        """Return the joint covariance (M, M); correlations of ρ above `tolerance` included."""
        f = self.worked(prediction)
        covariance = gram(f.whitened)
        if f.largest > tolerance:
            covariance += self.covariance.of(prediction.contexts)
            covariance -= gram(f.phi)
        else:
            add_to_diagonal(covariance, f.residual)
        return covariance

    def sample(self, prediction: Prediction, rng: np.random.Generator) -> FloatArray:
        """Return a sample of f (M,) by one of the weights of the features.

        What the dictionary leaves out is drawn apart, once for all contexts that are equal.
        """
        f = self.worked(prediction)
        sample: FloatArray = dgemv(1.0, f.phi, self.m, trans=1)
        sample += dgemv(1.0, f.whitened, rng.standard_normal(self.rank), trans=1)
        first, of = distinct(prediction.contexts)
        sample += np.sqrt(f.residual) * rng.standard_normal(len(sample))
        return sample[first[of]]

    def learn(
        self, prediction: Prediction, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Learn outcomes y (N,), of noise variance σ² / weights, at the contexts predicted.

        Returns:
            The innovations, each of shape (N,); None if the outcomes are not few.
        """
        with blas_threads(2.0 * self.rank**2 * len(y)):
            return self._learn(prediction, y, weights)

    def _learn(
        self, prediction: Prediction, y: FloatArray, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        f = self.worked(prediction)
        noise = self.noise_std / np.sqrt(weights)
        mean: FloatArray = dgemv(1.0, f.phi, self.m, trans=1)
        error = y - mean
        root = f.root if f.is_tight else self._tight(f)
        trace = float(weights @ (f.residual + root * root))
        if len(y) > FEW:
            self._set(self._by_factor(f.whitened, error, noise), trace)
            return None
        A = gram(f.whitened)
        least = min(noise.tolist()) ** 2
        is_steep = max(A.diagonal().tolist()) > LARGEST_RATIO * least
        add_to_diagonal(A, noise * noise)
        C = factor(A, least)
        z = dtrsm(1.0, C, error[:, None], lower=1)[:, 0]
        due = due_to_f(noise / C.diagonal())
        if is_steep:
            learned = self._by_factor(f.whitened, error, noise)
        else:
            learned = self._by_kalman(f.whitened, C, z, noise)
        self._set(learned, trace)
        return z, due

    def learn_all(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        """Learn any number of outcomes y (N,), of noise variance σ² / weights, seen at X (N, D)."""
        before = dict(self.__dict__)
        try:
            for start in range(0, len(X), LEARNED_AT_ONCE):
                part = slice(start, start + LEARNED_AT_ONCE)
                self.learn(Prediction.of(X[part]), y[part], weights[part])
        except BaseException:
            self.__dict__.update(before)
            raise

    def correct(self, prediction: Prediction, change: FloatArray) -> None:
        """Change outcomes of weight 1 learned at the contexts predicted by `change`, (N,).

        The covariance does not depend on outcomes, and the mean is linear in them:
        m += SSᵀφ Δ/σ². Σ|z|² is yᵀA⁻¹y: its root grows by at most |Δ|/σ.
        """
        f = self.worked(prediction)
        m = self.m + self.S @ (f.whitened @ change) / self.noise_std**2
        root = math.sqrt(self.surprise) + float(np.linalg.norm(change)) / self.noise_std
        self.__dict__.update(m=m, surprise=root**2, _version=object())

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`.

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
        m = rate * dtrsv(W, dtrsv(W, self.m, trans=1))
        gain = float(np.log(T.diagonal()).sum())
        self.__dict__.update(
            S=dtrsm(1.0, T, self.S, side=1),
            m=m,
            trace=rate * self.trace,
            information_gain=self.information_gain + gain,
            _version=object(),
        )

    def _nystrom(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return φ (r, M); √k(x, x), ρ and √ω by the cheap bound of |w|₁, each (M,)."""
        phi = dtrsm(1.0, self.R, self._k_U(X).T, lower=1, overwrite_b=1)
        prior = self.covariance.diagonal(X)
        squares, weights = phi * phi, self._squares
        residual = prior - dgemv(1.0, squares, weights[0], trans=1)
        np.maximum(residual, 0.0, out=residual)
        prior_std = np.sqrt(prior)
        weight = np.sqrt(dgemv(1.0, squares, weights[1], trans=1))
        return phi, prior_std, residual, self._root(prior_std, weight)

    def _root(self, prior_std: FloatArray, weight: FloatArray) -> FloatArray:
        """Return √ω for contexts with √k(x, x) and a bound of |w|₁, each (M,)."""
        own, dictionary = self._rounding
        return own * prior_std + dictionary * weight

    def _tight(self, f: Features) -> FloatArray:
        """Return √ω by |w|₁ itself."""
        w = dtrsm(1.0, self.R, f.phi, lower=1, trans_a=1)
        return self._root(f.prior_std, np.add.reduce(np.abs(w, out=w), axis=0))

    def _bounded(
        self,
        X: FloatArray,
        mean: FloatArray,
        std: FloatArray,
        work: Features,
    ) -> Prediction:
        slack = STATE_ROUNDING * math.sqrt(self.largest_prior)
        known = Uncertainty(
            self.trace,
            self.noise_std,
            norm_bound(self.surprise, self.noise_std),
            mean_slack=slack * max(1.0, math.sqrt(self.m @ self.m)),
            std_slack=slack,
        )
        errors = known.bounds(std, work.residual, work.root)
        return Prediction(X, mean, std, *errors, self._version, work)

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
            _version=object(),
        )

    def _by_kalman(
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


#: Attributes that `_prepare` computes.
_DERIVED = ("_k_U", "_squares", "_rounding", "_version")


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
