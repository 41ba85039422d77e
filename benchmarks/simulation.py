"""Simulation I: 250 rounds of about 100 base arms, by ours and by other libraries' posteriors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import peers, workload
from benchmarks.environment import has
from benchmarks.report import Result, Row, Target, say
from benchmarks.workload import Played, Task

OURS = {
    "oclok, exact": workload.exact,
    "oclok, sparse (50 random)": workload.sparse,
    "oclok, dictionary": workload.dictionary,
}
ARM_BY_ARM = "GPflow, one prediction per arm (total ≈)"
#: The cost of a round is the median of this many rounds up to it, over all repeats.
WINDOW = 10
#: OpenBLAS, MKL and TensorFlow keep their threads spinning for a while after the last call.
REST = 0.3
#: Rounds played before the clock starts: a core that has just slept is slow at first.
WARM_UP = 30


def run(quick: bool) -> Result:
    rounds, repeats = (60, 1) if quick else (250, 5)
    tasks = workload.tasks(rounds)
    played = _play_all(tasks, repeats)
    reference = played["oclok, exact"][0]
    marks = [t for t in (50, 100, 250) if t <= rounds]
    rows = [_row(name, runs, reference, marks) for name, runs in played.items()]
    if has("gpflow"):
        rows.insert(0, _arm_by_arm(tasks, reference, marks))
    notes = (
        f"{repeats} interleaved repeats; a round is select and update. Total is the sum of each "
        f"round's median over the repeats; t = … the median of {WINDOW} rounds in all repeats. "
        "≈ marks a total that was interpolated between a few measured rounds."
    )
    ours = next(row["total, s"] for row in rows if row["posterior"] == "oclok, dictionary")
    for row in rows:
        row["over dictionary"] = row["total, s"] / ours
    title = f"Simulation I: {rounds} rounds, {sum(map(len, reference.super_arms)):,} outcomes"
    return Result(title, rows, _targets(rows, marks[-1]), notes)


def _play_all(tasks: list[Task], repeats: int) -> dict[str, list[Played]]:
    makers: dict[str, Callable[[], Any]] = {**peers.available(), **OURS}
    played: dict[str, list[Played]] = {name: [] for name in makers}
    for repeat in range(repeats):
        for name, make in makers.items():
            say(f"simulation: {name}, repeat {repeat + 1} of {repeats}")
            time.sleep(REST)
            workload.play(make(), tasks[:WARM_UP])
            played[name].append(workload.play(make(), tasks))
    return played


def _row(name: str, runs: list[Played], reference: Played, marks: list[int]) -> Row:
    seconds = np.array([run.seconds for run in runs])
    total = float(np.median(seconds, axis=0).sum())
    row: Row = {"posterior": name, "total, s": total}
    for t in marks:
        row[_column(t)] = float(1e3 * np.median(seconds[:, t - WINDOW : t]))
    row["super arms as exact"] = f"{runs[0].equal(reference)} of {len(reference.super_arms)}"
    return row


def _arm_by_arm(tasks: list[Task], reference: Played, marks: list[int]) -> Row:
    """Measure a few rounds, each with the data that the exact posterior had collected."""
    rounds = sorted({2, len(tasks) // 10, len(tasks) * 3 // 4, *marks})
    seconds, equal = [], 0
    for t in rounds:
        say(f"simulation: {ARM_BY_ARM}, round {t}")
        peer = peers.GPflowArmByArm()
        before = list(zip(tasks, reference.super_arms, strict=True))[: t - 1]
        peer.X = np.vstack([task.contexts[chosen] for task, chosen in before])
        peer.y = np.concatenate([task.outcomes[chosen] for task, chosen in before])
        peer.round = t - 1
        peer.learn(peer.X, peer.y)
        played = workload.play(peer, tasks[t - 1 : t])
        seconds.append(float(played.seconds[0]))
        equal += np.array_equal(played.super_arms[0], reference.super_arms[t - 1])
    total = float(np.interp(np.arange(1, len(tasks) + 1), rounds, seconds).sum())
    row: Row = {"posterior": ARM_BY_ARM, "total, s": total}
    row |= {_column(t): 1e3 * seconds[rounds.index(t)] for t in marks}
    return row | {"super arms as exact": f"{equal} of {len(rounds)} measured"}


def _column(t: int) -> str:
    return f"t = {t}, ms"


def _targets(rows: list[Row], last: int) -> list[Target]:
    """Return what depends on no other library and no CPU: ours against ours."""
    final = {row["posterior"]: row[_column(last)] for row in rows}
    ratio = final["oclok, exact"] / final["oclok, dictionary"]
    return [Target(f"dictionary, times as fast as exact, round {last}", 6, ratio)]
