from __future__ import annotations

import io

from rich.console import Console

from oclok.bench.cli import progress
from oclok.bench.cli.progress import progress_on
from oclok.bench.experiments import Progress


def test_without_a_terminal_progress_is_plain_lines(monkeypatch):
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    out = io.StringIO()
    with progress_on(Console(file=out), "small") as show:
        for done, running in [(0, ["a", "b"]), (25, ["b"]), (100, [])]:
            show(Progress(done, 100, running))
    first, second, last = out.getvalue().splitlines()
    assert first == "small: 0%, running a, b"
    assert second == "small: 25%, running b"
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
