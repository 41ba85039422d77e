"""Ratings of MovieLens (ml-25m, ml-32m, ml-latest-small), read in bounded memory."""

from __future__ import annotations

import csv
import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from oclok.bench.datasets.ratings import GENRES, LEAST, Ratings
from oclok.bench.datasets.tables import Columns, read_batches
from oclok.errors import DataError
from oclok.typing import FloatArray

#: The paper's filter: ratings from 2015 on.
SINCE = datetime(2015, 1, 1, tzinfo=UTC)

_COLUMNS = {"userId": "int32", "movieId": "int32", "rating": "float32", "timestamp": "int64"}


def load(path: str | os.PathLike[str], since: datetime = SINCE, least: int = LEAST) -> Ratings:
    """Read the ratings of a MovieLens folder or zip file that pass the filters.

    Ratings before `since` are left out, and users with fewer than `least` ratings since then.
    """
    path = Path(path)
    ids, genres = _read_movies(path)
    start = since.timestamp()
    recent = []
    for batch in _read_ratings(path):
        keep = batch["timestamp"] >= start
        recent.append([batch[name][keep] for name in ("userId", "movieId", "rating")])
    users, movies, stars = (np.concatenate(column) for column in zip(*recent, strict=True))
    rows = _rows_of(ids, movies, path)
    ratings = Ratings.of_active_users(_name(path), users, rows, stars, genres, least)
    if not len(ratings):
        raise DataError(
            f"{path}: no user has {least} ratings since {since:%Y-%m-%d}; take a larger data set"
        )
    return ratings


def summary(path: str | os.PathLike[str]) -> str:
    """Return the contents of a MovieLens folder or zip file in one line."""
    path = Path(path)
    ids, _ = _read_movies(path)
    ratings = recent = 0
    counts = np.zeros((2, 0), dtype=np.int64)  # by user: all ratings, and recent ones
    for batch in _read_ratings(path):
        users, keep = batch["userId"], batch["timestamp"] >= SINCE.timestamp()
        ratings, recent = ratings + keep.size, recent + int(keep.sum())
        size = max(counts.shape[1], int(users.max(initial=-1)) + 1)
        found = np.array([np.bincount(part, minlength=size) for part in (users, users[keep])])
        found[:, : counts.shape[1]] += counts
        counts = found
        _rows_of(ids, batch["movieId"], path)
    return (
        f"{_name(path)}: {ratings:,} ratings of {ids.size:,} movies by "
        f"{np.count_nonzero(counts[0]):,} users; {recent:,} since {SINCE:%Y-%m-%d}, "
        f"{np.count_nonzero(counts[1] >= LEAST):,} users with at least {LEAST} of these"
    )


def _read_ratings(path: Path) -> Iterator[Columns]:
    source = f"{path}: ratings.csv"
    empty = True
    with _open(path, "ratings.csv") as file:
        for batch in read_batches(file, _COLUMNS, source=source):
            stars, users = batch["rating"], batch["userId"]
            if not ((stars >= 0.5) & (stars <= 5)).all():
                raise DataError(f"{source} has ratings outside 0.5 … 5; get a fresh copy")
            if users.size and users.min() < 0:
                raise DataError(f"{source} has negative user ids; get a fresh copy")
            empty = empty and not users.size
            yield batch
    if empty:
        raise DataError(f"{source} has no rows; get a fresh copy")


def _read_movies(path: Path) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the ids of all movies, ascending, and their genre vectors, shape (V, 20)."""
    column = {genre: i for i, genre in enumerate(GENRES)}
    ids, genres = [], []
    with _open(path, "movies.csv") as file:
        try:
            for row in csv.DictReader(io.TextIOWrapper(file, encoding="utf8", newline="")):
                vector = np.zeros(len(GENRES))
                vector[[column[genre] for genre in row["genres"].split("|")]] = 1
                ids.append(int(row["movieId"]))
                genres.append(vector)
        except (KeyError, ValueError, AttributeError, TypeError, csv.Error) as reason:
            raise DataError(
                f"{path}: movies.csv is not a table with the columns movieId, title, genres; "
                f"get a fresh copy ({reason})"
            ) from None
    if not ids:
        raise DataError(f"{path}: movies.csv has no rows; get a fresh copy")
    order = np.argsort(ids)
    return np.array(ids, dtype=np.int32)[order], np.array(genres)[order]


def _rows_of(ids: NDArray[np.int32], movies: NDArray[np.int32], path: Path) -> NDArray[np.int32]:
    """Return the position of each of `movies` among the ascending `ids`."""
    rows = np.minimum(np.searchsorted(ids, movies), ids.size - 1).astype(np.int32)
    if not np.array_equal(ids[rows], movies):
        missing = movies[ids[rows] != movies][0]
        raise DataError(f"{path}: movie {missing} is rated but not in movies.csv; get a fresh copy")
    return rows


@contextmanager
def _open(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of a MovieLens folder or zip file."""
    wanted = f"{path}: no {name} in it; give a MovieLens folder or zip file, such as ml-25m"
    if path.is_dir():
        if not (path / name).is_file():
            raise DataError(wanted)
        with (path / name).open("rb") as file:
            yield file
        return
    if not path.is_file():
        raise DataError(f"{path}: no such folder or file; give that of MovieLens, such as ml-25m")
    try:
        with zipfile.ZipFile(path) as archive:
            inside = [member for member in archive.namelist() if Path(member).name == name]
            if not inside:
                raise DataError(wanted)
            with archive.open(inside[0]) as member:
                yield member
    except zipfile.BadZipFile as reason:
        raise DataError(f"{path}: {reason}; get a fresh copy") from None


def _name(path: Path) -> str:
    return f"MovieLens {path.resolve().stem}"
