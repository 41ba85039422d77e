"""Cases measured one by one, each in a process of its own, and kept: a run can be interrupted.

Results are lines of `resumable.jsonl` beside this file. Delete it, or lines of it, to measure
again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.report import say

KEPT = Path(os.environ.get("OCLOK_KEPT", Path(__file__).with_name("resumable.jsonl")))


def measured(module: str, *case: Any) -> Any:
    """Return the result of a case: kept, or from `python -m module CASE`, on one BLAS thread."""
    key = json.dumps([module, *case], ensure_ascii=False)
    if KEPT.exists():
        for line in KEPT.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["case"] == json.loads(key):
                return entry["result"]
    say(key)
    command = [sys.executable, "-m", module, json.dumps(case)]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = json.loads(subprocess.check_output(command, env=one_thread))
    with KEPT.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"case": json.loads(key), "result": result}, ensure_ascii=False))
        file.write("\n")
    return result


def answer(**measures: Any) -> None:
    """Measure the case named on the command line and print the result."""
    measure, *case = json.loads(sys.argv[1])
    print(json.dumps(measures[measure](*case)))
