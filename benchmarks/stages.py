"""Where the CPU time of a served pair goes, stage by stage, in one process and without HTTP.

python -m benchmarks.stages [--decisions 2000] [--case "100 × 8"]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from benchmarks.pairs import CASES, CHOSEN, Case
from benchmarks.report import Result, Row
from oclok.service import service as module
from oclok.service.config import Config
from oclok.service.database import Database
from oclok.service.requests import DecisionRequest, OutcomeItems
from oclok.service.service import Service
from oclok.threads import use_one_blas_thread

#: What each stage does; indented ones are part of the one above.
STAGES = {
    "read": "JSON and validation of both requests",
    "propose": "encode the arms, predict, choose",
    "policy": "… of which the policy",
    "body": "pack the decision for the log",
    "append": "two commits",
    "record": "bookkeeping of decision and outcomes",
    "check": "what is certain of outcomes before the log",
    "learn": "steps of learning",
}


def run(quick: bool) -> Result:
    return stages(CASES["100 × 8"], 60 if quick else 2_000)


def stages(case: Case, decisions: int) -> Result:
    """Return the CPU time of each stage over the second half of `decisions` pairs."""
    use_one_blas_thread()
    spent: dict[str, list[float]] = defaultdict(list)

    def timed(stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            start = time.thread_time()
            try:
                return call(*arguments, **named)
            finally:
                spent[stage].append(time.thread_time() - start)

        return wrapped

    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/oclok.db")
        database.migrate()
        service = Service(database, Config())
        settings = {"oracle": {"kind": "TopK", "k": CHOSEN}, "outcome_range": [-100, 100]}
        service.put_agent("a", settings)
        replica = service.replica("a")
        wrapped = [
            (service.log, "append", "append"),
            (service, "_checked", "check"),
            (replica, "committed", "record"),
            (replica.agent, "propose", "propose"),
            (replica.learner, "propose", "policy"),
            (module, "pack", "body"),
        ]
        pack = module.pack
        for owner, name, stage in wrapped:
            setattr(owner, name, timed(stage, getattr(owner, name)))
        play(service, case, decisions, timed)
        module.pack = pack
        database.close()
    half = decisions // 2
    rows: list[Row] = []
    for stage, meaning in STAGES.items():
        times = np.array(spent[stage])
        times = 1e3 * times[-round(len(times) / 2) :]
        rows.append(
            {
                "stage": meaning,
                "CPU per pair, ms": float(times.sum() / half),
                "longest, ms": float(times.max()),
            }
        )
    gc.collect()
    start = time.thread_time()
    gc.collect()
    full = 1e3 * (time.thread_time() - start)
    notes = (
        f"{case.arms} arms × {case.numbers} numbers and {case.categories} categories, SQLite, the "
        f"second half of {decisions:,} pairs of one decision and {CHOSEN} outcomes; load average "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. A full garbage collection at the end "
        f"takes {full:.0f} ms."
    )
    return Result("Stages of a served pair", rows, [], notes)


def play(service: Service, case: Case, decisions: int, timed: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    reader = timed("read", TypeAdapter(DecisionRequest).validate_json)
    outcomes_reader = timed("read", TypeAdapter(OutcomeItems).validate_json)
    work = timed("learn", service.replica("a").learner.work)
    for _ in range(decisions):
        arms, means = case.offer(rng)
        answer = service.decide("a", vars(reader(json.dumps({"arms": arms}).encode())))
        noise = 0.1 * rng.standard_normal(CHOSEN)
        items = [
            {"decision": answer["id"], "arm": arm["id"]}
            | {"outcome": float(means[int(arm["id"][1:])] + z)}
            for arm, z in zip(answer["chosen"], noise, strict=True)
        ]
        service.learn("a", list(map(vars, outcomes_reader(json.dumps(items).encode()))))
        while work():
            pass


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=2_000)
    parser.add_argument("--case", default="100 × 8", choices=CASES)
    asked = parser.parse_args()
    sys.stdout.write(stages(CASES[asked.case], asked.decisions).markdown() + "\n")
