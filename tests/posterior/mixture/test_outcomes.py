"""Kinds of outcomes: ranges, and how their spread follows the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oclok.posterior.mixture.outcomes import LEAST, MET, OutcomeKind


def test_an_extreme_counts_as_the_end_once_it_was_met_often():
    y = np.array([0.0] * MET + [0.3] * 9 + [1.0] * (MET - 1))
    assert OutcomeKind.of(y)[:2] == (0.0, math.inf)
    assert OutcomeKind.of(np.append(y, 1.0))[:2] == (0.0, 1.0)


def test_zeros_alone_are_no_ceiling() -> None:
    assert OutcomeKind.of(np.zeros(30))[:2] == (0.0, math.inf)
    assert OutcomeKind.of(np.ones(30))[:2] == (1.0, 1.0)


def test_two_values_are_told_from_numbers_and_counts():
    rng = np.random.default_rng(0)
    two, counts = (rng.random(50) < 0.3) + 4.0, rng.poisson(2.0, 50).astype(float)
    assert OutcomeKind.of(two).is_binary
    assert not OutcomeKind.of(counts).is_binary
    assert OutcomeKind.of(counts).is_integer
    assert not OutcomeKind.of(rng.random(50)).is_integer


def test_spread_follows_the_mean_as_that_of_such_outcomes_does():
    two = OutcomeKind.of(np.array([0.0] * 80 + [1.0] * 20))
    means = np.array([0.2, 0.5, 0.1])
    np.testing.assert_allclose(two.factor(means), np.sqrt(means * (1 - means) / 0.16))
    counts = OutcomeKind.of(np.array([0.0, 1.0, 2.0, 1.0] * 10))
    np.testing.assert_allclose(counts.factor(np.array([1.0, 2.0])), [1.0, math.sqrt(2)])
    assert counts.factor(np.array([-3.0])) == pytest.approx(LEAST)


def test_of_other_outcomes_it_does_not():
    y = np.random.default_rng(0).random(100)
    assert OutcomeKind.of(y).factor(np.array([0.1, 0.9])).tolist() == [1.0, 1.0]
    assert OutcomeKind.of(np.zeros(30)).factor(np.array([0.0])).tolist() == [1.0]
