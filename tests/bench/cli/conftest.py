from __future__ import annotations

import pytest

from oclok.bench import cli


@pytest.fixture(autouse=True)
def _somewhere_else(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def oclok(capsys):
    """Run the command line; return its exit code and what it printed."""

    def run(*arguments):
        with pytest.raises(SystemExit) as exit_:
            cli.main(arguments)
        out, err = capsys.readouterr()
        return exit_.value.code or 0, out, err

    return run
