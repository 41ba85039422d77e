"""A member's evidence against the same by numerical integration over the scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import invgamma, multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.mixture.members import Member, ScalePrior, default_candidates, dense_evidence
from oclok.posterior.prediction import Prediction

PRIOR = ScalePrior(2.0, 0.3)
RATIO = 0.1


def data(n=8):
    rng = np.random.default_rng(0)
    X = rng.random((n, 2))
    return X, np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def integrated(kernel, X, y, noise):
    """The density of y, by quadrature over log s²."""
    A, prior = kernel(X) + np.diag(noise), invgamma(PRIOR.shape, scale=PRIOR.rate)

    def density(log_scale):
        scale = math.exp(log_scale)
        return multivariate_normal(cov=scale * A).pdf(y) * prior.pdf(scale) * scale

    return math.log(quad(density, -12, 12, epsabs=0, epsrel=1e-9, limit=400)[0])


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_evidence_from_innovations_is_that_of_all_outcomes_with_the_scale_integrated_out(batch):
    X, y = data()
    member = Member(RBF(0.5), RATIO)
    for start in range(0, 8, batch):
        rows = slice(start, start + batch)
        member.learn(Prediction.of(X[rows]), y[rows], np.ones(len(y[rows])))
    expected = integrated(RBF(0.5), X, y, np.full(8, RATIO))
    shared = 0.5 * 8 * math.log(2 * math.pi)
    assert member.evidence(PRIOR) - shared == pytest.approx(expected, abs=1e-6)
    found = dense_evidence(RBF(0.5)(X), np.full(8, RATIO), y, PRIOR)
    assert found == pytest.approx(member.evidence(PRIOR), abs=1e-8)


@pytest.mark.parametrize("batch", [70, 130, 400])
def test_many_outcomes_at_once_are_worth_the_evidence_of_a_dense_computation(batch):
    """First without a dictionary, then with one, and both in between."""
    X, y = data(400)
    w = np.where(np.arange(400) % 9, 1.0, 0.5)
    member = Member(RBF(0.5), RATIO)
    for start in range(0, 400, batch):
        rows = slice(start, start + batch)
        member.learn(Prediction.of(X[rows]), y[rows], w[rows])
    assert member.posterior.rank < 400
    expected = dense_evidence(RBF(0.5)(X), RATIO / w, y, PRIOR) + 0.5 * np.log(1 / w).sum()
    assert member.evidence(PRIOR) == pytest.approx(expected, abs=0.02)


def test_weighted_outcomes_have_noise_of_their_own():
    """Up to ½ Σ log w, which all members share."""
    X, y = data()
    w = np.linspace(0.5, 3.0, 8)
    member = Member(RBF(0.5), RATIO)
    member.learn(Prediction.of(X), y, w)
    expected = integrated(RBF(0.5), X, y, RATIO / w) + 0.5 * 8 * math.log(2 * math.pi)
    assert member.evidence(PRIOR) == pytest.approx(expected - 0.5 * np.log(w).sum(), abs=1e-6)


def test_the_scale_is_learned():
    X, y = data()
    member = Member(RBF(0.5), RATIO)
    member.learn(Prediction.of(X), y, np.ones(8))
    shape, rate = member.scale(PRIOR)
    A = RBF(0.5)(X) + RATIO * np.eye(8)
    assert shape == PRIOR.shape + 4
    assert rate == pytest.approx(PRIOR.rate + 0.5 * y @ np.linalg.solve(A, y), rel=1e-9)


def test_a_member_is_surprised_by_outcomes_unlike_those_before():
    rng = np.random.default_rng(0)
    member = Member(RBF(0.5), RATIO)
    X, y = rng.random((150, 2)), rng.standard_normal(150)
    member.learn(Prediction.of(X[:110]), y[:110], np.ones(110))
    assert not member.is_surprised(PRIOR)
    member.learn(Prediction.of(X[110:]), 10 * y[110:], np.ones(40))
    assert member.is_surprised(PRIOR)
    member.calm()
    assert not member.is_surprised(PRIOR)


@pytest.mark.parametrize("dimension", [1, 3, 64])
def test_default_candidates_serve_any_dimension(dimension):
    X = np.random.default_rng(0).random((20, dimension))
    for kernel, penalty in default_candidates(dimension):
        assert penalty >= 0
        assert np.linalg.eigvalsh(kernel.of(X))[0] > -1e-6 * kernel.diagonal(X).max()


@pytest.mark.parametrize("dimension", [1, 5, 64])
def test_default_kernels_vary_by_one_between_contexts(dimension):
    X = np.random.default_rng(1).random((400, dimension))
    covariances = [candidate.kernel.of(X) for candidate in default_candidates(dimension)]
    spreads = np.array([np.diag(K).mean() - K.mean() for K in covariances])
    assert spreads[:8] == pytest.approx(1.0, abs=0.15)  # the others have effects of arms as well


def test_a_corrected_outcome_counts_as_if_learned_so_with_a_dictionary():
    X, y = data(300)
    wrong = y.copy()
    wrong[[5, 250]] += [2.0, -3.0]
    right, corrected = Member(RBF(0.5), RATIO), Member(RBF(0.5), RATIO)
    right.learn(Prediction.of(X), y, np.ones(300))
    corrected.learn(Prediction.of(X), wrong, np.ones(300))
    assert corrected.posterior.rank < 300
    corrected.correct(X[[5, 250]], wrong[[5, 250]], y[[5, 250]])
    assert corrected.evidence(PRIOR) == pytest.approx(right.evidence(PRIOR), rel=1e-4)
    np.testing.assert_allclose(corrected.scale(PRIOR), right.scale(PRIOR), rtol=1e-4)
    x = np.random.default_rng(1).random((20, 2))
    np.testing.assert_allclose(
        corrected.posterior.predict(x).mean, right.posterior.predict(x).mean, atol=1e-7
    )
