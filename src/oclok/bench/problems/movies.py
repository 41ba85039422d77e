"""Simulation III of the paper: dynamic probabilistic maximum coverage with movie ratings.

| symbol | meaning                                                               | range  |
|--------|-----------------------------------------------------------------------|--------|
| g_i    | genre vector of movie i                                               | 0 or 1 |
| u_j    | mean genre vector of the movies that user j rated, weighted by rating | [0, 1] |
| x_ij   | ⟨u_j, g_i⟩ / 10, the context of the edge (i, j)                       | [0, 1] |
| f(x)   | 2 / (1 + e^(-4x)) - 1, the probability that j watches i               | [0, 1) |
| U(r)   | number of users who watched at least one movie                        |        |
"""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from typing import Literal

import numpy as np

from oclok.bench.datasets import movielens
from oclok.bench.datasets.ratings import synthetic
from oclok.bench.problems.base import Count, Problem, Round, bernoulli
from oclok.errors import InputError
from oclok.oracles import Coverage, TIMPlus
from oclok.oracles.base import Oracle
from oclok.typing import FloatArray, IntArray


class Movies(Problem):
    """Show 3 of about 75 movies to about 200 users, so that many watch at least one.

    A base arm is an edge between a movie and a user who rated it. Choosing a movie plays all
    its edges. Movies are drawn uniformly, then users from those who rated one of them.

    Args:
        data: a MovieLens folder or zip file, of which ratings since 2015 by users with at least
            200 of them are used. Left out, synthetic ratings, the same for every seed.
        oracle: "tim+", the paper's; "greedy"; or "exact".
        k: K, the number of movies shown.
        mean_movies: mean of the Poisson number of movies, drawn again until above K; all
            there are where it exceeds them.
        mean_users: mean of the Poisson number of users. Where fewer rated the movies, all of
            them take part, a warning says so once, and so do the `notes`.

    Examples:
        >>> first = next(iter(Movies(oracle="greedy")))
        >>> first.contexts.shape[1], bool(first.oracle.is_feasible(first.oracle(first.means)))
        (1, True)
    """

    name = "movies"
    dimension = 1

    def __init__(
        self,
        rounds: int = 400,
        seed: int | np.random.SeedSequence = 0,
        *,
        data: str | os.PathLike[str] | None = None,
        oracle: Literal["tim+", "greedy", "exact"] = "tim+",
        k: int = 3,
        mean_movies: float = 75,
        mean_users: float = 200,
    ) -> None:
        super().__init__(rounds, seed)
        if oracle not in ("tim+", "greedy", "exact"):
            raise InputError(f'oracle must be "tim+", "greedy" or "exact"; got {oracle!r}')
        ratings = synthetic() if data is None else _load(os.path.abspath(data))
        self.data_name = ratings.name
        self._solver, self._k = oracle, k
        self._movies, self._users = Count(mean_movies, least=k + 1), Count(mean_users, least=1)
        self._ratings, self._starts = ratings, ratings.starts()
        self._profiles = ratings.profiles()
        if len(self._profiles) < mean_users:
            self._note_shortage(len(self._profiles))

    def _round(self, seed: np.random.SeedSequence) -> Round:
        edges, solving = seed.spawn(2)
        rated = self._draw(np.random.default_rng(edges))
        movies, users = self._ends(rated)
        contexts = self._contexts(movies, self._profiles[users])
        exact = Coverage(movies, users, self._k)
        oracle: Oracle = exact
        if self._solver == "tim+":
            oracle = TIMPlus(movies, users, self._k, epsilon=0.1, ell=1, seed=solving)
        elif self._solver == "greedy":
            oracle = Coverage(movies, users, self._k, solver="greedy")
        return Round(contexts[:, None], mean_outcome(contexts), oracle, bernoulli, exact)

    def _draw(self, rng: np.random.Generator) -> IntArray:
        """Return the edges of a round as positions of ratings, movie by movie as drawn."""
        count = min(self._movies.draw(rng), len(self._ratings.genres))
        movies = rng.choice(len(self._ratings.genres), count, replace=False)
        edges = [np.arange(*self._starts[movie : movie + 2]) for movie in movies]
        rated: IntArray = np.concatenate(edges)
        raters = self._ratings.users[rated]
        is_picked = np.zeros(len(self._profiles), dtype=bool)
        is_picked[self._pick(np.unique(raters), rng)] = True
        return rated[is_picked[raters]]

    def _ends(self, rated: IntArray) -> tuple[IntArray, IntArray]:
        movies, users = self._ratings.movies[rated], self._ratings.users[rated]
        return movies.astype(np.intp), users.astype(np.intp)

    def _pick(self, raters: IntArray, rng: np.random.Generator) -> IntArray:
        wanted = self._users.draw(rng)
        if wanted > raters.size:
            self._note_shortage(raters.size)
            return raters
        return rng.choice(raters, wanted, replace=False)

    def _contexts(self, movies: IntArray, profiles: FloatArray) -> FloatArray:
        """Return x, shape (M,), of edges to `movies` (M,) of users with these `profiles`."""
        products: FloatArray = np.sum(profiles * self._ratings.genres[movies], axis=1)
        return products / 10

    def _note_shortage(self, available: int) -> None:
        if not self.notes:
            self.notes = (
                f"rounds in which fewer users rated a movie on offer ({available}, for one) than "
                f"were drawn (about {self._users.mean:g}) have all of them"
            )
            warnings.warn(f"{self.data_name}: {self.notes}", stacklevel=3)


def mean_outcome(contexts: FloatArray) -> FloatArray:
    """Return f, shape (M,), at `contexts`, shape (M,): 2 / (1 + e^(-4x)) - 1 = tanh(2x)."""
    return np.tanh(2 * contexts)


#: Ratings are kept, as reading takes seconds and every seed needs them.
_load = lru_cache(maxsize=1)(movielens.load)
