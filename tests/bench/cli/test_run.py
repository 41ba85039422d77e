from __future__ import annotations

import builtins
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import pandas as pd
import pytest

from oclok import __main__
from oclok.bench import cli
from oclok.bench.analysis.tables import read_table
from oclok.bench.experiments import EXPERIMENTS, runner

SMALL = ("--rounds", "6", "--repeats", "1", "--policies", "random,cc-mab", "--jobs", "1")


def table_in(folder):
    return read_table(folder / "results.csv.gz").drop(columns="seconds")


@pytest.mark.parametrize(
    "command", [[], ["run"], ["paper"], ["report"], ["data"], ["data", "check"]]
)
def test_every_command_has_help(oclok, command):
    code, out, _ = oclok(*command, "--help")
    assert code == 0
    assert "Usage: oclok" in out


def test_help_of_run_has_examples_and_list_names_the_experiments(oclok):
    _, out, _ = oclok("run", "--help")
    assert "oclok run crowdsourcing --quick" in out
    code, out, _ = oclok("run", "--list")
    assert code == 0
    assert all(name in out for name in EXPERIMENTS)


def test_help_of_an_experiment_names_its_policies(oclok):
    code, out, _ = oclok("run", "channels", "--help")
    assert code == 0
    assert "Usage: oclok run" in out
    assert all(spec.key in out for spec in EXPERIMENTS["channels"].policies)


def test_run_leaves_a_table_figures_and_a_report_and_prints_a_summary(oclok, tmp_path):
    code, out, _ = oclok("run", "channels", *SMALL)
    folder = tmp_path / "results/channels"
    assert code == 0
    assert set(table_in(folder)["policy"]) == {"CC-MAB", "Random"}
    assert (folder / "report.html").stat().st_size > 0
    assert list((folder / "figures").glob("*.png"))
    for wanted in ("CC-MAB", "Random", "reward / benchmark", "results/channels/report.html"):
        assert wanted in out


def test_report_draws_again_what_was_deleted(oclok, tmp_path):
    oclok("run", "channels", *SMALL)
    page = tmp_path / "results/channels/report.html"
    page.unlink()
    code, out, _ = oclok("report", "results/channels")
    assert code == 0
    assert page.exists()
    assert "report.html" in out


def test_paper_runs_everything_and_links_it(oclok, monkeypatch, tmp_path):
    names = ("movies", "channels")
    few = [replace(EXPERIMENTS[name], policies=EXPERIMENTS[name].policies[-1:]) for name in names]
    monkeypatch.setattr(cli.run, "PAPER", few)
    code, out, _ = oclok(
        "paper", "--rounds", "3", "--repeats", "1", "--jobs", "1", "--oracle", "tim+"
    )
    assert code == 0
    for name in names:
        assert (tmp_path / "results" / name / "report.html").exists()
        assert name in (tmp_path / "results/index.html").read_text(encoding="utf8")
    assert "index.html" in out


def test_a_quick_look_is_not_in_the_way_of_the_real_thing(oclok, tmp_path):
    assert oclok("run", "channels", "--quick", *SMALL)[0] == 0
    assert (tmp_path / "results/quick/channels/results.csv.gz").exists()
    assert oclok("run", "channels", *SMALL)[0] == 0


