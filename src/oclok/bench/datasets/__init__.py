"""Data sets: which real ones the simulations can use, where to get them, if a copy is good."""
# Tested in tests/bench/datasets/test_catalogue.py: the catalogue, and what `check` says.

from __future__ import annotations

import os
from pathlib import Path

from oclok.bench.datasets import foursquare, movielens
from oclok.errors import DataError

#: The data sets that the simulations can use, the paper's own first; what `oclok data` prints.
CATALOGUE = """\
Foursquare Tokyo, for `oclok run crowdsourcing`
  get it from  https://sites.google.com/site/yangdingqi/home/foursquare-dataset
  size         25 MB zipped; 573,703 check-ins
  licence      none stated; cite Yang et al. (2015)
  give         --data dataset_TSMC2014_TKY.txt

Foursquare New York City, for `oclok run crowdsourcing`
  get it from  https://sites.google.com/site/yangdingqi/home/foursquare-dataset
  size         25 MB zipped, with Tokyo; 227,428 check-ins
  licence      none stated; cite Yang et al. (2015)
  give         --data dataset_TSMC2014_NYC.txt

MovieLens 25M, for `oclok run movies`
  get it from  https://grouplens.org/datasets/movielens/25m/
  size         250 MB zipped; 25 million ratings
  licence      research use with citation; commercial use only with permission of GroupLens
  give         --data ml-25m, the folder or the zip file

MovieLens 32M, for `oclok run movies`
  get it from  https://grouplens.org/datasets/movielens/32m/
  size         239 MB zipped; 32 million ratings
  licence      research use with citation; commercial use only with permission of GroupLens
  give         --data ml-32m, the folder or the zip file

MovieLens Latest Small, for `oclok run movies`
  get it from  https://grouplens.org/datasets/movielens/latest/
  size         1 MB zipped; 100,836 ratings, too few users for rounds of 200
  licence      research use with citation; commercial use only with permission of GroupLens
  give         --data ml-latest-small, the folder or the zip file
"""


def check(path: str | os.PathLike[str]) -> str:
    """Read a data set and return its contents in one line; a bad one is a `DataError`."""
    path = Path(path)
    if path.is_dir() or path.suffix == ".zip":
        return movielens.summary(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    found = foursquare.load(path)
    return f"{found.name}: {found.checkins.sum():,} check-ins at {found.checkins.size:,} venues"
