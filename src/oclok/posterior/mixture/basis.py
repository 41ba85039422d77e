"""A Gaussian process on a limited number of basis functions, exact as long as these suffice.

    Z, R    contexts of the basis functions, (m, D), and the inverse Cholesky factor of k(Z, Z)
    φ(x)    R k(Z, x), the features of a context; f = wᵀφ with w ~ N(0, I) before any outcome
    S, b    covariance of w given the outcomes, and the sum of φ y / noise: the mean of w is Sb

Every context with variance left becomes a basis function before it is learned from: outcomes so far
say nothing of what the basis leaves of it, so that nothing has to be learned anew. From `AMPLE` of
them on, only contexts that have far more left than the noise do. What is left of others counts as
noise where it is learned from, and as uncertainty where it is predicted.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsm
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from oclok.errors import NumericalError
from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor, gram, product
from oclok.typing import FloatArray, Kernel

#: What a kernel makes of contexts once, for all that is asked of them.
Prepared = tuple[FloatArray, ...]

#: A context becomes a basis function if it has this much left, in noise variances: what the prior
#: asks for up to AMPLE basis functions, then MUCH_LEFT up to LIMIT.
MUCH_LEFT = 4.0
AMPLE, LIMIT = 160, 576
#: Contexts of more columns have a lower limit: each basis function costs more, and helps less.
COLUMNS = 48
#: Outcomes that are learned at a time.
AT_ONCE = 64


class Prior(Protocol):
    """The covariance of f between contexts.

    Attributes:
        least_left: what a basis function has to have left, in noise variances.
        far_below: the square of an outcome lower than foreseen adds at most this many times the
            scale so far to it.
    """

    least_left: float
    far_below: float

    @property
    def kernel(self) -> Kernel:
        """The kernel for people to read, as scikit-learn has it."""

    def prepare(self, X: FloatArray) -> Prepared:
        """Return what the other methods take, for contexts X (M, D)."""

    def between(self, A: Prepared, B: Prepared) -> FloatArray:
        """Return k, shape (N, M)."""

    def diagonal(self, A: Prepared) -> FloatArray:
        """Return k(x, x), shape (M,)."""


class GivenKernel(Persistent):
    """A scikit-learn kernel as a prior."""

    least_left, far_below = 1e-4, math.inf

    def __init__(self, covariance: Covariance) -> None:
        self.covariance = covariance

    @property
    def kernel(self) -> Kernel:
        """The kernel itself."""
        return self.covariance.kernel

    def prepare(self, X: FloatArray) -> Prepared:
        """Return the contexts as they are."""
        return (X,)

    def between(self, A: Prepared, B: Prepared) -> FloatArray:
        """Return k, shape (N, M)."""
        return self.covariance.between(A[0], B[0])

    def diagonal(self, A: Prepared) -> FloatArray:
        """Return k(x, x), shape (M,)."""
        return self.covariance.diagonal(A[0])


class Features:
    """Contexts (M, D) as a basis has them: prepared for the kernel, φ (M, m), k(x, x) (M,)."""

    def __init__(self, prepared: Prepared, phi: FloatArray, prior: FloatArray) -> None:
        self.prepared, self.phi, self.prior = prepared, phi, prior

    @cached_property
    def left(self) -> FloatArray:
        """The variance that the basis leaves, shape (M,)."""
        explained = np.einsum("nm,nm->n", self.phi, self.phi)
        return np.asarray(np.maximum(self.prior - explained, 0.0))

    def at(self, rows: Any) -> Features:
        """Return those at `rows`."""
        prepared = tuple(part[rows] for part in self.prepared)
        return Features(prepared, self.phi[rows], self.prior[rows])


class BasisRegression(Persistent):
    """Bayesian linear regression on basis functions of a Gaussian process.

    Args:
        prior: the covariance of f.
        noise: variance of the noise.

    Attributes:
        gain: I(r; f) of all outcomes so far, in nats.
    """

    def __init__(self, prior: Prior, noise: float) -> None:
        self.prior, self.noise = prior, noise
        self.basis: FloatArray = np.empty((0, 0))
        self.gain = 0.0
        self._R = self._S = np.empty((0, 0))
        self._b = self._mean = np.empty(0)
        self._prepared: Prepared | None = None

    def __len__(self) -> int:
        """Return the number of basis functions."""
        return len(self.basis)

    def features(self, X: FloatArray) -> Features:
        """Return the features of contexts X (M, D)."""
        A = self.prior.prepare(X)
        if not len(self):
            return Features(A, np.empty((len(X), 0)), self.prior.diagonal(A))
        K = self.prior.between(A, self._basis_prepared())
        phi = dtrmm(1.0, self._R.T, K.T, trans_a=1, overwrite_b=1).T
        return Features(A, phi, self.prior.diagonal(A))

    def moments(self, features: Features) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of what the basis represents of f, each of shape (M,)."""
        phi = features.phi
        spread = np.einsum("nm,nm->n", product(phi, self._S), phi)
        return phi @ self._mean, np.maximum(spread, 0.0)

    def covariance(self, features: Features) -> FloatArray:
        """Return the joint covariance of f, shape (M, M)."""
        phi = features.phi
        K = self.prior.between(features.prepared, features.prepared)
        K -= product(phi, phi)
        K += product(product(phi, self._S), phi)
        np.einsum("ii->i", K)[...] = features.left + self.moments(features)[1]
        return K

    def sample(self, features: Features, count: int, rng: np.random.Generator) -> FloatArray:
        """Return samples of f, shape (count, M); what the basis leaves is independent."""
        phi = features.phi
        w = product(rng.standard_normal((count, len(self))), factor(self._S, 1e-12)) + self._mean
        left = np.sqrt(features.left)
        return product(w, phi) + left * rng.standard_normal((count, len(phi)))

    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        features: Features | None = None,
    ) -> tuple[FloatArray, float]:
        """Learn outcomes y (N,) at X (N, D), of noise variance noise / weights.

        The features of X may be at hand.

        Returns:
            Innovations, independent N(0, 1) under the model, (N,); and half the log determinant
            of the outcomes' covariance given those before.
        """
        if features is not None and len(y) <= AT_ONCE:
            return self._learn(X, y, weights, features)
        innovations, log_det = [], 0.0
        for start in range(0, len(y), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            z, part = self._learn(X[rows], y[rows], weights[rows], self.features(X[rows]))
            innovations.append(z)
            log_det += part
        return np.concatenate(innovations), log_det

    def correct(self, X: FloatArray, change: FloatArray, weights: FloatArray) -> None:
        """Add `change` (N,) to outcomes learned at X (N, D)."""
        features = self.features(X)
        shift = change * weights / self._noise_of(features)
        self._b = self._b + features.phi.T @ shift
        self._mean = self._S @ self._b

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes by `rate`."""
        if not len(self):
            return
        precision = _inverse(self._S) * rate
        add_to_diagonal(precision, 1.0 - rate)
        self._S = _inverse(precision)
        self._b = rate * self._b
        self._mean = self._S @ self._b
        self.gain = -float(np.log(np.diag(factor(self._S, 1e-12))).sum())

    def _learn(
        self, X: FloatArray, y: FloatArray, weights: FloatArray, features: Features
    ) -> tuple[FloatArray, float]:
        limit = AMPLE + (LIMIT - AMPLE) * COLUMNS // max(X.shape[1], COLUMNS)
        if len(self) < limit:
            features = self._grown(X, features, limit)
        phi = features.phi
        noise = self._noise_of(features) / weights
        SP = product(phi, self._S)
        G = product(SP, phi)
        add_to_diagonal(G, noise)
        C = factor(G, float(noise.min()))
        z = dtrsm(1.0, C, (y - phi @ self._mean)[:, None], lower=1)[:, 0]
        T = dtrsm(1.0, C, SP, lower=1)
        if not np.isfinite(z).all():
            raise NumericalError("outcomes cannot be learned in double precision")
        self._S = self._S - gram(T)
        self._b = self._b + phi.T @ (y / noise)
        self._mean = self._mean + T.T @ z
        log_det = float(np.log(C.diagonal()).sum())
        self.gain += log_det - 0.5 * float(np.log(noise).sum())
        return z, log_det

    def _noise_of(self, features: Features) -> FloatArray:
        return self.noise + features.left

    def _grown(self, X: FloatArray, features: Features, limit: int) -> Features:
        """Make contexts X (N, D) with variance left basis functions; return their features."""
        A, phi = features.prepared, features.phi
        C = self.prior.between(A, A)
        C -= product(phi, phi)
        least, most = (self.prior.least_left, AMPLE) if len(self) < AMPLE else (MUCH_LEFT, limit)
        pivots, L = _pivoted(C, least * self.noise, most - len(self))
        if not len(pivots):
            return features
        m, q = len(self), len(pivots)
        T = dtrtri(L[pivots], lower=1)[0]
        R, S = np.zeros((m + q, m + q)), np.eye(m + q)
        R[:m, :m], R[m:, m:], S[:m, :m] = self._R, T, self._S
        if m:
            R[m:, :m] = -product(T @ phi[pivots], self._R.T)
        new = tuple(part[pivots] for part in A)
        if m:
            new = tuple(map(np.concatenate, zip(self._basis_prepared(), new, strict=True)))
        self.basis = np.vstack([self.basis, X[pivots]]) if m else X[pivots].copy()
        self._R, self._S, self._prepared = R, S, new
        self._b, self._mean = (np.concatenate([v, np.zeros(q)]) for v in (self._b, self._mean))
        return Features(A, np.hstack([phi, L]), features.prior)

    def _basis_prepared(self) -> Prepared:
        if self._prepared is None:
            self._prepared = self.prior.prepare(self.basis)
        return self._prepared

    def _state(self) -> dict[str, Any]:
        return {**self.__dict__, "_prepared": None}


def _pivoted(C: FloatArray, least: float, most: int) -> tuple[list[int], FloatArray]:
    """Return pivots of C (N, N), and the columns (N, pivots) of its pivoted Cholesky factor."""
    left = C.diagonal().copy()
    pivots: list[int] = []
    L = np.zeros((len(C), min(len(C), max(most, 0))))
    for j in range(L.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] <= least:
            break
        L[:, j] = (C[:, pivot] - L[:, :j] @ L[pivot, :j]) / math.sqrt(left[pivot])
        L[pivots, j] = 0.0
        left -= L[:, j] ** 2
        left[pivot] = -math.inf
        pivots.append(pivot)
    return pivots, L[:, : len(pivots)]


def _inverse(A: FloatArray) -> FloatArray:
    """Return the inverse of a symmetric positive matrix."""
    L, failed = dpotrf(A, lower=1, clean=1)
    if failed:
        raise NumericalError("a covariance has lost its rank")
    inverse: FloatArray = np.tril(dpotri(L, lower=1)[0])
    inverse += np.tril(inverse, -1).T
    return inverse
