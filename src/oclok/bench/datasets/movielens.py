"""Ratings of MovieLens (ml-25m, ml-32m, ml-latest-small), read in bounded memory."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from oclok.bench.datasets.ratings import GENRES, LEAST, Ratings
from oclok.bench.datasets.tables import read_batches, read_table
from oclok.errors import DataError
from oclok.extras import needs

if TYPE_CHECKING:
    import pandas as pd

#: The paper's filter: ratings from 2015 on.
SINCE = datetime(2015, 1, 1, tzinfo=UTC)

_COLUMNS = {"userId": "int32", "movieId": "int32", "rating": "float32", "timestamp": "int64"}


def load(path: str | os.PathLike[str], since: datetime = SINCE, least: int = LEAST) -> Ratings:
    """Read the ratings of a MovieLens folder or zip file that pass the filters.

    Ratings before `since` are left out, and users with fewer than `least` ratings since then.
    """
    with needs("bench"):
        import pandas as pd

    path = Path(path)
    genres = _read_genres(path)
    found = pd.concat(
        batch.loc[batch.pop("timestamp") >= since.timestamp()]
        for batch in _read_ratings(path, genres.index)
    )
    name, is_genre = f"MovieLens {path.resolve().stem}", genres.to_numpy(dtype=np.float64)
    users, stars = found["userId"].to_numpy(), found["rating"].to_numpy()
    movies = genres.index.get_indexer(pd.Index(found["movieId"]))
    ratings = Ratings.of_active_users(name, users, movies, stars, is_genre, least)
    if not len(ratings):
        raise DataError(
            f"{path}: no user has {least} ratings since {since:%Y-%m-%d}; take a larger data set"
        )
    return ratings


def summary(path: str | os.PathLike[str]) -> str:
    """Return the contents of a MovieLens folder or zip file in one line."""
    import pandas as pd

    path = Path(path)
    movies = _read_genres(path).index
    counts = pd.concat(
        (batch["timestamp"] >= SINCE.timestamp()).groupby(batch["userId"]).agg(["size", "sum"])
        for batch in _read_ratings(path, movies)
    )
    users = counts.groupby("userId").sum()  # all ratings of each, and recent ones
    ratings, recent = users.sum()
    return (
        f"MovieLens {path.resolve().stem}: {ratings:,} ratings of {movies.size:,} movies by "
        f"{len(users):,} users; {recent:,} since {SINCE:%Y-%m-%d}, "
        f"{(users['sum'] >= LEAST).sum():,} users with at least {LEAST} of these"
    )


def _read_ratings(path: Path, movies: pd.Index[Any]) -> Iterator[pd.DataFrame]:
    source = f"{path}: ratings.csv"
    with _open(path, "ratings.csv") as file:
        for batch in read_batches(file, _COLUMNS, source=source):
            if not batch["rating"].between(0.5, 5).all():
                raise DataError(f"{source} has ratings outside 0.5 … 5; get a fresh copy")
            if (batch["userId"] < 0).any():
                raise DataError(f"{source} has negative user ids; get a fresh copy")
            for movie in batch.loc[~batch["movieId"].isin(movies), "movieId"]:
                raise DataError(f"{source}: movie {movie} is not in movies.csv; get a fresh copy")
            yield batch


def _read_genres(path: Path) -> pd.DataFrame:
    """Return 1 where a movie has a genre and 0 elsewhere, by ascending id of the movie."""
    source = f"{path}: movies.csv"
    with _open(path, "movies.csv") as file:
        table = read_table(file, {"movieId": "int32", "genres": str}, source=source)
    found = table.set_index("movieId")["genres"].str.get_dummies("|").sort_index()
    for genre in found.columns.difference(list(GENRES)):
        raise DataError(f"{source} has a genre {genre!r}; get a fresh copy")
    return found.reindex(columns=list(GENRES), fill_value=0)


def _open(path: Path, name: str) -> IO[bytes]:
    if (path / name).is_file():
        return (path / name).open("rb")
    if path.is_file():
        try:
            archive = zipfile.ZipFile(path)
        except zipfile.BadZipFile as reason:
            raise DataError(f"{path}: {reason}; get a fresh copy") from None
        for member in archive.namelist():
            if Path(member).name == name:
                return archive.open(member)
    missing = f"no {name} in it" if path.exists() else "no such folder or file"
    raise DataError(f"{path}: {missing}; give a MovieLens folder or zip file, such as ml-25m")
