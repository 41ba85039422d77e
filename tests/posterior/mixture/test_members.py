"""Members and their evidence, against a grid of scales."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import invgamma
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.kernels import Covariance
from oclok.posterior.mixture.basis import GivenKernel
from oclok.posterior.mixture.columns import ColumnMap
from oclok.posterior.mixture.members import RATE, SHAPE, Member, weights_of
from oclok.posterior.mixture.relevance import RelevanceKernel, prior_theta


def data(n=25):
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def member(lengthscale=0.4, ratio=0.05):
    return Member(GivenKernel(Covariance(RBF(lengthscale))), ratio)


def test_evidence_and_scale_are_integrals_over_the_scale():
    X, y = data()
    found = [member(0.4), member(1.5)]
    grid = np.exp(np.linspace(-9, 9, 400))
    logs, scales = [], []
    for each, lengthscale in zip(found, (0.4, 1.5), strict=True):
        each.learn(X, y, np.ones(len(y)))
        log_p = [
            GaussianProcessRegressor(s * RBF(lengthscale), alpha=0.05 * s, optimizer=None)
            .fit(X, y)
            .log_marginal_likelihood_value_
            for s in grid
        ]
        log_p = np.array(log_p) + invgamma(SHAPE, scale=RATE).logpdf(grid) + np.log(grid)
        p = np.exp(log_p - log_p.max())
        logs.append(log_p.max() + np.log(p.sum()))
        scales.append(p @ grid / p.sum())
    assert found[0].evidence - found[1].evidence == pytest.approx(logs[0] - logs[1], abs=0.01)
    assert [each.scale for each in found] == pytest.approx(scales, rel=0.01)
    odds = np.exp(logs[1] - logs[0])
    np.testing.assert_allclose(weights_of(found), [1 / (1 + odds), odds / (1 + odds)], rtol=0.02)


def test_what_is_discounted_says_less_of_scale_and_evidence():
    X, y = data()
    found = [member(0.4), member(1.5)]
    for each in found:
        each.learn(X, y, np.ones(len(y)))
    sure = weights_of(found)
    for each in found:
        each.discount(0.1)
    assert 0.5 < weights_of(found).max() < sure.max()
    assert abs(found[0].scale - 1.0) < abs(found[0].scale - 9.0)


def test_only_an_outcome_far_above_the_rest_makes_the_scale_of_the_default_large():
    X, y = data()
    columns = ColumnMap(X)
    scales = []
    for gross in (0.0, -50.0, 50.0):
        each = Member(RelevanceKernel(columns, prior_theta(columns)), 0.05)
        each.learn(X, y, np.ones(len(y)))
        each.learn(np.array([[0.5, 0.5]]), np.array([gross]), np.ones(1))
        scales.append(each.scale)
    none, below, above = scales
    assert none < below < 3 * none
    assert above > 100 * none
