"""A posterior that delegates to another one, which may change over time."""

from __future__ import annotations

from abc import abstractmethod
from operator import attrgetter
from typing import Any

import numpy as np

from oclok.posterior.base import Posterior
from oclok.posterior.kernels import Covariance
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.typing import FloatArray


def learn_past(posterior: Posterior, known: Observations, most: int, start: int = 0) -> bool:
    """Let `posterior`, which is to take over, learn up to `most` more outcomes of `known`.

    It learns the past in steps, so that no single call stalls, and leaves out the outcomes before
    `start`. Returns whether it has caught up.
    """
    first = start + len(posterior)
    if first < len(known):
        posterior.update(*known.at(slice(first, first + most)))
    return first + most >= len(known)


def _delegated(name: str, doc: str) -> Any:
    return property(attrgetter(f"delegate.{name}"), doc=doc)


class WrappingPosterior(Posterior):
    """A posterior that passes questions on to its `delegate`."""

    prior: Covariance = _delegated("prior", "The compiled kernel of the delegate.")
    noise_std: float = _delegated("noise_std", "Standard deviation σ of the noise.")
    dimension = _delegated("dimension", "D, or None as long as it is unknown.")
    observations: Observations = _delegated("observations", "All that the delegate has learned.")
    information_gain: float = _delegated("information_gain", "I(r; f) of what is remembered.")
    inducing: FloatArray = _delegated("inducing", "Contexts of the basis functions.")

    @property
    @abstractmethod
    def delegate(self) -> Posterior:
        """The posterior that answers now."""

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this posterior made `prediction` and has not changed since."""
        return self.delegate.is_current(prediction)

    def current(self, contexts: ContextsLike) -> Prediction:
        """Return the prediction of `contexts`: the one given, if it is current."""
        if isinstance(contexts, Prediction) and self.is_current(contexts):
            return self.delegate.current(contexts)
        return self.predict(contexts)

    def is_doubtful(self, prediction: Prediction) -> bool:
        """Return whether there may be more to find than `prediction` shows."""
        return self.delegate.is_doubtful(prediction)

    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and std of f at `contexts` (M, D), with bounds where there are any."""
        return self.delegate.predict(self.checked(contexts))

    def screen(self, contexts: ContextsLike) -> Prediction:
        """Return a quick prediction of many contexts (M, D), of which few will matter."""
        return self.delegate.screen(self.checked(contexts))

    def sample_paths(
        self, contexts: ContextsLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), shape (count, M)."""
        return self.delegate.sample_paths(self.checked(contexts), count, rng)
