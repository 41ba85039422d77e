"""What a round costs, and how much memory the process has, as observations grow in number."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks import workload
from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target, say
from oclok import OClokUCB

SIZES = (1_000, 10_000, 100_000)
#: Rounds that are played against the clock, after so many observations.
ROUNDS = 200


def run(quick: bool) -> Result:
    sizes = SIZES[:2] if quick else SIZES
    policies = {size: _taught(size) for size in sizes}
    taken: dict[int, list[float]] = {size: [] for size in sizes}
    for task in workload.tasks(ROUNDS, seed=1):
        for size, policy in policies.items():
            taken[size].append(float(workload.play(policy, [task]).seconds[0]))
    rows: list[Row] = [
        {
            "observations": size,
            "rank": policies[size].posterior.rank,
            "round, ms": 1e3 * float(np.median(taken[size])),
            "slowest tenth, ms": 1e3 * float(np.quantile(taken[size], 0.9)),
            "resident, MB": _resident(size),
        }
        for size in sizes
    ]
    resident = Target("resident set, MB", 300, rows[-1]["resident, MB"], at_most=True)
    notes = (
        f"Policies that learned so many outcomes take turns in {ROUNDS} rounds more; medians. "
        "Memory is that of a process of its own that did the same with one of them."
    )
    return Result("Growth: the dictionary", rows, [resident], notes)


def _taught(size: int) -> OClokUCB:
    """Return a policy that learned `size` outcomes of Simulation I, five at a time."""
    say(f"growth: {size:,} observations")
    policy = workload.dictionary()
    tasks = workload.tasks(size // 90)
    X = np.vstack([task.contexts for task in tasks])[:size]
    y = np.concatenate([task.outcomes for task in tasks])[:size]
    for start in range(0, size, 5):
        policy.observe(X[start : start + 5], y[start : start + 5])
    return policy


def _resident(size: int) -> float:
    """Return the resident set, in MB, of a fresh process that learns and plays."""
    command = [sys.executable, "-m", "benchmarks.growth", str(size)]
    return float(subprocess.check_output(command))


if __name__ == "__main__":
    workload.play(_taught(int(sys.argv[1])), workload.tasks(ROUNDS, seed=1))
    print(memory()[0])
