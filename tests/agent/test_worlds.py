"""What those get who write no code: mixed arms, wrong outcomes, rare clicks, odd scales."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd

from oclok import Agent
from oclok.oracles import TopK

CITIES = {"Oslo": 0.0, "Rome": 0.5, "Bonn": 0.2, "Lima": 0.8, "Cork": 0.4}
CHOSEN = 5

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
    agent: Agent,
    seed: int,
    rounds: int = 150,
    mean: Callable[[pd.DataFrame], pd.Series] = worth,
    outcomes: Outcomes | None = None,
    each_round: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Return the agent's regret, that of choosing at random, and the best sum of means."""
    rng = np.random.default_rng(seed)
    best = reached = random = 0.0
    for _ in range(rounds):
        each_round()
        arms = workers(rng)
        values = mean(arms)
        seen = (outcomes or noisy)(values, rng)
        best += float(values.nlargest(CHOSEN).sum())
        random += float(values.mean() * CHOSEN)
        decision = agent.decide(arms)
        reached += float(values[decision.chosen].sum())
        agent.learn(decision.id, seen[decision.chosen].to_dict())
    return {"regret": best - reached, "random": best - random, "best": best}


def noisy(means: pd.Series, rng: np.random.Generator) -> pd.Series:
    """Return outcomes with normal noise."""
    return means + rng.normal(0, 0.1, len(means))


def corrupted(share: float, value: float) -> Outcomes:
    """Return noisy outcomes of which some are replaced by `value`."""

    def outcomes(means: pd.Series, rng: np.random.Generator) -> pd.Series:
        seen = noisy(means, rng)
        seen[rng.random(len(means)) < share] = value
        return seen

    return outcomes


@cache
def without_code(seed: int) -> dict[str, float]:
    return play(Agent(TopK(CHOSEN)), seed)


def test_a_mixed_frame_needs_no_code() -> None:
    played = [without_code(seed) for seed in range(5)]
    assert np.mean([each["regret"] / each["best"] for each in played]) <= 0.06
    assert np.mean([each["random"] / each["best"] for each in played]) > 0.25


def test_wrong_outcomes_do_little_harm() -> None:
    clean = [without_code(seed)["regret"] for seed in range(5)]
    wrong = [
        play(Agent(TopK(CHOSEN)), seed, outcomes=corrupted(0.01, 1e4))["regret"]
        for seed in range(5)
    ]
    assert np.mean(wrong) <= 1.2 * np.mean(clean)


def test_the_scale_of_outcomes_does_not_matter() -> None:
    small = play(Agent(TopK(CHOSEN)), 0, rounds=60)
    large = play(
        Agent(TopK(CHOSEN)),
        0,
        rounds=60,
        outcomes=lambda means, rng: 1_000 * noisy(means, rng),
    )
    assert abs(large["regret"] / small["regret"] - 1) < 0.05


def test_rare_clicks_are_learned_although_only_clicks_are_told() -> None:
    """2% of arms would be clicked; silence for three rounds is taken for none."""
    ratios = []
    for seed in range(2):
        now = [0.0]

        def later(now: list[float] = now) -> None:
            now[0] += 1.0

        agent = Agent(TopK(CHOSEN), deadline=3, default_outcome=0, clock=lambda now=now: now[0])
        played = play(
            agent,
            seed,
            rounds=400,
            mean=lambda arms: 0.0008 * np.exp(1.9 * worth(arms)),
            outcomes=lambda p, rng: p.mask(rng.random(len(p)) < p, 1.0).where(lambda y: y == 1.0),
            each_round=later,
        )
        ratios.append(played["regret"] / played["random"])
    assert np.mean(ratios) <= 0.6
