"""A world that moves: halfway, the mean outcomes become those of another sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from oclok.bench.problems.base import Problem, Round
from oclok.bench.problems.codependency import Codependency
from oclok.validation import as_count


class Drift(Problem):
    """Pick 5 of about 100 base arms whose mean outcomes are all other ones from some round on.

    Two problems `Codependency` that have only their settings in common, one after the other. What
    was learned of the first misleads in the second, and no policy knows when that begins.

    Args:
        rounds: T. The first rounds depend on it unless `change_after` is given.
        lengthscale: l of the squared exponential kernel of both samples.
        change_after: how many rounds the first sample lasts; half of them if left out.
        points: how many contexts there are to draw from, for each sample.
        **others: further arguments of `Codependency`.

    Examples:
        >>> problem = Drift(rounds=4, points=200)
        >>> problem.change_after, len(list(problem))
        (2, 4)
    """

    name = "drift"
    dimension = Codependency.dimension

    def __init__(
        self,
        rounds: int = 300,
        lengthscale: float = 0.5,
        seed: int | np.random.SeedSequence = 0,
        *,
        change_after: int | None = None,
        points: int = 2000,
        **others: Any,
    ) -> None:
        super().__init__(rounds, seed)
        last = self.rounds // 2 if change_after is None else change_after
        self.change_after = as_count(last, "change_after", least=0)
        shared, _ = self._seeds()
        self._first, self._second = (
            Codependency(rounds, lengthscale, part, points=points, **others)
            for part in shared.spawn(2)
        )
        self.lengthscale = self._first.lengthscale
        self.data_name = (
            f"two samples of a Gaussian process with lengthscale {self.lengthscale:g}, "
            f"the second after {self.change_after} rounds"
        )

    def _round(self, seed: np.random.SeedSequence) -> Round:
        t = seed.spawn_key[-1]  # the seeds of rounds are spawned in order, from 0 on
        return (self._first if t < self.change_after else self._second)._round(seed)
