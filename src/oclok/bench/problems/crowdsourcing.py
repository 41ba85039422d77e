"""Simulation I of the paper: assign nearby workers to tasks that arrive one by one.

| symbol | meaning                                                   | range  |
|--------|-----------------------------------------------------------|--------|
| x¹     | distance of worker and task, divided by √0.5              | [0, 1) |
| x²     | difficulty of the task; 0 is the most difficult           | [0, 1) |
| x³     | battery of the worker                                     | [0, 1) |
| f(x)   | A g(x¹) √(x² x³), g the density of N(0, 0.4²), A g(0) = 1 | [0, 1] |
| U(r)   | log(1 + Σ r)                                              |        |
"""

from __future__ import annotations

import os

import numpy as np

from oclok.bench.datasets import foursquare
from oclok.bench.problems.base import Count, Problem, Round, gaussian
from oclok.oracles import TopK
from oclok.typing import ArrayLike, FloatArray

#: Workers farther than this from a task are not available to it.
REACH = np.sqrt(0.5)

_NOISE = gaussian(0.1)


class Crowdsourcing(Problem):
    """Pick 5 of about 100 workers near each task; the log reflects diminishing returns.

    Tasks are uniform in [0, 1]². Workers are where people checked in in Tokyo: each one's
    location is that of a check-in drawn at random, drawn again while it is out of reach.

    Args:
        data: check-ins of Foursquare, in any form that `datasets.foursquare.load` reads.
            Left out, a Gaussian mixture fitted to those of Tokyo, which comes with oclok.
        k: K, the number of workers picked for a task.
        mean_arms: mean of the Poisson number of available workers, drawn again until above K.

    Examples:
        >>> problem = Crowdsourcing(rounds=2)
        >>> [arms.contexts.shape[1] for arms in problem], problem.data_name
        ([3, 3], 'Gaussian mixture fitted to Foursquare Tokyo')
    """

    name = "crowdsourcing"
    dimension = 3

    def __init__(
        self,
        rounds: int = 250,
        seed: int | np.random.SeedSequence = 0,
        *,
        data: str | os.PathLike[str] | None = None,
        k: int = 5,
        mean_arms: float = 100,
    ) -> None:
        super().__init__(rounds, seed)
        self._checkins = foursquare.tokyo() if data is None else foursquare.load(data)
        self.data_name = self._checkins.name
        self._oracle = TopK(k, reward=np.log1p)
        self._workers = Count(mean_arms, least=k + 1)

    def _round(self, seed: np.random.SeedSequence) -> Round:
        rng = np.random.default_rng(seed)
        task, difficulty = rng.random(2), rng.random()
        count = self._workers.draw(rng)
        distances = self._distances(task, count, rng) / REACH
        contexts = np.column_stack([distances, np.full(count, difficulty), rng.random(count)])
        return _Task(contexts, mean_outcome(contexts), self._oracle, _NOISE)

    def _distances(self, task: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
        """Return distances, shape (count,), of workers in reach of the `task`, shape (2,)."""
        found = np.empty(0)
        while found.size < count:
            offsets = self._checkins.sample(2 * count, rng) - task
            distances = np.hypot(offsets[:, 0], offsets[:, 1])
            found = np.concatenate([found, distances[distances < REACH]])
        return found[:count]


def mean_outcome(contexts: FloatArray) -> FloatArray:
    """Return f, shape (M,), at `contexts`, shape (M, 3)."""
    distance, difficulty, battery = contexts[:, 0], contexts[:, 1], contexts[:, 2]
    return np.exp(-0.5 * (distance / 0.4) ** 2) * np.sqrt(difficulty * battery)


class _Task(Round):
    """A round whose reward is defined for every sum of outcomes."""

    def reward(self, super_arm: ArrayLike, outcomes: ArrayLike) -> float:
        """Return log(1 + Σ outcomes), or 0 where noise took the sum to -1 or below.

        The logarithm ends at -1. Five workers of mean 0 get there about 4 times in a million
        rounds; they then count as having done nothing, as in the authors' own simulation.
        """
        return 0.0 if np.sum(outcomes) <= -1 else super().reward(super_arm, outcomes)
