"""How far a round is from the bare BLAS, LAPACK and kernel calls that it cannot do without.

r, N, M, K    rank, observations, base arms, chosen base arms
R, S, m       factors and weights of the dictionary (see oclok.posterior.features)
L, z          factor and whitened outcomes of the exact posterior
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from scipy.linalg.blas import dgemm, dgemv, dsyrk, dtrsm
from scipy.linalg.lapack import dpotrf
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from benchmarks import workload
from benchmarks.report import Result, Row, Target, say
from benchmarks.timing import seconds
from oclok import OClokUCB
from oclok.posterior.dictionary.posterior import FIRST_TRY

M, K = 100, 5


def run(quick: bool) -> Result:
    rounds = 60 if quick else 250
    tasks = workload.tasks(rounds + 300)
    begun = workload.dictionary()
    workload.play(begun, tasks[:rounds])
    rank = begun.posterior.rank
    later = tasks[rounds : rounds + (100 if quick else 300)]
    rows = [_dictionary(begun, later), *_exact(tasks, rounds, quick)]
    best = min(row["multiple"] for row in rows[1:])
    worst = max(row["multiple"] for row in rows[1:])
    rows += _whole(tasks[:rounds], rank, 1 if quick else 5)
    targets = [
        Target("dictionary round over its floor", 2.5, rows[0]["multiple"], at_most=True),
        Target("exact round over its floor", 1.6, worst, at_most=True),
    ]
    notes = (
        "Floor and round are measured in turn; medians. The floor of the exact posterior is a "
        f"whole triangular solve, in either memory layout (multiples {best:.2f} and {worst:.2f}); "
        "the quicker layout counts. All rounds together: the bare calls at a few N, interpolated, "
        "and each round's median. No program made of these calls can be quicker than their sum."
    )
    return Result("Floor: a round as a multiple of its bare calls", rows, targets, notes)


def _dictionary(policy: OClokUCB, tasks: list[workload.Task]) -> Row:
    say("floor: dictionary")
    r = policy.posterior.rank
    bare = _dictionary_floor(r)
    with threadpool_limits(1, user_api="blas"):
        bare()
    floor, ours = [], []
    for task in tasks:
        with threadpool_limits(1, user_api="blas"):
            floor.append(seconds(bare))
        ours.append(float(workload.play(policy, [task]).seconds[0]))
    return _row(f"dictionary, r = {r}, 1 thread", floor, ours)


def _whole(tasks: list[workload.Task], rank: int, repeats: int) -> list[Row]:
    """Measure all rounds together, and the floors along the way."""
    marks = np.linspace(1, len(tasks), 6).astype(int)
    exact = [_exact_floor(K * t, left=True) for t in marks]
    dictionary = _dictionary_floor(rank)
    floors, single, ours = [], [], {"exact": [], "dictionary": []}
    for repeat in range(repeats):
        say(f"floor: all rounds, repeat {repeat + 1} of {repeats}")
        for name, make in (("exact", workload.exact), ("dictionary", workload.dictionary)):
            ours[name].append(workload.play(make(), tasks).seconds)
        floors.append([median(seconds(bare) for _ in range(20)) for bare in exact])
        single.append(median(seconds(dictionary) for _ in range(100)))
    rounds = np.arange(1, len(tasks) + 1)
    bare = {"exact": np.interp(rounds, marks, np.median(floors, axis=0))}
    is_exact = K * rounds <= FIRST_TRY
    bare["dictionary"] = np.where(is_exact, bare["exact"], median(single))
    return [
        _row(f"{name}, all {len(tasks)} rounds", [bare[name].sum()], [taken.sum()])
        for name, taken in ((name, np.median(runs, axis=0)) for name, runs in ours.items())
    ]


def _dictionary_floor(r: int) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    U, X, m = rng.random((r, 3)), rng.random((M, 3)), rng.standard_normal(r)
    R = np.asfortranarray(np.tril(rng.random((r, r))) + r * np.eye(r))
    S = np.asfortranarray(np.eye(r))
    identity = np.eye(K, order="F")

    def bare() -> None:
        k = cdist(X, U, "sqeuclidean")
        k *= -0.5
        np.exp(k, out=k)
        phi = dtrsm(1.0, R, k.T, lower=1, overwrite_b=1)
        np.einsum("rm,rm->m", phi, phi)
        whitened = dgemm(1.0, S, phi, trans_a=1)
        np.einsum("rm,rm->m", whitened, whitened)
        dgemv(1.0, phi, m, trans=1)
        P = whitened[:, :K]
        C = dpotrf(dsyrk(1.0, P, beta=1.0, c=identity, trans=1, lower=1), lower=1)[0]
        J = dgemm(1.0, S, dtrsm(1.0, C, P, side=1, lower=1, trans_a=1))
        Y = dtrsm(1.0, C, P, side=1, lower=1, trans_a=1)
        dgemm(-1.0, J, Y, trans_b=1, beta=1.0, c=S)

    return bare


def _exact(tasks: list[workload.Task], middle: int, quick: bool) -> list[Row]:
    """Measure rounds around the one of number `middle`, and the floor at that one."""
    say("floor: exact")
    around = 10 if quick else 20
    begun = workload.exact()
    workload.play(begun, tasks[: middle - around])
    N = K * middle
    floors = {"solved from the left": [], "solved from the right": []}
    bare = {name: _exact_floor(N, left="left" in name) for name in floors}
    ours: list[float] = []
    for _ in range(1 if quick else 5):
        policy = workload.policy(begun.posterior.copy())
        for task in tasks[middle - around : middle + around]:
            for name, call in bare.items():
                floors[name].append(seconds(call))
            ours.append(float(workload.play(policy, [task]).seconds[0]))
    return [_row(f"exact, N = {N:,}, {name}", floor, ours) for name, floor in floors.items()]


def _exact_floor(N: int, left: bool) -> Callable[[], Any]:
    rng = np.random.default_rng(0)
    X, x, z = rng.random((N, 3)), rng.random((M, 3)), rng.standard_normal(N)
    L = np.tril(rng.random((N, N))) + N * np.eye(N)
    lower, grown = np.asfortranarray(L), np.zeros((N + K, N + K))
    identity = np.eye(K, order="F")

    def bare() -> None:
        k = cdist(x, X, "sqeuclidean") if left else cdist(X, x, "sqeuclidean")
        k *= -0.5
        np.exp(k, out=k)
        if left:
            V = dtrsm(1.0, lower, k.T, lower=1, overwrite_b=1)
            dgemv(1.0, V, z, trans=1)
        else:
            V = dtrsm(1.0, L.T, k.T, side=1, lower=0, overwrite_b=1).T
            dgemv(1.0, V.T, z)
        np.einsum("nm,nm->m", V, V)
        new = V[:, :K]
        grown[N:, :N] = new.T
        grown[N:, N:] = dpotrf(dsyrk(1.0, new, beta=1.0, c=identity, trans=1, lower=1), lower=1)[0]

    return bare


def _row(name: str, floor: list[float], ours: list[float]) -> Row:
    bare, taken = 1e6 * median(floor), 1e6 * median(ours)
    return {"posterior": name, "floor, µs": bare, "round, µs": taken, "multiple": taken / bare}
