"""An agent sends workers to jobs: features as they come, feedback that comes late, a restart.

Run it: python examples/dispatch.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from oclok import Agent
from oclok.oracles import TopK


def workers_now(rng: np.random.Generator, count: int = 25) -> pd.DataFrame:
    """Return who is free right now, with what is known of them."""
    return pd.DataFrame(
        {
            "years": rng.gamma(2.0, 4.0, count),
            "distance_m": rng.uniform(0, 20_000, count),
            "city": rng.choice(["Oslo", "Rome", "Bonn"], count),
            "certified": rng.random(count) < 0.4,
        },
        index=[f"w{number}" for number in rng.choice(10_000, count, replace=False)],
    )


def quality(workers: pd.DataFrame) -> pd.Series:
    """Return what nobody knows: how well each of them does the job."""
    score = 2 * np.tanh(workers["years"] / 8) - workers["distance_m"] / 20_000
    return score + 0.8 * workers["certified"] + 0.3 * (workers["city"] == "Rome")


def main(rounds: int = 60) -> float:
    """Play `rounds` rounds, and return the share of the best possible quality of the last ten."""
    rng = np.random.default_rng(0)
    agent = Agent(oracle=TopK(3), seed=0)
    waiting: list[tuple[str, dict[str, float]]] = []
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "agent.oclok"
        for t in range(rounds):
            workers = workers_now(rng)
            decision = agent.decide(workers)
            true = quality(workers)
            shares.append(true[decision.chosen].sum() / true.nlargest(3).sum())
            seen = true[decision.chosen] + 0.1 * rng.standard_normal(3)
            waiting.append((decision.id, seen.to_dict()))
            if len(waiting) > 4:  # feedback comes four rounds late
                agent.learn(*waiting.pop(0))
            if t == rounds // 2:  # the machine is restarted
                agent.save(file)
                agent = Agent.load(file)
    print(f"share of the best quality: {np.mean(shares[:10]):.2f} at first, "
          f"{np.mean(shares[-10:]):.2f} at last")  # fmt: skip
    print("health:", agent.health() or "all is well")
    return float(np.mean(shares[-10:]))


if __name__ == "__main__":
    main()
