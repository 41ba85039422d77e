"""The folder that an experiment is kept in.

settings.json      settings of the last run, its date and package versions
runs/              one gzipped CSV file per run, written the moment it is finished; its name ends
                   in the run's identity, so runs with other parameters or code never replace it
results.csv.gz     all runs in one tidy table
figures/           drawn from it, like
report.html        the page that shows it all
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from oclok.bench.analysis.tables import UNREADABLE, read_table, write_table
from oclok.bench.experiments.base import Run
from oclok.errors import ExperimentError
from oclok.persistence import replacing

_OURS = ("settings.json", "runs", "results.csv.gz", "figures", "report.html")


class ResultsFolder:
    """Where the runs of one experiment are kept; the folder at `path` need not exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def open(self, settings: dict[str, Any], *, fresh: bool = False) -> None:
        """Make the folder, or go on with one that the same experiment made.

        `settings` go to `settings.json`; `fresh` deletes what an experiment left there before.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ExperimentError(f"{self.path}: is a file; give another --output")
        if any((self.path / name).exists() for name in _OURS):
            found = self._settings()
            if fresh:
                for path in (self.path / name for name in _OURS):  # and no others
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            elif found["experiment"] != settings["experiment"]:
                raise ExperimentError(
                    f"{self.path}: holds results of {found['experiment']}, not of "
                    f"{settings['experiment']}; give another --output, or --fresh to start over"
                )
        self._write_settings(settings)

    def has(self, run: Run) -> bool:
        """Return whether `run` is finished."""
        return (self.path / "runs" / run.file_name).exists()

    def keep(self, run: Run, table: pd.DataFrame) -> None:
        """Write the table of a finished run; it is there whole or not at all."""
        self._write(f"runs/{run.file_name}", lambda path: write_table(table, path, with_attrs=True))

    def gather(self, runs: Iterable[Run]) -> pd.DataFrame:
        """Write the tables of all `runs` as one, in their order, and return it.

        Its `attrs` have the `notes` of the problems, if there are any, the `dates` of the first
        and the last run, and all package `versions`.
        """
        tables = [_read(self.path / "runs" / run.file_name) for run in runs]
        whole = pd.concat(tables, ignore_index=True)
        whole.attrs = attrs = _merged([table.attrs for table in tables])
        self._write("results.csv.gz", lambda path: write_table(whole, path))
        self._write_settings({**self._settings(), "runs": attrs})
        return whole

    def _write_settings(self, settings: dict[str, Any]) -> None:
        text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
        self._write("settings.json", lambda path: path.write_text(text, encoding="utf8"))

    def _settings(self) -> dict[str, Any]:
        """Return what `settings.json` says, if an experiment wrote it."""
        try:
            found = json.loads((self.path / "settings.json").read_text(encoding="utf8"))
            found["experiment"]
        except (OSError, ValueError, TypeError, LookupError):
            raise ExperimentError(
                f"{self.path}: has files in it, but no settings.json of an experiment; give "
                "another --output"
            ) from None
        return dict(found)

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        path = self.path / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                write(temporary)
        except OSError as reason:
            raise ExperimentError(
                f"{path}: cannot be written ({reason.strerror}); give another --output"
            ) from None


def _merged(attrs: list[Any]) -> dict[Any, Any]:
    """Return the attributes of several tables as those of one."""
    dates = sorted(found["date"] for found in attrs if "date" in found)
    versions = pd.DataFrame([found.get("versions", {}) for found in attrs])
    listed = {name: ", ".join(versions[name].dropna().unique()) for name in versions}
    notes = next((found["notes"] for found in attrs if found.get("notes")), "")
    return {"notes": notes, "dates": dates[:1] + dates[-1:], "versions": listed}


def _read(path: Path) -> pd.DataFrame:
    try:
        return read_table(path)
    except UNREADABLE as reason:
        seen = str(reason).splitlines()[0]
        raise ExperimentError(
            f"{path}: damaged; delete it and run the experiment again ({seen})"
        ) from None
