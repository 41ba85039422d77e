"""Ratings of movies by users, whatever they were read or made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oclok.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ratings:
    """N ratings of V movies by U users, every movie and user with at least one.

    Attributes:
        name: which data these are.
        users: who rated, 0 … U - 1; shape (N,).
        movies: what was rated, 0 … V - 1, ascending; shape (N,).
        stars: from 0.5 to 5; shape (N,).
        genres: 1 where a movie has a genre, 0 elsewhere; shape (V, G).
    """

    name: str
    users: NDArray[np.int32]
    movies: NDArray[np.int32]
    stars: NDArray[np.float32]
    genres: FloatArray

    @classmethod
    def of_active_users(
        cls,
        name: str,
        users: NDArray[np.int32],
        movies: NDArray[np.int32],
        stars: NDArray[np.float32],
        genres: FloatArray,
        least: int,
    ) -> Ratings:
        """Keep users with at least `least` ratings and the movies they rated; number them anew.

        `users` may be any integers from 0 on; `movies` are rows of `genres`.
        """
        keep = (np.bincount(users) >= least)[users]
        users, movies, stars = users[keep], movies[keep], stars[keep]
        order = np.argsort(movies, kind="stable")
        users, movies, stars = users[order], movies[order], stars[order]
        rated = np.flatnonzero(np.bincount(movies, minlength=len(genres)))
        return cls(name, _numbered(users), _numbered(movies), stars, genres[rated])

    def __len__(self) -> int:
        return int(self.users.size)

    @property
    def number_of_users(self) -> int:
        """U."""
        return int(self.users.max()) + 1 if len(self) else 0

    def starts(self) -> IntArray:
        """Return where the ratings of each movie start, and N; shape (V + 1,)."""
        return np.searchsorted(self.movies, np.arange(len(self.genres) + 1))

    def profiles(self) -> FloatArray:
        """Return each user's mean genre vector, weighted by rating; shape (U, G).

        Ratings are scaled to [0, 1] by (stars - 0.5) / 4.5, so entries are in [0, 1], too.
        """
        weights = (self.stars.astype(np.float64) - 0.5) / 4.5
        count = np.bincount(self.users)
        columns = [np.bincount(self.users, weights * genre[self.movies]) for genre in self.genres.T]
        return np.column_stack(columns) / count[:, None]


def _numbered(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return `values` with those that occur numbered from 0 on, in their order."""
    occurs = np.bincount(values) > 0
    return (np.cumsum(occurs) - 1).astype(np.int32)[values]
