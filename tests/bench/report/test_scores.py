from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.bench.report.scores import NoRatio, NotMeasured, Scores


@pytest.fixture(scope="module")
def results(make_results):
    return make_results("codependency", repeats=3)


def test_ratios_and_regrets_are_sums_over_the_longest_run_of_each_repeat(results):
    scores = Scores(results)
    for repeat in range(3):
        run = results.query(
            "variant == 'l=0.5' and policy == 'ACC-UCB' and horizon == 300 and repeat == @repeat"
        )
        ratio = run["expected_reward"].sum() / run["best_expected_reward"].sum()
        assert scores.ratio("ACC-UCB", 0.5)[repeat] == pytest.approx(ratio)
        assert scores.regret("ACC-UCB", 0.5)[repeat] == pytest.approx(run["regret"].sum())


def test_a_benchmark_that_is_not_positive_has_no_ratio(results):
    loss = 5.0 * ((results["variant"] == "l=1") & (results["repeat"] == 2))
    scores = Scores(results.assign(best_expected_reward=results["best_expected_reward"] - loss))
    with pytest.raises(NoRatio, match="negative in 1 of 3 repeats"):
        scores.ratio("ACC-UCB", 1.0)
    assert scores.ratio("ACC-UCB", 0.5).shape == (3,)
    assert scores.regret("ACC-UCB", 1.0).shape == (3,)


def test_what_is_absent_is_not_measured(results):
    with pytest.raises(NotMeasured, match="no Random at l = 1"):
        Scores(results).ratio("Random", 1.0)


def test_repeats_that_share_their_rounds_are_one_draw(results):
    first = results[results["repeat"] == 0]
    shared = pd.concat([first, first.assign(repeat=1), first.assign(repeat=2)])
    assert Scores(shared).draws == 1
    assert Scores(results).draws == 3


def test_growth_is_the_power_of_the_time_of_each_repeat(make_results):
    results = make_results("crowdsourcing", repeats=2)
    results = results.assign(seconds=results["round"] ** (0.5 + results["repeat"]))
    np.testing.assert_allclose(Scores(results).growth("ACC-UCB"), [0.5, 1.5])
