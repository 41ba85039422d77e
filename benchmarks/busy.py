"""Rounds on a machine whose cores are all taken by others: BLAS threads as they come, and one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern

from benchmarks.report import Result, Row, Target
from oclok import BayesUCB
from oclok.oracles import TopK

ARMS, K, D, NOISE_STD = 100, 5, 3, 0.1
KERNELS = {"RBF(1)": RBF(1.0), "Matérn 5/2": Matern(1.0, nu=2.5)}
BURN = "while True: pass"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def run(quick: bool) -> Result:
    """Play with threads as they come and with one, at the same time, beside busy processes."""
    rounds = 30 if quick else 400
    default = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    rows: list[Row] = []
    for name in KERNELS:
        others = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(_cores())]
        try:
            command = [sys.executable, "-m", "benchmarks.busy", name, str(rounds)]
            runs = [
                subprocess.Popen(command, env=default | threads, stdout=subprocess.PIPE)
                for threads in ({}, ONE_THREAD)
            ]
            ours, one = (json.loads(run.communicate()[0]) for run in runs)
        finally:
            for process in others:
                process.kill()
                process.wait()
        rows.append(
            {"case": name}
            | {f"{column}, default": value for column, value in ours.items()}
            | {f"{column}, one thread": value for column, value in one.items()}
        )
    targets = [
        Target(
            f"99th percentile of a busy round over that of one thread, {row['case']}",
            1.5,
            row["p99, ms, default"] / row["p99, ms, one thread"],
            at_most=True,
        )
        for row in rows
    ]
    notes = "Wall-clock time of `select` and `update`, with a busy process per core beside both."
    return Result("Busy machines", rows, targets, notes)


def _cores() -> int:
    return os.cpu_count() or 1


def play(name: str, rounds: int) -> Row:
    """Return median and 99th percentile of rounds after 1,000 outcomes."""
    rng = np.random.default_rng(0)
    policy = BayesUCB(KERNELS[name], NOISE_STD, TopK(K))
    X = rng.random((1_000, D))
    policy.observe(X, np.sin(X).sum(axis=1))
    taken = []
    for _ in range(rounds):
        X = rng.random((ARMS, D))
        start = time.perf_counter()
        decision = policy.select(X)
        policy.update(decision, np.sin(decision.contexts).sum(axis=1))
        taken.append(time.perf_counter() - start)
    median, p99 = np.quantile(taken, (0.5, 0.99))
    return {"median, ms": 1e3 * median, "p99, ms": 1e3 * p99}


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1], int(sys.argv[2]))))
