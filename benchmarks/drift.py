"""Drift without a knob: regret of the default over that of the best forgetting set by hand.

f is a sum of cosines of a linear map of contexts. It stays as it is, becomes another one halfway,
or turns into another one a little in every round.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Result, Row, Target, say, table
from oclok.oracles import TopK
from oclok.policies import UCB, Discount, Window

RUNS, ROUNDS, ARMS, K, D = 16, 300, 40, 5, 4
NOISE_STD = 0.1
#: The constants of the default were chosen on seeds below this one.
FIRST_SEED = 5_000
#: Most regret over the best forgetting where the world moves, and over none where it does not.
MOVING, STILL = 1.1, 1.05

#: How far f has become the other one, by the share of rounds played.
WORLDS: dict[str, Callable[[float], float]] = {
    "still": lambda t: 0.0,
    "sudden": lambda t: float(t >= 0.5),
    "slow": lambda t: t,
}
FORGET = {
    "none": None,
    "window 150": Window(150),
    "window 300": Window(300),
    "window 600": Window(600),
    "discount 0.97": Discount(0.97),
    "discount 0.99": Discount(0.99),
}


@threadpool_limits.wrap(limits=1)  # matrices are small
def run(quick: bool) -> Result:
    """Play every world with every way to forget."""
    runs, rounds = (1, 30) if quick else (RUNS, ROUNDS)
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    policies = {"default": UCB} | {
        name: partial(_by_hand, forget) for name, forget in FORGET.items()
    }
    rows: list[Row] = []
    for world in WORLDS:
        say(f"drift: {world}")
        regret = {
            name: float(np.mean([_played(make, world, seed, rounds) for seed in seeds]))
            for name, make in policies.items()
        }
        ratio = regret["default"] / min(regret[name] for name in FORGET)
        rows.append({"world": world, **regret, "ratio": ratio})
    targets = [
        Target(f"regret over the best forgetting, {row['world']}", limit, row["ratio"], True)
        for row, limit in zip(rows, (STILL, MOVING, MOVING), strict=True)
    ]
    notes = (
        f"Regret of {rounds} rounds, {K} of {ARMS} arms, mean of {runs} runs. Ratio: the default "
        "over the best of the others, chosen in hindsight for each world."
    )
    return Result("Drift: nothing to set when the world moves", rows, targets, notes)


def _by_hand(forget: Window | Discount | None, oracle: TopK) -> UCB:
    """Return the default with this way to forget, which doesn't watch for drift."""
    policy = UCB(oracle=oracle, forget=forget)
    policy._watch = None
    return policy


def _played(make: Callable[..., UCB], world: str, seed: int, rounds: int) -> float:
    """Return the regret of one run."""
    rng = np.random.default_rng(seed)
    frequencies = rng.normal(0, 1.2, (2, D, 40))
    phases, weights = rng.uniform(0, 2 * np.pi, (2, 40)), rng.normal(0, 20**-0.5, (2, 40))
    policy, regret = make(oracle=TopK(K)), 0.0
    for t in range(rounds):
        X = rng.random((ARMS, D))
        first, second = (np.cos(X @ frequencies[n] + phases[n]) @ weights[n] for n in range(2))
        share = WORLDS[world](t / rounds)
        means = (1 - share) * first + share * second
        decision = policy.select(X)
        seen = means[decision.super_arm]
        policy.update(decision, seen + rng.normal(0, NOISE_STD, K))
        regret += float(np.sort(means)[-K:].sum() - seen.sum())
    return regret


if __name__ == "__main__":
    result = run("--quick" in sys.argv)
    print(result.markdown(), table([target.row() for target in result.targets]), sep="\n\n")
