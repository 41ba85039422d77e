"""Made-up results that look like those of experiments, for what draws and reports them."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest

#: The share of the benchmark's reward that a policy gets in the end, and milliseconds a round.
POLICIES = {
    "O'CLOK-UCB": (0.98, 0.3),
    "SO'CLOK-UCB 100": (0.95, 2.5),
    "SO'CLOK-UCB 50": (0.90, 1.2),
    "SO'CLOK-UCB 20": (0.75, 0.6),
    "SO'CLOK-UCB 10": (0.62, 0.5),
    "SO'CLOK-UCB 4": (0.995, 0.5),
    "SO'CLOK-UCB 2": (0.96, 0.45),
    "SO'CLOK-UCB 1": (0.93, 0.4),
    "ACC-UCB": (0.60, 0.15),
    "CC-MAB": (0.61, 0.15),
    "Random": (0.47, 0.02),
}
NEEDS_HORIZON = {"ACC-UCB", "CC-MAB"}
PARTS = {
    "crowdsourcing": ([""], [100, 50, 20, 10], [50, 100, 150, 200, 250]),
    "codependency": (
        [f"l={scale:g}" for scale in (0.01, 0.05, 0.1, 0.5, 1)],
        [100, 50, 20],
        [100, 300],
    ),
    "movies": ([""], [4, 2, 1], [400]),
}


def fake_results(
    experiment: str = "crowdsourcing",
    repeats: int = 3,
    certificates: bool = False,
    levels: dict[str, float] | None = None,
) -> pd.DataFrame:
    """Return results with `levels` for final rewards, by policy or by "policy variant"."""
    variants, sizes, horizons = PARTS[experiment]
    policies = [f"SO'CLOK-UCB {s}" for s in sizes] + ["ACC-UCB"]
    if experiment != "movies":
        policies = ["O'CLOK-UCB", *policies, "CC-MAB"]
    runs = [
        _run(experiment, variant, policy, horizon, repeat, certificates, levels or {})
        for variant in variants
        for policy in policies
        for horizon in (horizons if policy in NEEDS_HORIZON else horizons[-1:])
        for repeat in range(repeats)
    ]
    return pd.concat(runs, ignore_index=True)


def _run(experiment, variant, policy, horizon, repeat, certificates, levels):
    name = f"{experiment} {variant} {policy} {horizon} {repeat}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    level, time = POLICIES[policy]
    if variant:
        level *= min(1.0, 0.15 + float(variant[2:]) * (4 if policy.startswith("S") else 2))
    is_given = f"{policy} {variant}".strip() in levels or policy in levels
    level = levels.get(f"{policy} {variant}".strip(), levels.get(policy, level))
    t = np.arange(1, horizon + 1)
    best = rng.uniform(1.0, 1.6, horizon)
    share = level if is_given else level * (1 - 0.5 * np.exp(-t / 20))
    noise = 0.0 if is_given else rng.normal(0, 0.08, horizon)
    expected = best * (share + noise)
    table = pd.DataFrame(
        {
            "experiment": experiment,
            "variant": variant,
            "policy": policy,
            "horizon": horizon,
            "repeat": repeat,
            "data": f"made-up {experiment}",
            "round": t,
            "reward": expected + rng.normal(0, 0.1, horizon),
            "expected_reward": expected,
            "best_expected_reward": best,
            "regret": best - expected,
            "seconds": 1e-3 * time * rng.lognormal(0, 0.2, horizon),
            "arms": rng.poisson(100, horizon),
            "chosen": 5,
        }
    )
    if certificates:
        known = 1.0 if policy == "O'CLOK-UCB" else np.nan
        widths = np.cumsum(30 / np.sqrt(t)) * known
        table["certificate_widths"] = widths
        table["certificate_information"] = 3 * widths
        table["information_gain"] = 8 * np.log1p(t) * known
        table["largest_eigenvalue"] = known
        table["in_band"] = np.where(t == 120 if repeat == 1 else False, 0.0, 1.0) * known
    return table


@pytest.fixture(scope="session")
def make_results():
    """The function that makes results up."""
    return fake_results
