"""Lazily updated variances against the formula for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from oclok.theory.variances import Variances

KERNELS = [RBF(0.5), Matern(0.3, nu=2.5), DotProduct(1.0), RBF(0.5) + WhiteKernel(0.2)]
NOISE_VARIANCE = 0.04


def plain(kernel, X, P):
    """Variances at new outcomes at X, and at those observed, X[P]."""
    C = kernel(X, X[P])
    K = kernel(X[P]) if P else np.empty((0, 0))
    A = K + NOISE_VARIANCE * np.eye(len(P))
    return (
        kernel.diag(X) - np.sum(C * np.linalg.solve(A, C.T).T, axis=1),
        np.diag(K - K @ np.linalg.solve(A, K)),
    )


@given(
    kernel=st.sampled_from(KERNELS),
    seed=st.integers(0, 10**6),
    folds=st.lists(st.booleans(), min_size=1, max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_the_largest_is_found_and_stale_values_are_upper_bounds(kernel, seed, folds):
    rng = np.random.default_rng(seed)
    X = rng.random((120, 2))
    variances = Variances(kernel, X, NOISE_VARIANCE, len(folds))
    P: list[int] = []
    for fold in folds:
        allowed = rng.random(len(X)) < 0.7
        true, _ = plain(kernel, X, P)
        u = variances.largest(allowed)
        assert allowed[u]
        assert true[u] == pytest.approx(true[allowed].max(), rel=1e-10)
        assert variances.values[u] == pytest.approx(true[u], rel=1e-10)
        assert (variances.values >= true - 1e-12).all()
        variances.observe(u)
        P.append(u)
        if fold:
            variances.fold()
            np.testing.assert_allclose(variances.values, plain(kernel, X, P)[0], rtol=1e-9)
    np.testing.assert_allclose(variances.of_observed(), plain(kernel, X, P)[1], rtol=1e-9)


def test_of_equal_variances_the_first_allowed_is_the_largest():
    variances = Variances(RBF(1.0), np.arange(50.0)[:, None] * 100, NOISE_VARIANCE, 2)
    allowed = np.arange(50) >= 7
    assert variances.largest(allowed) == 7
    variances.observe(7)
    assert variances.largest(allowed) == 8
