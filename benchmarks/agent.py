"""What names, features and feedback by id cost on top of the policy, and 100,000 open decisions."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import memory
from benchmarks.report import Result, Row, Target, say
from benchmarks.timing import interleaved, seconds
from oclok import Agent
from oclok.agent.arms import as_arms
from oclok.agent.decision import AgentDecision, Offer
from oclok.oracles import TopK

ARMS, CHOSEN, ROUNDS = 100, 5, 100
OPEN = 100_000


def run(quick: bool) -> Result:
    count = OPEN // 20 if quick else OPEN
    say(f"agent: decide, and {count:,} open decisions")
    command = [sys.executable, "-m", "benchmarks.agent", str(count), str(5 if quick else 30)]
    rows: list[Row] = json.loads(subprocess.check_output(command))
    decides, kept = rows[:-1], rows[-1]
    targets = [
        Target(f"{row['arms']}: µs per value beyond 1.5 selects", 1.0, row["µs"], at_most=True)
        for row in decides
    ]
    targets += [
        Target("decide among open decisions, over without", 1.1, kept["slower"], at_most=True),
        Target("open decisions, MB", 200 * count / OPEN, kept["MB"], at_most=True),
        Target("save and load, s", 2.0, kept["save and load, s"], at_most=True),
    ]
    notes = (
        f"{ARMS} arms with 8 features (4 numbers, 2 categories, a boolean, a time), {CHOSEN} of "
        f"them chosen, after {ROUNDS} rounds; a select is the same policy's on the same features "
        "as numbers. µs: what decide takes beyond 1.5 selects, per value. With "
        f"{count:,} open decisions: decide takes {kept['slower']:.2f} times as long as without, "
        f"they take {kept['MB']:.0f} MB of memory, and saving and loading takes "
        f"{kept['save and load, s']:.2f} s."
    )
    return Result("Agent: decide", decides, targets, notes)


def arms(rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """Return arms with names and mixed features."""
    cities, kinds = ["Oslo", "Rome", "Bonn", "Lima", "Cork"], ["car", "bike", "none"]
    return {
        f"w{i}": {
            "years": rng.gamma(2.0, 5.0),
            "distance": rng.uniform(0, 20_000),
            "rating": rng.random() * 5 if rng.random() < 0.9 else None,
            "price": rng.lognormal(3, 1),
            "city": cities[rng.integers(5)],
            "vehicle": kinds[rng.integers(3)],
            "certified": bool(rng.random() < 0.4),
            "since": f"2026-03-{rng.integers(1, 29):02d}T{rng.integers(24):02d}:00:00",
        }
        for i in rng.permutation(100_000)[:ARMS].tolist()
    }


def measure(count: int, repeats: int) -> list[Row]:
    """Return the rows; meant for a process of its own."""
    rng = np.random.default_rng(0)
    agent = Agent(oracle=TopK(CHOSEN), explainable=100)
    for _ in range(ROUNDS):
        offered = arms(rng)
        decision = agent.decide(offered)
        agent.learn(decision.id, {arm: offered[arm]["years"] / 20 for arm in decision.chosen})
    offered = arms(rng)
    forms: dict[str, Any] = {"dict of dicts": offered}
    try:
        import pandas as pd
    except ImportError:
        say("agent: no pandas, so no DataFrame is measured")
    else:
        frame = pd.DataFrame.from_dict(offered, orient="index")
        frame["rating"] = frame["rating"].astype(float)
        frame["since"] = pd.to_datetime(frame["since"])
        forms["DataFrame"] = frame
    assert agent.schema is not None
    X = agent.schema.encode(as_arms(offered))
    policy, oracle = agent.policy, TopK(CHOSEN)
    calls = {name: lambda form=form: agent.decide(form) for name, form in forms.items()}
    calls["select"] = lambda: policy.discard(policy.select(X, oracle))
    taken = interleaved(calls, repeats)
    values = ARMS * len(next(iter(offered.values())))
    rows = [
        {
            "arms": name,
            "decide, ms": 1e3 * taken[name],
            "select, ms": 1e3 * taken["select"],
            "ratio": taken[name] / taken["select"],
            "µs": 1e6 * (taken[name] - 1.5 * taken["select"]) / values,
        }
        for name in forms
    ]
    return [*rows, _with_open_decisions(agent, offered, X, count, repeats)]


def _with_open_decisions(
    agent: Agent, offered: dict[str, Any], X: Any, count: int, repeats: int
) -> Row:
    """Return what many open decisions cost: they are put into the store as `decide` does."""
    other = Agent(oracle=TopK(CHOSEN), policy=agent.policy, features=agent.schema, explainable=100)
    other.decide(offered)
    before = memory()[0]
    names = list(offered)
    rng = np.random.default_rng(1)
    for i in range(count):
        some = rng.integers(len(names), size=CHOSEN)
        offer = Offer(names, X, X[:, 0], None, None, some, some[:0], some[:0])
        chosen = [names[j] for j in some]
        decision = AgentDecision(f"{i}-0123456789abcdef", i, chosen, None, chosen, offer)
        other._feedback.decisions.add(decision, i)
    used = memory()[0] - before
    taken = interleaved(
        {"few": lambda: agent.decide(offered), "many": lambda: other.decide(offered)}, repeats
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.oclok"
        saved = seconds(lambda: other.save(path))
        loaded = seconds(lambda: Agent.load(path))
    return {
        "MB": used,
        "slower": taken["many"] / taken["few"],
        "save and load, s": saved + loaded,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
