"""A bounded cost for every kernel and every dimension, and what that costs in regret.

Every case runs in a process of its own, niced, on one BLAS thread, and is kept in `budget.jsonl`
beside this file: a run that was interrupted goes on from there. Delete the file to start anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern

from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target, say
from oclok import BayesUCB
from oclok.oracles import TopK
from oclok.posterior import DictionaryPosterior, ExactPosterior

DONE = Path(__file__).with_name("budget.jsonl")
ARMS, K, NOISE_STD = 100, 5, 0.1
SIZES = (2_000, 100_000)
KERNELS: dict[str, Callable[[int], Any]] = {
    "RBF(1)": lambda D: RBF(1.0),
    "RBF(√D)": lambda D: RBF(D**0.5),
    "Matérn 5/2": lambda D: Matern(1.0, nu=2.5),
    "Matérn 3/2": lambda D: Matern(1.0, nu=1.5),
    "linear": lambda D: DotProduct(1.0),
}
#: Kernels whose samples are played, and the dimension of the contexts.
SAMPLED = {
    "Matérn 5/2, D = 8": (Matern(1.0, nu=2.5), 8),
    "Matérn 3/2, l = 0.3, D = 3": (Matern(0.3, nu=1.5), 3),
    "RBF(0.1), D = 3": (RBF(0.1), 3),
}
#: Random Fourier features of a sample.
FOURIER = 6_144


def run(quick: bool) -> Result:
    dimensions = (3, 8) if quick else (3, 8, 20, 64)
    sizes = (600, 1_200) if quick else SIZES
    rounds = (60, 60) if quick else (2_000, 300)
    costs = []
    for D, name, contexts in product(dimensions, KERNELS, ("uniform", "Gaussian")):
        few, many = (
            _done("cost", D, name, contexts, N, count)
            for N, count in zip(sizes, rounds, strict=True)
        )
        costs.append(
            {
                "case": f"{name}, D = {D}, {contexts}",
                "rank": many["rank"],
                "round, ms": many["round"],
                f"over that at N = {sizes[0]:,}": many["relative"] / few["relative"],
                "over RBF(1), D = 3": many["relative"],
                "slowest over median": few["slowest"],
                "resident, MB": many["resident"],
            }
        )
    regrets = [_regret(name, 2 if quick else 5, 120 if quick else 600) for name in SAMPLED]
    return Result("Budget: every kernel and dimension", costs, _targets(costs, regrets), _NOTES)


_NOTES = (
    "Rounds of Bayes-UCB (100 arms, 5 chosen), CPU time, after so many outcomes learned; "
    "relative times are those of rounds that take turns with RBF(1) in 3 uniform dimensions in "
    "the same process. Regret is that of 5 samples of the kernel, played by an exact posterior "
    "and by the dictionary."
)


def _targets(costs: list[Row], regrets: list[Row]) -> list[Target]:
    growth = next(column for column in costs[0] if column.startswith("over that"))
    worst = {
        "growth of a round": (growth, 1.5),
        "round over that of RBF(1), D = 3": ("over RBF(1), D = 3", 10.0),
        "slowest round over the median": ("slowest over median", 20.0),
        "resident set, MB": ("resident, MB", 400.0),
    }
    targets = [
        Target(f"worst {name}", limit, max(row[column] for row in costs), at_most=True)
        for name, (column, limit) in worst.items()
    ]
    for row in regrets:
        targets.append(Target(f"regret over exact's, {row['case']}", 1.1, row["regret"], True))
        name = f"runs of {row['runs']} with a verdict like exact's, {row['case']}"
        targets.append(Target(name, 0.9 * row["runs"], row["calibrated"]))
    return targets


def _regret(name: str, seeds: int, rounds: int) -> Row:
    pairs = [
        tuple(_done("regret", name, kind, seed, rounds) for kind in ("dictionary", "exact"))
        for seed in range(seeds)
    ]
    ours, exact = (sum(run["regret"] for run in runs) for runs in zip(*pairs, strict=True))
    calibrated = sum(o["verdict"] in ("neither", e["verdict"]) for o, e in pairs)
    return {"case": name, "regret": ours / exact, "runs": seeds, "calibrated": calibrated}


def _done(*case: Any) -> Any:
    """Return the result of a case, from the file or from a process that measures it now."""
    key = json.dumps(case, ensure_ascii=False)
    if DONE.exists():
        for line in DONE.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["case"] == json.loads(key):
                return entry["result"]
    say(f"budget: {key}")
    command = [sys.executable, "-m", "benchmarks.budget", key]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = json.loads(subprocess.check_output(command, env=one_thread))
    with DONE.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"case": case, "result": result}, ensure_ascii=False) + "\n")
    return result


def cost(D: int, name: str, contexts: str, N: int, rounds: int) -> Row:
    """Measure rounds after N outcomes, in turn with those of the reference."""
    rng = np.random.default_rng(0)
    ours = _Player(BayesUCB(KERNELS[name](D), NOISE_STD, TopK(K)), D, contexts == "uniform", rng)
    reference = _Player(BayesUCB(RBF(1.0), NOISE_STD, TopK(K)), 3, True, rng)
    ours.learn(N)
    reference.learn(2_000)
    taken = np.array([(ours.play(), reference.play()) for _ in range(rounds)])
    median, reference_median = np.median(taken, axis=0)
    return {
        "rank": ours.policy.posterior.rank,
        "round": 1e3 * median,
        "relative": median / reference_median,
        "slowest": float(taken[:, 0].max() / median),
        "resident": memory()[0],
    }


class _Player:
    """A policy and the contexts it meets; outcomes are a wave along a random direction."""

    def __init__(self, policy: BayesUCB, D: int, uniform: bool, rng: np.random.Generator) -> None:
        self.policy = policy
        draw = rng.random if uniform else rng.standard_normal
        self._draw: Callable[[int], np.ndarray] = lambda n: draw((n, D))
        self._direction = rng.standard_normal(D)
        self._rng = rng

    def learn(self, N: int) -> None:
        """Learn N outcomes after a few rounds, as many at a time as a warm start brings."""
        for _ in range(20):
            self.play()
        for start in range(0, N, 1_000):
            X = self._draw(min(1_000, N - start))
            self.policy.observe(X, self._outcomes(X))

    def play(self) -> float:
        """Play a round and return its CPU time."""
        X = self._draw(ARMS)
        start = time.process_time()
        decision = self.policy.select(X)
        chosen = time.process_time() - start
        outcomes = self._outcomes(decision.contexts)
        start = time.process_time()
        self.policy.update(decision, outcomes)
        return chosen + time.process_time() - start

    def _outcomes(self, X: np.ndarray) -> np.ndarray:
        return np.sin(X @ self._direction) + NOISE_STD * self._rng.standard_normal(len(X))


def regret(name: str, kind: str, seed: int, rounds: int) -> Row:
    """Play a sample of a kernel and return the regret, round by round in six parts."""
    kernel, D = SAMPLED[name]
    rng = np.random.default_rng(seed)
    f = _sample(kernel, D, rng)
    made = DictionaryPosterior if kind == "dictionary" else ExactPosterior
    policy = BayesUCB(posterior=made(kernel, NOISE_STD), oracle=TopK(K))
    lost = np.empty(rounds)
    for t in range(rounds):
        X, noise = rng.random((ARMS, D)), NOISE_STD * rng.standard_normal(ARMS)
        means = f(X)
        decision = policy.select(X)
        chosen = decision.super_arm
        lost[t] = np.sort(means)[-K:].sum() - means[chosen].sum()
        policy.update(decision, means[chosen] + noise[chosen])
    calibration = policy.calibration()
    return {
        "regret": float(lost.sum()),
        "parts": [float(part.mean()) for part in np.array_split(lost, 6)],
        "spread": calibration.spread,
        "verdict": calibration.verdict,
    }


def _sample(kernel: Any, D: int, rng: np.random.Generator) -> Callable[[Any], np.ndarray]:
    """Return a sample of a stationary kernel, by random Fourier features."""
    frequencies = rng.standard_normal((FOURIER, D)) / kernel.length_scale
    if isinstance(kernel, Matern):
        freedom = 2 * kernel.nu
        frequencies /= np.sqrt(rng.chisquare(freedom, (FOURIER, 1)) / freedom)
    phases, weights = 2 * np.pi * rng.random(FOURIER), rng.standard_normal(FOURIER)
    return lambda X: np.cos(X @ frequencies.T + phases) @ weights * np.sqrt(2 / FOURIER)


if __name__ == "__main__":
    os.nice(5 - min(os.nice(0), 5))
    measure, *case = json.loads(sys.argv[1])
    print(json.dumps({"cost": cost, "regret": regret}[measure](*case)))
