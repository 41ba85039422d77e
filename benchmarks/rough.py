"""Where the dictionary could go wrong: rough kernels, many seeds, long runs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from benchmarks import workload
from benchmarks.report import Result, Row, Target, say
from benchmarks.workload import NOISE_STD
from oclok.posterior import DictionaryPosterior

KERNELS = {
    "RBF(0.1)": RBF(0.1),
    "RBF(0.05)": RBF(0.05),
    "Matérn 3/2": Matern(1.0, nu=1.5),
}


def run(quick: bool) -> Result:
    rounds = 60 if quick else 250
    checks = [
        _rough_kernels(rounds, repeats=1 if quick else 5),
        _seeds(rounds, seeds=2 if quick else 20),
        _proofs(100 if quick else 1_000),
        _drift(500 if quick else 20_000),
    ]
    targets = [target for found in checks for target in found]
    rows: list[Row] = [{"measured": t.name, "value": t.measured} for t in targets]
    notes = (
        "Costs are those of all rounds of Simulation I, medians of interleaved repeats. Errors "
        "are the largest over all contexts of 20 rounds not played. Drift is what one "
        "outcome an update does against all at once; a fresh fit has a dictionary of its own, so "
        "that its difference is mostly that of two dictionaries."
    )
    return Result("Rough kernels and exactness: the dictionary against exact", rows, targets, notes)


def _rough_kernels(rounds: int, repeats: int) -> list[Target]:
    tasks = workload.tasks(rounds + 20)
    targets = []
    for name, kernel in KERNELS.items():
        say(f"rough: {name}")
        taken = np.empty((repeats, 2))
        for repeat in range(repeats):
            within = workload.dictionary(kernel, max_rank=5 * rounds)  # beyond it: `budget`
            pair = (within, workload.exact(kernel))
            for which, policy in enumerate(pair):
                time.sleep(0.1)
                taken[repeat, which] = workload.play(policy, tasks[:rounds]).seconds.sum()
        ratio = np.divide(*np.median(taken, axis=0))
        error = max(_errors(*(p.posterior for p in pair), tasks[rounds:]))
        targets.append(Target(f"{name}: dictionary's cost over exact's", 1.3, float(ratio), True))
        targets.append(Target(f"{name}: largest error of mean and std", 1e-8, error, True))
    return targets


def _seeds(rounds: int, seeds: int) -> list[Target]:
    equal, errors = [], []
    for seed in range(seeds):
        say(f"rough: seed {seed + 1} of {seeds}")
        tasks = workload.tasks(rounds + 20, seed)
        pair = (workload.dictionary(), workload.exact())
        played = [workload.play(policy, tasks[:rounds]) for policy in pair]
        equal.append(played[0].equal(played[1]))
        errors.append(_errors(*(policy.posterior for policy in pair), tasks[rounds:]))
    mean, std = np.max(errors, axis=0)
    return [
        Target(f"fewest of {rounds} super arms as exact, {seeds} seeds", rounds, min(equal)),
        Target(f"largest error of a mean, {seeds} seeds", 1e-5, float(mean), True),
        Target(f"largest error of a std, {seeds} seeds", 1e-5, float(std), True),
    ]


def _proofs(rounds: int) -> list[Target]:
    say(f"rough: proofs over {rounds} rounds")
    tasks = workload.tasks(rounds)
    ours, judge = (workload.play(make(), tasks) for make in (workload.dictionary, workload.exact))
    differ = sum(
        not np.array_equal(a, b)
        for a, b, proven in zip(ours.super_arms, judge.super_arms, ours.exact, strict=True)
        if proven
    )
    return [
        Target(f"share of {rounds} super arms proven exact", 0.99, float(ours.exact.mean())),
        Target("proven super arms that differ", 0, differ, True),
        Target("super arms that differ at all", 0, rounds - ours.equal(judge), True),
    ]


def _drift(updates: int) -> list[Target]:
    """Compare one outcome at a time with all at once, through the same dictionary or another."""
    say(f"rough: drift over {updates:,} updates")
    tasks = workload.tasks(updates // 80 + 20)
    X = np.vstack([task.contexts for task in tasks[:-20]])[:updates]
    y = np.concatenate([task.outcomes for task in tasks[:-20]])[:updates]
    grown, fresh = _posterior(), _posterior()
    fresh.update(X, y)
    _learn_one_by_one(grown, X, y)
    errors = _errors(grown, fresh, tasks[-20:])

    # With outcomes at known contexts only, a dictionary stays what it is.
    known = np.arange(updates) % min(KNOWN, updates)
    drifting, steady = _posterior(), _posterior()
    for posterior in (drifting, steady):
        posterior.update(X[:KNOWN], y[:KNOWN])
    steady.update(X[known], y)
    _learn_one_by_one(drifting, X[known], y)
    drift = _errors(drifting, steady, tasks[-20:])
    if not np.array_equal(drifting.inducing, steady.inducing):
        raise AssertionError("the dictionaries were meant to be the same")
    after = f"after {updates:,} updates"
    return [
        Target(f"drift of a mean {after}, same dictionary", 1e-6, drift[0], True),
        Target(f"drift of a std {after}, same dictionary", 1e-6, drift[1], True),
        Target(f"mean {after}, from a fresh fit's", 1e-6, errors[0], True),
        Target(f"std {after}, from a fresh fit's", 1e-6, errors[1], True),
    ]


#: Contexts that a dictionary is made of at once, all of them taken as candidates.
KNOWN = 2_000


def _posterior() -> DictionaryPosterior:
    return DictionaryPosterior(RBF(1.0), NOISE_STD)


def _learn_one_by_one(posterior: DictionaryPosterior, X: np.ndarray, y: np.ndarray) -> None:
    for n in range(len(y)):
        posterior.update(X[n : n + 1], y[n : n + 1])


def _errors(ours: Any, judge: Any, tasks: list[workload.Task]) -> tuple[float, float]:
    """Return the largest differences of mean and of std over all contexts of `tasks`."""
    X = np.vstack([task.contexts for task in tasks])
    pairs = zip(ours.predict(X), judge.predict(X), strict=True)
    mean, std = (float(np.abs(a - b).max()) for a, b in pairs)
    return mean, std
