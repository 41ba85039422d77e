"""Ratings of movies by users: read from MovieLens, or made up for lack of the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oclok.typing import FloatArray, IntArray

#: The paper's filter: users with at least this many ratings.
LEAST = 200

#: MovieLens counts the last one as a genre, and so does the paper.
GENRES = (
    *("Action", "Adventure", "Animation", "Children", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "IMAX", "Musical", "Mystery", "Romance", "Sci-Fi"),
    *("Thriller", "War", "Western", "(no genres listed)"),
)

_GENRE_SHARES = np.array(
    [
        *(0.188, 0.130, 0.063, 0.068, 0.386, 0.123, 0.045, 0.448, 0.080, 0.009, 0.100, 0.016),
        *(0.034, 0.059, 0.164, 0.101, 0.194, 0.039, 0.017),
    ]
)
_GENRE_COUNTS = np.array([0.293, 0.330, 0.240, 0.101, 0.028, 0.006, 0.002])


@dataclass(frozen=True, eq=False)
class Ratings:
    """N ratings of V movies by U users, every movie and user with at least one."""

    name: str
    users: NDArray[np.int32]  # who rated, 0 … U - 1; (N,)
    movies: NDArray[np.int32]  # what was rated, 0 … V - 1, ascending; (N,)
    stars: NDArray[np.float32]  # from 0.5 to 5; (N,)
    genres: FloatArray  # 1 where a movie has a genre, 0 elsewhere; (V, G)

    @classmethod
    def of_active_users(
        cls,
        name: str,
        users: NDArray[Any],
        movies: NDArray[Any],
        stars: NDArray[np.float32],
        genres: FloatArray,
        least: int,
    ) -> Ratings:
        """Keep users with at least `least` ratings and the movies they rated, renumbered.

        `users` may be any integers from 0 on; `movies` are rows of `genres`.
        """
        keep = (np.bincount(users) >= least)[users]
        users, movies, stars = users[keep], movies[keep], stars[keep]
        order = np.argsort(movies, kind="stable")
        users, movies, stars = users[order], movies[order], stars[order]
        rated, movies = np.unique(movies, return_inverse=True)
        users = np.unique(users, return_inverse=True)[1]
        return cls(name, users.astype(np.int32), movies.astype(np.int32), stars, genres[rated])

    def __len__(self) -> int:
        return int(self.users.size)

    def starts(self) -> IntArray:
        """Return where the ratings of each movie start, and N; shape (V + 1,)."""
        return np.searchsorted(self.movies, np.arange(len(self.genres) + 1))

    def profiles(self, rated: IntArray | slice = slice(None)) -> FloatArray:
        """Return each user's mean genre vector, weighted by rating; shape (U, G).

        Ratings are scaled to [0, 1] by (stars - 0.5) / 4.5, so entries are in [0, 1], too. Only
        the ratings at positions `rated` count; a user without any has NaN.
        """
        weights = (self.stars[rated].astype(np.float64) - 0.5) / 4.5
        users, movies, size = self.users[rated], self.movies[rated], int(self.users.max()) + 1
        sums = [np.bincount(users, weights * genre[movies], size) for genre in self.genres.T]
        with np.errstate(invalid="ignore"):
            return np.column_stack(sums) / np.bincount(users, minlength=size)[:, None]


@cache
def synthetic(users: int = 1000, movies: int = 4500, seed: int = 0) -> Ratings:
    """Return made-up ratings with the genres, activity and popularity of MovieLens.

    The shares of genres are those of MovieLens Latest Small. The other numbers are chosen so that
    ratings per active user, stars and genres per rating come out much as they do there. With the
    default sizes a round of 75 movies and 200 users has about 1,500 edges.
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
    name = f"synthetic ratings of {movies:,} movies by {users:,} users"
    return Ratings.of_active_users(name, who, what, stars.astype(np.float32), genres, LEAST)


def _genres(movies: int, rng: np.random.Generator) -> FloatArray:
    """Return genre vectors, shape (movies, 20): as many genres a movie as MovieLens has."""
    count = 1 + rng.choice(_GENRE_COUNTS.size, size=movies, p=_GENRE_COUNTS)
    utility = np.log(_GENRE_SHARES) + rng.gumbel(size=(movies, _GENRE_SHARES.size))
    rank = np.argsort(np.argsort(-utility, axis=1), axis=1)
    genres = np.zeros((movies, len(GENRES)))
    genres[:, : _GENRE_SHARES.size] = rank < count[:, None]
    return genres
