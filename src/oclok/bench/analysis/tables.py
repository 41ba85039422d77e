"""One shape for all tables of rounds: of `simulate`, of several of them put together, of `run`.

| column      | meaning                                                                      |
|-------------|------------------------------------------------------------------------------|
| variant     | which setting of the experiment, such as "l=0.1"; "" where there is only one |
| policy      | label of the policy                                                          |
| horizon     | T that the run was made for; the largest only where the policy ignores it    |
| repeat      | which of the independent repetitions                                         |
| round       | t, from 1 to the horizon                                                     |
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd

from oclok.errors import InputError

#: What makes pandas read floats exactly as they were written; the default from 3.1 on.
_EXACT: dict[str, Any] = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
#: Columns of text; the others are numbers, or parameters of any type.
_TEXT = ("experiment", "variant", "policy", "data", "run")
_NEEDED = ("round", "expected_reward", "best_expected_reward")
_RUN = ["variant", "policy", "repeat"]


def complete(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with all columns that analysis needs, those that are missing filled in.

    Args:
        table: one row per round. Without a column `policy` there is one policy, without
            `variant` one variant; without `repeat`, further rows of the same policy and round are
            taken for further repeats, in their order.

    Examples:
        >>> from oclok.policies import Random
        >>> from oclok.bench.problems import Crowdsourcing
        >>> from oclok.bench.simulation import simulate
        >>> tables = [simulate(Random(seed=s), Crowdsourcing(3, seed=s), seed=s) for s in range(2)]
        >>> complete(pd.concat(tables))[["policy", "repeat", "horizon"]].drop_duplicates().values
        array([['Random', 0, 3],
               ['Random', 1, 3]], dtype=object)
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"expected a table of rounds, as simulate and run return; got {table!r}")
    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"no column {missing[0]} in the table; found {', '.join(table.columns)}")
    if table.empty:
        raise InputError("the table has no rows; expected one per round")
    attrs = table.attrs
    defaults = {"experiment": "experiment", "variant": "", "data": attrs.get("data", "")}
    defaults["policy"] = attrs.get("policy", "policy")
    table = table.assign(**{name: defaults[name] for name in defaults if name not in table})
    texts = {name: table[name].fillna("").astype(str) for name in ("variant", "policy", "data")}
    table = table.assign(**texts).reset_index(drop=True)
    if "repeat" not in table:
        same = [name for name in ("variant", "policy", "horizon", "round") if name in table]
        table["repeat"] = table.groupby(same).cumcount()
    if "horizon" not in table:
        table["horizon"] = table.groupby(_RUN)["round"].transform("max")
    if "regret" not in table:
        table["regret"] = table["best_expected_reward"] - table["expected_reward"]
    _check_distinct(table)
    table.attrs = attrs
    return table


def _check_distinct(table: pd.DataFrame) -> None:
    keys = [*_RUN, "horizon", "round"]
    twice = table[table.duplicated(keys)]
    if len(twice):
        first = ", ".join(f"{name} {twice[name].iloc[0]!r}" for name in keys)
        raise InputError(
            f"{len(twice)} rounds are in the table more than once, the first is {first}; "
            "give each policy a label, and each repeat a number, of its own"
        )


def write_table(table: pd.DataFrame, path: Path, *, with_attrs: bool = False) -> None:
    """Write a table as gzipped CSV without loss, if asked with its `attrs` in a first comment."""
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as file:
        if with_attrs:
            file.write(f"# {json.dumps(table.attrs, ensure_ascii=False)}\n".encode())
        table.to_csv(file, index=False, na_rep="NaN")


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` wrote; raise OSError, EOFError or ValueError if it is damaged."""
    with gzip.open(path, "rt", encoding="utf8") as file:
        start = file.readline()
        has_attrs = start.startswith("# ")
        attrs = json.loads(start[2:]) if has_attrs else {}
        if not has_attrs:
            file.seek(0)
        table: pd.DataFrame = pd.read_csv(
            file,
            dtype=dict.fromkeys(_TEXT, str),
            keep_default_na=False,
            na_values=["NaN"],
            **_EXACT,
        )
    table.attrs = attrs
    return table
