from __future__ import annotations

import io

import pytest
from rich.console import Console

from oclok.cli import display
from oclok.cli.display import progress_on, summary_table
from oclok.experiments import EXPERIMENTS, Progress, run


def test_without_a_terminal_progress_is_plain_lines(monkeypatch):
    monkeypatch.setattr(display, "PAUSE", 0.0)
    out = io.StringIO()
    with progress_on(Console(file=out), "small") as show:
        for done, running in [(0, ["a", "b"]), (25, ["b"]), (100, [])]:
            show(Progress(done, 100, running))
    first, second, last = out.getvalue().splitlines()
    assert first == "small: 0%, running a, b"
    assert second.startswith("small: 25%, about ")
    assert second.endswith(" s left, running b")
    assert last == "small: 100%"


def test_lines_do_not_come_too_often_but_the_last_one_comes():
    out = io.StringIO()
    with progress_on(Console(file=out), "small") as show:
        for done in range(101):
            show(Progress(done, 100, ["a"] if done < 100 else []))
    assert out.getvalue().splitlines() == ["small: 0%, running a", "small: 100%"]


def test_on_a_terminal_progress_is_a_bar_with_what_is_running():
    out = io.StringIO()
    with progress_on(Console(file=out, force_terminal=True, width=120), "small") as show:
        show(Progress(50, 100, ["Random T=20 repeat 0"]))
    assert "50%" in out.getvalue()
    assert "Random T=20 repeat 0" in out.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_summary_has_the_numbers_of_the_table(tmp_path):
    channels = EXPERIMENTS["channels"]
    settings = channels.settings(rounds=5, repeats=2, policies=["random"])
    results = run(channels, settings, tmp_path, jobs=1)
    out = io.StringIO()
    table = summary_table(results, channels.title, {"Random": "learns nothing"})
    Console(file=out, width=100).print(table)
    runs = results.groupby("repeat")[["expected_reward", "best_expected_reward", "regret"]].sum()
    ratio = (runs["expected_reward"] / runs["best_expected_reward"]).agg(["mean", "std"])
    assert f"{ratio['mean']:.3f} ± {ratio['std']:.3f}" in out.getvalue()
    assert f"{runs['regret'].mean():.1f} ± {runs['regret'].std():.1f}" in out.getvalue()
    assert "Random*" in out.getvalue()
    assert "* Random: learns nothing" in out.getvalue()
