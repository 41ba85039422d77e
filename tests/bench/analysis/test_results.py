from __future__ import annotations

import json

import pandas as pd
import pytest

from oclok.bench.analysis.tables import load, write_table
from oclok.errors import DataError


def keep(folder, rounds, settings=None):
    write_table(rounds, folder / "results.csv.gz")
    if settings is not None:
        (folder / "settings.json").write_text(json.dumps(settings))


def test_what_was_written_is_read(make_results, tmp_path):
    rounds = make_results("movies", repeats=2)
    keep(tmp_path, rounds, {"title": "Simulation III", "notes": "a slice"})
    results = load(tmp_path)
    pd.testing.assert_frame_equal(results.rounds, rounds, check_dtype=False)
    assert (results.title, results.experiment) == ("Simulation III", "movies")
    assert (results.horizon, results.repeats) == (400, 2)
    assert (results.data, results.notes) == (["made-up movies"], ["a slice"])


def test_columns_that_follow_from_others_may_be_missing(make_results, tmp_path):
    full = make_results("movies", repeats=1)
    few = full[["policy", "round", "expected_reward", "best_expected_reward"]]
    keep(tmp_path, few, {"experiment": "movies"})
    rounds = load(tmp_path).rounds
    pd.testing.assert_series_equal(rounds["regret"], full["regret"])
    assert set(rounds["variant"]) == {""}
    assert set(rounds["horizon"]) == {400}
    assert set(rounds["experiment"]) == {"movies"}


def test_a_missing_variant_is_no_variant(make_results, tmp_path):
    keep(tmp_path, make_results("movies", repeats=1).assign(variant=None))
    assert set(load(tmp_path).rounds["variant"]) == {""}


def test_notes_of_problem_and_policies_are_kept(make_results, tmp_path):
    rounds = make_results("movies", repeats=1)
    keep(
        tmp_path,
        rounds,
        {"runs": {"notes": "few movies"}, "policy_notes": {"ACC-UCB": "as published"}},
    )
    assert load(tmp_path).notes == ["few movies", "ACC-UCB: as published"]


def test_the_chosen_oracle_is_found(make_results, tmp_path):
    keep(tmp_path, make_results("movies", repeats=1), {"options": {"oracle": "tim+"}})
    assert load(tmp_path).oracle == "tim+"


def test_bad_folders_are_named_with_what_is_wrong(make_results, tmp_path):
    with pytest.raises(DataError, match=r"no results\.csv\.gz"):
        load(tmp_path)
    (tmp_path / "results.csv.gz").write_text("not a table")
    with pytest.raises(DataError, match="not a readable table"):
        load(tmp_path)
    rounds = make_results("movies", repeats=1)
    keep(tmp_path, rounds.drop(columns="expected_reward"))
    with pytest.raises(DataError, match="no column expected_reward"):
        load(tmp_path)
    keep(tmp_path, rounds.iloc[:0])
    with pytest.raises(DataError, match="no rows"):
        load(tmp_path)
    keep(tmp_path, rounds, [])
    with pytest.raises(DataError, match="JSON object"):
        load(tmp_path)
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(DataError, match="not readable as JSON"):
        load(tmp_path)


def test_a_mix_of_package_versions_is_a_note(make_results, tmp_path):
    rounds = make_results("movies", repeats=1)
    keep(tmp_path, rounds, {"runs": {"versions": {"numpy": "2.0, 2.1", "oclok": "1"}}})
    assert load(tmp_path).notes == [
        "runs were made with several versions of packages: numpy 2.0, 2.1"
    ]
