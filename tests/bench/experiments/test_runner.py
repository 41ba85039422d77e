from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import oclok
from oclok.bench import Channels, Movies
from oclok.bench.analysis import load
from oclok.bench.experiments import EXPERIMENTS, Experiment, PolicySpec, play, run
from oclok.bench.experiments.simulations import oclok_ucb
from oclok.errors import ExperimentError
from oclok.policies import CUCB, Random

KEYS = ["experiment", "variant", "policy", "horizon", "repeat", "data", "round"]


def comparable(table):
    """All that must be the same to the bit: everything except the time taken."""
    return table.drop(columns="seconds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def table(small, folder):
    return run(small, small.settings(), folder, jobs=1)


def test_the_table_has_each_round_of_each_run_once(small, table):
    assert list(table.columns[:7]) == KEYS
    assert not table.duplicated(KEYS).any()
    runs = small.runs(small.settings())
    assert len(table) == sum(run.horizon for run in runs)
    assert (table["experiment"] == "small").all()
    found = table.groupby(["variant", "policy", "horizon", "repeat"], sort=False).groups
    assert list(found) == [(run.variant, run.policy, run.horizon, run.repeat) for run in runs]


def test_two_processes_give_the_same_table_as_one(small, table, tmp_path):
    other = run(small, small.settings(), tmp_path / "two", jobs=2)
    pd.testing.assert_frame_equal(comparable(other), comparable(table), check_exact=True)


def test_a_dask_cluster_gives_the_same_table(small, table, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
    ) as cluster:
        there = run(small, small.settings(), tmp_path / "c", cluster=cluster.scheduler_address)
    pd.testing.assert_frame_equal(comparable(there), comparable(table), check_exact=True)


def test_a_run_does_not_depend_on_which_others_there_are(small, table, tmp_path):
    settings = small.settings(policies=["acc-ucb"])
    alone = run(small, settings, tmp_path / "alone", jobs=1)
    same = table[table["policy"] == "ACC-UCB"].reset_index(drop=True)
    shared = comparable(alone).columns  # those of other policies' parameters are not there
    pd.testing.assert_frame_equal(alone[shared], same[shared], check_exact=True)


def test_policies_of_a_repeat_play_the_same_rounds(table):
    longest = table[table["horizon"] == 20]
    rounds = longest.groupby(["variant", "repeat", "round"])
    assert (rounds["arms"].nunique() == 1).all()
    assert (rounds["best_expected_reward"].nunique() == 1).all()


def test_seeds_and_repeats_differ(small, table, tmp_path):
    other = run(small, small.settings(seed=1), tmp_path / "seed", jobs=1)
    assert not np.array_equal(other["arms"], table["arms"])
    first, second = (table.loc[table["repeat"] == r, "arms"].to_numpy() for r in (0, 1))
    assert not np.array_equal(first, second)


def test_what_is_finished_is_not_run_again(small, table, folder):
    files = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    lost = sorted(files)[3]
    lost.unlink()
    again = run(small, small.settings(), folder, jobs=1)
    pd.testing.assert_frame_equal(comparable(again), comparable(table), check_exact=True)
    changed = {path for path, time in files.items() if path.stat().st_mtime_ns != time}
    assert changed == {lost}


KILLED = """
    import os, signal, sys
    import pandas as pd
    from oclok.bench.experiments import EXPERIMENTS, run

    whole, count = pd.DataFrame.to_csv, 0

    def to_csv(self, file, **how):
        global count
        count += 1
        if count == 5:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        whole(self, file, **how)

    pd.DataFrame.to_csv = to_csv
    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=12, repeats=1, policies=["acc-ucb", "cc-mab"])
    run(channels, settings, sys.argv[1], jobs=1)
"""


def test_after_a_kill_in_the_middle_of_writing_it_goes_on_to_the_same_table(tmp_path):
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "killed")], check=False
    )
    assert killed.returncode == -9
    runs = tmp_path / "killed/runs"
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.csv.gz")}
    assert len([path for path in kept if not path.name.startswith(".")]) == 4

    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=12, repeats=1, policies=["acc-ucb", "cc-mab"])
    resumed = run(channels, settings, tmp_path / "killed", jobs=1)
    whole = run(channels, settings, tmp_path / "whole", jobs=1)
    pd.testing.assert_frame_equal(comparable(resumed), comparable(whole), check_exact=True)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())


