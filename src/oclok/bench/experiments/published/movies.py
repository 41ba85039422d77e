"""Simulation III as the published scripts play it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from oclok.bench.experiments.published.influence import SharedNumbers
from oclok.bench.problems.base import Round, bernoulli
from oclok.bench.problems.movies import Movies, mean_outcome
from oclok.oracles import Coverage
from oclok.typing import FloatArray, IntArray


class PublishedMovies(Movies):
    """`Movies` with the quirks of the published scripts, each of which can be left out.

    With none of them, rounds have the base arms that `Movies` has for the same seed.

    Args:
        rounds: T.
        seed: where all randomness comes from.
        data: a MovieLens folder or zip file; left out, synthetic ratings.
        shared_numbers: movies and users are numbered in one graph.
        zero_arms: half of the edges give way to copies of the edge (0, 0).
        first_profiles: a user's profile is that of the first round in which the user appears.
        most_genres: contexts are divided by the largest number of genres of any movie, not 10.
    """

    def __init__(
        self,
        rounds: int = 400,
        seed: int | np.random.SeedSequence = 0,
        *,
        data: str | os.PathLike[str] | None = None,
        shared_numbers: bool = False,
        zero_arms: bool = False,
        first_profiles: bool = False,
        most_genres: bool = False,
    ) -> None:
        super().__init__(rounds, seed, data=data, oracle="exact")
        self.shared_numbers = shared_numbers
        self.zero_arms = zero_arms
        self.first_profiles = first_profiles
        self.most_genres = most_genres

    def __iter__(self) -> Iterator[Round]:
        profiles = self._profiles
        if self.first_profiles:  # filled in as users appear, so that rounds depend on earlier ones
            profiles = np.full_like(profiles, np.nan)
        _, rounds = self._seeds()
        for seed in rounds.spawn(self.rounds):
            yield self._published_round(seed, profiles)

    def _published_round(self, seed: np.random.SeedSequence, profiles: FloatArray) -> Round:
        edges, solving = seed.spawn(2)
        rng = np.random.default_rng(edges)
        rated = self._draw(rng)
        if self.first_profiles:
            self._remember(rated, profiles)
        kept = rng.choice(rated, rated.size // 2, replace=False) if self.zero_arms else rated
        movies, users = self._ends(kept)
        left, right = (np.unique(ids, return_inverse=True)[1] for ids in (movies, users))
        unwritten = (0, rated.size - kept.size)
        left, right = np.pad(left, unwritten), np.pad(right, unwritten)
        contexts = np.pad(self._contexts(movies, profiles[users]), unwritten)
        if self.most_genres:
            contexts *= 10 / self._ratings.genres.sum(axis=1).max()
        oracle = (
            SharedNumbers(left, right, self._k, solving)
            if self.shared_numbers
            else Coverage(left, right, self._k, solver="exact")
        )
        return Round(contexts[:, None], mean_outcome(contexts), oracle, bernoulli)

    def _remember(self, rated: IntArray, profiles: FloatArray) -> None:
        """Fill in the profiles of users who have none, from the ratings of this round."""
        movies, users = self._ends(rated)
        weights = (self._ratings.stars[rated].astype(np.float64) - 0.5) / 4.5
        weighted = weights[:, None] * self._ratings.genres[movies]
        sums, counts = np.zeros_like(profiles), np.bincount(users, minlength=len(profiles))
        np.add.at(sums, users, weighted)
        is_new = (counts > 0) & np.isnan(profiles[:, 0])
        profiles[is_new] = sums[is_new] / counts[is_new, None]
