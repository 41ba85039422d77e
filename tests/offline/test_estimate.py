from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from oclok.offline import LoggedRound, OverlapWarning
from oclok.offline.estimate import LEAST_EFFECTIVE, estimate_from_scores
from oclok.oracles import TopK


def make(scores, weights, level=0.95):
    log = [LoggedRound([[0.0]], [0], [1.0], TopK(1))] * max(len(scores), 1)
    return estimate_from_scores("a test", scores, weights, log, level, "all is well")


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_without_skewness_and_tails_the_interval_is_that_of_a_t_test(level):
    half = np.random.default_rng(0).uniform(1, 5, 25)  # no long tails either
    scores = np.concatenate([half, 6 - half])
    estimate = make(scores, np.ones(50), level)
    judge = stats.ttest_1samp(scores, 0).confidence_interval(level)
    assert estimate.value == pytest.approx(scores.mean())
    assert (estimate.lower, estimate.upper) == pytest.approx((judge.low, judge.high))
    assert estimate.effective_sample_size == pytest.approx(50)
    assert estimate.warnings == ()


def test_the_ends_are_where_halls_transformation_meets_students_quantiles():
    rng = np.random.default_rng(0)
    scores, weights = rng.standard_t(5, size=80), rng.exponential(size=80)
    estimate = make(scores, weights)
    a = stats.skew(scores) / np.sqrt(80)
    ends = np.array([estimate.upper, estimate.lower])
    x = (scores.mean() - ends) / stats.sem(scores)
    g = x + a * x**2 / 3 + a**2 * x**3 / 27 + a / 6
    z, skewness, kurtosis = 1.959963985, stats.skew(scores), stats.kurtosis(scores)
    tails = kurtosis * (z**3 / 4 + 5 * z / 12) - skewness**2 * (11 * z**3 / 27 + 31 * z / 72)
    reach = stats.t.ppf(0.975, estimate.effective_sample_size - 1) + max(tails, 0) / 80
    assert tails > 0 < skewness
    np.testing.assert_allclose(g, [-reach, reach])
    assert estimate.upper - scores.mean() > scores.mean() - estimate.lower


def test_turning_scores_round_turns_the_interval_round():
    scores = np.random.default_rng(0).exponential(size=80)
    there, back = make(scores, np.ones(80)), make(-scores, np.ones(80))
    assert (there.lower, there.upper) == pytest.approx((-back.upper, -back.lower))


def test_equal_scores_have_an_interval_of_one_point():
    estimate = make(np.full(40, 2.5), np.ones(40))
    assert estimate.lower == estimate.value == estimate.upper == 2.5


def test_skewed_scores_are_covered_from_both_sides_where_a_t_test_misses_on_one():
    rng = np.random.default_rng(0)
    below = above = missed_by_t = 0
    for _ in range(1000):
        weights = 6.0 * (rng.random(240) < 1 / 6)
        scores = 0.9 - weights * rng.exponential(0.04, 240)  # a reward close to saturation
        estimate = make(scores, weights)
        below += estimate.lower > 0.86
        above += estimate.upper < 0.86
        reach = stats.t.ppf(0.975, 239) * stats.sem(scores)
        missed_by_t += abs(scores.mean() - 0.86) > reach
    assert max(below, above) < 35
    assert missed_by_t > 60


def test_long_tails_are_covered_where_skewness_alone_misses():
    rng = np.random.default_rng(0)
    missed = without_tails = 0
    for _ in range(2000):
        weights = 6.0 * (rng.random(240) < 1 / 6)
        scores = weights * rng.laplace(size=240)
        estimate = make(scores, weights)
        missed += not estimate.lower <= 0 <= estimate.upper
        a = stats.skew(scores) / np.sqrt(240) / 3
        x = scores.mean() / stats.sem(scores)
        g = x + a * x**2 + a**2 * x**3 / 3 + a / 2
        without_tails += abs(g) > stats.t.ppf(0.975, estimate.effective_sample_size - 1)
    assert missed < 0.065 * 2000 < without_tails


def test_the_effective_sample_size_is_kishs():
    weights = np.repeat([0.0, 4.0], [75, 25])
    estimate = make(np.ones(100), weights)
    assert estimate.effective_sample_size == 25
    assert estimate.matched == 25


def test_a_log_without_overlap_gives_no_number_and_a_warning():
    estimate = make(np.zeros(100), np.zeros(100))
    assert np.isnan([estimate.value, estimate.lower, estimate.upper]).all()
    assert isinstance(estimate.warnings[0], OverlapWarning)
    assert "cannot answer" in str(estimate.warnings[0])
    assert make(np.empty(0), np.empty(0)).matched == 0


def test_it_warns_of_little_overlap():
    few = np.zeros(1000)
    few[: LEAST_EFFECTIVE - 1] = 1000 / (LEAST_EFFECTIVE - 1)
    (warning,) = make(np.ones(1000), few).warnings
    assert "worth 29.0 rounds" in str(warning)


def test_it_warns_of_weights_that_contradict_the_propensities():
    rng = np.random.default_rng(0)
    right, wrong = rng.exponential(1.0, 400), rng.exponential(0.5, 400)
    assert make(np.ones(400), right).warnings == ()
    (warning,) = make(np.ones(400), wrong).warnings
    assert "where 1 is expected" in str(warning)


def test_it_is_frozen_and_says_what_it_is():
    estimate = make(np.random.default_rng(0).normal(size=20), np.ones(20))
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 1.0
    text = repr(estimate)
    assert "a test:" in text
    assert "95% interval" in text
    assert "assumes that all is well" in text
    assert "WARNING: the log cannot answer" in text
    table = estimate.table()
    assert len(table) == 1
    assert table["value"][0] == estimate.value
    assert "cannot answer" in table["warnings"][0]
