"""The base of all posteriors: a belief about f, given contexts and noisy outcomes.

docs/howto/extend.md adds one in 40 lines: the abstract methods. The others have defaults that use
these; a posterior overrides the ones it can do faster.
"""
# Tested in tests/testing/test_posteriors.py: the conformance suite holds every posterior to it.

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from scipy.linalg.blas import dtrsm

from oclok.errors import InputError
from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance, compiled
from oclok.posterior.linalg import add_to_diagonal, factor
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import ContextsLike, Prediction
from oclok.typing import ArrayLike, FloatArray, Kernel
from oclok.validation import as_contexts, as_noise_std, as_outcomes, as_vector

#: How surprising outcomes were and the fraction of it due to f, each (N,).
Innovations = tuple[FloatArray, FloatArray]


class Posterior(Persistent, ABC):
    """A Gaussian belief about f with zero prior mean.

    Wherever a method takes contexts, it takes a `Prediction` of them as well, and does not repeat
    the work that went into that if nothing was learned since.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`, sums and products included; or the
            `prior` of a posterior, compiled already.
        noise_std: standard deviation σ of the noise of an outcome.

    Attributes:
        prior: the kernel, compiled: `prior.between(X, Y)`, `prior.of(X)`, `prior.diagonal(X)`.
        observations: contexts, outcomes and weights learned so far.
        is_resting: set it to learn outcomes quickly, without preparing better kernels and trees.
    """

    is_resting = False
    _is_finite = True

    def __init__(self, kernel: Kernel | Covariance, noise_std: float) -> None:
        self.prior = compiled(kernel)
        self.noise_std = as_noise_std(noise_std)
        self.observations = Observations()

    @property
    def kernel(self) -> Kernel:
        """The kernel of the prior."""
        return self.prior.kernel

    @abstractmethod
    def predict(self, contexts: ContextsLike) -> Prediction:
        """Return mean and standard deviation of f, without noise, at `contexts` (M, D)."""

    @abstractmethod
    def update(
        self, contexts: ContextsLike, outcomes: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Learn `outcomes` (N,) seen at `contexts` (N, D): all of them, or raise and none.

        `weights` (N,), 1 if left out: an outcome of weight w has noise variance σ² / w.
        """

    @property
    @abstractmethod
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: ½ log det(I + σ⁻²K)."""

    @property
    @abstractmethod
    def inducing(self) -> FloatArray:
        """Contexts of the basis functions, shape (rank, D)."""

    @property
    def rank(self) -> int:
        """How many basis functions the posterior holds."""
        return len(self.inducing)

    def is_current(self, prediction: Prediction) -> bool:
        """Return whether this posterior made `prediction` and has not changed since."""
        return False

    def current(self, contexts: ContextsLike) -> Prediction:
        """Return the prediction of `contexts`: the one given, if it is current."""
        if isinstance(contexts, Prediction) and self.is_current(contexts):
            return contexts
        return self.predict(contexts)

    def covariance(self, contexts: ContextsLike) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        return self.current(contexts).covariance()

    def sample(self, contexts: ContextsLike, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        return self.current(contexts).sample(rng)

    def sample_paths(
        self, contexts: ContextsLike, count: int, rng: np.random.Generator
    ) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), maybe thousands; shape (count, M).

        Through the features of some hundred of the contexts; what these do not represent is drawn
        independently for each context.
        """
        from oclok.posterior.dictionary.selection import sampling_model  # which needs this module

        return sampling_model(self, self.checked(contexts)).sample_paths(contexts, count, rng)

    def innovations(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are, before the update.

        Returns:
            C⁻¹(r - mean), where CCᵀ = covariance + σ²I: independent standard normal numbers if
            kernel and noise are right, (N,); and 1 - σ²/C_nn², the fraction of the predicted
            variance that is due to f and not to noise, (N,).
        """
        prediction = self.current(contexts)
        y = as_outcomes(outcomes, len(prediction.mean))
        S = prediction.covariance()
        add_to_diagonal(S, self.noise_std**2)
        C = factor(S, self.noise_std**2)
        z: FloatArray = dtrsm(1.0, C, (y - prediction.mean)[:, None], lower=1)[:, 0]
        return z, signal_fraction(self.noise_std / C.diagonal())

    def learn(self, contexts: ContextsLike, outcomes: ArrayLike) -> Innovations:
        """Update, and return the `innovations` of the outcomes."""
        prediction = self.current(contexts)
        innovations = self.innovations(prediction, outcomes)
        self.update(prediction, outcomes)
        return innovations

    def correct(self, contexts: ContextsLike, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X = self.checked(contexts)
        positions = self.observations.find(X, as_outcomes(before, len(X)))
        known, outcomes, weights = self.observations.at(slice(None))
        outcomes = outcomes.copy()
        outcomes[positions] = as_outcomes(after, len(X))
        self._relearn(known, outcomes, weights)

    def forget_last(self, count: int) -> None:
        """Unlearn the latest `count` outcomes, by learning all others anew."""
        if count:
            self._relearn(*self.observations.at(slice(len(self) - count)))

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        X, y, weights = self.observations.at(slice(None))
        self._relearn(X, y, rate * weights)

    def screen(self, contexts: ContextsLike) -> Prediction:
        """Return a quick prediction of many contexts (M, D), of which few will matter.

        It may be less certain than `predict`; `Prediction.sharpen` makes up for that.
        """
        return self.predict(contexts)

    def offer(self, contexts: ContextsLike) -> None:
        """Note which contexts (M, D) were available, chosen or not; changes no answer.

        Some posteriors later choose basis functions or scales among them.
        """

    def maintain(self) -> None:
        """Do pending work now, so that later calls need not."""

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Posterior:
        """Return a posterior like this one that has learned nothing; perhaps of another kernel."""
        make: Any = type(self)
        made: Posterior = make(kernel or self.kernel, noise_std or self.noise_std)
        return made

    def with_kernel(self, kernel: Kernel, noise_std: float) -> Posterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        other = self.empty(kernel, noise_std)
        if len(self):
            other.update(*self.observations.at(slice(None)))
        return other

    @property
    def range(self) -> tuple[float, float]:
        """Least and largest outcome possible; infinite where not known."""
        return -math.inf, math.inf

    def is_doubtful(self, prediction: Prediction) -> bool:
        """Return whether there may be more to find than `prediction` shows.

        A posterior with a given kernel is not; one that learns it from arms that were chosen by it
        may be.
        """
        return False

    @property
    def contexts(self) -> FloatArray:
        """Contexts of all outcomes learned, shape (N, D)."""
        return self.observations.contexts.copy() if len(self) else np.empty((0, 0))

    @property
    def outcomes(self) -> FloatArray:
        """All outcomes learned, shape (N,)."""
        return self.observations.outcomes.copy()

    def __len__(self) -> int:
        """Return the number of outcomes learned."""
        return len(self.observations)

    @property
    def dimension(self) -> int | None:
        """D, or None as long as neither the kernel nor an outcome fixes it."""
        return self.observations.dimension or self.prior.dimension

    def checked(self, contexts: ContextsLike) -> FloatArray:
        """Return `contexts`, or those of a prediction, as a read-only array (M, D) of floats."""
        if isinstance(contexts, Prediction):
            return contexts.contexts
        return as_contexts(contexts, self.dimension)

    def checked_outcomes(
        self, outcomes: ArrayLike, weights: ArrayLike | None, count: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return `outcomes` and `weights`, each of shape (count,), checked; ones by default."""
        y = as_outcomes(outcomes, count)
        if weights is None:
            return y, np.ones(count)
        w = as_vector(weights, "weights", count)
        if not (w > 0).all():
            raise InputError(f"weights must be above 0; got {float(w.min())}")
        return y, w

    def copy(self) -> Self:
        """Return an independent posterior in the same state."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.kernel!r}, noise_std={self.noise_std:g}): "
            f"{len(self)} outcomes, rank {self.rank}"
        )

    def _relearn(self, X: FloatArray, y: FloatArray, weights: FloatArray) -> None:
        other = self.empty()
        if len(y):
            other.update(X, y, weights)
        self.__dict__.update(other.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self).__new__(type(self))
        other._restore(copy.deepcopy(self._state(), memo))
        return other


def signal_fraction(noise_share: FloatArray) -> FloatArray:
    """Return 1 - (σ/C_nn)², the share of f in a predicted variance, shape (N,)."""
    return np.maximum(1.0 - noise_share * noise_share, 0.0)
