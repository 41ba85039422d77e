from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from oclok.posterior import pivoted
from oclok.posterior.kernels import Covariance
from oclok.posterior.pivoted import pivoted_cholesky, pivots_among


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5, nu=1.5), DotProduct(0.5) + RBF(0.3)])
@settings(max_examples=20, deadline=None)
@given(N=st.integers(1, 30), rank=st.integers(1, 35), seed=st.integers(0, 99))
def test_each_pivot_has_the_largest_variance_given_those_before(
    kernel: Any, N: int, rank: int, seed: int
) -> None:
    X = np.random.default_rng(seed).random((N, 2))
    pivots, F, left = pivoted_cholesky(Covariance(kernel), X, rank, tolerance=1e-6)
    K = kernel(X)
    for j, pivot in enumerate(pivots):
        before = pivots[:j]
        conditional = K - K[:, before] @ np.linalg.solve(K[np.ix_(before, before)], K[before])
        variance = np.diag(conditional)
        assert variance[pivot] >= variance.max() - 1e-9
        assert variance[pivot] > 0.99e-6
    residual = K - F.T @ F
    assert F.shape == (len(pivots), N)
    assert left == pytest.approx(np.diag(residual).max(), abs=1e-9)
    assert len(pivots) == min(rank, N) or left <= 1e-6 + 1e-12
    np.testing.assert_allclose(residual[pivots], 0, atol=1e-8)
    assert np.linalg.eigvalsh(residual)[0] > -1e-8


def test_the_pivots_columns_are_their_own_cholesky_factor() -> None:
    X = np.random.default_rng(0).random((25, 2))
    pivots, F, _ = pivoted_cholesky(Covariance(RBF(0.3)), X, 10, tolerance=0.0)
    expected = np.linalg.cholesky(RBF(0.3)(X[pivots]))
    np.testing.assert_allclose(F[:, pivots].T, expected, atol=1e-8)


def test_duplicates_are_taken_once() -> None:
    X = np.repeat(np.random.default_rng(0).random((4, 2)), 5, axis=0)
    pivots, _, left = pivoted_cholesky(Covariance(RBF(0.3)), X, 20, tolerance=1e-10)
    assert len(pivots) == 4
    assert len(np.unique(X[pivots], axis=0)) == 4
    assert left <= 1e-10


@pytest.mark.parametrize("kernel", [RBF(0.5), Matern(0.5, nu=1.5), RBF(0.5) + WhiteKernel(0.1)])
def test_pivots_are_the_same_whether_few_or_many_are_factored(
    kernel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(1).random((30, 2))
    covariance = Covariance(kernel)
    U, R = pivots_among(covariance, X, 1e-4)
    monkeypatch.setattr(pivoted, "FACTORED_AT_ONCE", 0)
    V, S = pivots_among(covariance, X, 1e-4)
    np.testing.assert_array_equal(U, V)
    np.testing.assert_allclose(R, S, atol=1e-9)
    np.testing.assert_allclose(R @ R.T, covariance.of(U), atol=1e-12)
