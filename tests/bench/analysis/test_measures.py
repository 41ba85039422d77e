from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from oclok.bench.analysis import measures
from oclok.bench.analysis.tables import show_time
from oclok.errors import InputError


def one(table: pd.DataFrame, **chosen: object) -> pd.DataFrame:
    for name, value in chosen.items():
        table = table[table[name] == value]
    return table


def test_the_average_reward_is_a_ratio_of_sums_up_to_the_round(make_results):
    results = make_results("crowdsourcing", repeats=2)
    values = measures.reward_over_benchmark(results)
    run = one(results, policy="CC-MAB", repeat=1, horizon=250)
    for t in (1, 7, 250):
        head = run[run["round"] <= t]
        expected = sum(head["expected_reward"]) / sum(head["best_expected_reward"])
        assert one(values, policy="CC-MAB", repeat=1, round=t)["value"].item() == pytest.approx(
            expected
        )


def test_only_the_longest_runs_of_a_policy_are_averaged(make_results):
    longest = measures.longest_runs(make_results("crowdsourcing", repeats=1))
    assert set(longest["horizon"]) == {250}
    assert longest.groupby("policy").size().eq(250).all()


def test_regret_at_a_horizon_is_of_the_run_made_for_it(make_results):
    results = make_results("crowdsourcing", repeats=1)
    values = measures.regret_by_horizon(results)
    made_for_it = one(results, policy="ACC-UCB", horizon=100)["regret"].sum()
    assert one(values, policy="ACC-UCB", horizon=100)["value"].item() == pytest.approx(made_for_it)


def test_regret_of_a_policy_with_one_run_is_read_off_at_every_horizon(make_results):
    results = make_results("crowdsourcing", repeats=1)
    values = one(measures.regret_by_horizon(results), policy="O'CLOK-UCB")
    assert values["horizon"].tolist() == [50, 100, 150, 200, 250]
    run = one(results, policy="O'CLOK-UCB")
    for horizon, value in zip(values["horizon"], values["value"], strict=True):
        assert value == pytest.approx(run.loc[run["round"] <= horizon, "regret"].sum())


def test_with_one_horizon_regret_is_given_for_every_round(make_results):
    results = make_results("movies", repeats=1)
    values = one(measures.regret_by_horizon(results), policy="ACC-UCB")
    assert values["horizon"].tolist() == list(range(1, 401))
    regret = one(results, policy="ACC-UCB")["regret"]
    np.testing.assert_allclose(values["value"], np.cumsum(regret))


def test_the_order_of_rows_does_not_matter(make_results):
    results = make_results("crowdsourcing", repeats=2)
    shuffled = results.sample(frac=1, random_state=0)
    for measure in (measures.reward_over_benchmark, measures.regret_by_horizon):
        ordered = measures.spread(measure(results))
        pd.testing.assert_frame_equal(ordered, measures.spread(measure(shuffled)))


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6))
def test_spread_is_mean_and_sample_deviation_and_zero_for_one_repeat(values):
    table = pd.DataFrame({"variant": "", "policy": "p", "value": values})
    spread = measures.spread(table).iloc[0]
    assert spread["mean"] == pytest.approx(np.mean(values), abs=1e-9)
    expected = np.std(values, ddof=1) if len(values) > 1 else 0.0
    assert spread["std"] == pytest.approx(expected, abs=1e-9)


def test_times_are_running_medians_of_quartiles_over_repeats(make_results):
    results = make_results("movies", repeats=5)
    smooth = measures.smooth_quartiles(measures.milliseconds(results))
    times = one(results, policy="ACC-UCB").pivot(index="round", columns="repeat", values="seconds")
    middle = 1e3 * np.median(times.loc[96:104], axis=1)
    assert smooth.loc[("", "ACC-UCB", 100), "middle"] == pytest.approx(np.median(middle))
    assert (smooth["low"] <= smooth["middle"]).all()
    assert (smooth["middle"] <= smooth["high"]).all()


