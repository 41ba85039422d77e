"""The guard's promise, kept or broken: 1,000 runs over ten problems, through the agent.

f is drawn from the prior of the policy's own posterior, which is what the promise assumes. A
baseline is a score column of the arms: f itself, f with noise, noise, or -f.

With --floor, a lower bound of the regret with the worst baseline, for every guard that plays the
policy's set or the baseline's. Let it play the policy's for the first time after n decisions of the
baseline's. With the best baseline that breaks the promise at once with probability b_n, so a guard
does so with probability δ / b_n at most. With the worst one, it does so no more often than the most
powerful test of that size finds out which of the two it is (Neyman and Pearson), even one that
knows f but for its sign about the level.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from benchmarks.report import Result, Row, Target, say, table
from oclok import Agent
from oclok.oracles import Knapsack, Oracle, TopK
from oclok.policies import UCB

RUNS, ROUNDS, ARMS, K = 100, 150, 20, 3
SHARE, DELTA = 0.05, 0.05
#: The guard's constants were chosen on seeds below this one.
FIRST_SEED = 5_000
LEVEL, SPREAD, NOISE_STD = 4.0, 0.5, 1.0
#: Most regret, over the unguarded agent's, where the baseline is poor.
MOST_REGRET = 1.3
POOR = ("random", "worst")


BEST = TopK(K)


@dataclass(frozen=True)
class Problem:
    """A world, a baseline, what may be chosen, and after how many decisions outcomes come."""

    world: str
    baseline: str
    oracle: Oracle = BEST
    name: str = f"sum of {K}"
    delay: int = 0


PROBLEMS = (
    Problem("linear", "best"),
    Problem("linear", "nearly best"),
    Problem("linear", "random"),
    Problem("linear", "worst"),
    Problem("smooth", "best"),
    Problem("smooth", "nearly best"),
    Problem("smooth", "random"),
    Problem("smooth", "worst"),
    Problem("linear", "nearly best", Knapsack(costs="cost", budget=3.0), "knapsack", delay=5),
    Problem("linear", "random", TopK(K, reward=np.log1p), "log of the sum"),
)


def run(quick: bool) -> Result:
    runs, rounds = (2, 30) if quick else (RUNS, ROUNDS)
    rows = []
    for problem in PROBLEMS:
        say(f"guard: {problem.world}, {problem.baseline}, {problem.name}")
        rows.append(_row(problem, runs, rounds))
    broken = sum(row["broken"] for row in rows) / (runs * len(rows))
    useless = max(row["ratio"] for row in rows if row["baseline"] == "random")
    worst = max(row["ratio"] for row in rows if row["baseline"] == "worst")
    targets = [
        Target("share of runs below 95% of the baseline at any time", DELTA, broken, at_most=True),
        Target("regret over unguarded, random baseline", MOST_REGRET, useless, at_most=True),
        Target("regret over unguarded, worst baseline", MOST_REGRET, worst, at_most=True),
    ]
    notes = (
        f"{runs} runs each of {rounds} decisions among {ARMS} arms. Broken: runs whose expected "
        "reward so far was below 95% of the baseline's at any time. Left: decisions that the "
        "guard left to the baseline. Worth: the unguarded regret of the whole run, in decisions "
        "of the baseline; a guard that leaves n decisions to it adds n of these, so that its ratio "
        "is large where few of them make up all of the regret."
    )
    return Result("Guard: never much worse than the baseline", rows, targets, notes)


def floor(runs: int = 40, most: int = 7, worlds: tuple[str, ...] = ("linear",)) -> list[Row]:
    """Return, for n decisions of the baseline's, what they cost and what they tell."""
    rows: list[Row] = []
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    for world in worlds:
        say(f"floor: {world}")
        signal, free, floor = _signal(world, most), math.nan, 1.0
        for n in range(most):
            regret = np.mean(
                [_played(Problem(world, "worst"), s, ROUNDS, None, n)[1] for s in seeds]
            )
            least = [_played(Problem(world, "best"), s, n + 1, None, n)[0] for s in seeds]
            breaks = float(np.mean(np.array(least) < 1 - SHARE))
            free = regret if n == 0 else free
            if n > 0:
                floor += (regret / free - rows[-1]["ratio"]) * (1 - rows[-1]["found"])
            found = _found(signal[:, : n * K], min(DELTA / max(breaks, DELTA), 1.0))
            row = {"world": world, "n": n, "ratio": regret / free, "breaks": breaks}
            rows.append(row | {"found": found, "floor": floor})
    return rows


def _signal(world: str, decisions: int, draws: int = 2_000) -> np.ndarray:
    """Return f less its level at the best sets of some decisions, shape (draws, decisions K)."""
    rng, rows = np.random.default_rng(FIRST_SEED), []
    for _ in range(draws):
        _, f, D = WORLDS[world](rng)
        means = f(rng.uniform(-1, 1, (decisions * ARMS, D))).reshape(decisions, ARMS)
        rows.append(np.sort(means - LEVEL)[:, -K:].ravel())
    return np.array(rows)


