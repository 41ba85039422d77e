from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, t

from oclok.bench.analysis.paired import LEVEL, student_interval
from oclok.bench.report import checks
from oclok.bench.report.checks import conjunction, disjunction, quantity
from oclok.bench.report.scores import Scores


def test_the_interval_is_student_s():
    values = np.random.default_rng(0).normal(2.0, 3.0, 7)
    expected = t.interval(LEVEL, 6, values.mean(), values.std(ddof=1) / np.sqrt(7))
    np.testing.assert_allclose(student_interval(values), expected)


@pytest.mark.parametrize(
    ("least", "most", "holds"),
    [(0.0, 5.0, True), (4.0, 5.0, False), (-1.0, 0.0, False), (2.0, 5.0, None), (0.0, 2.0, None)],
)
def test_a_quantity_holds_if_its_interval_is_inside_and_fails_if_it_is_outside(least, most, holds):
    values = np.array([1.9, 2.0, 2.1])
    assert quantity("x", values, least, most).holds is holds
    assert quantity("x", values[:1], least, most).holds is None


def test_a_limit_that_is_met_exactly_is_met():
    assert quantity("x", np.full(3, 0.1 + 0.2), most=0.3).holds is True


def test_what_is_not_known_leaves_open_only_what_depends_on_it():
    assert conjunction([True, None]) is None
    assert conjunction([False, None]) is False
    assert conjunction([True, True]) is True
    assert disjunction([True, None]) is True
    assert disjunction([False, None]) is None
    assert disjunction([False, False]) is False


@pytest.mark.parametrize(("good", "repeats"), [(0, 9), (7, 9), (9, 9), (100, 100), (97, 100)])
def test_shares_of_runs_have_exact_binomial_intervals(make_results, good, repeats):
    results = make_results("movies", repeats=1)
    one = results[(results["policy"] == "ACC-UCB") & (results["round"] <= 2)].assign(
        certificate_widths=1.0
    )
    runs = pd.concat([one.assign(repeat=i, in_band=float(i < good)) for i in range(repeats)])
    ends = binomtest(good, repeats).proportion_ci(LEVEL, method="exact")
    finding = checks.bands_hold(Scores(runs))
    assert f"in {good} of {repeats} runs ({ends.low:.0%} to {ends.high:.0%})" in finding.measured
    assert finding.holds is (True if ends.low >= 0.95 else False if ends.high < 0.95 else None)


def test_times_are_read_in_milliseconds_and_compared_with_minutes(make_results):
    results = make_results("movies", repeats=2)
    policy = results["policy"].iloc[0]
    finding = checks.takes_more_than(1, policy).measure(Scores(results.assign(seconds=0.25)))
    assert finding.measured == f"{policy}, ms per round: 250 (250 to 250)"
    assert finding.holds is False
    assert checks.takes_more_than(1, policy).measure(Scores(results.assign(seconds=61.0))).holds


def test_twice_as_fast_and_twice_the_reward_are_found(make_results):
    results = make_results("movies", repeats=4)
    one, other = list(dict.fromkeys(results["policy"]))[:2]
    is_one = (results["policy"] == one).to_numpy()
    reward, seconds = np.where(is_one, 2.0, 1.0), np.where(is_one, 1.0, 2.0)
    scores = Scores(results.assign(expected_reward=reward, seconds=seconds))
    pair = [one], [other]
    for check in (checks.faster(*pair, least=1.5), checks.better(*pair, 0.5)):
        assert check.measure(scores).holds is True
    for check in (checks.faster(*pair, least=3.0), checks.better(*pair, 1.5)):
        assert check.measure(scores).holds is False
