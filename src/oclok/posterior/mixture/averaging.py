"""Bayesian model averaging: what members say of the same contexts, weighed by their evidence.

w_i      weight of member i, ∝ its evidence
s_i²     its scale, inverse-gamma(a_i, b_i) given the outcomes; mean b_i / (a_i - 1)
m_i, V_i its posterior mean and covariance of f / s_i

mean = Σ w_i m_i        covariance = Σ w_i (E[s_i²] V_i + m_i m_iᵀ) - mean meanᵀ
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr

from oclok.posterior.linalg import gram, std_of
from oclok.posterior.mixture.members import Member, ScalePrior
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray, IntArray
from oclok.validation import Contexts

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Mixed(NamedTuple):
    """Members with their weights and expected scales E[s²], each of shape (members,)."""

    members: list[Member]
    weights: FloatArray
    scales: FloatArray
    prior: ScalePrior

    @classmethod
    def of(cls, members: list[Member], prior: ScalePrior) -> Mixed:
        """Weigh members by their evidence."""
        evidence = np.array([member.evidence(prior) for member in members])
        weights = np.exp(evidence - evidence.max())
        shapes, rates = np.array([member.scale(prior) for member in members]).T
        return cls(members, weights / weights.sum(), rates / (shapes - 1), prior)

    @property
    def heaviest(self) -> Member:
        """The member of the largest weight."""
        return self.members[int(np.argmax(self.weights))]

    def rows(self) -> list[tuple[float, Kernel, float]]:
        """Return weight, kernel and noise variance of each member, in units of the outcomes."""
        members = zip(self.members, self.weights, self.scales, strict=True)
        found = [
            (float(weight), float(scale) * member.posterior.kernel, float(scale * member.ratio))
            for member, weight, scale in members
        ]
        return sorted(found, key=lambda row: -row[0])

    @property
    def noise_variance(self) -> float:
        """The mean over members, in units of the outcomes."""
        ratios = np.array([member.ratio for member in self.members])
        return float(self.weights @ (self.scales * ratios))

    @property
    def information_gain(self) -> float:
        """The mean over members, in nats."""
        gains = [member.posterior.information_gain for member in self.members]
        return float(self.weights @ np.array(gains))

    def normal_deviates(self, z: FloatArray) -> FloatArray:
        """Return the normal deviates of the same probability as z, outcomes in expected scales.

        While the scale is uncertain, outcomes follow a t distribution with 2a degrees of freedom.
        """
        shape, _ = self.heaviest.scale(self.prior)
        t = np.abs(z) * math.sqrt(shape / (shape - 1))
        tail = np.maximum(stdtr(2 * shape, -t), np.finfo(float).tiny)
        return np.asarray(-np.sign(z) * ndtri(tail))

    def sample_paths(self, x: Contexts, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples at x (M, D), each of a member drawn by weight, and its scale."""
        samples = []
        for member, drawn in zip(self.members, rng.multinomial(count, self.weights), strict=True):
            if drawn:
                part = member.posterior.predict(x)
                shape, rate = member.scale(self.prior)
                f = member.posterior.sample_paths(part, int(drawn), rng) - part.mean
                scales = np.sqrt(rate / rng.gamma(shape, size=(int(drawn), 1)))
                samples.append(part.mean + scales * f)
        return rng.permutation(np.concatenate(samples))


class Average(NamedTuple):
    """What each member says of the same M contexts."""

    mixed: Mixed
    parts: list[Prediction]

    def at(self, positions: IntArray) -> Average:
        """Return the same for the contexts at `positions`."""
        return Average(self.mixed, [part.at(positions) for part in self.parts])

    def sharpened(self, positions: IntArray) -> Average:
        """Return the same with the members' predictions sharpened at `positions`."""
        pairs = zip(self.mixed.members, self.parts, strict=True)
        return Average(self.mixed, [m.posterior.sharpen(part, positions) for m, part in pairs])

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation, each of shape (M,)."""
        means = np.array([part.mean for part in self.parts])
        variances = np.array([part.std for part in self.parts]) ** 2
        # Not matrix products, which round differently from column to column: like arms tie.
        weights = self.mixed.weights[:, None]
        mean = (weights * means).sum(axis=0)
        spread = self.mixed.scales[:, None] * variances + (means - mean) ** 2
        return mean, std_of((weights * spread).sum(axis=0))

    def covariance(self) -> FloatArray:
        """Return the joint covariance, shape (M, M)."""
        members, weights, scales, _ = self.mixed
        means = np.array([part.mean for part in self.parts])
        apart = np.sqrt(weights)[:, None] * (means - weights @ means)
        total = gram(apart)
        for member, part, weight, scale in zip(members, self.parts, weights, scales, strict=True):
            total += weight * scale * member.posterior.covariance(part)
        return total

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,): of a member drawn by weight, and its scale."""
        drawn = int(rng.choice(len(self.parts), p=self.mixed.weights))
        member, part = self.mixed.members[drawn], self.parts[drawn]
        shape, rate = member.scale(self.mixed.prior)
        sample = member.posterior.sample(part, rng) - part.mean
        result: FloatArray = part.mean + math.sqrt(rate / rng.gamma(shape)) * sample
        return result
