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
#: norm of the weights where outcomes are so large that the weights are.
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
        """Return the features of contexts X, few of them, that stand at `positions` here."""
        residual = self.residual[positions]
        phi, whitened = self.phi[:, positions], self.whitened[:, positions]
        return Features(frozen(X), phi, whitened, residual, max(residual.tolist(), default=0.0))


def moments(
    model: FeatureModel, X: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, Features | None]:
    """Return mean and variance of f and ρ, each (M,), and features if they are not too many."""
    step = max(CHUNK // model.rank, 64)
    if len(X) > step:
        parts = [moments(model, X[i : i + step])[:3] for i in range(0, len(X), step)]
        mean, variance, residual = np.concatenate(parts, axis=1)
        return mean, variance, residual, None
    with blas_threads(2.0 * model.rank**2 * len(X)):
        phi, residual = model.features(X)
        whitened = model.whiten(phi)
        mean = model.mean(phi)
    variance = np.einsum("rm,rm->m", whitened, whitened)
    variance += residual
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
    mean_error += slack * max(1.0, math.sqrt(model.m @ model.m))
    std_error = np.maximum(largest - std, std - smallest)
    std_error += slack
    return Bounded(mean, std, mean_error, std_error)
