"""Variances updated outcome by outcome, against the formula for all of them."""

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
    observed=st.lists(st.integers(0, 119), min_size=1, max_size=25),
)
@settings(max_examples=60, deadline=None)
def test_they_are_those_of_the_formula_after_every_outcome(kernel, seed, observed):
    X = np.random.default_rng(seed).random((120, 2))
    variances = Variances(kernel, X, NOISE_VARIANCE, len(observed))
    for n, u in enumerate(observed, start=1):
        variances.observe(u)
        everywhere, there = plain(kernel, X, observed[:n])
        np.testing.assert_allclose(variances.values, everywhere, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variances.of_observed(), there, rtol=1e-9)
    K = kernel(X[observed]) / NOISE_VARIANCE
    gain = np.linalg.slogdet(np.eye(len(observed)) + K)[1] / 2
    assert variances.information_gain == pytest.approx(gain, rel=1e-9)
