"""What keeping to a budget costs in regret.

Samples of a kernel are played by an exact posterior for as long as that is affordable, and by the
dictionary for longer. Both see the same arms and the same noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, Matern

from benchmarks.report import Result, Row, Target
from benchmarks.resumable import answer, measured
from oclok import BayesUCB
from oclok.oracles import TopK
from oclok.posterior import DictionaryPosterior, ExactPosterior

ARMS, K, NOISE_STD = 100, 5, 0.1
#: Kernels whose samples are played, and the dimension of the contexts.
SAMPLED = {
    "Matérn 5/2, D = 8": (Matern(1.0, nu=2.5), 8),
    "Matérn 3/2, l = 0.3, D = 3": (Matern(0.3, nu=1.5), 3),
    "RBF(0.1), D = 3": (RBF(0.1), 3),
}
#: Rounds of the exact posterior and of the dictionary, and rounds per entry of what is kept.
EXACT_ROUNDS, ROUNDS, BLOCK = 600, 2_000, 100
#: Seeds, the first of them, and how many are played by the exact posterior as well.
SEEDS, FIRST_SEED, PAIRED = 10, 20, 5
#: Random Fourier features of a sample.
FOURIER = 6_144


def run(quick: bool) -> Result:
    few, many = (100, 200) if quick else (EXACT_ROUNDS, ROUNDS)
    paired, seeds = (1, 2) if quick else (PAIRED, SEEDS)
    rows = [_row(name, few, many, paired, seeds) for name in SAMPLED]
    targets = []
    for row in rows:
        case = row["case"]
        targets += [
            Target(f"regret over exact's, {case}", 1.1, row["over exact's"], at_most=True),
            Target(f"last quarter over the one before, {case}", 1.0, row["late"], at_most=True),
        ]
    return Result("Regret within the budget", rows, targets, NOTES)


NOTES = (
    "Bayes-UCB (100 arms, 5 chosen) on samples of the kernel. Regret is paired with that of an "
    "exact posterior on the same arms and noise; ± is a standard error over seeds."
)


def _row(name: str, few: int, many: int, paired: int, seeds: int) -> Row:
    seen = range(FIRST_SEED, FIRST_SEED + seeds)
    ours = [measured(__name__, "regret", name, "dictionary", seed, many) for seed in seen]
    exact = [measured(__name__, "regret", name, "exact", seed, few) for seed in seen[:paired]]
    first = np.array([sum(run["blocks"][: few // BLOCK]) for run in ours[:paired]])
    other = np.array([sum(run["blocks"]) for run in exact])
    quarters = np.array([np.reshape(run["blocks"], (4, -1)).mean(axis=1) for run in ours])
    drop = quarters[:, 3] - quarters[:, 2]
    return {
        "case": name,
        "exact's regret": other.mean(),
        "over exact's": first.mean() / other.mean(),
        "±": error(first - other) / other.mean(),
        "per round, by quarters": " ".join(f"{q:.3f}" for q in quarters.mean(axis=0) / BLOCK),
        "late": quarters[:, 3].mean() / quarters[:, 2].mean(),
        "late ±": error(drop) / quarters[:, 2].mean(),
    }


def error(values: np.ndarray) -> float:
    """Return the standard error of the mean of `values`."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def regret(name: str, kind: str, seed: int, rounds: int) -> Row:
    """Play a sample of a kernel and return the regret of every BLOCK rounds."""
    kernel, D = SAMPLED[name]
    rng = np.random.default_rng(seed)
    f = sample(kernel, D, rng)
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
    return {"blocks": lost.reshape(-1, BLOCK).sum(axis=1).tolist(), "rank": policy.posterior.rank}


def sample(kernel: Any, D: int, rng: np.random.Generator) -> Callable[[Any], np.ndarray]:
    """Return a sample of a stationary kernel, by random Fourier features."""
    # Stratified: heavy tails of independent draws would make a sample rougher, or less so, than
    # the kernel says, by a few percent of what a round can tell.
    share = (rng.permutation(FOURIER) + rng.random(FOURIER)) / FOURIER
    if isinstance(kernel, Matern):
        square = D * stats.f.ppf(share, D, 2 * kernel.nu)
    else:
        square = stats.chi2.ppf(share, D)
    frequencies = rng.standard_normal((FOURIER, D))
    frequencies *= (np.sqrt(square) / np.linalg.norm(frequencies, axis=1))[:, None]
    frequencies /= kernel.length_scale
    phases, weights = 2 * np.pi * rng.random(FOURIER), rng.standard_normal(FOURIER)
    left = np.float32(frequencies.T)  # single precision is right to 1e-5, and quicker
    right, phases = np.float32(weights * np.sqrt(2 / FOURIER)), np.float32(phases)
    return lambda X: np.float64(np.cos(np.float32(X) @ left + phases) @ right)


if __name__ == "__main__":
    answer(regret=regret)
