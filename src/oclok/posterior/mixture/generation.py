"""What a mixture has learned: members for outcomes standardised once, which may learn the past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

import numpy as np

from oclok.persistence import Persistent
from oclok.posterior.mixture.basis import Features
from oclok.posterior.mixture.members import Member
from oclok.posterior.mixture.relevance import MOST
from oclok.posterior.observations import Observations
from oclok.typing import FloatArray

#: Outcomes that members of a new generation learn per update: so many, or a multiple of those that
#: came.
PER_UPDATE, CATCH_UP = 64, 4
#: Outcomes of the first rounds, when arms are chosen almost at random.
EARLY = 20


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
