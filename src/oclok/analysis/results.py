"""A results folder, read and made whole.

settings.json      how the experiment was run
results.parquet    one row per round, with the columns of `oclok.analysis.measures`
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oclok.errors import DataError

_NEEDED = ("policy", "round", "expected_reward", "best_expected_reward")


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
        found = [self.settings.get("notes"), self.rounds.attrs.get("notes")]
        policies = self.settings.get("policy_notes") or {}
        notes = [*found, *(f"{policy}: {note}" for policy, note in policies.items())]
        return list(dict.fromkeys(str(note) for note in notes if note))

    @property
    def oracle(self) -> str:
        """The oracle that was chosen for the experiment; empty where there is no choice."""
        options = self.settings.get("options")
        return str((options if isinstance(options, dict) else self.settings).get("oracle") or "")

    @property
    def horizon(self) -> int:
        """The largest number of rounds."""
        return int(self.rounds["horizon"].max())

    @property
    def repeats(self) -> int:
        """The number of independent repeats."""
        return int(self.rounds["repeat"].nunique())


def load(folder: str | os.PathLike[str]) -> Results:
    """Read a results folder; columns that can be derived from others may be missing."""
    folder = Path(folder)
    settings = _settings(folder / "settings.json")
    path = folder / "results.parquet"
    if not path.exists():
        raise DataError(f"{folder}: no results.parquet in it; expected the folder of an experiment")
    try:
        rounds = pd.read_parquet(path)
    except (OSError, ValueError) as reason:
        raise DataError(f"{path}: not a readable table ({reason})") from None
    return Results(settings, _complete(rounds, settings, path))


def _settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as reason:
        raise DataError(f"{path}: not readable as JSON ({reason})") from None
    if not isinstance(settings, dict):
        raise DataError(f"{path}: must hold a JSON object; got {type(settings).__name__}")
    return settings


def _complete(rounds: pd.DataFrame, settings: dict[str, Any], path: Path) -> pd.DataFrame:
    """Return the table with all columns that figures and claims need, none of them text-or-NaN."""
    missing = [name for name in _NEEDED if name not in rounds]
    if missing:
        raise DataError(f"{path}: has no column {missing[0]}; found {', '.join(rounds.columns)}")
    if rounds.empty:
        raise DataError(f"{path}: has no rows; expected one per round")
    derived = {
        "experiment": str(settings.get("experiment", "experiment")),
        "variant": "",
        "data": "",
        "repeat": 0,
        "horizon": rounds["round"].max(),
        "regret": rounds["best_expected_reward"] - rounds["expected_reward"],
    }
    rounds = rounds.assign(**{k: v for k, v in derived.items() if k not in rounds})
    texts = {name: rounds[name].fillna("").astype(str) for name in ("variant", "policy", "data")}
    return rounds.assign(**texts)
