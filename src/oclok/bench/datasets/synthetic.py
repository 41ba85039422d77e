"""Ratings like those of MovieLens, without the data: its genres, activity and popularity.

The shares of genres are those of MovieLens Latest Small. The other numbers are chosen so that
ratings per active user, stars and genres per rating come out much as they do there.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from oclok.bench.datasets.movielens import GENRES, LEAST
from oclok.bench.datasets.ratings import Ratings
from oclok.typing import FloatArray

_GENRE_SHARES = np.array(
    [
        *(0.188, 0.130, 0.063, 0.068, 0.386, 0.123, 0.045, 0.448, 0.080, 0.009, 0.100, 0.016),
        *(0.034, 0.059, 0.164, 0.101, 0.194, 0.039, 0.017),
    ]
)
_GENRE_COUNTS = np.array([0.293, 0.330, 0.240, 0.101, 0.028, 0.006, 0.002])


@cache
def ratings(users: int = 1000, movies: int = 4500, seed: int = 0) -> Ratings:
    """Return made-up ratings; the same whenever the arguments are.

    With the default sizes a round of 75 movies and 200 users has about 1,500 edges.
    """
    rng = np.random.default_rng(seed)
    genres = _genres(movies, rng)
    # Movies of many genres are watched more: 2.3 genres a movie, 2.8 a rating.
    popularity = rng.normal(0.0, 1.2, movies) + 0.35 * (genres.sum(axis=1) - 2.3)
    activity = np.minimum(LEAST * (1 + rng.lognormal(-0.3, 1.1, users)), movies / 2).astype(int)
    taste = rng.normal(0.0, 0.35, (users, len(GENRES))) @ genres.T
    # The largest of utility + Gumbel noise are a draw without replacement, softmax-weighted.
    utility = popularity + taste + rng.gumbel(size=(users, movies))
    order = np.argsort(-utility, axis=1)
    rated = np.arange(movies) < activity[:, None]
    who, what = np.nonzero(rated)[0], order[rated]
    stars = (
        3.15
        + rng.normal(0.0, 0.55, users)[who]
        + (0.25 * popularity + rng.normal(0.0, 0.3, movies))[what]
        + 0.4 * taste[who, what]
        + rng.normal(0.0, 0.7, who.size)
    )
    stars = np.clip(np.round(2 * stars) / 2, 0.5, 5.0)
    return Ratings.of_active_users(
        f"synthetic ratings of {movies:,} movies by {users:,} users",
        who.astype(np.int32),
        what.astype(np.int32),
        stars.astype(np.float32),
        genres,
        LEAST,
    )


def _genres(movies: int, rng: np.random.Generator) -> FloatArray:
    """Return genre vectors, shape (movies, 20): as many genres a movie as MovieLens has."""
    count = 1 + rng.choice(_GENRE_COUNTS.size, size=movies, p=_GENRE_COUNTS)
    utility = np.log(_GENRE_SHARES) + rng.gumbel(size=(movies, _GENRE_SHARES.size))
    rank = np.argsort(np.argsort(-utility, axis=1), axis=1)
    genres = np.zeros((movies, len(GENRES)))
    genres[:, : _GENRE_SHARES.size] = rank < count[:, None]
    return genres
