"""How much was left on the table: whether `policy.regret()` is right, and what it costs."""

from __future__ import annotations

import time

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.report import Result, Row, Target, say
from oclok.bench import Codependency
from oclok.oracles import TopK
from oclok.policies import OClokUCB

NOISE_STD, LEVEL, ARMS, K = 0.1, 0.9, 60, 5


def run(quick: bool) -> Result:
    runs, rounds = (40, 20) if quick else (200, 100)
    rows = [_coverage(runs, rounds), *(_simulation_2(seed, quick) for seed in range(runs // 20))]
    later = rows[1:]
    targets = [
        Target("share of 90% intervals that cover the regret", 0.85, rows[0]["covered"]),
        Target("the same", 0.95, rows[0]["covered"], True),
    ]
    if later:
        ratio = float(np.mean([row["upper / certificate"] for row in later]))
        per_call = float(np.median([row["ms per call"] for row in later]))
        targets += [
            Target("upper end over certificate, Simulation II, l = 1", 0.2, ratio, True),
            Target("ms per call, a call per round", 1.0, per_call, True),
        ]
    notes = (
        f"First row: {runs} samples of RBF(0.5) at 400 contexts, {rounds} rounds of {ARMS} arms. "
        "The others: Simulation II with l = 1, the interval asked for in every round; CPU time."
    )
    return Result("Left on the table: the regret as the posterior sees it", rows, targets, notes)


def _coverage(runs: int, rounds: int) -> Row:
    say(f"left: coverage in {runs} runs")
    covered, true, upper = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 11])
        X = rng.random((400, 3))
        root = np.linalg.cholesky(RBF(0.5)(X) + 1e-10 * np.eye(400))
        f = root @ rng.standard_normal(400)
        policy = OClokUCB(RBF(0.5), NOISE_STD, TopK(K))
        regret = 0.0
        for _ in range(rounds):
            arms = rng.choice(400, ARMS, replace=False)
            decision = policy.select(X[arms])
            means = f[arms][decision.super_arm]
            regret += float(np.sort(f[arms])[-K:].sum() - means.sum())
            policy.update(decision, means + NOISE_STD * rng.standard_normal(K))
        seen = policy.regret(LEVEL)
        covered.append(seen.lower <= regret <= seen.upper)
        true.append(regret)
        upper.append(seen.upper)
    return {
        "case": f"{runs} samples of the prior",
        "covered": float(np.mean(covered)),
        "true regret": float(np.mean(true)),
        "upper end": float(np.mean(upper)),
        "upper / certificate": float("nan"),
        "ms per call": float("nan"),
    }


def _simulation_2(seed: int, quick: bool) -> Row:
    say(f"left: Simulation II, seed {seed}")
    problem = Codependency(rounds=20 if quick else 150, lengthscale=1.0, seed=seed)
    policy = OClokUCB(RBF(1.0), NOISE_STD)
    rng = np.random.default_rng(seed)
    regret = seconds = 0.0
    for task in problem:
        decision = policy.select(task.contexts, task.oracle)
        regret += task.oracle.value(task.means, task.oracle(task.means))
        regret -= task.oracle.value(task.means, decision.super_arm)
        policy.update(decision, task.play(decision.super_arm, rng))
        start = time.process_time()
        seen = policy.regret(LEVEL)
        seconds += time.process_time() - start
    return {
        "case": f"Simulation II, l = 1, seed {seed}",
        "covered": float(seen.lower <= regret <= seen.upper),
        "true regret": regret,
        "upper end": seen.upper,
        "upper / certificate": seen.upper / policy.certificate().from_widths,
        "ms per call": 1e3 * seconds / policy.round,
    }
