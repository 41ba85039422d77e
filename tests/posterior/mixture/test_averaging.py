"""Averages over members against sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.gaussian_process.kernels import RBF

from oclok.posterior.mixture.averaging import Average, Mixed
from oclok.posterior.mixture.members import Member, ScalePrior
from oclok.posterior.prediction import Prediction

PRIOR = ScalePrior(2.0, 0.3)


@pytest.fixture
def average():
    rng = np.random.default_rng(0)
    X, x = rng.random((12, 2)), rng.random((5, 2))
    y = np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(12)
    members = [Member(RBF(0.3), 0.1), Member(RBF(1.0), 0.03, penalty=0.5)]
    for member in members:
        member.learn(Prediction.of(X), y, np.ones(12))
    mixed = Mixed.of(members, PRIOR)
    return Average(mixed, [member.posterior.predict(x) for member in members])


def test_weights_are_proportional_to_the_evidence_less_the_penalty(average):
    members, weights = average.mixed.members, average.mixed.weights
    first, second = (member.evidence(PRIOR) for member in members)
    assert weights.sum() == pytest.approx(1.0)
    assert math.log(weights[0] / weights[1]) == pytest.approx(first - second)
    assert average.mixed.heaviest is members[int(np.argmax(weights))]
    assert [row[0] for row in average.mixed.rows()] == sorted(weights, reverse=True)


def test_moments_are_those_of_the_joint_covariance(average):
    mean, std = average.moments()
    covariance = average.covariance()
    np.testing.assert_allclose(std**2, np.diag(covariance), rtol=1e-9)
    weights = average.mixed.weights
    expected = sum(w * part.mean for w, part in zip(weights, average.parts, strict=True))
    np.testing.assert_allclose(mean, expected)
    between = weights @ (np.array([part.mean for part in average.parts]) - mean) ** 2
    assert (std**2 > between).all()


def test_some_of_the_contexts_have_some_of_the_moments(average):
    positions = np.array([3, 1])
    for part, whole in zip(average.at(positions).moments(), average.moments(), strict=True):
        np.testing.assert_array_equal(part, whole[positions])


def test_sharpening_what_is_sharp_changes_nothing(average):
    sharp = average.sharpened(np.arange(5))
    assert all(new is old for new, old in zip(sharp.parts, average.parts, strict=True))


def test_deviates_have_the_probability_of_students_t(average):
    shape, _ = average.mixed.heaviest.scale(PRIOR)
    z = np.array([-3.0, -0.5, 0.0, 1.0, 8.0])
    spread = math.sqrt((shape - 1) / shape)  # of t in standard deviations
    expected = norm.ppf(student.cdf(z / spread, 2 * shape))
    np.testing.assert_allclose(average.mixed.normal_deviates(z), expected, rtol=1e-6, atol=1e-12)
