"""Members of a mixture: a prior and a noise ratio each, and how well they foresaw.

    k, ρ     kernel of f / s, and variance of the noise / s²; s² is the unknown scale
    z        innovations in units where s = 1; independent N(0, s²) under the member
    a₀, b₀   shape and rate of the inverse-gamma prior of s²

With s² integrated out, a member's outcomes so far have the log density

    log p(y) = log Γ(a) - log Γ(a₀) + a₀ log b₀ - a log b - ½ log det - ½ N log 2π
    a = a₀ + ½N        b = b₀ + ½ Σ z²

and s² is inverse-gamma(a, b) given them, but that the default model cuts squares of outcomes far
below what was foreseen. Members are averaged by their evidence:

    mean = Σ w m        covariance = Σ w (E[s²] V + m mᵀ) - mean meanᵀ
"""

from __future__ import annotations

import math

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.linalg import gram
from oclok.posterior.mixture.basis import BasisRegression, Features, Prior
from oclok.typing import FloatArray

#: Shape and rate of the scale's prior, where outcomes have variance 1: worth four outcomes.
SHAPE, RATE = 2.0, 1.0


class Member(Persistent):
    """A prior and a noise ratio: a posterior of f / s with its evidence."""

    def __init__(self, prior: Prior, ratio: float) -> None:
        self.regression = BasisRegression(prior, ratio)
        self._count = self._squares = self._cut = self._log_det = 0.0

    @property
    def ratio(self) -> float:
        """ρ."""
        return self.regression.noise

    @property
    def evidence(self) -> float:
        """The logarithm of p(y), up to what all members share."""
        shape, rate = SHAPE + 0.5 * self._count, RATE + 0.5 * self._squares
        return math.lgamma(shape) - shape * math.log(rate) - self._log_det

    @property
    def shape(self) -> float:
        """Shape of the scale's posterior: half its degrees of freedom."""
        return SHAPE + 0.5 * self._count

    @property
    def scale(self) -> float:
        """E[s²]."""
        return (RATE + 0.5 * self._cut) / (self.shape - 1)

    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        features: Features | None = None,
        worth: FloatArray | None = None,
    ) -> None:
        """Learn standardised outcomes y (N,) at X (N, D), of noise variance ρ / (weights · worth).

        Each is `worth` as much as an outcome at a new context; features of X may be at hand.
        """
        worth = np.ones(len(y)) if worth is None else worth
        z, log_det = self.regression.learn(X, y, weights * worth, features)
        squares = z * z
        most = np.where(z < 0, self.regression.prior.far_below * self.scale, np.inf)
        self._count += float(worth.sum())
        self._squares += float(squares.sum())
        self._cut += float(np.minimum(squares, most).sum())
        self._log_det += log_det

    def discount(self, rate: float) -> None:
        """Let what was learned, and the evidence it gave, count less."""
        self.regression.discount(rate)
        self._count, self._log_det = rate * self._count, rate * self._log_det
        self._squares, self._cut = rate * self._squares, rate * self._cut


def weights_of(members: list[Member]) -> FloatArray:
    """Return weights in proportion to the evidence, shape (members,)."""
    evidence = np.array([member.evidence for member in members])
    weights = np.exp(evidence - evidence.max())
    return np.asarray(weights / weights.sum())


def moments(
    members: list[Member], weights: FloatArray, parts: list[Features]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and variance of f by all members, and what bases leave of it, each (M,)."""
    each = [m.regression.moments(part) for m, part in zip(members, parts, strict=True)]
    means = np.array([mean for mean, _ in each])
    variances = np.array([m.scale * v for m, (_, v) in zip(members, each, strict=True)])
    left = np.array([m.scale * part.left for m, part in zip(members, parts, strict=True)])
    # Not matrix products, which round differently from column to column: like arms tie.
    mean = (weights[:, None] * means).sum(axis=0)
    variance = (weights[:, None] * (variances + (means - mean) ** 2)).sum(axis=0)
    return mean, variance, (weights[:, None] * left).sum(axis=0)


def covariance(members: list[Member], weights: FloatArray, parts: list[Features]) -> FloatArray:
    """Return the joint covariance of f, shape (M, M), by all members."""
    triples = list(zip(members, weights, parts, strict=True))
    means = np.array([m.regression.moments(part)[0] for m, _, part in triples])
    total = gram(np.sqrt(weights)[:, None] * (means - weights @ means))
    for member, weight, part in triples:
        total += weight * member.scale * member.regression.covariance(part)
    return total
