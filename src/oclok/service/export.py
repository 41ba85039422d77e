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

#: Rows that are written at once.
CHUNK = 10_000
#: Names and types of the columns.
COLUMNS = """
    kind string, decision string, round int64, time double, arm string, features string,
    mean double, std double, index double, chosen bool, outcome double, told double,
    propensity double, super_arm_propensity double, propensity_draws int64, group string,
    unit string, stepped_in bool, request string"""


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
    known = {"settings": json.loads(row.settings), "schema": _features(log, row)}
    fields = [column.split() for column in COLUMNS.split(",")]
    schema = pa.schema(
        [(name, pa.type_for_alias(type_)) for name, type_ in fields], {"oclok": json.dumps(known)}
    )
    count = 0
    temporary = path.with_name(f".{path.name}.part")
    with pq.ParquetWriter(temporary, schema) as writer:
        rows: list[dict[str, Any]] = []
        for event in log.after(row.id, 0, row.last):
            rows += _rows(log, row.id, event)
            if len(rows) >= CHUNK:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                count, rows = count + len(rows), []
        writer.write_table(pa.Table.from_pylist(rows, schema))
    temporary.replace(path)
    return count + len(rows)


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
    told: dict[Any, tuple[float, float]] = {}  # outcome and time, by arm
    for feedback in log.feedback(agent, event.decision):
        if feedback.kind == "outcomes":
            entry = from_json(feedback.body)
            for arm, outcome in entry["outcomes"]:
                if arm not in told or entry["correct"]:
                    told[arm] = (outcome, feedback.time)
    chosen = set(body["chosen"])
    asked = {name: body[name] for name in ("oracle", "include", "exclude") if body.get(name)}
    shared = {
        "kind": "decision",
        "decision": event.decision,
        "round": event.round,
        "time": event.time,
        "super_arm_propensity": body["super_arm_propensity"],
        "propensity_draws": body["propensity_draws"],
        "group": body["group"],
        "unit": body.get("unit"),
        "stepped_in": body.get("guard", {}).get("stepped_in", False),
        "request": json.dumps(asked) if asked else None,
    }
    beliefs = {name: body[name] for name in ("mean", "std", "index", "propensity")}
    return [
        {
            "arm": str(arm["id"]),
            "features": json.dumps(arm["features"]),
            "chosen": place in chosen,
            **dict(zip(("outcome", "told"), told.get(arm["id"], ()), strict=False)),
            **{name: values[place] for name, values in beliefs.items() if values is not None},
            **shared,
        }
        for place, arm in enumerate(records(body))
    ]
