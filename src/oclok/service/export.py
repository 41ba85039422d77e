"""The log as Parquet: one row per arm that was offered, chosen or not, with what came of it."""
# Tested in tests/service/test_client.py: logs that clients filled are exported.

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_core import from_json

from oclok.errors import InputError
from oclok.service.database import Database
from oclok.service.decisions import logged
from oclok.service.log import Event, Log
from oclok.service.packing import records

#: Decisions that are written at once.
CHUNK = 1_000


def export(database: Database, name: str, path: Path) -> int:
    """Write the log of an agent to a Parquet file and return the number of its rows.

    Columns: `kind` ("decision" or "observation"), `decision`, `round`, `time`, `arm`, `features`
    (JSON), `mean`, `std`, `index`, `chosen`, `outcome`; and `told`, when the outcome came.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = Log(database)
    row = log.agent(name)
    if row is None:
        raise InputError(f"there is no agent {name!r}")
    fields = [
        ("kind", pa.string()),
        ("decision", pa.string()),
        ("round", pa.int64()),
        ("time", pa.float64()),
        ("arm", pa.string()),
        ("features", pa.string()),
        ("mean", pa.float64()),
        ("std", pa.float64()),
        ("index", pa.float64()),
        ("chosen", pa.bool_()),
        ("outcome", pa.float64()),
        ("told", pa.float64()),
    ]
    schema, count = pa.schema(fields), 0
    temporary = path.with_name(f".{path.name}.part")
    with pq.ParquetWriter(temporary, schema) as writer:
        rows: list[dict[str, Any]] = []
        for event in log.after(row.id, 0, row.last):
            rows += _rows(log, row.id, event)
            if len(rows) >= CHUNK * 10:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                count, rows = count + len(rows), []
        writer.write_table(pa.Table.from_pylist(rows, schema))
    temporary.replace(path)
    return count + len(rows)


def _rows(log: Log, agent: int, event: Event) -> list[dict[str, Any]]:
    import json

    if event.kind == "observations":
        body = from_json(event.body)
        return [
            {"kind": "observation", "time": event.time, "features": json.dumps(features)}
            | {"outcome": outcome, "told": event.time, "chosen": True}
            for features, outcome in zip(body["features"], body["outcomes"], strict=True)
        ]
    if event.kind != "decision" or event.decision is None:
        return []
    body = logged(event)
    told: dict[Any, tuple[float, float]] = {}
    for feedback in log.feedback(agent, event.decision or ""):
        if feedback.kind == "outcomes":
            entry = from_json(feedback.body)
            for arm, outcome in entry["outcomes"]:
                if arm not in told or entry["correct"]:
                    told[arm] = (outcome, feedback.time)
    chosen = set(body["chosen"])
    return [
        {
            "kind": "decision",
            "decision": event.decision,
            "round": event.round,
            "time": event.time,
            "arm": str(arm["id"]),
            "features": json.dumps(arm["features"]),
            "mean": None if body["mean"] is None else body["mean"][place],
            "std": None if body["std"] is None else body["std"][place],
            "index": body["index"][place],
            "chosen": place in chosen,
            "outcome": told.get(arm["id"], (None, None))[0],
            "told": told.get(arm["id"], (None, None))[1],
        }
        for place, arm in enumerate(records(body))
    ]
