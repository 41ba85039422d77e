"""What keeping the certificate adds to the time of a round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import workload
from benchmarks.report import Result, Row, Target, say
from oclok import OClokUCB
from oclok.policies import GPPolicy, Played


class Uncertified(OClokUCB):
    """O'CLOK-UCB that keeps no certificate."""

    def _record(self, played: Played) -> None:
        GPPolicy._record(self, played)


def run(quick: bool) -> Result:
    rounds, repeats = (60, 2) if quick else (250, 15)
    tasks = workload.tasks(rounds)
    rows: list[Row] = []
    for name, make in (("dictionary", workload.dictionary), ("exact", workload.exact)):
        say(f"certificate: {name}")
        kept, not_kept = _seconds(make, tasks, repeats if name == "dictionary" else repeats // 2)
        rows.append(
            {
                "posterior": name,
                "round with, µs": 1e6 * kept,
                "without, µs": 1e6 * not_kept,
                "ratio": kept / not_kept,
            }
        )
    targets = [
        Target(f"certificate kept over not kept, {row['posterior']}", 1.05, row["ratio"], True)
        for row in rows
    ]
    return Result(
        "Certificate: what it adds to a round",
        rows,
        targets,
        f"Mean over {rounds} rounds of each round's median; the two policies take turns within a "
        "round, the first one alternating.",
    )


def _seconds(
    make: Callable[[], OClokUCB], tasks: list[workload.Task], repeats: int
) -> tuple[float, float]:
    """Return the seconds of a round with and without the certificate."""
    taken = np.empty((repeats, len(tasks), 2))
    for repeat in range(repeats):
        kept = make()
        pair = [kept, Uncertified(posterior=kept.posterior.copy(), oracle=workload.ORACLE)]
        for t, task in enumerate(tasks):
            for which in ((0, 1), (1, 0))[(t + repeat) % 2]:
                taken[repeat, t, which] = workload.play(pair[which], [task]).seconds[0]
    kept_seconds, not_kept_seconds = np.median(taken, axis=0).mean(axis=0)
    return float(kept_seconds), float(not_kept_seconds)
