"""What every posterior is: a belief about f, made of contexts and noisy outcomes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from oclok.persistence import Persistent
from oclok.posterior.kernels import Covariance
from oclok.posterior.linalg import add_to_diagonal, factor
from oclok.posterior.observations import Rows
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_contexts, as_noise_std, as_outcomes, check_kernel

if TYPE_CHECKING:
    from sklearn.gaussian_process.kernels import Kernel


class Bounded(NamedTuple):
    """A prediction, and how far it can be from the exact posterior's; each of shape (M,)."""

    mean: FloatArray
    std: FloatArray
    mean_error: FloatArray | float
    std_error: FloatArray | float


class Posterior(Persistent, ABC):
    """A Gaussian belief about f with zero prior mean.

    Args:
        kernel: a kernel of `sklearn.gaussian_process.kernels`, sums and products included.
        noise_std: standard deviation σ of the noise of an outcome.
    """

    def __init__(self, kernel: Kernel, noise_std: float) -> None:
        check_kernel(kernel)
        self.kernel = kernel
        self.noise_std = as_noise_std(noise_std)
        self._prior = Covariance(kernel)
        self._X = Rows()
        self._y = Rows()

    def update(self, contexts: ArrayLike, outcomes: ArrayLike) -> None:
        """Learn `outcomes`, shape (N,), seen at `contexts`, shape (N, D): all or none."""
        X = as_contexts(contexts, self.dimension)
        self._update(X, as_outcomes(outcomes, len(X)))

    def predict(self, contexts: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of f at `contexts` (M, D), each of shape (M,)."""
        return self._predict(as_contexts(contexts, self.dimension))

    def covariance(self, contexts: ArrayLike) -> FloatArray:
        """Return the joint covariance, shape (M, M), of f at `contexts` (M, D)."""
        return self._covariance(as_contexts(contexts, self.dimension))

    def predict_bounded(self, contexts: ArrayLike) -> Bounded:
        """Return mean and std at `contexts` (M, D) with bounds on their distance from exact."""
        return self._predict_bounded(as_contexts(contexts, self.dimension))

    def refine(self, contexts: ArrayLike) -> Bounded | None:
        """Return a prediction closer to exact than `predict_bounded` has; None if there is none."""
        return self._refine(as_contexts(contexts, self.dimension))

    def innovations(
        self, contexts: ArrayLike, outcomes: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return how surprising `outcomes` (N,) at `contexts` (N, D) are; ask before the update.

        Returns:
            C⁻¹(r - mean), where CCᵀ = covariance + σ²I: independent standard normal numbers if
            kernel and noise are right, shape (N,); and 1 - σ²/C_nn², the share of f, and not of
            the noise, in the variance that was foreseen for each; shape (N,).
        """
        X = as_contexts(contexts, self.dimension)
        z, foreseen_std = self._innovations(X, as_outcomes(outcomes, len(X)))
        return z, self._share_of_f(foreseen_std)

    def _innovations(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z = C⁻¹(r - mean) and the diagonal of C."""
        residual = y - self._predict_known(X)
        S = self._covariance(X)
        add_to_diagonal(S, self.noise_std**2)
        C = factor(S, self.noise_std**2)
        whitened: FloatArray = dtrsm(1.0, C, residual[:, None], lower=1)[:, 0]
        return whitened, C.diagonal()

    def _share_of_f(self, foreseen_std: FloatArray) -> FloatArray:
        share_of_noise = self.noise_std / foreseen_std
        return np.maximum(1.0 - share_of_noise * share_of_noise, 0.0)

    def sample(self, contexts: ArrayLike, rng: np.random.Generator) -> FloatArray:
        """Return one joint sample, shape (M,), of f at `contexts` (M, D)."""
        return self._sample(as_contexts(contexts, self.dimension), rng)

    @property
    def contexts(self) -> FloatArray:
        """Contexts of all outcomes learned, shape (N, D)."""
        return self._X.array.copy() if len(self) else np.empty((0, 0))

    @property
    def outcomes(self) -> FloatArray:
        """All outcomes learned, shape (N,)."""
        return self._y.array.copy()

    def expect(self, contexts: ArrayLike, chosen: IntArray | None = None) -> None:
        """Prepare for more contexts (M, D) like these, and for outcomes of those `chosen`.

        Changes no answer. `chosen` are positions into `contexts`, as a policy has chosen them.
        """
        X = as_contexts(contexts, self.dimension)
        self._expect(X, chosen, None if chosen is None else X[chosen])

    def __len__(self) -> int:
        """Return the number of outcomes learned."""
        return len(self._y)

    @property
    def dimension(self) -> int | None:
        """D, or None as long as neither the kernel nor an outcome tells."""
        return int(self._X.array.shape[1]) if len(self) else self._prior.dimension

    @property
    @abstractmethod
    def information_gain(self) -> float:
        """I(r; f) of all outcomes so far, in nats: ½ log det(I + σ⁻²K)."""

    @property
    def rank(self) -> int:
        """How many basis functions the posterior holds."""
        return len(self.inducing)

    @property
    @abstractmethod
    def inducing(self) -> FloatArray:
        """Contexts of the basis functions, shape (rank, D)."""

    @abstractmethod
    def with_kernel(self, kernel: Kernel, noise_std: float) -> Posterior:
        """Return a posterior with another kernel and noise that has learned the same."""

    def copy(self) -> Self:
        """Return an independent posterior in the same state."""
        return copy.deepcopy(self)

    @abstractmethod
    def _update(self, X: FloatArray, y: FloatArray) -> None: ...

    def _update_judged(self, X: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Learn y, seen at X, and return what `_innovations` said of it before."""
        judged = self._innovations(X, y)
        self._update(X, y)
        return judged

    @abstractmethod
    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]: ...

    def _expect(self, X: FloatArray, chosen: IntArray | None, at: FloatArray | None) -> None:
        """Do what `expect` says; `at`, shape (K, D), are the contexts of those `chosen`."""

    def _predict_bounded(self, X: FloatArray) -> Bounded:
        return Bounded(*self._predict(X), np.inf, np.inf)

    def _sample(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Sample through a pivoted Cholesky factor, which a singular covariance has, too."""
        mean, _ = self._predict(X)
        C, pivots, rank, _ = dpstrf(self._covariance(X), lower=1)
        sample = np.empty(len(X))
        sample[pivots - 1] = np.tril(C)[:, :rank] @ rng.standard_normal(len(X))[:rank]
        return mean + sample

    def _predict_known(self, X: FloatArray) -> FloatArray:
        """Return the mean at contexts that were, most likely, asked for just before."""
        return self._predict(X)[0]

    def _refine(self, X: FloatArray) -> Bounded | None:
        return None

    @abstractmethod
    def _covariance(self, X: FloatArray) -> FloatArray: ...

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        other = type(self).__new__(type(self))
        other._restore(copy.deepcopy(self._state(), memo))
        return other
