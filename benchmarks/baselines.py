"""Rounds per second of the baselines without a Gaussian process, on Simulation I."""

from __future__ import annotations

from statistics import median

from benchmarks import workload
from benchmarks.report import Result, say
from oclok.policies import ACCUCB, CCMAB


def run(quick: bool) -> Result:
    rounds, repeats = (60, 2) if quick else (250, 9)
    tasks = workload.tasks(rounds)
    makers = {
        "ACC-UCB": lambda: ACCUCB(rounds, dimension=3, oracle=workload.ORACLE, seed=0),
        "CC-MAB": lambda: CCMAB(rounds, dimension=3, oracle=workload.ORACLE, seed=0),
        "O'CLOK-UCB, dictionary": workload.dictionary,
    }
    taken: dict[str, list[float]] = {name: [] for name in makers}
    say(f"baselines: {repeats} repeats")
    for _ in range(repeats):
        for name, make in makers.items():
            taken[name].append(workload.play(make(), tasks).seconds.sum())
    rows = [
        {"policy": name, "rounds a second": rounds / median(times)} for name, times in taken.items()
    ]
    return Result(f"Baselines: {rounds} rounds of Simulation I", rows)
