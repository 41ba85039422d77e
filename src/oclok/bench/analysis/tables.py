"""Results: one shape for all tables of rounds, of `simulate` and of `run`, and their files.

| column      | meaning                                                                      |
|-------------|------------------------------------------------------------------------------|
| variant     | which setting of the experiment, such as "l=0.1"; "" where there is only one |
| policy      | label of the policy                                                          |
| horizon     | T that the run was made for; the largest only where the policy ignores it    |
| repeat      | which of the independent repetitions                                         |
| round       | t, from 1 to the horizon                                                     |

A results folder has `settings.json`, how the experiment was run, and `results.csv.gz`, its table.
"""
# Tested in tests/bench/analysis/test_tables.py: tables.
# Tested in tests/bench/analysis/test_results.py: folders.

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oclok.errors import DataError, InputError

#: What makes pandas read floats exactly as they were written; the default from 3.1 on.
_EXACT: dict[str, Any] = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
#: Columns of text; the others are numbers, or parameters of any type.
_TEXT = ("experiment", "variant", "policy", "data", "run")
_NEEDED = ("round", "expected_reward", "best_expected_reward")
_RUN = ["variant", "policy", "repeat"]
#: What reading a damaged table raises.
UNREADABLE = (OSError, EOFError, ValueError, zlib.error)


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with the columns that analysis needs, filling in those that are missing.

    Without a column `policy` there is one policy, without `variant` one variant; without `repeat`,
    further rows of the same policy and round are further repeats, in their order.
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"expected a table of rounds, as simulate and run return; got {table!r}")
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"no column {missing[0]} in the table; found {', '.join(table.columns)}")
    if table.empty:
        raise InputError("the table has no rows; expected one per round")
    attrs = table.attrs
    defaults = {"variant": "", "policy": "policy", "experiment": "experiment", "data": ""}
    for name, default in defaults.items():
        text = table[name].fillna("").astype(str) if name in table else attrs.get(name, default)
        table = table.assign(**{name: text})
    table = table.reset_index(drop=True)
    if "repeat" not in table:
        same = [name for name in ("variant", "policy", "horizon", "round") if name in table]
        table["repeat"] = table.groupby(same).cumcount()
    if "horizon" not in table:
        table["horizon"] = table.groupby(_RUN)["round"].transform("max")
    if "regret" not in table:
        table["regret"] = table["best_expected_reward"] - table["expected_reward"]
    keys = [*_RUN, "horizon", "round"]
    twice = table[table.duplicated(keys)]
    if len(twice):
        first = ", ".join(f"{name} {twice[name].iloc[0]!r}" for name in keys)
        raise InputError(
            f"{len(twice)} rounds are in the table more than once, the first is {first}; "
            "give each policy a label, and each repeat a number, of its own"
        )
    table.attrs = attrs
    return table


@dataclass(frozen=True)
class Results:
    """What a results folder holds."""

    settings: dict[str, Any]  # of settings.json; empty where there is none
    rounds: pd.DataFrame
    experiment: str  # its name, such as "crowdsourcing"
    title: str  # its name, for people
    data: list[str]  # names of the data that were used
    notes: list[str]  # on the rounds and the policies
    oracle: str  # the one that was chosen; empty where there is no choice
    is_from_paper: bool  # whether the paper makes claims about it
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
        rounds.attrs["experiment"] = str(settings.get("experiment", "experiment"))
        rounds = complete(rounds)
    except InputError as reason:
        raise DataError(f"{path}: {reason}") from None
    except UNREADABLE as reason:
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


def write_table(table: pd.DataFrame, path: Path, *, with_attrs: bool = False) -> None:
    """Write a table as gzipped CSV without loss; `attrs` go to a comment on the first line."""
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        if with_attrs:
            file.write(f"# {json.dumps(table.attrs, ensure_ascii=False)}\n".encode())
        table.to_csv(file, index=False, na_rep="NaN")


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote; raise one of `UNREADABLE` if it is damaged."""
    how: dict[str, Any] = {"keep_default_na": False, "na_values": ["NaN"], **_EXACT}
    with gzip.open(path, "rt", encoding="utf8") as file:
        start = file.readline()
        has_attrs = start.startswith("# ")
        attrs = json.loads(start[2:]) if has_attrs else {}
        if not has_attrs:
            file.seek(0)
        table: pd.DataFrame = pd.read_csv(file, dtype=dict.fromkeys(_TEXT, str), **how)
    table.attrs = attrs
    return table


def records(table: pd.DataFrame) -> list[tuple[str, str, dict[str, Any]]]:
    """Return (variant, policy, columns) of each row of a table that is indexed by the two."""
    rows = table.to_dict("records")
    return [(*index, row) for index, row in zip(table.index, rows, strict=True)]


def show_number(value: float, digits: int) -> str:
    """Return a number with this many decimals; a dash for NaN."""
    return "–" if value != value else f"{value:,.{digits}f}"


def show_probability(value: float) -> str:
    """Return a p-value with three decimals; a dash for NaN."""
    return "< 0.001" if value < 0.001 else show_number(value, 3)


def show_time(milliseconds: float) -> str:
    """Return a time with three digits, in the unit that suits it.

    >>> [show_time(t) for t in (0.3, 12.5, 250.0, 65_000.0)]
    ['0.300 ms', '12.5 ms', '250 ms', '65.0 s']
    """
    number, unit = (milliseconds, "ms") if milliseconds < 1e3 else (milliseconds / 1e3, "s")
    if not number > 0:
        return "–"
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f} {unit}"
