from __future__ import annotations

import io

import pytest
from rich.console import Console

from oclok.bench.analysis import compare
from oclok.bench.cli.tables import experiments_table, paired_table, policies_table, summary_table
from oclok.bench.experiments import EXPERIMENTS, run


def printed(table, width=110):
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_summary_has_the_numbers_of_the_table(tmp_path):
    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=5, repeats=2, policies=["random"])
    results = run(channels, settings, tmp_path, jobs=1)
    table = summary_table(results, channels.title, {"Random": "learns nothing"})
    text = printed(table)
    runs = results.groupby("repeat")[["expected_reward", "best_expected_reward", "regret"]].sum()
    ratio = (runs["expected_reward"] / runs["best_expected_reward"]).agg(["mean", "std"])
    assert f"{ratio['mean']:.3f} ± {ratio['std']:.3f}" in text
    assert f"{runs['regret'].mean():.1f} ± {runs['regret'].std():.1f}" in text
    assert "Random*" in text
    assert "* Random: learns nothing" in text


def test_the_paired_table_has_intervals_and_p_values_of_all_but_the_reference(make_results):
    results = make_results("movies", repeats=3)
    text = printed(paired_table(results, "ACC-UCB"))
    compared = compare(results, "ACC-UCB")
    for (_, policy), row in compared.iterrows():
        line = next(line for line in text.splitlines() if policy in line)
        assert f"{row['ratio']:.2f} ({row['ratio_low']:.2f} to {row['ratio_high']:.2f})" in line
    assert "Holm" in text
    assert paired_table(make_results("movies", repeats=1), "ACC-UCB") is None


def test_what_can_be_run_is_listed_with_its_size():
    text = printed(experiments_table(EXPERIMENTS.values()))
    for name, experiment in EXPERIMENTS.items():
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert str(experiment.rounds) in line
        assert experiment.title.split()[0] in line


def test_policies_are_listed_with_their_keys_and_parameters():
    text = printed(policies_table(EXPERIMENTS["crowdsourcing"]))
    assert "soclok-ucb-20" in text
    assert "inducing=20" in text


def test_no_part_of_a_long_label_is_hidden(make_results):
    results = make_results("movies", repeats=3)
    long = "SO'CLOK-UCB kernel=Matern(length_scale=0.125,nu=2.5)"
    results = results.replace({"policy": {"SO'CLOK-UCB 4": long}})
    for table in (summary_table(results, ""), paired_table(results, "ACC-UCB")):
        lines = [line for line in printed(table, 80).splitlines() if "│" in line]
        policies = "".join(line.split("│")[1] for line in lines)
        assert long.replace(" ", "") in policies.replace(" ", "")


def test_a_ratio_that_means_nothing_is_a_dash(make_results):
    results = make_results("movies", repeats=2)
    results[["expected_reward", "best_expected_reward"]] -= 5
    lines = printed(summary_table(results, "")).splitlines()
    assert all("–" in line for line in lines if "SO'CLOK" in line)
