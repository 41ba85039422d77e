"""Check-ins like those of Tokyo, without the data: a Gaussian mixture that comes with oclok.

`scripts/fit_tokyo.py` fits it and writes `tokyo.json`, which holds its parameters alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from oclok.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Gaussians, kept to the unit square.

    Attributes:
        name: which data it stands for.
        weights: of the components; shape (C,).
        means: their centres; shape (C, 2).
        factors: lower Cholesky factors of their covariances; shape (C, 2, 2).
    """

    name: str
    weights: FloatArray
    means: FloatArray
    factors: FloatArray

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` locations, drawn again while outside [0, 1]²; shape (count, 2)."""
        found = np.empty((0, 2))
        while len(found) < count:
            parts = rng.choice(self.weights.size, size=count, p=self.weights)
            normal = rng.standard_normal((count, 2, 1))
            drawn = self.means[parts] + (self.factors[parts] @ normal)[:, :, 0]
            inside = ((drawn >= 0) & (drawn <= 1)).all(axis=1)
            found = np.concatenate([found, drawn[inside]])
        return found[:count]


@cache
def mixture() -> Mixture:
    """Return the mixture fitted to the check-ins of Tokyo."""
    fitted = json.loads(files("oclok.bench.datasets").joinpath("tokyo.json").read_text("utf8"))
    weights = np.array(fitted["weights"])
    return Mixture(
        name="Gaussian mixture fitted to Foursquare Tokyo",
        weights=weights / weights.sum(),
        means=np.array(fitted["means"]),
        factors=np.linalg.cholesky(np.array(fitted["covariances"])),
    )
