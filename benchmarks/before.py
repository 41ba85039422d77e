"""Rounds of this code and of another commit, in turns, in one process.

    python -m benchmarks.before COMMIT [repeats]

The workload is that of Simulation I. Each round counts by the least time of all repeats, 15 by
default, with one BLAS thread: the machine's noise only adds. The commit's package is extracted
under another name; its public names have to be those of today.
"""

from __future__ import annotations

import importlib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from oclok.problems import Crowdsourcing

BEFORE = "oclok_before"
NOISE_STD, K, ROUNDS = 0.1, 5, 250
POSTERIORS = ("DictionaryPosterior", "ExactPosterior")


def extract(commit: str, folder: Path) -> None:
    """Write the package as of `commit` into `folder`, as `oclok_before`."""
    archive = subprocess.check_output(["git", "archive", commit, "src/oclok"])
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    (folder / "src" / "oclok").rename(folder / BEFORE)
    for path in (folder / BEFORE).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"\b(from|import) oclok\b", rf"\1 {BEFORE}", text), "utf-8")


def times(package: str, posterior: str) -> tuple[np.ndarray, list[list[int]]]:
    """Return the seconds of every round, and what was chosen in it."""
    policies, oracles, posteriors = (
        importlib.import_module(f"{package}.{name}")
        for name in ("policies", "oracles", "posterior")
    )
    rng = np.random.default_rng(1)
    belief = getattr(posteriors, posterior)(RBF(1.0), NOISE_STD)
    policy: Any = policies.OClokUCB(posterior=belief, oracle=oracles.TopK(K))
    taken, chosen = [], []
    for arms in Crowdsourcing(rounds=ROUNDS, seed=0):
        start = time.perf_counter()
        decision = policy.select(arms.contexts)
        middle = time.perf_counter()
        means = arms.means[decision.super_arm]
        outcomes = means + NOISE_STD * rng.standard_normal(len(means))
        again = time.perf_counter()
        policy.update(decision, outcomes)
        taken.append(time.perf_counter() - again + middle - start)
        chosen.append(decision.super_arm.tolist())
    return np.array(taken), chosen


def compare(repeats: int) -> None:
    """Print how long rounds take, with either posterior, in all and in the median."""
    for posterior in POSTERIORS:
        least = {package: np.full(ROUNDS, np.inf) for package in (BEFORE, "oclok")}
        chosen: dict[str, Any] = {}
        for _ in range(repeats):
            for package, known in least.items():
                taken, chosen[package] = times(package, posterior)
                np.minimum(known, taken, out=known)
        before, now = least.values()
        print(
            f"{posterior}: all rounds {1e3 * before.sum():.1f} → {1e3 * now.sum():.1f} ms, "
            f"{now.sum() / before.sum():.3f}; median round {1e6 * np.median(before):.0f} → "
            f"{1e6 * np.median(now):.0f} µs, {np.median(now) / np.median(before):.3f}; "
            f"same super arms: {chosen[BEFORE] == chosen['oclok']}"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        extract(sys.argv[1], Path(name))
        sys.path.insert(0, name)
        compare(int(sys.argv[2]) if len(sys.argv) > 2 else 15)
