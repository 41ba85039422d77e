"""Worlds for agents: mixed arms with names, and what each is worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from oclok import Agent

CITIES = {"Oslo": 0.0, "Rome": 0.5, "Bonn": 0.2, "Lima": 0.8, "Cork": 0.4}
Outcomes = Callable[[pd.Series, np.random.Generator], pd.Series]


def workers(rng: np.random.Generator, count: int = 40) -> pd.DataFrame:
    """Return arms with numbers of all scales, categories, booleans and missing values."""
    frame = pd.DataFrame(
        {
            "years": rng.gamma(2.0, 5.0, count),
            "distance": rng.uniform(0, 20_000, count),
            "rating": rng.beta(5, 2, count) * 5,
            "city": rng.choice(list(CITIES), count),
            "vehicle": rng.choice(["car", "bike", "none"], count),
            "certified": rng.random(count) < 0.4,
            "shade": rng.normal(0, 1e-3, count),
        },
        index=[f"w{i}" for i in rng.permutation(10_000)[:count]],
    )
    frame.loc[rng.random(count) < 0.1, "rating"] = np.nan
    frame.loc[rng.random(count) < 0.1, "vehicle"] = None
    return frame


def worth(frame: pd.DataFrame) -> pd.Series:
    """Return the mean outcome of each arm, between 0 and about 3."""
    rating = frame["rating"].fillna(2.5) / 5
    years = frame["years"] / 20
    near = np.exp(-frame["distance"] / 8_000)
    vehicle = frame["vehicle"].map({"car": 0.3, "bike": 0.5 * near.mean(), "none": 0.0}).fillna(0.1)
    value = rating**2 + np.minimum(years, 1.0) * 0.5 + near * 0.8
    return value + frame["city"].map(CITIES) * 0.6 + vehicle + 0.3 * frame["certified"]


def play(
    agent: Agent | None,
    seed: int,
    rounds: int = 150,
    k: int = 5,
    outcomes: Outcomes | None = None,
    mean: Callable[[pd.DataFrame], pd.Series] = worth,
    tell: Callable[[int], bool] = lambda t: True,
) -> dict[str, float]:
    """Return regret, its share of the best, and that of choosing at random, over some rounds."""
    rng = np.random.default_rng(seed)
    best = reached = random = 0.0
    for t in range(rounds):
        arms = workers(rng)
        values = mean(arms)
        noisy = outcomes or (lambda v, g: v + g.normal(0, 0.1, len(v)))
        seen = noisy(values, rng)
        best += float(values.nlargest(k).sum())
        random += float(values.mean() * k)
        if agent is not None:
            decision = agent.decide(arms)
            reached += float(values[decision.chosen].sum())
            if tell(t):
                agent.learn(decision.id, seen[decision.chosen].to_dict())
    return {
        "regret": best - reached,
        "share": (best - reached) / best,
        "random": (best - random) / best,
    }


def corrupted(share: float, value: float) -> Outcomes:
    """Return noisy outcomes of which some are replaced by `value`."""

    def outcomes(means: pd.Series, rng: np.random.Generator) -> pd.Series:
        seen: Any = means + rng.normal(0, 0.1, len(means))
        seen[rng.random(len(means)) < share] = value
        return seen

    return outcomes
