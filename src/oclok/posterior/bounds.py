"""Predictions through a dictionary, and how far they can be from exact.

    E         K - ΦᵀΦ, what the dictionary leaves of the prior covariance of all contexts so far
    τ         tr E = Σ ρ(x_n), kept as it grows           ρ      ρ(x) of the context asked for
    a         (ΦᵀΦ + σ²I)⁻¹y, its norm bounded            v, σ²  variance given; noise variance

    q         √(τρ)/σ

    exact variance  ≤  (√(v + τv/σ²) + q)²  =: v⁺         exact variance  ≥  v - 2q√v⁺
    |mean - exact|  ≤  |a| (σq + τ√v⁺/σ)

docs/dictionary.md derives them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from oclok.posterior.base import Bounded
from oclok.posterior.exact import CHUNK
from oclok.posterior.features import FeatureModel
from oclok.posterior.linalg import std_of
from oclok.posterior.observations import frozen
from oclok.threads import blas_threads
from oclok.typing import FloatArray, IntArray

#: Allowance for rounding in the bounds, as a share of the prior standard deviation, and of the
#: largest weight where outcomes are so large that the weights are.
SLACK = 1e-9


class Features(NamedTuple):
    """Contexts X (M, D) with φ and Sᵀφ, each (r, M), ρ (M,) and the largest ρ."""

    X: FloatArray
    phi: FloatArray
    whitened: FloatArray
    residual: FloatArray
    largest: float

    @classmethod
    def of(
        cls, X: FloatArray, phi: FloatArray, whitened: FloatArray, residual: FloatArray
    ) -> Features:
        """Return these features of X, which is kept as it is now."""
        return cls(frozen(X), phi, whitened, residual, float(residual.max()))

    def at(self, X: FloatArray, positions: IntArray) -> Features:
        """Return the features of contexts X that stand at `positions` here."""
        phi, whitened = self.phi[:, positions], self.whitened[:, positions]
        return Features.of(X, phi, whitened, self.residual[positions])


def moments(
    model: FeatureModel, X: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, Features | None]:
    """Return mean and variance of f and ρ, each (M,), and features if they are not too many."""
    mean, variance, residual = np.empty((3, len(X)))
    step = max(CHUNK // model.rank, 64)
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        with blas_threads(2.0 * model.rank**2 * len(X[part])):
            phi, residual[part] = model.features(X[part])
            whitened = model.whiten(phi)
            mean[part] = model.mean(phi)
            np.einsum("rm,rm->m", whitened, whitened, out=variance[part])
    variance += residual
    if len(X) > step:
        return mean, variance, residual, None
    return mean, variance, residual, Features.of(X, phi, whitened, residual)


def bounded(
    model: FeatureModel, mean: FloatArray, variance: FloatArray, residual: FloatArray
) -> Bounded:
    """Return the prediction with the bounds at the head of this file."""
    sigma, tau = model.noise_std, model.trace
    share = tau / sigma**2
    std = np.sqrt(variance)
    q = np.sqrt(share * residual)
    largest = math.sqrt(1.0 + share) * std + q
    smallest = std_of(variance - 2.0 * q * largest)
    slack = SLACK * math.sqrt(model.prior)
    mean_error = model.weight_norm * sigma * (q + share * largest)
    mean_error += slack * max(1.0, float(np.abs(model.m).max()))
    return Bounded(mean, std, mean_error, np.maximum(largest - std, std - smallest) + slack)
