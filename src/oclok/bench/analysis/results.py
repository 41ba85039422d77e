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
        experiment: its name, such as "crowdsourcing".
        title: its name, for people.
        data: names of the data that were used.
        notes: on the rounds and the policies.
        oracle: the one that was chosen; empty where there is no choice.
        is_from_paper: whether the paper makes claims about it.
        horizon: the largest number of rounds.
        repeats: the number of independent repeats.
    """

    settings: dict[str, Any]
    rounds: pd.DataFrame
    experiment: str
    title: str
    data: list[str]
    notes: list[str]
    oracle: str
    is_from_paper: bool
    horizon: int
    repeats: int


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
        rounds = complete(rounds)
    except InputError as reason:
        raise DataError(f"{path}: {reason}") from None
    except (OSError, EOFError, ValueError, zlib.error) as reason:
        raise DataError(f"{path}: not a readable table ({reason})") from None
    experiment = str(rounds["experiment"].iloc[0])
    return Results(
        settings,
        rounds,
        experiment,
        title=settings.get("title") or experiment.capitalize(),
        data=[name for name in rounds["data"].unique() if name],
        notes=_notes(settings),
        oracle=(settings.get("options") or {}).get("oracle") or "",
        is_from_paper=bool(settings.get("is_from_paper")),
        horizon=int(rounds["horizon"].max()),
        repeats=int(rounds["repeat"].nunique()),
    )


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    except (OSError, ValueError) as reason:
        raise DataError(f"{path}: not readable as JSON ({reason})") from None
    if not isinstance(settings, dict):
        raise DataError(f"{path}: must hold a JSON object; got {type(settings).__name__}")
    return settings


def _notes(settings: dict[str, Any]) -> list[str]:
    runs = settings.get("runs") or {}
    notes = [settings.get("notes"), runs.get("notes")]
    versions = (runs.get("versions") or {}).items()
    mixed = [f"{name} {version}" for name, version in versions if ", " in version]
    if mixed:
        notes.append(f"runs were made with several versions of packages: {'; '.join(mixed)}")
    notes += [f"{p}: {note}" for p, note in (settings.get("policy_notes") or {}).items()]
    return list(dict.fromkeys(str(note) for note in notes if note))
