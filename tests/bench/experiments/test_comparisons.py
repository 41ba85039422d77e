from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oclok.bench.experiments import run, table_experiment
from oclok.errors import DataError, ExperimentError


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"day": np.repeat(np.arange(30), 8)})
    frame["price"] = rng.uniform(5, 20, len(frame))
    frame["sold"] = 1000 + 300 * np.exp(-(((frame["price"] - 12) / 3) ** 2))
    path = tmp_path_factory.mktemp("data") / "shop.csv"
    frame.to_csv(path, index=False)
    return path


def test_all_policies_play_every_round_and_those_that_learn_beat_chance(file, tmp_path):
    shop = table_experiment(file, 2, "day", "sold")
    settings = shop.settings(repeats=2, policies=["bayes-ucb", "c2ucb", "ε-greedy-ridge", "random"])
    table = run(shop, settings, tmp_path, jobs=1)
    assert set(table["horizon"]) == {30}
    assert set(table["problem_k"]) == {2}
    regret = table.groupby("policy")["regret"].sum()
    assert regret["Bayes-UCB"] < 0.5 * regret["Random"]
    orders = table[table["policy"] == "Random"].groupby("repeat")["best_expected_reward"]
    first, second = (list(values) for _, values in orders)
    assert first != second
    assert sorted(first) == pytest.approx(sorted(second))


def test_every_policy_can_play(file, tmp_path):
    shop = table_experiment(file, 2, "day", "sold")
    labels = set(run(shop, shop.settings(rounds=2, repeats=1), tmp_path, jobs=1)["policy"])
    assert labels == {spec.label for spec in shop.policies}
    assert len(labels) >= 11
    assert shop.policies[0].label == "UCB"  # the one that needs no kernel


def test_named_features_leave_other_columns_out(file, tmp_path):
    frame = pd.read_csv(file).assign(shop="corner")
    other = tmp_path / "shop.csv"
    frame.to_csv(other, index=False)
    with pytest.raises(DataError, match="column 'shop' must be numeric"):
        table_experiment(other, 2, "day", "sold")
    shop = table_experiment(other, 2, "day", "sold", ["price"])
    assert shop.problem(shop.settings(), "", 30, 0).features == ["price"]


@pytest.mark.parametrize("missing", [{"data": None}, {"k": None}])
def test_file_and_number_are_needed(file, missing):
    given = {"data": file, "k": 2, "round_column": "day", "outcome_column": "sold"}
    with pytest.raises(ExperimentError, match=r"--data my\.csv --k 5"):
        table_experiment(**(given | missing))


def test_a_column_that_is_not_there_is_an_error_that_names_it(file):
    with pytest.raises((DataError, ValueError), match="round"):
        table_experiment(file, 2, "round", "sold")
