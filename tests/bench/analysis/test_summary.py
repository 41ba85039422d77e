from __future__ import annotations

import numpy as np
import pytest

from oclok.bench.analysis.summary import show_time, summarise


def test_a_row_says_what_a_plain_loop_finds(make_results):
    results = make_results("crowdsourcing", repeats=3)
    row = summarise(results).loc[("", "CC-MAB")]
    runs = results[(results["policy"] == "CC-MAB") & (results["horizon"] == 250)]
    parts = [run for _, run in runs.groupby("repeat")]
    rewards = [sum(p["expected_reward"]) / sum(p["best_expected_reward"]) for p in parts]
    regrets = [sum(p["regret"]) for p in parts]
    assert row["reward"] == pytest.approx(np.mean(rewards))
    assert row["reward_std"] == pytest.approx(np.std(rewards, ddof=1))
    assert row["regret"] == pytest.approx(np.mean(regrets))
    assert row["regret_std"] == pytest.approx(np.std(regrets, ddof=1))
    assert row["milliseconds"] == pytest.approx(1e3 * np.median(runs["seconds"]))


def test_rows_come_by_lengthscale_and_then_in_the_order_of_figures(make_results):
    index = summarise(make_results("codependency", repeats=1)).index
    assert list(dict.fromkeys(index.get_level_values("variant")))[-2:] == ["l=0.5", "l=1"]
    assert index.get_level_values("policy")[:6].tolist() == [
        *("O'CLOK-UCB", "SO'CLOK-UCB 100", "SO'CLOK-UCB 50", "SO'CLOK-UCB 20"),
        *("ACC-UCB", "CC-MAB"),
    ]


def test_there_is_no_ratio_where_the_benchmark_is_not_positive_in_every_repeat(make_results):
    results = make_results("codependency", repeats=2)
    negative = (results["variant"] == "l=1") & (results["repeat"] == 1)
    results.loc[negative, ["expected_reward", "best_expected_reward"]] -= 5
    table = summarise(results)
    assert table.loc["l=1", ["reward", "reward_std"]].isna().all(axis=None)
    assert table.drop("l=1")["reward"].notna().all()
    assert table["regret"].notna().all()


def test_one_repeat_has_no_spread_and_missing_times_are_unknown(make_results):
    table = summarise(make_results("movies", repeats=1).drop(columns="seconds"))
    assert (table[["reward_std", "regret_std"]] == 0).all(axis=None)
    assert table["milliseconds"].isna().all()
    assert show_time(float("nan")) == "–"
