"""Whether the default's 95% bands hold 95%.

Of f where features have long tails, and of outcomes that are 0 or 1, or counts, at any base rate.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from benchmarks.report import Result, Row, Target, say, table
from oclok.oracles import TopK
from oclok.policies import UCB

RUNS, ROUNDS, ARMS, K, D = 16, 200, 60, 5, 4
#: Nothing was chosen on seeds from this one on.
FIRST_SEED = 9_000
Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _normal(f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return f + 0.1 * rng.standard_normal(len(f))


def _binary(rate: float) -> Draw:
    return lambda f, rng: (rng.random(len(f)) < expit(logit(rate) + f)).astype(float)


def _count(rate: float) -> Draw:
    return lambda f, rng: rng.poisson(rate * np.exp(0.5 * f)).astype(float)


#: Outcomes by f; features are normal, or their exponentials are taken twice as far.
CASES: dict[str, tuple[Draw, bool]] = {
    "normal features": (_normal, False),
    "lognormal features": (_normal, True),
    **{f"0 or 1, base rate {rate:.0%}": (_binary(rate), False) for rate in (0.01, 0.03, 0.1, 0.5)},
    **{f"counts, base rate {rate:g}": (_count(rate), False) for rate in (0.03, 0.3, 3.0)},
}


def run(quick: bool = False) -> Result:
    """Return the share of f, and of outcomes of the second half, within 95% bands."""
    rows: list[Row] = []
    with threadpool_limits(1):
        for case in CASES:
            say(case)
            held = [_held(case, FIRST_SEED + n) for n in range(2 if quick else RUNS)]
            f, outcomes = np.mean(held, axis=0).tolist()
            rows.append({"case": case, "f within": f, "outcomes within": outcomes})
    shares = [float(row["outcomes within"]) for row in rows]
    targets = [
        Target("lognormal features: f within its 95% band", 0.88, float(rows[1]["f within"])),
        Target("outcomes within their 95% bands, least", 0.93, min(shares)),
        Target("outcomes within their 95% bands, most", 0.97, max(shares), at_most=True),
    ]
    notes = f"UCB(), {ROUNDS} rounds of {K} out of {ARMS} arms, {len(held)} runs each."
    return Result("Bands of the default", rows, targets, notes)


def _held(case: str, seed: int) -> tuple[float, float]:
    """Return the shares of f (where outcomes have its unit) and of outcomes within 95% bands."""
    draw, is_long = CASES[case]
    rng = np.random.default_rng(seed)
    waves, phases = rng.normal(size=(D, 6)), rng.uniform(0, 2 * np.pi, 6)
    policy = UCB(oracle=TopK(K))

    def offered(count: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.standard_normal((count, D))
        return np.exp(2 * x) if is_long else x, np.cos(x @ waves / 2 + phases).sum(axis=1) / 2

    for _ in range(ROUNDS):
        X, f = offered(ARMS)
        decision = policy.select(X)
        policy.update(decision, draw(f[decision.super_arm], rng))
    X, f = offered(500)
    mean, std = policy.posterior.predict(X)
    inside = np.abs(f - mean) <= 1.96 * std
    residuals = policy.residuals[len(policy.residuals) // 2 :]
    return (
        float(inside.mean()) if draw is _normal else float("nan"),
        float((np.abs(residuals) <= 1.96).mean()),
    )


if __name__ == "__main__":
    result = run("--quick" in sys.argv)
    print(result.markdown(), table([target.row() for target in result.targets]), sep="\n\n")
