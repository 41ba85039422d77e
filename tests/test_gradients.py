"""Gradients of kernels against scikit-learn's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from oclok.gradients import differentiate

KERNELS = [
    RBF(0.4),
    RBF([0.3, 0.8, 2.0]),
    RBF([1e-3, 0.8, 1e3]),
    Matern([0.4, 0.9, 0.2], nu=0.5),
    Matern(0.6, nu=1.5),
    Matern([0.4, 0.9, 0.2], nu=2.5),
    Matern(0.6, nu=np.inf),
    Matern(0.6, nu=0.8),
    ConstantKernel(0.5) * RBF([0.3, 0.8, 2.0]) + DotProduct(0.7) + WhiteKernel(0.02),
    (DotProduct(0.6) + 0.3 * ExpSineSquared(0.8, 1.5)) ** 3,
    ConstantKernel(1.5, "fixed") * RBF(0.3, "fixed") * RationalQuadratic(0.7, alpha=1.3),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sums_of_gradients_are_those_of_scikit_learn(kernel):
    rng = np.random.default_rng(0)
    X, G = rng.random((150, 3)), rng.standard_normal((150, 150))
    X[7] = X[3]
    G = np.asfortranarray(G + G.T)
    K, backward = differentiate(kernel, X)
    expected, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(np.tril(K), np.tril(expected), rtol=1e-12, atol=1e-13)
    assert np.isfinite(K).all()
    sums = np.einsum("ij,ijp->p", G, gradient)
    lower = np.asfortranarray(np.tril(G) + np.triu(rng.standard_normal(G.shape), 1))
    np.testing.assert_allclose(backward(lower), sums, rtol=1e-9, atol=1e-9 * np.abs(gradient).sum())
