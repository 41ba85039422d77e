"""Check-ins of Foursquare users in Tokyo or New York City, as locations in the unit square.

Without the data, a Gaussian mixture that comes with oclok stands in for Tokyo:
`scripts/fit_tokyo.py` fits it and writes `tokyo.json`, which holds its parameters alone.
"""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from oclok.bench.datasets.tables import read_table
from oclok.errors import DataError
from oclok.typing import FloatArray, IntArray

_HEADER = ("user", "venue", "category", "category_name", "latitude", "longitude", "offset", "time")


@dataclass(frozen=True, eq=False)
class CheckIns:
    """Where people checked in, and how often."""

    name: str
    locations: FloatArray  # longitude and latitude of venues, scaled to span [0, 1]²; (V, 2)
    checkins: IntArray  # number of check-ins at each; (V,)

    def sample(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return the locations of `count` check-ins drawn at random; shape (count, 2)."""
        return self.locations[self._venues[rng.integers(self._venues.size, size=count)]]

    @cached_property
    def _venues(self) -> IntArray:
        """The venue of each check-in."""
        return np.repeat(np.arange(self.checkins.size), self.checkins)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of C Gaussians, kept to the unit square."""

    name: str
    weights: FloatArray  # (C,)
    means: FloatArray  # (C, 2)
    factors: FloatArray  # lower Cholesky factors of their covariances; (C, 2, 2)

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


def load(path: str | os.PathLike[str]) -> CheckIns:
    """Read check-ins from `dataset_TSMC2014_TKY.txt` or `dataset_TSMC2014_NYC.txt`.

    Or from a table of venues, `.csv` or `.csv.xz`, with the columns latitude, longitude, checkins.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(
            f"{path}: no such file; give dataset_TSMC2014_TKY.txt of the Foursquare data set, "
            "or a table of its venues"
        )
    types = {"latitude": "float64", "longitude": "float64"}
    if path.suffix == ".txt":  # a row per check-in, in which a quote is part of the text
        how = {"sep": "\t", "names": _HEADER, "encoding": "latin-1", "quoting": csv.QUOTE_NONE}
        rows = read_table(path, {"venue": str, **types}, source=str(path), **how)
        venues = rows.groupby("venue")
        table = venues.first().assign(checkins=venues.size())
    elif path.name.endswith((".csv", ".csv.xz")):
        table = read_table(path, {**types, "checkins": "int64"}, source=str(path))
    else:
        raise DataError(f"{path}: check-ins are read from .txt, .csv or .csv.xz files")
    degrees = table[["longitude", "latitude"]].to_numpy()
    if not np.isfinite(degrees).all():
        raise DataError(f"{path}: has venues without a location; get a fresh copy")
    if table["checkins"].min() < 1:
        raise DataError(f"{path}: has venues with less than one check-in; get a fresh copy")
    low, high = degrees.min(axis=0), degrees.max(axis=0)
    if (low == high).any():
        raise DataError(f"{path}: all venues are on one line; they cannot be scaled to [0, 1]²")
    name = f"Foursquare {path.name.split('.')[0]}"
    return CheckIns(name, (degrees - low) / (high - low), table["checkins"].to_numpy(np.intp))


@cache
def tokyo() -> Mixture:
    """Return the mixture fitted to the check-ins of Tokyo, in place of `load`."""
    fitted = json.loads(files("oclok.bench.datasets").joinpath("tokyo.json").read_text("utf8"))
    weights = np.array(fitted["weights"])
    return Mixture(
        name="Gaussian mixture fitted to Foursquare Tokyo",
        weights=weights / weights.sum(),
        means=np.array(fitted["means"]),
        factors=np.linalg.cholesky(np.array(fitted["covariances"])),
    )
