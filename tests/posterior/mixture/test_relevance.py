"""Fits of a lengthscale per feature against finite differences and SciPy's optimiser."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.mixture.relevance import MOST, STEPS, RelevanceFit


def fit(n=60, dimension=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, dimension))
    y = 30 + 5 * np.sin(5 * X[:, 0]) + 3 * X[:, 1] + 0.1 * rng.standard_normal(n)
    return RelevanceFit(X, y, 2.0, 0.5, rng), X, y


def test_the_objective_is_the_evidence_on_a_grid_of_scales_and_constants():
    """Differences between two θ, so that constants cancel; the prior of the scale is IG(2, ½)."""
    made, X, y = fit(n=6, dimension=2)
    y = y - 30
    made.y = y
    points = [np.log([0.7, 1.5, 0.1]), np.log([2.0, 0.5, 0.3])]
    constants = np.linspace(-60, 60, 2001)
    scales = np.exp(np.linspace(-6, 12, 1200))

    def dense(theta):
        A = RBF(np.exp(theta[:-1]))(X) + math.exp(theta[-1]) * np.eye(len(y))
        inverse, log_det = np.linalg.inv(A), np.linalg.slogdet(A)[1]
        r = y - constants[:, None]
        q = np.einsum("ci,ij,cj->c", r, inverse, r)
        log_p = -0.5 * q[:, None] / scales - 0.5 * log_det - 0.5 * len(y) * np.log(scales)
        log_p += -3 * np.log(scales) - 0.5 / scales + np.log(scales)  # prior, and d log s²
        top = log_p.max()
        prior = made.precision @ (theta - made.location) ** 2 / 2
        return top + np.log(np.exp(log_p - top).sum()) - prior

    expected = dense(points[1]) - dense(points[0])
    values = [made.log_posterior(theta)[0] for theta in points]
    assert values[1] - values[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("dimension", [1, 4])
def test_the_gradient_is_that_of_finite_differences(dimension):
    made, _, _ = fit(dimension=max(dimension, 2))
    made.X = made.X[:, :dimension]
    theta = np.append(np.linspace(-0.5, 0.8, dimension), math.log(0.05))
    made.location, made.precision = theta + 0.3, np.full(dimension + 1, 0.7)
    _, slope = made.log_posterior(theta)
    for n, shift in enumerate(1e-5 * np.eye(dimension + 1)):
        up, down = (made.log_posterior(theta + sign * shift)[0] for sign in (1, -1))
        assert slope[n] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_fit_comes_as_far_as_an_optimiser_and_sees_what_matters(seed):
    made, _, _ = fit(n=100, seed=seed)

    def loss(theta):
        value, slope = made.log_posterior(theta)
        return -value, -slope

    bounds = list(zip(made.lower, made.upper, strict=True))
    best = minimize(loss, made.location, jac=True, method="L-BFGS-B", bounds=bounds)
    for _ in range(STEPS):
        made.advance(1)
    assert made.steps_left == 0
    assert made.log_posterior(np.log([*made.lengthscales, made.noise_ratio]))[0] >= -best.fun - 1.0
    assert made.lengthscales[:1] < made.lengthscales[2:].min() / 2


def test_out_of_many_outcomes_a_sample_is_used():
    made, _, _ = fit(n=3 * MOST)
    assert made.size == MOST