def test_progress_counts_rounds_from_what_is_finished_to_all(small, tmp_path):
    settings = small.settings(policies=["random"])
    seen = []
    run(small, settings, tmp_path, jobs=1, progress=seen.append)
    assert [now.done for now in seen] == [0, 20, 40, 60, 80]
    assert {now.total for now in seen} == {80}
    assert seen[0].running == ["Random k=2 T=20 repeat 0"]
    assert seen[-1].running == []
    seen.clear()
    run(small, settings, tmp_path, jobs=1, progress=seen.append)
    assert [(now.done, now.total) for now in seen] == [(80, 80)]


def test_a_costly_problem_is_made_in_one_place(small, table, tmp_path):
    shared = replace(small, shares_problem=True)
    seen = []
    other = run(shared, shared.settings(), tmp_path / "shared", jobs=1, progress=seen.append)
    assert len(seen) == 1 + 4
    assert seen[0].running == ["k=2 repeat 0"]
    pd.testing.assert_frame_equal(comparable(other), comparable(table), check_exact=True)


def test_one_run_is_a_pure_function(small):
    settings = small.settings()
    chosen = small.runs(settings)[0]
    first, second = (play(small, settings, chosen) for _ in range(2))
    pd.testing.assert_frame_equal(comparable(first), comparable(second), check_exact=True)


def test_the_folder_says_what_was_run(table, folder):
    settings = json.loads((folder / "settings.json").read_text(encoding="utf8"))
    assert settings["experiment"] == "small"
    assert (settings["seed"], settings["repeats"], settings["rounds"]) == (0, 2, 20)
    assert settings["variants"] == ["k=2", "k=3"]
    assert settings["policies"] == ["SO'CLOK-UCB 4", "ACC-UCB", "Random"]
    assert settings["policy_notes"] == {"Random": "learns nothing"}
    assert settings["data"] == "synthetic users and channels"
    assert settings["versions"]["oclok"] == oclok.__version__
    assert settings["versions"]["numpy"] == np.__version__
    assert settings["date"].startswith("20")
    assert settings["parameters"]["SO'CLOK-UCB 4"] == {"inducing": 4}
    assert set(settings["code"]["policies"]) == set(settings["policies"])
    assert comparable(load(folder).rounds).equals(comparable(table))


