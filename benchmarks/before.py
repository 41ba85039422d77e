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
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from benchmarks.workload import NOISE_STD, ORACLE, Played, Task, play, tasks

BEFORE = "oclok_before"
ROUNDS = 250
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


def played(package: str, posterior: str, rounds: list[Task]) -> Played:
    """Play `rounds` with the posterior of that name out of `package`."""
    policies, oracles, posteriors = (
        importlib.import_module(f"{package}.{name}")
        for name in ("policies", "oracles", "posterior")
    )
    belief = getattr(posteriors, posterior)(RBF(1.0), NOISE_STD)
    return play(policies.OClokUCB(posterior=belief, oracle=oracles.TopK(ORACLE.k)), rounds)


def compare(repeats: int) -> None:
    """Print how long rounds take, with either posterior, in all and in the median."""
    rounds = tasks(ROUNDS)
    for posterior in POSTERIORS:
        runs: dict[str, list[Played]] = {BEFORE: [], "oclok": []}
        for _ in range(repeats):
            for package, known in runs.items():
                known.append(played(package, posterior, rounds))
        before, now = (np.min([run.seconds for run in known], axis=0) for known in runs.values())
        same = runs[BEFORE][0].equal(runs["oclok"][0])
        print(
            f"{posterior}: all rounds {1e3 * before.sum():.1f} → {1e3 * now.sum():.1f} ms, "
            f"{now.sum() / before.sum():.3f}; median round {1e6 * np.median(before):.0f} → "
            f"{1e6 * np.median(now):.0f} µs, {np.median(now) / np.median(before):.3f}; "
            f"{same} of {ROUNDS} super arms are the same"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, threadpool_limits(1):
        extract(sys.argv[1], Path(name))
        sys.path.insert(0, name)
        compare(int(sys.argv[2]) if len(sys.argv) > 2 else 15)
