"""What saving and loading cost, and decisions that wait for their outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target
from benchmarks.resumable import answer, measured
from oclok import BayesUCB
from oclok.oracles import TopK
from oclok.policies import Policy
from oclok.posterior import ExactPosterior, Posterior

ARMS, K, D, NOISE_STD = 100, 5, 3, 0.1
REPEATS = 5


def run(quick: bool) -> Result:
    few, many, waiting = (500, 1_000, 200) if quick else (5_000, 20_000, 10_000)
    pending = (20, 40) if quick else (400, 2_000)
    rows = [
        measured(__name__, "outcomes", "dictionary", few),
        measured(__name__, "outcomes", "dictionary", many),
        measured(__name__, "outcomes", "exact", few),
        measured(__name__, "pending", waiting),
    ]
    counted = [measured(__name__, "conditioned", count) for count in (pending[0] // 4, *pending)]
    sizes = [row["file, MB"] for row in rows]
    targets = [
        Target("file over its size with a quarter of the outcomes", 4.4, sizes[1] / sizes[0], True),
        Target(f"file of {few:,} outcomes, MB", 10.0, sizes[0], True),
        Target(f"{waiting:,} pending decisions: save, s", 0.5, rows[-1]["save, s"], True),
        Target(f"{waiting:,} pending decisions: load, s", 0.5, rows[-1]["load, s"], True),
        *(
            Target(f"select with {row['pending']:,} pending, s", 0.5, row["select, s"], True)
            for row in counted
        ),
        Target(f"peak with {pending[1]:,} pending, MB", 400.0, counted[-1]["peak, MB"], True),
    ]
    notes = "; ".join(
        f"`condition_on_chosen` with {row['pending']:,} pending decisions: "
        f"{1e3 * row['select, s']:.0f} ms of CPU per `select`, {row['peak, MB']:.0f} MB"
        for row in counted
    )
    return Result("Saving, and decisions that wait", rows, targets, f"CPU seconds. {notes}.")


def outcomes(kind: str, count: int) -> Row:
    """Save and load a Matérn 3/2 policy that has learned `count` outcomes."""
    policy = _policy(ExactPosterior(_KERNEL, NOISE_STD) if kind == "exact" else None)
    rng = np.random.default_rng(0)
    X = rng.random((count, D))
    policy.observe(X, np.sin(X).sum(axis=1))
    return {"case": f"Matérn 3/2, {kind}, {count:,} outcomes"} | _saved(policy)


def pending(count: int) -> Row:
    """Save and load a policy that waits for the outcomes of `count` decisions."""
    policy, rng = _policy(), np.random.default_rng(0)
    for _ in range(count):
        policy.select(rng.random((K, D)))
    return {"case": f"{count:,} pending decisions"} | _saved(policy)


def conditioned(count: int) -> Row:
    """Select given `count` pending decisions, after 2,000 outcomes."""
    policy, rng = _policy(condition_on_chosen=True), np.random.default_rng(0)
    X = rng.random((2_000, D))
    policy.observe(X, np.sin(X).sum(axis=1))
    policy.condition_on_chosen = False
    for _ in range(count):
        policy.select(rng.random((K, D)))
    policy.condition_on_chosen = True
    taken = _least(lambda: policy.propose(rng.random((ARMS, D))))
    return {"pending": count, "select, s": taken, "peak, MB": memory()[1]}


_KERNEL = Matern(0.3, nu=1.5)


def _policy(posterior: Posterior | None = None, **options: Any) -> BayesUCB:
    if posterior is not None:
        return BayesUCB(posterior=posterior, oracle=TopK(K), **options)
    return BayesUCB(_KERNEL, NOISE_STD, TopK(K), **options)


def _saved(policy: Policy) -> Row:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "policy"
        save = _least(lambda: policy.save(path))
        load = _least(lambda: Policy.load(path))
        return {"file, MB": path.stat().st_size / 1e6, "save, s": save, "load, s": load}


def _least(action: Callable[[], Any]) -> float:
    """Return the least CPU time of a few calls, in seconds."""
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        taken.append(time.process_time() - start)
    return min(taken)


if __name__ == "__main__":
    answer(outcomes=outcomes, pending=pending, conditioned=conditioned)
