"""One `select` among up to a million base arms: time, and memory on top of what is there."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from benchmarks import workload
from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target, say
from benchmarks.timing import interleaved

SIZES = (1_000, 100_000, 1_000_000)


def run(quick: bool) -> Result:
    sizes = SIZES[:2] if quick else SIZES
    say(f"arms: up to {sizes[-1]:,}")
    command = [sys.executable, "-m", "benchmarks.arms", *map(str, sizes)]
    rows: list[Row] = json.loads(subprocess.check_output(command))
    targets = [Target("extra memory of a select, MB", 1024, rows[-1]["extra, MB"], at_most=True)]
    if not quick:
        ratio = rows[2]["select, ms"] / (10 * rows[1]["select, ms"])
        targets.append(Target("1M arms over ten times 100k arms", 2, ratio, at_most=True))
    notes = (
        "The dictionary after 300 rounds of Simulation I, contexts uniform in [0, 1]³, in a "
        "process of its own. Extra is the peak of the resident set above that before any "
        "of these selects; the contexts themselves are not in it."
    )
    return Result("Arms: one select", rows, targets, notes)


def measure(sizes: list[int], repeats: int = 5) -> list[Row]:
    """Return the table; meant for a process of its own."""
    policy = workload.dictionary()
    workload.play(policy, workload.tasks(300))
    rng = np.random.default_rng(0)
    contexts = {str(size): rng.random((size, 3)) for size in sizes}
    before, extra = memory()[0], {}
    for size, X in contexts.items():  # ascending, as a peak is never forgotten
        policy.discard(policy.select(X))
        extra[size] = memory()[1] - before
    selects = {size: lambda X=X: policy.discard(policy.select(X)) for size, X in contexts.items()}
    taken = interleaved(selects, repeats)
    return [
        {
            "base arms": size,
            "select, ms": 1e3 * taken[str(size)],
            "µs an arm": 1e6 * taken[str(size)] / size,
            "extra, MB": extra[str(size)],
        }
        for size in sizes
    ]


if __name__ == "__main__":
    print(json.dumps(measure([int(size) for size in sys.argv[1:]])))
