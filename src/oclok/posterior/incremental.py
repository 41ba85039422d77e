"""Posteriors that learn outcomes by adding to what they know: all of them, or raise and none."""
# Tested in tests/posterior/test_exact.py: and in tests/posterior/dictionary.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from oclok.arrays import chunks
from oclok.posterior.base import Innovations, Posterior
from oclok.posterior.prediction import ContextsLike
from oclok.typing import ArrayLike, FloatArray


class IncrementalPosterior(Posterior):
    """A posterior whose state is updated in place, a chunk of outcomes at a time."""

    #: Outcomes that are learned at once, and those among them that are judged on the way.
    _at_once: ClassVar[int]
    _judged_at_once: ClassVar[int]

    @abstractmethod
    def _learn(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        """Learn up to `_at_once` checked outcomes, all or none; None beyond `_judged_at_once`."""

    @abstractmethod
    def _checkpoint(self, count: int) -> Callable[[], None]:
        """Return a function that takes back up to `count` outcomes learned from now on."""

    def append(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; None if they are many."""
        X, size = self.checked(contexts), self._at_once
        if len(y) <= size:
            innovations = self._learn(contexts, y, weights)
            self.observations.extend(X, y, weights)
            return innovations
        before, roll_back = len(self), self._checkpoint(len(y))
        try:
            for rows in chunks(len(y), size):
                self._learn(X[rows], y[rows], weights[rows])
                self.observations.extend(X[rows], y[rows], weights[rows])
        except BaseException:
            roll_back()
            self.observations.truncate(before)
            raise
        return None

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        count = len(self.checked(contexts))
        self.append(contexts, *self.checked_outcomes(outcomes, weights, count))

    def learn(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Update, and return the `innovations` of the outcomes."""
        y, w = self.checked_outcomes(outcomes, None, len(self.checked(contexts)))
        innovations = None if len(y) > self._judged_at_once else self.append(contexts, y, w)
        return super().learn(contexts, y) if innovations is None else innovations