def test_a_band_that_failed_once_has_not_held_since(make_results):
    results = make_results("crowdsourcing", repeats=2, certificates=True)
    held = measures.held_so_far(measures.where_known(results, "in_band"))
    assert set(held["policy"]) == {"O'CLOK-UCB"}
    assert one(held, repeat=0)["value"].tolist() == [1.0] * 250
    assert one(held, repeat=1)["value"].tolist() == [1.0] * 119 + [0.0] * 131


def test_alpha_regret_stands_in_for_regret_only_where_it_is_known(make_results):
    results = make_results("movies", repeats=1)
    plain = measures.cumulative_alpha_regret(results)["value"]
    unknown = measures.cumulative_alpha_regret(results.assign(alpha_regret=np.nan))["value"]
    halved = results.assign(alpha_regret=results["regret"] / 2)
    np.testing.assert_allclose(unknown, plain)
    np.testing.assert_allclose(measures.cumulative_alpha_regret(halved)["value"], plain / 2)


def test_a_column_without_numbers_is_as_good_as_missing(make_results):
    results = make_results("movies", repeats=1)
    assert not measures.knows(results, "in_band")
    assert not measures.knows(results.assign(in_band=np.nan), "in_band")
    with pytest.raises(InputError, match="no rows with in_band"):
        measures.where_known(results, "in_band")


@given(st.permutations(["l=0.5", "l=10", "l=1"]), st.permutations(["B", "A", "C"]))
def test_variants_and_policies_keep_the_order_of_the_table(variants, policies):
    pairs = [(v, p) for v in variants for p in policies for _ in range(2)]
    table = pd.DataFrame(pairs, columns=["variant", "policy"])
    assert (measures.variants(table), measures.policies(table)) == (variants, policies)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=6))
def test_bands_are_deviations_errors_and_students_intervals(values):
    table = pd.DataFrame({"variant": "", "policy": "p", "x": 1, "value": values})
    std = np.std(values, ddof=1)
    error = std / np.sqrt(len(values))
    expected = {"std": std, "stderr": error, "ci95": stats.t.ppf(0.975, len(values) - 1) * error}
    for kind, half in expected.items():
        row = measures.band(table, "x", kind).iloc[0]
        assert row["middle"] == pytest.approx(np.mean(values), abs=1e-9)
        assert row["high"] - row["middle"] == pytest.approx(half, abs=1e-9)
        assert row["middle"] - row["low"] == pytest.approx(half, abs=1e-9)


def test_a_row_says_what_a_plain_loop_finds(make_results):
    results = make_results("crowdsourcing", repeats=3)
    row = measures.summarise(results).loc[("", "CC-MAB")]
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
    index = measures.summarise(make_results("codependency", repeats=1)).index
    assert list(dict.fromkeys(index.get_level_values("variant")))[-2:] == ["l=0.5", "l=1"]
    assert index.get_level_values("policy")[:6].tolist() == [
        *("O'CLOK-UCB", "SO'CLOK-UCB 100", "SO'CLOK-UCB 50", "SO'CLOK-UCB 20"),
        *("ACC-UCB", "CC-MAB"),
    ]


def test_there_is_no_ratio_where_the_benchmark_is_not_positive_in_every_repeat(make_results):
    results = make_results("codependency", repeats=2)
    negative = (results["variant"] == "l=1") & (results["repeat"] == 1)
    results.loc[negative, ["expected_reward", "best_expected_reward"]] -= 5
    table = measures.summarise(results)
    assert table.loc["l=1", ["reward", "reward_std"]].isna().all(axis=None)
    assert table.drop("l=1")["reward"].notna().all()
    assert table["regret"].notna().all()


def test_one_repeat_has_no_spread_and_missing_times_are_unknown(make_results):
    table = measures.summarise(make_results("movies", repeats=1).drop(columns="seconds"))
    assert (table[["reward_std", "regret_std"]] == 0).all(axis=None)
    assert table["milliseconds"].isna().all()
    assert show_time(float("nan")) == "–"
