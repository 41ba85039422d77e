from __future__ import annotations

import pytest

from oclok.__main__ import main
from oclok.bench import report


@pytest.fixture(autouse=True)
def _somewhere_else(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _few_figures(monkeypatch):
    """Reports have one figure of each kind: how all are drawn is tested in tests/bench/report."""
    monkeypatch.setattr(report, "FIGURES", report.FIGURES[:1])


@pytest.fixture
def oclok(capsys):
    """Run the command line; return its exit code and what it printed."""

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        out, err = capsys.readouterr()
        return exit_.value.code or 0, out, err

    return run