def _found(signal: np.ndarray, size: float) -> float:
    """Return the power of the likelihood ratio test of signal against -signal, about any level."""
    variance, k = (LEVEL / NOISE_STD) ** 2, signal.shape[1]
    known = (signal**2).sum(axis=1) - variance / (1 + variance * k) * signal.sum(axis=1) ** 2
    d = 2 * np.sqrt(known) / NOISE_STD
    z = np.random.default_rng(FIRST_SEED).standard_normal((2, len(d)))
    best, worst = d * z[0] - d**2 / 2, d * z[1] + d**2 / 2
    return float(np.mean(worst >= np.quantile(best, 1 - size))) if k else size


def _row(problem: Problem, runs: int, rounds: int) -> Row:
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    guarded = np.array([_played(problem, seed, rounds, SHARE) for seed in seeds])
    unguarded = math.nan
    if problem.baseline in POOR:
        free = np.array([_played(problem, seed, rounds, None) for seed in seeds])
        unguarded = free[:, 1].mean()
    least, regret, left, of_baseline = guarded.T
    return {
        "world": problem.world,
        "reward": problem.name,
        "delay": problem.delay,
        "baseline": problem.baseline,
        "broken": int((least < 1 - SHARE).sum()),
        "left": left.mean(),
        "regret": regret.mean(),
        "unguarded": unguarded,
        "ratio": regret.mean() / unguarded,
        "worth": rounds * unguarded / max(of_baseline.mean(), 1e-12),
    }


def _played(
    problem: Problem, seed: int, rounds: int, guard: float | None, wait: int = 0
) -> list[float]:
    """Return the least share of the baseline's reward, regret, decisions left, its regret.

    The first `wait` decisions are the baseline's.
    """
    rng = np.random.default_rng(seed)
    kernel, f, D = WORLDS[problem.world](rng)
    features: dict[str, Any] = {
        f"x{d}": {"kind": "number", "mean": 0.0, "scale": 1.0, "missing": False} for d in range(D)
    }
    agent = Agent(
        oracle=problem.oracle,
        features=features,
        policy=UCB(kernel=kernel, noise_std=NOISE_STD, width=1.0),
        outcome_range=(-1e6, 1e6),
        baseline={"score": "score"},
        guard=guard,
        explainable=0,
    )
    ours = theirs = regret = of_baseline = 0.0
    least, waiting = np.inf, []
    for t in range(rounds):
        X, costs = rng.uniform(-1, 1, (ARMS, D)), rng.uniform(0.5, 1.5, ARMS)
        means, noise = f(X), NOISE_STD * rng.standard_normal(ARMS)
        score = _score(problem.baseline, means, rng.standard_normal(ARMS))
        rows = {
            m: {f"x{d}": x for d, x in enumerate(X[m])} | {"score": score[m]} for m in range(ARMS)
        }
        oracle = problem.oracle
        if oracle.columns:
            rows = {m: row | {"cost": costs[m]} for m, row in rows.items()}
            oracle = oracle.resolve({"cost": costs}.__getitem__)
        decision = agent.decide(rows, include=oracle(score).tolist() if t < wait else ())
        best, old = oracle.value(means, oracle(means)), oracle.value(means, oracle(score))
        reward = oracle.value(means, np.array(decision.chosen))
        ours, theirs = ours + reward, theirs + old
        least = min(least, ours / theirs)
        regret, of_baseline = regret + best - reward, of_baseline + best - old
        waiting.append((decision.id, {m: means[m] + noise[m] for m in decision.chosen}))
        if len(waiting) > problem.delay:
            agent.learn(*waiting.pop(0))
    report = agent.guard_report()
    return [least, regret, 0.0 if report is None else report.stepped_in, of_baseline]


def _score(baseline: str, means: np.ndarray, noise: np.ndarray) -> np.ndarray:
    scores = {
        "best": means,
        "nearly best": means + 0.3 * means.std() * noise,
        "random": noise,
        "worst": -means,
    }[baseline]
    positive: np.ndarray = scores - scores.min() + 0.1
    return positive


def _linear(rng: np.random.Generator) -> tuple[Any, Any, int]:
    D = 5
    theta = rng.normal(0, SPREAD, D)
    kernel = ConstantKernel(LEVEL**2) + ConstantKernel(SPREAD**2) * DotProduct(sigma_0=0.0)
    return kernel, lambda X: LEVEL + X @ theta, D


def _smooth(rng: np.random.Generator) -> tuple[Any, Any, int]:
    """Return a sample of a squared exponential kernel, by random Fourier features."""
    D, length, waves = 2, 0.7, 500
    W, phase = rng.normal(0, 1 / length, (D, waves)), rng.uniform(0, 2 * np.pi, waves)
    weights = rng.normal(0, SPREAD * np.sqrt(2 / waves), waves)
    kernel = ConstantKernel(LEVEL**2) + ConstantKernel(SPREAD**2) * RBF(length)
    return kernel, lambda X: LEVEL + np.cos(X @ W + phase) @ weights, D


WORLDS = {"linear": _linear, "smooth": _smooth}


if __name__ == "__main__":
    if "--floor" in sys.argv:
        print(table(floor()))
        sys.exit()
    result = run("--quick" in sys.argv)
    print(f"{result.markdown()}\n\n{table([target.row() for target in result.targets])}")
