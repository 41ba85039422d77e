"""What every posterior is: a belief about f, made of contexts and noisy outcomes.

To add one, derive from `Posterior`, write `predict`, `covariance`, `update`, `inducing` and
`information_gain` (docs/extending.md has one in 40 lines), and run
`oclok.testing.check_posterior` on it. The other methods have defaults that use these; a
posterior overrides the ones it can do faster.
"""
# Tested in tests/testing/test_posteriors.py: the conformance suite holds every posterior to it.

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from oclok.errors import InputError
from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor
from oclok.posterior.observations import Observations
from oclok.posterior.prediction import Asked, Prediction
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_contexts, as_noise_std, as_outcomes, as_vector, check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Posterior(Persistent, ABC):
    """A Gaussian belief about f with zero prior mean.

    Wherever a method takes contexts, it takes a `Prediction` as well, and saves the work that
    went into that if nothing was learned since.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`, sums and products included; or the
            `prior` of a posterior, compiled already.
        noise_std: standard deviation σ of the noise of an outcome.

    Attributes:
        prior: the kernel, compiled: `prior.between(X, Y)`, `prior.of(X)`, `prior.diagonal(X)`.
        observations: contexts, outcomes and weights learned so far.
    """

    def __init__(self, kernel: Kernel | Covariance, noise_std: float) -> None:
        if not isinstance(kernel, Covariance):
            check_kernel(kernel)
            kernel = Covariance(kernel)
        self.prior = kernel
        self.noise_std = as_noise_std(noise_std)
        self.observations = Observations()

    @property
    def kernel(self) -> Kernel:
        """The kernel of the prior."""
        return self.prior.kernel

    @abstractmethod
    def predict(self, contexts: Asked) -> Prediction:
        """Return mean and standard deviation of f, without noise, at `contexts` (M, D).

        The prediction unpacks as the two, and carries bounds on their distance from exact.
        """

    @abstractmethod
    def covariance(self, contexts: Asked) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""

    @abstractmethod
    def update(
        self, contexts: Asked, outcomes: ArrayLike, weights: ArrayLike | None = None
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

    def sample(self, contexts: Asked, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        X = self.checked(contexts)
        first, of = distinct(X)
        mean = self.predict(contexts).mean
        C, pivots, rank, _ = dpstrf(self.covariance(X[first]), lower=1)  # singular ones are fine
        sample = np.empty(len(first))
        sample[pivots - 1] = np.tril(C)[:, :rank] @ rng.standard_normal(len(first))[:rank]
        result: FloatArray = mean[first[of]] + sample[of]
        return result

    def sample_paths(self, contexts: Asked, count: int, rng: np.random.Generator) -> FloatArray:
        """Return `count` samples of f at `contexts` (M, D), of which there may be thousands.

        Returns:
            Shape (count, M). Through the features of some hundred of the contexts; what these
            do not represent is drawn independently for each context.
        """
        from oclok.posterior.dictionary.paths import model_for  # which needs this module

        return model_for(self, self.checked(contexts)).sample_paths(contexts, count, rng)

    def innovations(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are, before the update.

        Returns:
            C⁻¹(r - mean), where CCᵀ = covariance + σ²I; independent standard normal numbers if
            kernel and noise are right, shape (N,); and 1 - σ²/C_nn², the fraction of the
            predicted variance that is due to f and not to noise; shape (N,).
        """
        prediction = self.predict(contexts)
        y = as_outcomes(outcomes, len(prediction.mean))
        S = self.covariance(prediction)
        add_to_diagonal(S, self.noise_std**2)
        C = factor(S, self.noise_std**2)
        z: FloatArray = dtrsm(1.0, C, (y - prediction.mean)[:, None], lower=1)[:, 0]
        return z, due_to_f(self.noise_std / C.diagonal())

    def learn(self, contexts: Asked, outcomes: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Update, and return the `innovations` of the outcomes."""
        innovations = self.innovations(contexts, outcomes)
        self.update(contexts, outcomes)
        return innovations

    def correct(self, contexts: Asked, before: ArrayLike, after: ArrayLike) -> None:
        """Replace outcomes `before` (N,), learned at `contexts` (N, D), by `after` (N,)."""
        X = self.checked(contexts)
        known = self.observations
        positions = known.find(X, as_outcomes(before, len(X)))
        outcomes = known.outcomes.copy()
        outcomes[positions] = as_outcomes(after, len(X))
        self._relearn(known.contexts, outcomes, known.weights)

    def discount(self, rate: float) -> None:
        """Multiply the weights of all outcomes so far by `rate`, above 0."""
        if len(self):
            known = self.observations
            self._relearn(known.contexts, known.outcomes, rate * known.weights)

    def refine(self, prediction: Prediction) -> Prediction:
        """Return a prediction with tighter bounds; `prediction` itself if there is none."""
        return prediction

    def screen(self, contexts: Asked) -> Prediction:
        """Return what is quick to say of many contexts (M, D), of which few will matter.

        It may be less certain than `predict`; `sharpen` makes up for that where it matters.
        """
        return self.predict(contexts)

    def sharpen(self, prediction: Prediction, positions: IntArray) -> Prediction:
        """Return a prediction of `screen` with what `predict` says of contexts at `positions`.

        `prediction` itself if it says all that already.
        """
        return prediction

    def offer(self, contexts: Asked) -> None:
        """Tell which contexts (M, D) were available, chosen or not; changes no answer.

        Some posteriors choose basis functions or scales by them later on.
        """

    def maintain(self) -> None:
        """Do now what is due, so that later calls need not."""

    def empty(self, kernel: Kernel | None = None, noise_std: float | None = None) -> Posterior:
        """Return a posterior like this one that has learned nothing; perhaps of another kernel."""
        make: Any = type(self)
        made: Posterior = make(kernel or self.kernel, noise_std or self.noise_std)
        return made

    def with_kernel(self, kernel: Kernel, noise_std: float) -> Posterior:
        """Return a posterior with another kernel and noise that has learned the same."""
        other = self.empty(kernel, noise_std)
        if len(self):
            known = self.observations
            other.update(known.contexts, known.outcomes, known.weights)
        return other

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
        """D, or None as long as neither the kernel nor an outcome tells."""
        return self.observations.dimension or self.prior.dimension

    def checked(self, contexts: Asked) -> FloatArray:
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
        other, known = self.empty(), self.observations
        other.update(X, y, weights)
        known.replace(y, weights)  # others may share them
        self.__dict__.update(other.__dict__, observations=known)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self).__new__(type(self))
        other._restore(copy.deepcopy(self._state(), memo))
        return other


def due_to_f(noise_share: FloatArray) -> FloatArray:
    """Return 1 - (σ/C_nn)², what f has of a predicted variance, shape (N,)."""
    return np.maximum(1.0 - noise_share * noise_share, 0.0)


def distinct(X: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the positions of the first of each distinct row of X (M, D), and which one each is.

    Equal contexts have equal f, so a sample must have one value for all of them.
    """
    _, first, of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return first, of.reshape(-1)
