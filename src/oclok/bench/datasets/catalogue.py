"""Which real data the simulations can use, where to get them, and whether a copy is good."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from oclok.bench.datasets import foursquare, movielens
from oclok.errors import DataError

_FOURSQUARE = "https://sites.google.com/site/yangdingqi/home/foursquare-dataset"
_RESEARCH = "research use with citation; commercial use only with permission of GroupLens"


@dataclass(frozen=True)
class Dataset:
    """A data set to download: for which simulation, from where, and what to give as `data=`."""

    name: str
    simulation: str
    home: str
    size: str
    licence: str
    give: str


def check(path: str | os.PathLike[str]) -> str:
    """Read a data set and return its contents in one line; a bad one is a `DataError`."""
    path = Path(path)
    if path.is_dir() or path.suffix == ".zip":
        return movielens.summary(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    found = foursquare.load(path)
    return f"{found.name}: {found.checkins.sum():,} check-ins at {found.checkins.size:,} venues"


#: The data sets that the simulations can use, the paper's own first.
CATALOGUE = (
    Dataset(
        name="Foursquare Tokyo",
        simulation="crowdsourcing",
        home=_FOURSQUARE,
        size="25 MB zipped; 573,703 check-ins",
        licence="none stated; cite Yang et al. (2015)",
        give="dataset_TSMC2014_TKY.txt",
    ),
    Dataset(
        name="Foursquare New York City",
        simulation="crowdsourcing",
        home=_FOURSQUARE,
        size="25 MB zipped, with Tokyo; 227,428 check-ins",
        licence="none stated; cite Yang et al. (2015)",
        give="dataset_TSMC2014_NYC.txt",
    ),
    Dataset(
        name="MovieLens 25M",
        simulation="movies",
        home="https://grouplens.org/datasets/movielens/25m/",
        size="250 MB zipped; 25 million ratings",
        licence=_RESEARCH,
        give="ml-25m, the folder or the zip file",
    ),
    Dataset(
        name="MovieLens 32M",
        simulation="movies",
        home="https://grouplens.org/datasets/movielens/32m/",
        size="239 MB zipped; 32 million ratings",
        licence=_RESEARCH,
        give="ml-32m, the folder or the zip file",
    ),
    Dataset(
        name="MovieLens Latest Small",
        simulation="movies",
        home="https://grouplens.org/datasets/movielens/latest/",
        size="1 MB zipped; 100,836 ratings, too few users for rounds of 200",
        licence=_RESEARCH,
        give="ml-latest-small, the folder or the zip file",
    ),
)
