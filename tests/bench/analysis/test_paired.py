from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oclok.bench.analysis import compare
from oclok.bench.analysis.paired import bootstrap_interval, holm
from oclok.errors import InputError


def rounds_of(regrets: dict[str, list[float]], variant: str = "") -> pd.DataFrame:
    """Return a table of two rounds per run with these final regrets, by policy and repeat."""
    rows = [
        {"variant": variant, "policy": policy, "repeat": repeat, "round": t, "regret": regret / 2}
        for policy, values in regrets.items()
        for repeat, regret in enumerate(values)
        for t in (1, 2)
    ]
    return pd.DataFrame(rows).assign(expected_reward=1.0, best_expected_reward=1.0)


#: Mean regrets 10 and 30, with ratios that swing: 1, 1, 1, 1, 1 and 21.
SWINGING = {"ref": [10, 12, 8, 14, 6, 10], "other": [10, 12, 8, 14, 6, 210]}


def test_differences_ratios_and_p_values_are_those_of_the_textbook():
    rng = np.random.default_rng(0)
    ours, ref = rng.gamma(9, 2.0, 8), rng.gamma(9, 1.0, 8)
    row = compare(rounds_of({"ref": ref.tolist(), "ours": ours.tolist()})).loc[("", "ours")]
    assert row["repeats"] == 8
    assert row["regret"] == pytest.approx(ours.mean())
    assert row["reference_regret"] == pytest.approx(ref.mean())
    assert row["difference"] == pytest.approx((ours - ref).mean())
    assert row["ratio"] == pytest.approx(stats.gmean(ours / ref))
    assert row["p_value"] == pytest.approx(stats.ttest_rel(ours, ref).pvalue)
    assert row["p_holm"] == row["p_value"]
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert 0 < row["ratio_low"] < row["ratio"] < row["ratio_high"]


def test_the_interval_of_a_ratio_is_that_of_ratios_and_not_of_differences():
    twice = {label: [*values, *(1.1 * np.array(values))] for label, values in SWINGING.items()}
    twice["other"][-1] *= 2
    row = compare(rounds_of(twice)).loc[("", "other")]
    logs = np.log(np.array(twice["other"]) / np.array(twice["ref"]))
    n = len(logs)
    drawn = np.random.default_rng(1).choice(logs, (100_000, n))
    varied = drawn[drawn.std(axis=1) > 0]
    t = (varied.mean(axis=1) - logs.mean()) / (varied.std(axis=1, ddof=1) / np.sqrt(n))
    low, high = np.quantile(t, [0.025, 0.975]) * logs.std(ddof=1) / np.sqrt(n)
    assert row["ratio_low"] == pytest.approx(np.exp(logs.mean() - high), rel=0.05)
    assert row["ratio_high"] == pytest.approx(np.exp(logs.mean() - low), rel=0.1)


def test_swapping_policy_and_reference_turns_ratios_over_and_differences_round():
    table = rounds_of({"a": [3, 5, 4, 6, 7, 5], "b": [6, 8, 9, 9, 12, 11]})
    there, back = compare(table, "a").loc[("", "b")], compare(table, "b").loc[("", "a")]
    assert back["ratio"] == pytest.approx(1 / there["ratio"])
    assert back["difference"] == pytest.approx(-there["difference"])
    assert back["p_value"] == pytest.approx(there["p_value"])


def test_what_all_policies_share_in_a_repeat_does_not_widen_the_intervals():
    easy_and_hard = np.array([1.0, 10.0, 100.0, 2.0, 50.0, 7.0])
    table = rounds_of({"ref": easy_and_hard.tolist(), "twice": (2 * easy_and_hard).tolist()})
    row = compare(table).loc[("", "twice")]
    np.testing.assert_allclose(row[["ratio", "ratio_low", "ratio_high"]].astype(float), 2)


@pytest.mark.parametrize("n", [5, 10, 20])
def test_intervals_cover_the_mean_about_as_often_as_they_say(n):
    rng = np.random.default_rng(n)
    hits = [
        low <= 0 <= high
        for low, high in (bootstrap_interval(rng.normal(size=n), rng) for _ in range(600))
    ]
    assert 0.91 < np.mean(hits) < 0.98


def test_few_repeats_have_students_interval_and_one_has_none():
    for values in (np.array([1.0, 2.0, 4.0]), np.array([2.08, 0.18, -0.1, 1.79, -0.1])):
        expected = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose(bootstrap_interval(values, None), expected)
    row = compare(rounds_of({"a": [1.0], "b": [2.0]})).loc[("", "b")]
    assert row[["difference_low", "ratio_high", "p_value", "p_holm"]].isna().all()
    assert (row["difference"], row["ratio"]) == (1.0, 2.0)


def test_a_regret_that_is_not_positive_has_a_difference_but_no_ratio():
    row = compare(rounds_of({"a": [1, 2, 3, 1, 2], "b": [2, 3, 5, -1, 2]})).loc[("", "b")]
    assert np.isnan(row["ratio"])
    assert row["difference"] == pytest.approx(0.4)


def test_the_same_regret_in_all_repeats_is_no_difference():
    row = compare(rounds_of({"a": [1, 2, 3, 1, 2], "b": [1, 2, 3, 1, 2]})).loc[("", "b")]
    assert (row["difference_low"], row["difference_high"], row["p_value"]) == (0, 0, 1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_holm_rejects_what_its_definition_rejects(p_values):
    corrected = holm(pd.Series(p_values))
    for level in (0.01, 0.05, 0.3):
        rejected, order = set(), np.argsort(p_values, kind="stable")
        for rank, i in enumerate(order):
            if p_values[i] > level / (len(p_values) - rank):
                break
            rejected.add(int(i))
        close = {i for i, p in enumerate(corrected) if abs(p - level) < 1e-9}
        assert set(np.flatnonzero(corrected <= level).tolist()) - close == rejected - close


def test_corrections_are_for_the_policies_of_a_variant():
    rng = np.random.default_rng(0)
    regrets = {name: rng.gamma(9, 1.0, 6).tolist() for name in "abcd"}
    table = pd.concat([rounds_of(regrets, v) for v in ("one", "two")])
    compared = compare(table, "b")
    assert compared.index.tolist() == [(v, p) for v in ("one", "two") for p in "acd"]
    for _, part in compared.groupby(level="variant"):
        assert part["p_holm"].max() <= 1
        lowest = part["p_value"].idxmin()
        assert part.loc[lowest, "p_holm"] == pytest.approx(min(1, 3 * part.loc[lowest, "p_value"]))


def test_only_repeats_of_both_are_compared_and_the_order_of_rows_does_not_matter(make_results):
    results = make_results("movies", repeats=4)
    fewer = results[(results["policy"] != "ACC-UCB") | (results["repeat"] > 0)]
    compared = compare(fewer)
    assert compared["repeats"].tolist() == [4, 4, 3]
    shuffled = compare(fewer.sample(frac=1, random_state=0), "SO'CLOK-UCB 4")
    pd.testing.assert_series_equal(
        shuffled["difference"].sort_index(), compared["difference"].sort_index()
    )


def test_an_unknown_reference_is_an_error(make_results):
    with pytest.raises(InputError, match="no policy 'UCB' to compare with"):
        compare(make_results("movies", repeats=2), "UCB")
