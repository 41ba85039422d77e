from __future__ import annotations

import sys

import pandas as pd
import pytest

from oclok.bench.experiments import EXPERIMENTS, find_experiment, run
from oclok.errors import ExperimentError

FILE = """
import numpy as np
import helper_of_mine
from oclok.bench.experiments import Experiment, PolicySpec, sweep
from oclok.policies import Belief, CUCB, Policy, Random
from oclok.bench import Channels


class Fixed(Policy):
    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = weight

    def _score(self, contexts, t, rng):
        return Belief(self.weight * contexts[:, 0] + helper_of_mine.OFFSET)

    def _learn(self, contexts, outcomes):
        pass


MINE = Experiment(
    name="mine",
    variants={"": Channels},
    policies=[*sweep(Fixed, weight=[1.0, -1.0]), PolicySpec("Random", Random)],
    rounds=4,
    repeats=2,
)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "helper_of_mine", raising=False)
    (tmp_path / "helper_of_mine.py").write_text("OFFSET = 0.0\n")
    path = tmp_path / "my_experiment.py"
    path.write_text(FILE)
    return path


def test_a_name_is_one_of_ours():
    assert find_experiment("channels", EXPERIMENTS) is EXPERIMENTS["channels"]


def test_a_file_and_a_module_are_loaded(file, monkeypatch):
    assert find_experiment(str(file), EXPERIMENTS).name == "mine"
    assert find_experiment(f"{file}:MINE", EXPERIMENTS).name == "mine"
    monkeypatch.chdir(file.parent)
    assert find_experiment("my_experiment:MINE", EXPERIMENTS).name == "mine"


def test_experiments_of_a_file_run_in_other_processes_to_the_same_table(file, tmp_path):
    mine = find_experiment(str(file), EXPERIMENTS)
    one, two = (
        run(mine, mine.settings(), tmp_path / str(jobs), jobs=jobs).drop(columns="seconds")
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert set(one["policy_weight"].dropna()) == {1.0, -1.0}


def test_a_changed_line_of_a_policy_runs_its_runs_again_and_no_other(file, tmp_path):
    def runs():
        mine = find_experiment(str(file), EXPERIMENTS)
        return {(r.policy, r.repeat): r.identity for r in mine.runs(mine.settings())}

    before = runs()
    assert runs() == before
    file.write_text(FILE.replace("contexts[:, 0]", "contexts[:, 1]"))
    after = runs()
    changed = {policy for (policy, _), _ in before.items() - after.items()}
    assert changed == {"Fixed weight=1.0", "Fixed weight=-1.0"}


def test_a_changed_line_in_a_file_that_is_imported_counts(file):
    def identity(policy):
        mine = find_experiment(str(file), EXPERIMENTS)
        return next(r.identity for r in mine.runs(mine.settings()) if r.policy == policy)

    before = identity("Fixed weight=1.0"), identity("Random")
    (file.parent / "helper_of_mine.py").write_text("OFFSET = 1.0  # changed\n")
    del sys.modules["helper_of_mine"]
    assert identity("Fixed weight=1.0") != before[0]
    assert identity("Random") == before[1]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "{file}", "has 0 experiments; give one that declares"),
        (FILE + "OTHER = MINE\n", "{file}", r"has 2 experiments; give one of .*:MINE, .*:OTHER"),
        (FILE, "{file}:THEIRS", "has no experiment 'THEIRS'; it has MINE"),
        (FILE + "1 / 0\n", "{file}", r"line \d+, ZeroDivisionError: division by zero"),
        ("def", "{file}", "SyntaxError"),
        (FILE, "none.py", r"none\.py: no such file"),
        (FILE, "none_such:MINE", "none_such: cannot be imported"),
        (FILE, "chess", "no experiment 'chess'; there are crowdsourcing, .*or give a file"),
    ],
)
def test_a_name_that_leads_nowhere_is_an_error(file, text, name, message):
    file.write_text(text)
    with pytest.raises(ExperimentError, match=message):
        find_experiment(name.format(file=file), EXPERIMENTS)
