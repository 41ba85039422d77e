"""What learning the kernel costs: rounds of the mixture against a single dictionary.

The single posterior is a `DictionaryPosterior` with the kernel and noise that the mixture ends up
with, for contexts scaled alike: what somebody would use who knew them. RBF(1) on contexts as they
are is shown as well; where it needs few basis functions because it is wrong, it is cheap.
"""

from __future__ import annotations

import math
from time import process_time

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.compare.problems import PROBLEMS
from benchmarks.report import Result, Row, Target, say
from oclok.bench.problems.base import Round, fresh_seed
from oclok.policies import UCB
from oclok.typing import FloatArray

NAMES = ("crowdsourcing", "channels", "codependency 0.5", "Friedman1", "diabetes", "movies")
ROUNDS, FROM, SEED = 250, 50, 100
#: How often the mixture plays; the least time of each round counts.
PLAYS = 3


def run(quick: bool) -> Result:
    with threadpool_limits(1):  # threads that wait for each other would count as work
        return _run(quick)


def _run(quick: bool) -> Result:
    rows: list[Row] = []
    for name in NAMES[:2] if quick else NAMES:
        say(f"mixture: {name}")
        rows.append(_problem(name, 80 if quick else ROUNDS))
    targets = [
        Target(f"{row['problem']}: over a single dictionary", 3.0, row["over single"], at_most=True)
        for row in rows
    ]
    targets += [
        Target(f"{row['problem']}: slowest round", 20.0, row["slowest"], at_most=True)
        for row in rows
    ]
    notes = (
        f"CPU time of a round (select and update), one BLAS thread, median from round {FROM} on, "
        f"seed {SEED}; the mixture plays {PLAYS} times, and the least time of each round "
        "counts. Slowest: the slowest of all rounds over the median of all."
    )
    return Result("Mixture: what learning the kernel costs", rows, targets, notes)


def _problem(name: str, count: int) -> Row:
    rounds = list(PROBLEMS[name](count, SEED))
    policy = UCB()
    _play({"": (policy, rounds)}, len(rounds))
    _, kernel, noise = policy.posterior.members[0]  # type: ignore[attr-defined]
    low = np.min([each.contexts.min(axis=0) for each in rounds], axis=0)
    span = np.max([each.contexts.max(axis=0) for each in rounds], axis=0) - low
    scaled = [
        Round((r.contexts - low) / np.where(span > 0, span, 1.0), r.means, r.oracle, r.noise)
        for r in rounds
    ]
    again = [f"mixture, play {n}" for n in range(PLAYS)]
    players = {
        **{name: (UCB(), rounds) for name in again},
        "single": (UCB(kernel, math.sqrt(noise)), scaled),
        "RBF(1)": (UCB(RBF(1.0), 0.1), rounds),
    }
    times = _play(players, len(rounds))
    times["mixture"] = np.min([times[name] for name in again], axis=0)
    median = {player: float(np.median(taken[FROM:])) for player, taken in times.items()}
    slowest = {player: taken.max() / np.median(taken) for player, taken in times.items()}
    return {
        "problem": name,
        "mixture, ms": 1e3 * median["mixture"],
        "over single": median["mixture"] / median["single"],
        "over RBF(1)": median["mixture"] / median["RBF(1)"],
        "slowest": float(slowest["mixture"]),
        "slowest, single": float(slowest["single"]),
    }


def _play(players: dict[str, tuple[UCB, list[Round]]], count: int) -> dict[str, FloatArray]:
    """Let all policies play, taking turns round by round; return seconds of CPU time."""
    times = {name: np.empty(count) for name in players}
    seeds = fresh_seed(SEED).spawn(count)
    for t in range(count):
        for name, (policy, rounds) in players.items():
            start = process_time()
            decision = policy.select(rounds[t].contexts, oracle=rounds[t].oracle)
            times[name][t] = process_time() - start
            outcomes = rounds[t].play(decision.super_arm, np.random.default_rng(seeds[t]))
            start = process_time()
            policy.update(decision, outcomes)
            times[name][t] += process_time() - start
    return times


if __name__ == "__main__":
    result = run(quick=False)
    print(result.markdown())