def test_notes_on_the_data_reach_the_table(tmp_path):
    crowded = Experiment(
        name="crowded",
        title="More users than there are",
        variants={"": partial(Movies, oracle="greedy", mean_users=3000)},
        policies=[PolicySpec("Random", Random)],
        rounds=2,
        repeats=1,
    )
    with pytest.warns(UserWarning, match="fewer users"):
        table = run(crowded, crowded.settings(), tmp_path, jobs=1)
    assert "fewer users" in table.attrs["notes"]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(small, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(ExperimentError, match="cannot be written"):
        run(small, small.settings(), tmp_path / "none", jobs=1)


def test_parameters_and_identity_are_columns(table):
    sparse = table["policy"] == "SO'CLOK-UCB 4"
    assert (table.loc[sparse, "policy_inducing"] == 4).all()
    assert table.loc[~sparse, "policy_inducing"].isna().all()
    assert (table["problem_k"] == table["variant"].str[2:].astype(int)).all()
    runs = table.groupby(["variant", "policy", "horizon", "repeat"])["run"]
    assert (runs.nunique() == 1).all()
    assert table["run"].nunique() == len(runs)


def width_experiment(**widths):
    policies = [
        PolicySpec(label, partial(oclok_ucb, inducing=inducing))
        for label, inducing in widths.items()
    ]
    return Experiment(
        name="widths", variants={"": partial(Channels, k=2)}, policies=policies, rounds=4, repeats=2
    )


def test_the_same_label_with_another_parameter_is_run_again_and_nothing_else_is(tmp_path):
    def files():
        return {path: path.stat().st_mtime_ns for path in (tmp_path / "a/runs").iterdir()}

    first = width_experiment(one=1, two=2)
    run(first, first.settings(), tmp_path / "a", jobs=1)
    before = files()
    changed = width_experiment(one=1, two=3)
    again = run(changed, changed.settings(), tmp_path / "a", jobs=1)
    fresh = run(changed, changed.settings(), tmp_path / "b", jobs=1)
    pd.testing.assert_frame_equal(comparable(again), comparable(fresh), check_exact=True)
    assert all(files()[path] == time for path, time in before.items())
    assert {path.name[:3] for path in files().keys() - before.keys()} == {"two"}
    assert len(files()) == 6
    back = run(first, first.settings(), tmp_path / "a", jobs=1)
    assert set(back["run"]) == {path.name.removesuffix(".csv.gz").split("_")[-1] for path in before}
    assert len(files()) == 6


def test_more_repeats_and_policies_add_runs_to_those_that_are_there(tmp_path):
    few = width_experiment(one=1)
    old = run(few, few.settings(), tmp_path, jobs=1)
    seen = []
    more = width_experiment(one=1, two=2)
    table = run(more, more.settings(repeats=3), tmp_path, jobs=1, progress=seen.append)
    assert (seen[0].done, seen[0].total) == (2 * 4, 6 * 4)
    same = table[(table["policy"] == "one") & (table["repeat"] < 2)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same[list(old)], old, check_exact=True)


def test_a_factory_that_returns_no_policy_is_an_error_that_names_it(tmp_path):
    forgetful = Experiment(
        name="forgetful",
        variants={"": Channels},
        policies=[PolicySpec("Mine", lambda problem, seed: None)],
        rounds=2,
    )
    with pytest.raises(ExperimentError, match=r"'Mine': make must return .*Policy; got None"):
        run(forgetful, forgetful.settings(), tmp_path, jobs=1)


def test_one_policy_object_for_all_repeats_leaks_nothing(tmp_path):
    shared = CUCB(3, cells=3, seed=0)
    tables = [
        run(experiment, experiment.settings(), tmp_path / str(number), jobs=1)
        for number, experiment in enumerate(
            Experiment(
                name="shared",
                variants={"": Channels},
                policies=[PolicySpec("CUCB", make)],
                rounds=6,
                repeats=3,
            )
            for make in (lambda p, s: shared, lambda p, s: CUCB(3, cells=3, seed=0))
        )
    ]
    left, right = (comparable(table).drop(columns="run") for table in tables)
    pd.testing.assert_frame_equal(left, right, check_exact=True)


MORTAL = """
    import os, signal, sys
    from oclok.bench.experiments import EXPERIMENTS, run
    from oclok.policies import Policy

    select, left = Policy.select, int(sys.argv[2])

    def mortal(self, *arguments, **others):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return select(self, *arguments, **others)

    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=15, repeats=3, policies=["cc-mab", "random"])
    runs = channels.runs(settings)
    type(channels).runs = lambda self, settings: runs  # identities of what is not patched
    Policy.select = mortal
    run(channels, settings, sys.argv[1], jobs=1)
"""


def test_random_kills_and_resumes_give_the_same_table(tmp_path):
    rng = np.random.default_rng(5)
    for _ in range(3):
        moment = str(rng.integers(1, 80))
        command = [sys.executable, "-c", textwrap.dedent(MORTAL), str(tmp_path / "killed"), moment]
        assert subprocess.run(command, check=False).returncode == -9
    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=15, repeats=3, policies=["cc-mab", "random"])
    resumed = run(channels, settings, tmp_path / "killed", jobs=1)
    whole = run(channels, settings, tmp_path / "whole", jobs=1)
    pd.testing.assert_frame_equal(comparable(resumed), comparable(whole), check_exact=True)
