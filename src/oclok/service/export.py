"""The log as Parquet: one row per arm that was offered, chosen or not, with what came of it."""
# Tested in tests/service/test_client.py: logs that clients filled are exported.

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from oclok.agent import Schema
from oclok.agent.arms import as_arms
from oclok.service.database import Database
from oclok.service.decisions import logged
from oclok.service.log import AgentRow, Event, Log
from oclok.service.packing import records

#: Decisions that are written at once.
CHUNK = 1_000


def export(database: Database, name: str, path: Path) -> int:
    """Write the log of an agent to a Parquet file and return the number of its rows.

    Columns: `kind` ("decision" or "observation"), `decision`, `round`, `time`, `arm`, `features`
    (JSON), `mean`, `std`, `index`, `chosen`, `outcome`; `told`, when the outcome came;
    `propensity` of the arm and `super_arm_propensity` of the set that was chosen, estimated from
    `propensity_draws` draws (0: exact); `group`, `unit`, `stepped_in` of the guard; `request`, its
    oracle, include and exclude (JSON) where it had any. Settings and features of the agent are in
    the file's metadata. `oclok.offline.read_log` reads it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = Log(database)
    row = log.agent(name)
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
        ("propensity", pa.float64()),
        ("super_arm_propensity", pa.float64()),
        ("propensity_draws", pa.int64()),
        ("group", pa.string()),
        ("unit", pa.string()),
        ("stepped_in", pa.bool_()),
        ("request", pa.string()),
    ]
    known = {"settings": json.loads(row.settings), "schema": _features(log, row)}
    schema, count = pa.schema(fields, {"oclok": json.dumps(known)}), 0
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


def export_from(storage: str, name: str, path: Path) -> int:
    """Write the log of an agent in a storage, given by its URL, as `export` does."""
    return export(Database(storage), name, path)


def _features(log: Log, row: AgentRow) -> dict[str, Any] | None:
    """Return the features of an agent as its first arms have set them; None if there are none."""
    for event in log.after(row.id, 0, row.last):
        if event.kind == "decision" and event.decision is not None:
            schema = logged(event).get("schema")
        elif event.kind == "observations":
            declared = json.loads(row.settings).get("features")
            arms = as_arms(dict(enumerate(from_json(event.body)["features"])))
            fitted = Schema.infer(arms) if declared is None else Schema(declared).fitted(arms)
            schema = fitted.to_json()
        else:
            continue
        if schema is not None:
            return dict(schema)
    return None


def _rows(log: Log, agent: int, event: Event) -> list[dict[str, Any]]:
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
    asked = {name: body[name] for name in ("oracle", "include", "exclude") if body.get(name)}
    shared = {
        "super_arm_propensity": body["super_arm_propensity"],
        "propensity_draws": body["propensity_draws"],
        "group": body["group"],
        "unit": body.get("unit"),
        "stepped_in": body.get("guard", {}).get("stepped_in", False),
        "request": json.dumps(asked) if asked else None,
    }
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
            "propensity": None if body["propensity"] is None else body["propensity"][place],
            **shared,
        }
        for place, arm in enumerate(records(body))
    ]