def test_ctrl_c_says_how_to_go_on_and_the_next_call_does(oclok, monkeypatch, tmp_path):
    whole = tmp_path / "whole"
    oclok("run", "channels", *SMALL, "--output", str(whole))

    @contextmanager
    def impatient(console, name):
        def show(now):
            if now.done > 0:
                raise KeyboardInterrupt

        yield show

    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch:
        patch.setattr(cli.run, "progress_on", impatient)
        code, _, err = oclok("run", "channels", *SMALL, "--output", str(folder))
    assert code == 130
    assert "finished runs are kept" in err
    kept = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    assert len(kept) == 1
    assert not (folder / "results.csv.gz").exists()

    assert oclok("run", "channels", *SMALL, "--output", str(folder))[0] == 0
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    pd.testing.assert_frame_equal(table_in(folder), table_in(whole), check_exact=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "chess"], "no experiment 'chess'; there are crowdsourcing"),
        (["run", "channels", "--policies", "best"], "no policy 'best'; it has oclok-ucb"),
        (["run", "channels", "--rounds", "0"], "rounds must be an integer of at least 1"),
        (["run", "channels", "--repeats", "-1"], "repeats must be"),
        (["run", "channels", "--seed", "-1"], "seed must be"),
        (["run", "channels", "--jobs", "0"], "jobs must be"),
        (["run", "channels", "--data", "x.txt"], "takes no --data"),
        (["run", "channels", "--oracle", "tim+"], "takes no --oracle"),
        (["run", "crowdsourcing", "--data", "none.txt"], "none.txt: no such file"),
        (["run", "movies", "--data", "none"], "none: no such folder or file"),
        (["run", "movies", "--oracle", "best"], 'must be "tim+", "greedy" or "exact"'),
        (["run", "channels", "--cluster", "tcp://127.0.0.1:9"], "no Dask scheduler at"),
        (["run", "channels", "--k", "3"], "channels takes no --k"),
        (["run", "table", "--data", "none.csv"], "--data my.csv --k 5"),
        (["report", "none"], "no results.csv.gz"),
        (["data", "check", "none"], "no such file or folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(oclok, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr(runner, "PATIENCE", 0.3)
    code, out, err = oclok(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("oclok: ")
    assert message in err
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_other_settings_add_runs_and_fresh_deletes_those_that_are_there(oclok, tmp_path):
    runs = tmp_path / "results/channels/runs"
    oclok("run", "channels", *SMALL)
    first = set(runs.iterdir())
    assert oclok("run", "channels", *SMALL, "--seed", "1")[0] == 0
    assert set(runs.iterdir()) > first
    assert oclok("run", "channels", *SMALL, "--seed", "1", "--fresh")[0] == 0
    assert set(runs.iterdir()).isdisjoint(first)


MINE = """
from oclok.bench.experiments import Experiment, PolicySpec, sweep
from oclok.policies import CUCB, Random
from oclok.bench import Channels

MINE = Experiment(
    name="mine",
    variants={"": Channels},
    policies=[PolicySpec("Random", Random), *sweep(CUCB, cells=[2, 3])],
    rounds=5,
    repeats=3,
)
"""


def test_a_file_of_ones_own_is_run_compared_and_not_judged_by_the_paper(oclok, tmp_path):
    (tmp_path / "my_experiment.py").write_text(MINE)
    code, out, _ = oclok("run", "my_experiment.py", "--jobs", "1", "--reference", "cucb-cells=2")
    assert code == 0
    assert "Regret against CUCB cells=2" in out
    page = (tmp_path / "results/mine/report.html").read_text(encoding="utf8")
    assert "Against CUCB cells=2" in page
    assert "paper’s claims" not in page
    code, out, _ = oclok("run", "my_experiment.py", "--help")
    assert "cucb-cells=3" in out
    code, _, err = oclok("report", "results/mine", "--reference", "nobody")
    assert code == 2
    assert "no policy 'nobody'" in err


def test_data_says_where_to_get_what(oclok):
    code, out, _ = oclok("data")
    assert code == 0
    for wanted in ("MovieLens 25M", "https://grouplens.org", "250 MB", "licence", "crowdsourcing"):
        assert wanted in out


def test_data_check_says_what_a_file_holds(oclok, tmp_path):
    path = tmp_path / "venues.csv"
    path.write_text("latitude,longitude,checkins\n35.5,139.5,3\n35.9,139.9,4\n")
    assert oclok("data", "check", str(path)) == (
        0,
        "Foursquare venues: 7 check-ins at 2 venues\n",
        "",
    )


def test_real_data_are_used_and_named(oclok, tmp_path):
    path = tmp_path / "venues.csv"
    path.write_text("latitude,longitude,checkins\n35.5,139.5,3\n35.9,139.9,4\n35.7,139.7,9\n")
    code, *_ = oclok(
        "run", "crowdsourcing", "--data", "venues.csv", "--rounds", "3", "--repeats", "1",
        "--policies", "acc-ucb", "--jobs", "1",
    )  # fmt: skip
    assert code == 0
    assert set(table_in(tmp_path / "results/crowdsourcing")["data"]) == {"Foursquare venues"}


def test_without_the_extra_the_command_says_what_to_install(monkeypatch, capsys):
    real_import = builtins.__import__

    def without_typer(name, *rest):
        if name == "typer":
            raise ModuleNotFoundError("No module named 'typer'", name="typer")
        return real_import(name, *rest)

    for name in [name for name in sys.modules if name.startswith("oclok.bench.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("oclok.bench.cli")
    monkeypatch.setattr(builtins, "__import__", without_typer)
    with pytest.raises(SystemExit) as exit_:
        __main__.main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "oclok: typer is missing; pip install 'oclok[bench]'\n"


def test_without_pandas_the_command_says_what_to_install():
    code = "import sys; sys.modules['pandas'] = None; from oclok.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "paper"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "oclok: pandas is missing; pip install 'oclok[bench]'\n"


def test_the_module_runs_and_importing_the_library_stays_light():
    heavy = ("pandas", "pyarrow", "joblib", "typer", "rich", "dask", "matplotlib")
    code = f"import sys, oclok; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    version = subprocess.run(
        [sys.executable, "-m", "oclok", "--version"], capture_output=True, text=True, check=True
    )
    assert version.stdout.startswith("oclok ")


def test_own_data_are_compared_in_one_command(oclok, tmp_path):
    rows = [f"{t},{x},{x * x},text" for t in range(4) for x in (0.1, 0.5, 0.9)]
    (tmp_path / "mine.csv").write_text("round,x,outcome,note\n" + "\n".join(rows))
    table = ("run", "table", "--data", "mine.csv", "--k", "1", "--features", "x")
    code, out, _ = oclok(*table, "--repeats", "2", "--jobs", "1", "--policies", "ucb,random")
    assert code == 0
    assert "Policies on mine.csv" in out
    assert "Regret against UCB" in out
    assert (tmp_path / "results/table/report.html").exists()
    code, out, _ = oclok(*table, "--help")
    assert code == 0
    assert "bayes-ucb-refit" in out
