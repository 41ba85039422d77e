"""Logs of an agent: the Parquet file that `oclok export` writes, or the service's database itself.

An export has one row per arm that was offered, with the probability of the arm and of the set that
was chosen. Contexts are the features as the agent encodes them.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from oclok.agent.arms import as_arms
from oclok.agent.schema import Schema
from oclok.errors import DataError, InputError
from oclok.offline.estimate import OverlapWarning
from oclok.offline.log import Log, LoggedRound
from oclok.oracles import oracle_from_json
from oclok.oracles.base import Oracle

#: A larger share of decisions without all of their outcomes is worth a warning.
MOST_INCOMPLETE = 0.05


def read_log(source: str | os.PathLike[str], agent: str | None = None) -> Log:
    """Return the decisions of an agent whose outcomes are all known, in their order.

    Args:
        source: a file that `oclok export` wrote, or the storage of a service, such as
            "sqlite:///oclok.db", which is only read.
        agent: its name, if `source` is a storage.
    """
    if "://" not in str(source):
        return _read(Path(source))
    if agent is None:
        raise InputError("a storage has several agents: give agent=, too")
    from oclok.service.database import Database  # the service is an extra
    from oclok.service.export import export

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.parquet"
        export(Database(str(source)), agent, path)
        return _read(path)


def _read(path: Path) -> Log:
    import pandas as pd
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except OSError as reason:
        raise DataError(f"cannot read {path}: {reason}") from None
    known = (table.schema.metadata or {}).get(b"oclok")
    if known is None:
        raise DataError(f"{path} was not written by `oclok export`; see Log.from_frame for others")
    meta: dict[str, Any] = json.loads(known)
    if meta["schema"] is None:
        raise DataError(f"{path} has no decisions")
    schema, usual = Schema(meta["schema"]), meta["settings"]["oracle"]
    frame: pd.DataFrame = table.to_pandas()
    frame = frame[frame["kind"] == "decision"]
    rounds, incomplete = [], 0
    for _, rows in frame.groupby("decision", sort=False):
        chosen = np.flatnonzero(rows["chosen"].to_numpy(dtype=bool))
        outcomes = rows["outcome"].to_numpy(dtype=float)[chosen]
        if not chosen.size or np.isnan(outcomes).any():
            incomplete += 1
            continue
        rounds.append(_round(rows, schema, usual, chosen, outcomes))
    if incomplete > MOST_INCOMPLETE * max(len(rounds) + incomplete, 1):
        warnings.warn(
            OverlapWarning(
                f"{incomplete} of {len(rounds) + incomplete} decisions lack outcomes and are left "
                "out; if that depends on what they are, the rest says little"
            ),
            stacklevel=3,
        )
    if not rounds:
        raise DataError(f"{path} has no decision whose outcomes are all known")
    return Log(rounds)


def _round(
    rows: Any, schema: Schema, usual: dict[str, Any], chosen: Any, outcomes: Any
) -> LoggedRound:
    """Return the round of a decision, whose arms are `rows`."""
    arms = as_arms(dict(enumerate(map(json.loads, rows["features"]))))
    text = rows["request"].iloc[0]  # missing where the request had nothing special
    request = json.loads(text) if isinstance(text, str) else {}
    oracle: Oracle = oracle_from_json(request.get("oracle") or usual)
    if oracle.columns:
        oracle = oracle.resolve(arms.column)
    fixed = {name: request[name] for name in ("include", "exclude") if request.get(name)}
    if fixed:
        place = {arm: position for position, arm in enumerate(rows["arm"])}
        oracle = oracle.given(**{n: [place[str(arm)] for arm in ids] for n, ids in fixed.items()})
    contexts = schema.encode(arms, frozenset(arms.names))
    p = rows["propensity"].to_numpy(dtype=float)
    P = float(rows["super_arm_propensity"].iloc[0])
    known = None if np.isnan(p).all() else np.clip(p, 0.0, 1.0), None if np.isnan(P) else P
    return LoggedRound(contexts, chosen, outcomes, oracle, *known)
