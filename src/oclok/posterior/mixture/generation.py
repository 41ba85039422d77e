"""What a mixture has learned: members for outcomes standardised once; and the making of the next.

Whenever the outcomes have doubled, the next generation is made: columns are mapped anew, kernels
are fitted or chosen on a sample of the outcomes, and the members learn the past. It is done a step
per update, so that no round stalls, and then takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture.basis import Features, GivenKernel
from oclok.posterior.mixture.columns import ColumnMap
from oclok.posterior.mixture.members import Member, weights_of
from oclok.posterior.mixture.relevance import (
    MOST,
    RelevanceFit,
    RelevanceKernel,
)
from oclok.posterior.observations import Observations
from oclok.typing import FloatArray

#: Gradient steps per update: at most so many, and fewer for more outcomes: steps times outcomes.
MOST_STEPS, FIT_WORK = 12, 600
#: Outcomes that members of a new generation learn per update: so many, or a multiple of those that
#: came.
PER_UPDATE, CATCH_UP = 64, 4
#: Outcomes of the first rounds, when arms are chosen almost at random.
EARLY = 20
#: Members that a new generation of given kernels keeps at most, and the least of their weights.
SURVIVORS, LEAST = 4, 1e-3


class Generation(Persistent):
    """Members, and the constant and unit of the outcomes that they learn.

    Attributes:
        learned: how many of the outcomes they have learned.
    """

    def __init__(self, members: list[Member], outcomes: FloatArray) -> None:
        self.members = members
        self.offset = float(outcomes.mean())
        self.unit = unit_of(outcomes)
        self.learned = 0

    def learn(
        self,
        X: FloatArray,
        y: FloatArray,
        weights: FloatArray,
        worth: FloatArray,
        parts: Sequence[Features] | None = None,
    ) -> None:
        """Learn outcomes y (N,) at X (N, D), whose features by member may be at hand."""
        for member, part in zip(self.members, parts or repeat(None), strict=False):
            member.learn(X, (y - self.offset) / self.unit, weights, part, worth)
        self.learned += len(y)

    def snapshot(self) -> Callable[[], None]:
        """Return a function that takes back what is learned from now on."""
        things = [self, *self.members, *(member.regression for member in self.members)]
        states = [dict(vars(thing)) for thing in things]

        def undo() -> None:
            for thing, state in zip(things, states, strict=True):
                vars(thing).clear()
                vars(thing).update(state)

        return undo

    def catch_up(self, known: Observations, worth: FloatArray, new: int) -> None:
        """Learn some outcomes of the past, and more than the `new` ones that have come since.

        Args:
            known: all outcomes so far, N of them.
            worth: how much of an outcome each one is, shape (N,).
            new: outcomes that have come since the last step.
        """
        most = max(PER_UPDATE, CATCH_UP * new)
        rows = slice(self.learned, min(self.learned + most, len(known)))
        if rows.stop > rows.start:
            X, y, weights = known.at(rows)
            self.learn(X, y, weights, worth[rows])


class Search(Persistent):
    """The choice of kernels for the next generation, a step at a time.

    Args:
        columns: the map of contexts of the default kernel; None if kernels are given.
        candidates: given kernels and noise ratios.
        sample: contexts, outcomes and weights of a sample.
        unit: of the outcomes.
    """

    def __init__(
        self,
        columns: ColumnMap | None,
        candidates: list[tuple[Covariance, float]],
        sample: tuple[FloatArray, FloatArray, FloatArray],
        unit: float,
    ) -> None:
        X, y, weights = sample
        self._sample = [X, (y - y.mean()) / unit, weights]
        self._fit = None if columns is None else RelevanceFit(columns, *self._sample)
        self._left = [Member(GivenKernel(kernel), ratio) for kernel, ratio in candidates]
        self._tried: list[Member] = []

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to try."""
        return not (self._left or (self._fit is not None and self._fit.steps_left))

    def advance(self) -> None:
        """Do a step's work."""
        if self._fit is not None:
            for _ in range(max(1, min(MOST_STEPS, FIT_WORK // self._fit.size))):
                if self._fit.steps_left:
                    self._fit.advance()
        elif self._left:
            member = self._left.pop(0)
            member.learn(*self._sample)
            self._tried.append(member)

    def members(self) -> list[Member]:
        """Return new members of the kernels that were found."""
        if self._fit is not None:
            kernel = RelevanceKernel(self._fit.columns, self._fit.best)
            return [Member(kernel, kernel.noise)]
        weights = weights_of(self._tried)
        best = np.argsort(-weights, kind="stable")[:SURVIVORS]
        kept = [self._tried[n] for n in sorted(best) if weights[n] >= LEAST * weights.max()]
        return [Member(member.regression.prior, member.ratio) for member in kept]


def unit_of(y: FloatArray) -> float:
    """Return the standard deviation of outcomes; of equal ones their size, or 1.

    That of the first ones if it is larger: later ones are of arms that were chosen for being alike.
    """
    std = max(float(y.std()), float(y[:EARLY].std()))
    size = float(np.abs(y).max())
    return std if std > 1e-12 * size else size or 1.0


def sampled(
    known: Observations, worth: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return at most `MOST` of the outcomes that are worth at least half of a first one."""
    rows = np.flatnonzero(worth >= 0.5)
    if len(rows) > MOST:
        rows = np.sort(rng.choice(rows, MOST, replace=False))
    return known.at(rows)
