"""A posterior that has another one answer for it, which may change over time."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from oclok.posterior.base import Posterior
from oclok.posterior.prediction import Asked, Prediction
from oclok.typing import FloatArray, IntArray
from oclok.validation import Contexts


class WrappingPosterior(Posterior):
    """A posterior that passes questions on to the one `in_use`."""

    @property
    @abstractmethod
    def in_use(self) -> Posterior:
        """The posterior that answers now."""

    @property
    def information_gain(self) -> float:
        """I(r; f) of the outcomes remembered, in nats; through a dictionary if there is one."""
        return self.in_use.information_gain

    @property
    def inducing(self) -> FloatArray:
        """Contexts of the basis functions, shape (rank, D); all so far while it is simply exact."""
        return self.in_use.inducing

    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and std of f at `contexts` (M, D), with bounds where there are any."""
        return self.in_use.predict(self._asked(contexts))

    def screen(self, contexts: Asked) -> Prediction:
        """Return what is quick to say of many contexts; `sharpen` says the rest of few."""
        return self.in_use.screen(self._asked(contexts))

    def sharpen(self, prediction: Prediction, positions: IntArray) -> Prediction:
        """Return `prediction` with what `predict` says at `positions`."""
        return self.in_use.sharpen(prediction, positions)

    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        return self.in_use.covariance(self._asked(contexts))

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        return self.in_use.sample(self._asked(contexts), rng)

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M)."""
        return self.in_use.sample_paths(self._asked(contexts), count, rng)

    def _asked(self, contexts: Asked) -> Contexts | Prediction:
        """Return `contexts` checked, unless they are already."""
        if isinstance(contexts, Prediction | Contexts):
            return contexts
        return Contexts(self.checked(contexts))
