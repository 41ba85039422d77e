from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from oclok.posterior import DictionaryPosterior, ExactPosterior, Posterior, SparsePosterior
from oclok.testing import check_posterior

KERNELS = [
    RBF(0.5),
    RBF([0.3, 1.0]),
    Matern(0.7, nu=1.5),
    ConstantKernel(4.0) * Matern(0.5, nu=0.5) + DotProduct(0.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_exact_posterior_conforms(kernel: Any) -> None:
    check_posterior(lambda: ExactPosterior(kernel, noise_std=0.1))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_dictionary_posterior_conforms(kernel: Any) -> None:
    check_posterior(lambda: DictionaryPosterior(kernel, noise_std=0.1), tolerance=1e-6)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("choose", ["random", "greedy"])
def test_sparse_posterior_conforms(kernel: Any, choose: Any) -> None:
    check_posterior(lambda: SparsePosterior(kernel, 0.1, 12, choose, seed=3), exact=False)


def test_sparse_posterior_with_all_contexts_is_exact() -> None:
    check_posterior(lambda: SparsePosterior(RBF(0.5), 0.1, 60, "greedy"), tolerance=1e-6)


def test_the_suite_goes_by_the_dimension_it_is_given() -> None:
    check_posterior(lambda: ExactPosterior(RBF([0.3, 0.5, 0.4, 0.9]), 0.2), dimension=4)


class NoPrior(ExactPosterior):
    def predict(self, contexts: Any) -> Any:
        prediction = super().predict(contexts)
        return prediction if len(self) else replace(prediction, mean=prediction.mean + 0.1)


class WithNoise(ExactPosterior):
    def predict(self, contexts: Any) -> Any:
        prediction = super().predict(contexts)
        return (
            replace(prediction, std=np.hypot(prediction.std, self.noise_std))
            if len(self)
            else prediction
        )


class Counting(ExactPosterior):
    calls = 0

    def predict(self, contexts: Any) -> Any:
        self.calls += 1
        return super().predict(contexts)


class Forgetful(ExactPosterior):
    """Learns before it looks."""

    def update(self, contexts: Any, outcomes: Any, weights: Any = None) -> None:
        good = np.asarray(contexts, dtype=object)
        if good.ndim == 2 and good.shape[1] == 2 and len(self):
            self._gain += 1e-9
        super().update(contexts, outcomes)


class Lenient(ExactPosterior):
    def update(self, contexts: Any, outcomes: Any, weights: Any = None) -> None:
        y = np.asarray(outcomes)
        if y.dtype.kind == "f":
            outcomes = np.nan_to_num(y)
        super().update(contexts, outcomes)


class PlainErrors(ExactPosterior):
    def predict(self, contexts: Any) -> Any:
        if np.ndim(contexts) == 1:
            raise IndexError("contexts")
        return super().predict(contexts)


class Shared(ExactPosterior):
    def copy(self) -> Any:
        return self


class Aliased(ExactPosterior):
    @property
    def inducing(self) -> Any:
        return self.observations.contexts if len(self) else np.empty((0, 0))


class Asymmetric(ExactPosterior):
    def covariance(self, contexts: Any) -> Any:
        covariance = super().covariance(contexts)
        if len(self):
            covariance[0, -1] += 1e-3
        return covariance


class LastBatchOnly(ExactPosterior):
    """The information gain of the last batch, not of all."""

    def update(self, contexts: Any, outcomes: Any, weights: Any = None) -> None:
        before = self._gain
        super().update(contexts, outcomes, weights)
        self._gain -= before / 2


class Unsaved(ExactPosterior):
    """Its file leaves out what the mean needs."""

    def _restore(self, state: Any) -> None:
        super()._restore(state)
        self._z._buffer = self._z._buffer * (1 + 1e-15)


class Miscounting(ExactPosterior):
    def __len__(self) -> int:
        return min(super().__len__(), 30)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoPrior, "mean before any data"),
        (WithNoise, r"std²|above the prior"),
        (Counting, "predict changed the saved state"),
        (Forgetful, "changed the saved state"),
        (Lenient, "nothing was raised"),
        (PlainErrors, "got IndexError"),
        (Shared, "an update of its copy changed"),
        (Aliased, "writing to `inducing` changed"),
        (Asymmetric, "transpose"),
        (LastBatchOnly, "information gain"),
        (Unsaved, "predicts another mean"),
        (Miscounting, "len is 30"),
    ],
)
def test_the_suite_catches_a_posterior_that(broken: Callable[..., Posterior], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_posterior(lambda: broken(RBF(0.5), 0.1))


def test_the_suite_catches_an_approximation_that_claims_to_be_exact() -> None:
    with pytest.raises(AssertionError, match="after"):
        check_posterior(lambda: SparsePosterior(RBF(0.2), 0.1, 5, "greedy"))


def test_the_suite_catches_a_posterior_that_is_off_by_little() -> None:
    class Off(ExactPosterior):
        def predict(self, contexts: Any) -> Any:
            prediction = super().predict(contexts)
            return replace(prediction, mean=prediction.mean * (1 + 1e-6))

    with pytest.raises(AssertionError, match="mean after"):
        check_posterior(lambda: Off(RBF(0.5), 0.1))
