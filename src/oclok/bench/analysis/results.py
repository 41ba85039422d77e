"""A results folder, read and made whole.

settings.json      how the experiment was run
results.csv.gz     one row per round, with the columns of `oclok.bench.analysis.tables`
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oclok.bench.analysis.tables import complete, read_table
from oclok.errors import DataError, InputError


@dataclass(frozen=True)
class Results:
    """What a results folder holds.

    Attributes:
        settings: of `settings.json`; empty where there is none.
        rounds: the table of all rounds.
    """

    settings: dict[str, Any]
    rounds: pd.DataFrame

    @property
    def experiment(self) -> str:
        """The name of the experiment, such as "crowdsourcing"."""
        return str(self.rounds["experiment"].iloc[0])

    @property
    def title(self) -> str:
        """The name of the experiment, for people."""
        return str(self.settings.get("title") or self.experiment.capitalize())

    @property
    def data(self) -> list[str]:
        """The names of the data that were used, each once."""
        return [name for name in self.rounds["data"].unique() if name]

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the rounds and of the policies."""
        runs = self.settings.get("runs") or {}
        notes = [self.settings.get("notes"), runs.get("notes")]
        versions = (runs.get("versions") or {}).items()
        mixed = [f"{name} {version}" for name, version in versions if ", " in version]
        if mixed:
            notes.append(f"runs were made with several versions of packages: {'; '.join(mixed)}")
        of_policies = self.settings.get("policy_notes") or {}
        notes += [f"{policy}: {note}" for policy, note in of_policies.items()]
        return list(dict.fromkeys(str(note) for note in notes if note))

    @property
    def oracle(self) -> str:
        """The oracle that was chosen for the experiment; empty where there is no choice."""
        return str((self.settings.get("options") or {}).get("oracle") or "")

    @property
    def is_from_paper(self) -> bool:
        """Whether the paper makes claims about the experiment."""
        return bool(self.settings.get("is_from_paper"))

    @property
    def horizon(self) -> int:
        """The largest number of rounds."""
        return int(self.rounds["horizon"].max())

    @property
    def repeats(self) -> int:
        """The number of independent repeats."""
        return int(self.rounds["repeat"].nunique())


def load(folder: str | os.PathLike[str]) -> Results:
    """Read a results folder; columns that follow from others may be missing."""
    folder = Path(folder)
    settings = _settings(folder / "settings.json")
    path = folder / "results.csv.gz"
    if not path.exists():
        raise DataError(
            f"{folder}: no results.csv.gz in it; give the folder of a finished experiment, or "
            "finish it with `oclok run`"
        )
    try:
        rounds = read_table(path)
        if "experiment" not in rounds:
            rounds["experiment"] = str(settings.get("experiment", "experiment"))
        return Results(settings, complete(rounds))
    except InputError as reason:
        raise DataError(f"{path}: {reason}") from None
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise DataError(f"{path}: not a readable table ({reason})") from None


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    except (OSError, ValueError) as reason:
        raise DataError(f"{path}: not readable as JSON ({reason})") from None
    if not isinstance(settings, dict):
        raise DataError(f"{path}: must hold a JSON object; got {type(settings).__name__}")
    return settings
