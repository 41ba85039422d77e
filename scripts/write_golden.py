"""Write tests/data/: one saved file of every class that can be saved, and what it answers.

    python scripts/write_golden.py

Run it after adding a class to `MADE`, or after a change of the format that comes with a new
version and a migration; tests/test_golden.py then loads the files. Commit what it writes. Files
of released versions are never written again: they are what the migrations are judged by.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.neighbors import KNeighborsRegressor

from oclok import oracles, persistence
from oclok.agent import Agent
from oclok.oracles import Oracle, TopK
from oclok.persistence import Persistent
from oclok.policies import (
    ACCUCB,
    C2UCB,
    CCMAB,
    CUCB,
    TCGPUCB,
    UCB,
    BayesUCB,
    Discount,
    EpsilonGreedy,
    LinearThompson,
    NeuralLinear,
    OClokUCB,
    Policy,
    Random,
    ThompsonSampling,
    Window,
)
from oclok.posterior import (
    DictionaryPosterior,
    ExactPosterior,
    ForgettingPosterior,
    MixturePosterior,
    Posterior,
    SparsePosterior,
)

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
#: Base arms on offer in every round, and in the round whose decision is recorded.
ARMS = 6


def outcomes_at(contexts: np.ndarray) -> np.ndarray:
    """Return the mean outcomes that every object here has learned from, shape (N,)."""
    return np.asarray(np.sin(4 * contexts).sum(axis=1))


def taught(posterior: Posterior, outcomes: int, batch: int = 20) -> Posterior:
    """Return `posterior` after `outcomes` of them."""
    rng = np.random.default_rng(1)
    for _ in range(outcomes // batch):
        X = rng.random((batch, 2))
        posterior.update(X, outcomes_at(X) + 0.1 * rng.standard_normal(batch))
    return posterior


def played(policy: Policy, rounds: int = 5, **select: Any) -> Policy:
    """Return `policy` after some rounds, the last of them waiting for an outcome."""
    rng = np.random.default_rng(2)
    for t in range(rounds):
        decision = policy.select(rng.random((ARMS, 2)), **select)
        seen = outcomes_at(decision.contexts) + 0.1 * rng.standard_normal(len(decision))
        if t == rounds - 1:
            seen[0] = np.nan
        policy.update(decision, np.column_stack([seen, seen]) if select else seen)
    return policy


def grouped() -> Policy:
    """Return a policy that chooses out of groups."""
    policy = TCGPUCB(RBF(0.5), 0.1, TopK(2))
    return played(policy, groups=["a", "b"] * (ARMS // 2), threshold=-2.0)


def arms(seed: int) -> dict[str, dict[str, Any]]:
    """Return arms with names for an agent."""
    rng = np.random.default_rng(seed)
    return {
        f"arm {n}": {"price": float(rng.random()), "city": ["Oslo", "Rome"][n % 2], "new": n < 3}
        for n in range(ARMS)
    }


def chosen_elsewhere(agent: Agent) -> list[str] | None:
    """Return what the deciding system chooses while `agent` is a shadow."""
    return ["arm 0", "arm 1"] if agent.mode == "shadow" else None


def employed(agent: Agent) -> Agent:
    """Return `agent` after some decisions, the last of them waiting for an outcome."""
    for t in range(3):
        decision = agent.decide(arms(t), id=f"decision {t}", chosen=chosen_elsewhere(agent))
        told = {arm: 0.1 * n for n, arm in enumerate(decision.chosen)}
        if t == 2:
            told.popitem()
        agent.learn(decision.id, told)
    return agent


LEFT, RIGHT = [0, 0, 1, 1, 2, 2], [0, 1, 0, 2, 1, 2]
GP: dict[str, Any] = {"kernel": RBF(0.5), "noise_std": 0.1}

MADE: dict[str, Callable[[], Persistent]] = {
    # posteriors
    "exact": lambda: taught(ExactPosterior(Matern(0.5, nu=2.5), 0.1), 20),
    "dictionary-exact": lambda: taught(DictionaryPosterior(RBF(1.0), 0.1), 20),
    "dictionary-beyond": lambda: taught(
        DictionaryPosterior(Matern(0.5, nu=1.5), 0.1, max_rank=16), 60
    ),
    "dictionary": lambda: taught(DictionaryPosterior(RBF(1.0), 0.1), 220),
    "forgetting-window": lambda: taught(
        ForgettingPosterior(SparsePosterior(RBF(0.5), 0.1, 8, seed=3), window=200), 214, batch=2
    ),
    "forgetting-discount": lambda: taught(
        ForgettingPosterior(ExactPosterior(RBF(1.0), 0.1), discount=0.9), 20
    ),
    "sparse": lambda: taught(SparsePosterior(RBF(0.5), 0.1, 8, seed=3), 40),
    "mixture": lambda: taught(MixturePosterior(), 20, 10),
    "mixture-given": lambda: taught(MixturePosterior([RBF(0.5)], noise_ratios=(0.1,)), 20),
    # policies
    "oclok-ucb": lambda: played(OClokUCB(**GP, oracle=TopK(2))),
    "oclok-ucb-conditioned": lambda: played(
        OClokUCB(**GP, oracle=TopK(2), condition_on_chosen="guaranteed", max_arms=9)
    ),
    "oclok-ucb-refitted": lambda: played(
        OClokUCB(**GP, oracle=TopK(5), refit_every=4, forget=Discount(0.95))
    ),
    "ucb": lambda: played(UCB(**GP, oracle=TopK(2), width=2.0, forget=Window(15))),
    "ucb-default": lambda: played(UCB(oracle=TopK(2))),
    "bayes-ucb": lambda: played(BayesUCB(**GP, oracle=TopK(2))),
    "thompson-sampling": lambda: played(ThompsonSampling(**GP, oracle=TopK(2), seed=4)),
    "tcgp-ucb": grouped,
    "acc-ucb": lambda: played(ACCUCB(horizon=30, dimension=2, oracle=TopK(2), seed=4)),
    "cc-mab": lambda: played(CCMAB(horizon=30, dimension=2, oracle=TopK(2), seed=4)),
    "cucb": lambda: played(CUCB(dimension=2, cells=3, oracle=TopK(2), seed=4)),
    "c2ucb": lambda: played(C2UCB(oracle=TopK(2))),
    "epsilon-greedy": lambda: played(EpsilonGreedy(KNeighborsRegressor(1), oracle=TopK(2), seed=4)),
    "linear-thompson": lambda: played(LinearThompson(0.1, oracle=TopK(2), seed=4)),
    "neural-linear": lambda: played(
        NeuralLinear(0.1, oracle=TopK(2), hidden=(4, 3), train_every=7, seed=4)
    ),
    "random": lambda: played(Random(oracle=TopK(2), seed=4)),
    # agents
    "agent": lambda: employed(
        Agent(TopK(2), outcome_range=(0, 1), deadline=60, policy=UCB(**GP), clock=lambda: 0.0)
    ),
    "agent-shadow": lambda: employed(
        Agent(TopK(2), policy=C2UCB(), mode="shadow", clock=lambda: 0.0)
    ),
    "agent-guarded": lambda: employed(
        Agent(
            TopK(2),
            policy=UCB(**GP),
            holdout=0.5,
            baseline="uniform",
            guard=0.1,
            clock=lambda: 0.0,
        )
    ),
    # oracles
    "top-k": lambda: TopK(3, reward=np.log1p),
    "top-k-given": lambda: TopK(3).given(include=[5], exclude=[0]),
    "knapsack": lambda: oracles.Knapsack([1.0, 2.0, 3.0, 1.5, 2.5, 0.5], 4.0),
    "partition": lambda: oracles.Partition(
        ["a", "a", "b", "b", "c", "c"], {"a": 1, "b": 2, "c": 0}
    ),
    "matching": lambda: oracles.Matching(LEFT, RIGHT, 2),
    "matching-at-most": lambda: oracles.Matching(LEFT, RIGHT, 2, at_most=True),
    "coverage": lambda: oracles.Coverage(LEFT, RIGHT, 2),
    "coverage-greedy": lambda: oracles.Coverage(LEFT, RIGHT, 2, solver="greedy"),
    "tim-plus": lambda: oracles.TIMPlus(LEFT, RIGHT, 2, epsilon=0.5, ell=2, seed=5),
    "path": lambda: oracles.Path([0, 0, 1, 2, 1, 3], [1, 2, 3, 3, 2, 4], 0, 4),
    "program": lambda: oracles.Program([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], [-np.inf], [2.0]),
}


def answers(thing: Persistent) -> dict[str, Any]:
    """Return what `thing` answers, as plain values; it may change on the way."""
    contexts = np.linspace(0.05, 0.95, 2 * ARMS).reshape(ARMS, 2)
    if isinstance(thing, Posterior):
        mean, std = thing.predict(contexts)
        gain = {"information_gain": thing.information_gain, "rank": thing.rank}
        return {"mean": mean.tolist(), "std": std.tolist(), **gain}
    if isinstance(thing, Agent):
        made = thing.decide(arms(9), id="last", chosen=chosen_elsewhere(thing))
        return {"chosen": made.chosen, "index": made.table()["index"].tolist()}
    if isinstance(thing, Policy):
        for decision in thing.pending:
            late = [0.5, *[np.nan] * (len(decision) - 1)]
            is_grouped = isinstance(thing, TCGPUCB)
            thing.update(decision, np.column_stack([late, late]) if is_grouped else late)
        decision = thing.select(contexts)
        return {
            "round": decision.round,
            "super_arm": decision.super_arm.tolist(),
            "index": decision.index.tolist(),
        }
    assert isinstance(thing, Oracle)
    index = np.array([0.3, 0.9, 0.1, 0.8, 0.5, 0.7])
    super_arm = thing(index)
    return {"super_arm": super_arm.tolist(), "value": thing.value(index, super_arm)}


def main() -> None:
    """Write all files."""
    DATA.mkdir(exist_ok=True)
    expected = {}
    for name, make in MADE.items():
        thing = make()
        persistence.save(thing, DATA / f"{name}.oclok")
        expected[name] = {"class": type(thing).__name__, **answers(thing)}
    decision = played(OClokUCB(**GP, oracle=TopK(2))).pending[0]
    (DATA / "decision.json").write_text(decision.to_json() + "\n", encoding="utf-8")
    lines = ",\n".join(f'"{name}": {json.dumps(known)}' for name, known in expected.items())
    (DATA / "expected.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
