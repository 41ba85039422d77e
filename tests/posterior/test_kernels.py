from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    StationaryKernelMixin,
    WhiteKernel,
)

from oclok.errors import OclokError
from oclok.persistence import dumps, loads
from oclok.posterior import ExactPosterior
from oclok.posterior.kernels import LEAST_FOR_PRODUCT, Covariance


@settings(max_examples=10, deadline=None)
@given(D=st.integers(1, 10), N=st.integers(1, 12), M=st.integers(1, 12), seed=st.integers(0, 99))
def test_a_covariance_has_scikit_learns_numbers(
    make_kernel: Callable[[int], Any], D: int, N: int, M: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((N, D)), rng.standard_normal((M, D))
    kernel = make_kernel(D)
    covariance = Covariance(kernel)
    np.testing.assert_allclose(covariance.between(X, Y), kernel(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(covariance.of(X), kernel(X), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(covariance.diagonal(X), kernel.diag(X), rtol=1e-12)


@pytest.mark.parametrize("D", [1, 3, 10])
@pytest.mark.parametrize("away", [0.0, 3.0, 1e3, 1e6])
def test_many_entries_have_scikit_learns_numbers_too(
    make_kernel: Callable[[int], Any], D: int, away: float
) -> None:
    rng = np.random.default_rng(D)
    X, Y = (
        rng.standard_normal((400, D)) + away,
        rng.standard_normal((LEAST_FOR_PRODUCT // 400 + 1, D)) + away,
    )
    kernel = make_kernel(D)
    size = np.abs(kernel(X, Y)).max()
    ours = Covariance(kernel).between(X, Y)
    np.testing.assert_allclose(ours, kernel(X, Y), rtol=0, atol=1e-13 * max(size, 1.0))


@pytest.mark.parametrize("D", [1, 3, 10])
@pytest.mark.parametrize(("away", "apart"), [(0.0, 1.0), (1e6, 1.0), (0.0, 1e5), (0.0, 1e90)])
def test_blocks_have_scikit_learns_numbers_too(
    make_kernel: Callable[[int], Any], D: int, away: float, apart: float
) -> None:
    rng = np.random.default_rng(D)
    blocks = rng.standard_normal((7, 5, D)) + away
    blocks[:, 1] = blocks[:, 0]
    blocks[:, 3:] *= apart
    kernel = make_kernel(D)
    if apart == 1e90 and not kernel.is_stationary():
        return  # its own numbers have no digit in common with each other
    ours = Covariance(kernel).of_blocks(blocks)
    for one, block in zip(ours, blocks, strict=True):
        theirs = kernel(block)
        np.testing.assert_allclose(one, theirs, rtol=0, atol=1e-7 * max(np.abs(theirs).max(), 1.0))
        if apart == 1.0 and away == 0.0:
            np.testing.assert_allclose(one, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("length_scale", [0.02, 0.5])
def test_many_entries_of_which_only_one_side_is_far_have_scikit_learns_numbers(
    length_scale: float,
) -> None:
    rng = np.random.default_rng(0)
    near, kernel = rng.random((400, 2)), RBF(length_scale)
    spread = np.vstack(
        [rng.random((LEAST_FOR_PRODUCT // 400, 2)), [[1e4, 0.0], [-1e4, 3.0], [0.0, 5.0]]]
    )
    for X, Y in ((near, spread), (spread, near)):
        np.testing.assert_allclose(
            Covariance(kernel).between(X, Y), kernel(X, Y), rtol=0, atol=1e-13
        )


@pytest.mark.parametrize(
    "kernel", [RBF(0.7), ConstantKernel(2.0) * RBF([1.0, 0.5, 2.0]) + Matern(0.3, nu=2.5)]
)
def test_of_many_contexts_each_has_its_prior_variance_to_the_last_bit(kernel: Any) -> None:
    X = np.random.default_rng(0).random((int(LEAST_FOR_PRODUCT**0.5) + 1, 3))
    covariance = Covariance(kernel)
    np.testing.assert_array_equal(covariance.of(X).diagonal(), covariance.diagonal(X))


@pytest.mark.parametrize("away", [0.0, 1e3])
def test_of_many_contexts_a_lengthscale_too_many_is_refused(away: float) -> None:
    X = np.full((200, 3), away)
    with pytest.raises(OclokError, match="2 lengthscales; got contexts of 3 columns"):
        Covariance(RBF([1.0, 2.0])).between(X, X)


@pytest.mark.parametrize(
    "kernel",
    [
        ExpSineSquared(0.8, 1.5),
        PairwiseKernel(metric="laplacian"),
        RBF(0.5) + WhiteKernel(0.3),
        Matern([1.0], nu=1.5),
        RBF(1) * ConstantKernel(3),
        RationalQuadratic(1, 2),
    ],
)
def test_kernels_that_are_called_as_they_are_have_scikit_learns_numbers(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 2)), rng.random((4, 2))
    covariance = Covariance(kernel)
    np.testing.assert_allclose(covariance.between(X, Y), kernel(X, Y), rtol=1e-12)
    np.testing.assert_allclose(covariance.of(X), kernel(X), rtol=1e-12)
    np.testing.assert_allclose(covariance.diagonal(X), kernel.diag(X), rtol=1e-12)


def test_what_is_returned_belongs_to_the_caller(make_kernel: Callable[[int], Any]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((6, 2)), rng.random((4, 2))
    kept = X.copy(), Y.copy()
    covariance = Covariance(make_kernel(2))
    for call in (
        lambda: covariance.between(X, Y),
        lambda: covariance.of(X),
        lambda: covariance.diagonal(X),
    ):
        first = call()
        assert first.dtype == np.float64
        assert first.flags.c_contiguous
        expected = first.copy()
        first[...] = -7.0
        np.testing.assert_array_equal(call(), expected)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(Y, kept[1])


class SinglePrecision(StationaryKernelMixin, Kernel):
    """A user's own kernel, that computes in float32."""

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        return RBF(0.5)(X, Y).astype(np.float32)

    def diag(self, X: Any) -> Any:
        return np.ones(len(X), dtype=np.float32)

    def is_stationary(self) -> bool:
        return True


def test_a_kernel_in_single_precision_gives_a_posterior_in_single_precision() -> None:
    rng = np.random.default_rng(0)
    X, y, x = rng.random((30, 2)), rng.random(30), rng.random((10, 2))
    ours, judge = ExactPosterior(SinglePrecision(), 0.3), ExactPosterior(RBF(0.5), 0.3)
    for posterior in (ours, judge):
        posterior.update(X[:20], y[:20])
        posterior.update(X[20:], y[20:])
    np.testing.assert_allclose(ours.predict(x).mean, judge.predict(x).mean, atol=1e-4)
    np.testing.assert_allclose(ours.predict(x).std, judge.predict(x).std, atol=1e-4)


def test_a_kernel_of_several_outputs_is_refused() -> None:
    kernel = CompoundKernel([RBF(1.0), RBF(2.0)])
    with pytest.raises(OclokError):
        ExactPosterior(kernel, 0.1).update([[0.0], [1.0]], [0.0, 1.0])


def test_a_covariance_comes_back_from_its_file(make_kernel: Callable[[int], Any]) -> None:
    X = np.random.default_rng(0).random((5, 3))
    covariance = Covariance(make_kernel(3))
    loaded = loads(dumps(covariance))
    assert isinstance(loaded, Covariance)
    assert loaded.kernel == covariance.kernel
    np.testing.assert_array_equal(loaded.between(X, X), covariance.between(X, X))


def test_one_lengthscale_in_an_array_is_one_lengthscale() -> None:
    X = np.random.default_rng(0).random((5, 2))
    kernel = RationalQuadratic(length_scale=np.array([0.7]), alpha=1.3)
    expected = RationalQuadratic(0.7, alpha=1.3)(X)
    np.testing.assert_allclose(Covariance(kernel).of(X), expected, rtol=1e-14)
    with pytest.raises(OclokError, match="one lengthscale"):
        Covariance(RationalQuadratic(length_scale=[0.7, 0.2]))


def test_a_kernels_own_arrays_are_left_alone() -> None:
    class Remembers(StationaryKernelMixin, Kernel):  # type: ignore[misc]
        def __init__(self) -> None:
            self.known: dict[bytes, np.ndarray] = {}

        def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
            key = X.tobytes() + (b"" if Y is None else Y.tobytes())
            return self.known.setdefault(key, RBF(1.0)(X, Y))

        def diag(self, X: Any) -> Any:
            return np.ones(len(X))

    rng = np.random.default_rng(0)
    X, x, y = rng.random((30, 2)), rng.random((7, 2)), rng.standard_normal(30)
    ours, plain = ExactPosterior(Remembers(), 0.1), ExactPosterior(RBF(1.0), 0.1)
    for posterior in (ours, plain):
        posterior.update(X, y)
        posterior.predict(x)
    np.testing.assert_allclose([*ours.predict(x)], [*plain.predict(x)], atol=1e-10)


def test_kernels_that_want_to_write_to_contexts_may() -> None:
    kernel = PairwiseKernel(metric="chi2")
    X = np.random.default_rng(0).random((6, 2))
    posterior = ExactPosterior(kernel, 0.1)
    posterior.update(X, np.ones(6))
    assert np.isfinite([*posterior.predict(X)]).all()
