"""Posteriors through the features of a given dictionary."""
# Tested in tests/posterior/dictionary/test_nystrom.py: there and in test_vecchia.py.

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np

from oclok.posterior.base import Innovations, Posterior
from oclok.posterior.prediction import ContextsLike
from oclok.typing import ArrayLike, FloatArray


class BasisPosterior(Posterior):
    """A posterior through the features of a given dictionary."""

    @property
    def dimension(self) -> int:
        """D."""
        return int(self.inducing.shape[1])

    @abstractmethod
    def blank(self) -> Self:
        """Return a posterior of the same dictionary that has learned nothing."""

    @abstractmethod
    def append(
        self, contexts: ContextsLike, y: FloatArray, weights: FloatArray
    ) -> Innovations | None:
        """Learn checked outcomes y (N,), of noise variance σ² / weights; all, or raise and none.

        Returns:
            The innovations; None if the outcomes are not few.
        """

    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none."""
        X = self.checked(contexts)
        self.append(contexts, *self.checked_outcomes(outcomes, weights, len(X)))

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X, known = self.checked(contexts), self.observations
        old, _ = self.checked_outcomes(before, None, len(X))
        new, _ = self.checked_outcomes(after, None, len(X))
        positions = known.find(X, old)
        self._shift(X, new - old, self.noise_std / np.sqrt(known.weights[positions]))
        known.outcomes[positions] = new

    @abstractmethod
    def _shift(self, X: FloatArray, change: FloatArray, noise: FloatArray) -> None:
        """Change outcomes, learned at X (N, D) with standard deviations `noise`, by `change`.

        The posterior mean is linear in them: it moves by C(·, x)Δ/V², C the posterior covariance.
        """
