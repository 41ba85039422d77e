from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

from oclok.bench.analysis.tables import read_table
from oclok.bench.experiments import ResultsFolder, Run
from oclok.errors import ExperimentError

SETTINGS = {"experiment": "small", "rounds": 20}
RUN, OTHER = Run("k=2", "Random", 20, 0), Run("", "SO'CLOK-UCB 4", 20, 1)


@pytest.fixture
def folder(tmp_path):
    folder = ResultsFolder(tmp_path / "results")
    folder.open(SETTINGS)
    return folder


def test_a_kept_run_is_there_and_comes_back(folder):
    table = pd.DataFrame({"policy": "Random", "round": [1, 2], "reward": [0.1, 1 / 3]})
    assert not folder.has(RUN)
    folder.keep(RUN, table)
    assert folder.has(RUN)
    assert not folder.has(OTHER)
    assert folder.gather([RUN]).equals(table)
    assert read_table(folder.path / "results.csv.gz").equals(table)


def test_gathered_tables_are_in_the_order_of_the_runs_with_the_notes_of_any(folder):
    for run, notes in [(OTHER, ""), (RUN, "few users")]:
        table = pd.DataFrame({"repeat": [run.repeat]})
        table.attrs["notes"] = notes
        folder.keep(run, table)
    whole = folder.gather([OTHER, RUN])
    assert whole["repeat"].tolist() == [1, 0]
    kept = json.loads((folder.path / "settings.json").read_text())["runs"]
    assert whole.attrs["notes"] == kept["notes"] == "few users"


def test_the_same_experiment_goes_on_and_another_is_an_error(folder):
    folder.keep(RUN, pd.DataFrame({"round": [1]}))
    folder.open({**SETTINGS, "rounds": 30})
    assert folder.has(RUN)
    with pytest.raises(ExperimentError, match=r"results of small, not of large.*--output.*--fresh"):
        folder.open({**SETTINGS, "experiment": "large"})
    assert folder.has(RUN)


def test_a_run_with_another_identity_is_another_run(folder):
    folder.keep(replace(RUN, identity="a"), pd.DataFrame({"round": [1]}))
    assert folder.has(replace(RUN, identity="a"))
    assert not folder.has(replace(RUN, identity="b"))


def test_gathered_tables_say_when_and_with_what_they_were_made(folder):
    made = [("2026-02-02", "2.0"), ("2026-01-01", "2.1"), ("2026-01-03", "2.0")]
    runs = [replace(RUN, repeat=repeat) for repeat in range(3)]
    for run, (date, version) in zip(runs, made, strict=True):
        table = pd.DataFrame({"repeat": [run.repeat]})
        table.attrs = {"date": date, "versions": {"numpy": version, "oclok": "1"}}
        folder.keep(run, table)
    attrs = folder.gather(runs).attrs
    assert attrs["dates"] == ["2026-01-01", "2026-02-02"]
    assert attrs["versions"] == {"numpy": "2.0, 2.1", "oclok": "1"}
    assert json.loads((folder.path / "settings.json").read_text())["runs"] == attrs


def test_parameters_of_several_types_share_a_column_as_text(folder):
    runs = [replace(RUN, repeat=repeat) for repeat in range(3)]
    for run, value in zip(runs, [0.5, "auto", None], strict=True):
        folder.keep(run, pd.DataFrame({"repeat": [run.repeat], "policy_width": [value]}))
    folder.gather(runs)
    assert read_table(folder.path / "results.csv.gz")["policy_width"].tolist()[:2] == [
        "0.5",
        "auto",
    ]
    assert read_table(folder.path / "results.csv.gz")["policy_width"].isna().tolist() == [
        False,
        False,
        True,
    ]


def test_fresh_deletes_what_experiments_wrote_and_nothing_else(folder):
    folder.keep(RUN, pd.DataFrame({"round": [1]}))
    folder.gather([RUN])
    (folder.path / "thesis.txt").write_text("mine")
    folder.open({**SETTINGS, "rounds": 30}, fresh=True)
    assert not folder.has(RUN)
    assert not (folder.path / "results.csv.gz").exists()
    assert (folder.path / "thesis.txt").read_text() == "mine"
    assert json.loads((folder.path / "settings.json").read_text())["rounds"] == 30


@pytest.mark.parametrize("text", ["{", "[1]", '{"editor": "vi"}', None])
@pytest.mark.parametrize("fresh", [False, True])
def test_files_that_no_experiment_left_are_an_error_and_never_deleted(folder, text, fresh):
    path = folder.path / "settings.json"
    path.unlink() if text is None else path.write_text(text)
    folder.keep(RUN, pd.DataFrame({"round": [1]}))
    with pytest.raises(ExperimentError, match=r"no settings\.json of an experiment"):
        folder.open(SETTINGS, fresh=fresh)
    assert folder.has(RUN)


def test_a_failed_write_leaves_what_was_there(folder, monkeypatch):
    table = pd.DataFrame({"round": [1]})
    folder.keep(RUN, table)

    def half(self, file, **settings):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pd.DataFrame, "to_csv", half)
        with pytest.raises(ExperimentError, match="No space left"):
            folder.keep(RUN, pd.DataFrame({"round": [2]}))
    assert folder.gather([RUN]).equals(table)
    assert [path.name for path in (folder.path / "runs").iterdir()] == [RUN.file_name]


def test_a_damaged_run_is_an_error_that_names_the_file(folder):
    folder.keep(RUN, pd.DataFrame({"round": [1]}))
    (folder.path / "runs" / RUN.file_name).write_bytes(b"half")
    with pytest.raises(ExperimentError, match=rf"{RUN.file_name}: damaged"):
        folder.gather([RUN])


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ExperimentError, match="is a file"):
        ResultsFolder(tmp_path / "taken").open(SETTINGS)
