"""What the mixture says of f at some contexts, bound to the state that said it.

g, h     means of the Gaussian processes and of the trees        w    share of the former
m        w g + (1 - w) h, with variance v                        s    share of what was recalled

mean = (1 - s) m + s ȳ                                           (`memory.py`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oclok.posterior.linalg import std_of
from oclok.posterior.mixture.basis import Features
from oclok.posterior.mixture.members import Member, covariance, moments, weights_of
from oclok.posterior.mixture.memory import Recalled, keys
from oclok.posterior.prediction import Prediction
from oclok.typing import FloatArray, IntArray

_BY_ROW = ("gp", "trees", "base", "variance", "left", "kept", "own", "factor")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MixturePrediction(Prediction):
    """A prediction, and what it is made of; arrays of shape (M,).

    Attributes:
        members, unit: of the generation in use, and the unit of their outcomes.
        parts: the contexts' features, by member.
        gp, trees: g and h.
        base, variance: m and v.
        left: variance that basis functions leave.
        recalled: weights and means of outcomes at the contexts.
        kept, own: s, and the variance that is not g's.
        factor: what standard deviations are multiplied by, for outcomes of two values and counts.
        doubt: standard deviation of w.
        range: least and largest outcome possible.
        version: of the posterior.
    """

    members: list[Member]
    unit: float
    parts: list[Features]
    gp: FloatArray
    trees: FloatArray
    base: FloatArray
    variance: FloatArray
    left: FloatArray
    recalled: Recalled
    kept: FloatArray
    own: FloatArray
    factor: FloatArray
    doubt: float
    range: tuple[float, float]
    version: object

    def at(self, positions: IntArray) -> MixturePrediction:
        """Return the prediction of the contexts at `positions`, shape (K,)."""
        fields: dict[str, Any] = {name: getattr(self, name)[positions] for name in _BY_ROW}
        fields["parts"] = [part.at(positions) for part in self.parts]
        fields["recalled"] = Recalled(*(values[positions] for values in self.recalled))
        return replace(self, **self._rows(positions), **fields)

    def covariance(self) -> FloatArray:
        """Return the joint covariance of f at the contexts, shape (M, M)."""
        total = self.unit**2 * covariance(self.members, weights_of(self.members), self.parts)
        apart = self.doubt * (self.trees - self.gp)
        total += np.multiply.outer(apart, apart)
        total *= np.multiply.outer(1 - self.kept, 1 - self.kept)
        own = self._own_std
        if own.any():
            is_same = np.unique(keys(self.contexts), return_inverse=True)[1]
            total += (is_same[:, None] == is_same) * np.multiply.outer(own, own)
        total *= np.multiply.outer(self.factor, self.factor)
        return total

    def paths(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f, within the range; shape (count, M).

        What the basis functions do not represent is drawn independently for each context.
        """
        first, of = np.unique(keys(self.contexts), return_index=True, return_inverse=True)[1:]
        if len(first) < len(of):
            return self.at(first).paths(count, rng)[:, of]
        weights = weights_of(self.members)
        mean = moments(self.members, weights, self.parts)[0]
        samples = []
        for member, part, drawn in zip(
            self.members, self.parts, rng.multinomial(count, weights), strict=True
        ):
            drawn_f = member.regression.sample(part, int(drawn), rng)
            centre = member.regression.moments(part)[0]
            samples.append(centre - mean + math.sqrt(member.scale) * (drawn_f - centre))
        off = self.unit * rng.permutation(np.concatenate(samples))
        off += self.doubt * np.multiply.outer(rng.standard_normal(count), self.trees - self.gp)
        off *= 1 - self.kept
        off += self._own_std * rng.standard_normal(off.shape)
        return np.clip(self.mean + off * self.factor, *self.range)

    @property
    def _own_std(self) -> FloatArray:
        """Standard deviations of what contexts have of their own, beside `left`."""
        return std_of(self.own - (1 - self.kept) ** 2 * self.left)
