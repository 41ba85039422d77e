"""Whether beliefs are honest, for every kernel and dimension: samples of the kernel, played."""

from __future__ import annotations

from itertools import product

from benchmarks.budget import CONTEXTS, DIMENSIONS, KERNELS
from benchmarks.regret import FIRST_SEED, play
from benchmarks.report import Result, Row, Target
from benchmarks.resumable import answer, measured

SEEDS, ROUNDS = 10, 300


def run(quick: bool) -> Result:
    seeds, rounds = (2, 200) if quick else (SEEDS, ROUNDS)
    rows = [
        {"case": f"{name}, D = {D}, {contexts}"}
        | measured(__name__, "verdicts", D, name, contexts, seeds, rounds)
        for D, name, contexts in product((3, 8) if quick else DIMENSIONS, KERNELS, CONTEXTS)
    ]
    least = min(row["neither"] / seeds for row in rows)
    targets = [Target("least share of calibrated runs, of 10 each", 0.9, least)]
    notes = (
        f"Verdicts of `calibration()` after {rounds} rounds of Bayes-UCB (100 arms, 5 chosen) on "
        f"{seeds} samples of the kernel. A calibrated model is found odd in one run of 100."
    )
    return Result("Calibration within the budget", rows, targets, notes)


def verdicts(D: int, name: str, contexts: str, seeds: int, rounds: int) -> Row:
    """Return how often each verdict was given, and the spreads of residuals."""
    runs = [
        play(KERNELS[name](D), D, contexts == "uniform", "dictionary", seed, rounds)
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
    ]
    given = [run["verdicts"][-1] for run in runs]
    spreads = [run["spreads"][-1] for run in runs]
    return {
        "rank": runs[-1]["rank"],
        **{verdict: given.count(verdict) for verdict in _VERDICTS},
        "least spread": min(spreads),
        "largest spread": max(spreads),
    }


_VERDICTS = ("neither", "overconfident", "underconfident")

if __name__ == "__main__":
    answer(verdicts=verdicts)
