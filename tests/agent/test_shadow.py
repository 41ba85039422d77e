from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies import BayesUCB, Random

FEATURES = {"x": {"kind": "number", "mean": 0, "scale": 1, "missing": False}}
GRID = np.linspace(0, 1, 25)


def new_agent(**settings: object) -> Agent:
    settings = {"policy": BayesUCB(RBF(0.2), 0.1), **settings}
    return Agent(TopK(2), FEATURES, mode="shadow", **settings)  # type: ignore[arg-type]


def watched(seed: int, rounds: int = 20) -> tuple[Agent, float]:
    """Return an agent that watched a system that decides at random, and the true gain per round."""
    rng = np.random.default_rng(seed)
    f = rng.multivariate_normal(np.zeros(len(GRID)), RBF(0.2)(GRID[:, None]))
    agent, gain = new_agent(), 0.0
    for _ in range(rounds):
        places = rng.choice(len(GRID), 8, replace=False)
        arms = {int(place): {"x": GRID[place]} for place in places}
        chosen = rng.choice(places, 2, replace=False).tolist()
        decision = agent.decide(arms, chosen=chosen)
        assert sorted(decision.chosen) == sorted(chosen)
        gain += float(f[decision.preferred].sum() - f[decision.chosen].sum())
        agent.learn(decision.id, {arm: f[arm] + rng.normal(0, 0.1) for arm in chosen})
    return agent, gain / rounds


def test_the_interval_holds_the_true_gain_as_often_as_it_says() -> None:
    inside = []
    for seed in range(50):
        agent, gain = watched(seed)
        comparison = agent.comparison(level=0.9)
        inside.append(comparison.lower <= gain <= comparison.upper)
    assert 0.8 <= np.mean(inside) <= 0.98


def test_a_better_agent_expects_a_gain() -> None:
    agent, gain = watched(0)
    comparison = agent.comparison()
    assert comparison.rounds == 20
    assert 12 <= comparison.different <= 20
    assert comparison.lower > 0
    assert gain > 0
    assert "would have chosen otherwise" in str(comparison)


def test_an_agent_that_agrees_expects_nothing() -> None:
    agent = new_agent()
    assert agent.comparison().rounds == 0
    assert str(agent.comparison()) == "no decisions yet"
    decision = agent.decide({"a": {"x": 0.0}, "b": {"x": 1.0}}, chosen=["b", "a"])
    assert decision.chosen == decision.preferred == ["a", "b"]
    comparison = agent.comparison()
    assert (comparison.different, comparison.gain, comparison.upper) == (0, 0.0, 0.0)


def test_without_a_posterior_there_is_no_expectation() -> None:
    agent = new_agent(policy=Random(seed=0))
    for _ in range(5):
        agent.decide({i: {"x": 0.1 * i} for i in range(6)}, chosen=[0, 1])
    assert agent.comparison().different > 0
    assert np.isnan(agent.comparison().gain)


def test_the_other_systems_choice_is_needed_in_shadow_mode_and_only_there() -> None:
    arms = {"a": {"x": 0.0}, "b": {"x": 1.0}}
    agent = new_agent()
    with pytest.raises(InputError, match="chosen= is what another system chooses"):
        agent.decide(arms)
    with pytest.raises(InputError, match="chosen must name arms of this decision"):
        agent.decide(arms, chosen=["c"])
    agent.decide(arms, chosen=["a"])
    agent.mode = "live"
    with pytest.raises(InputError, match="the mode is 'live'"):
        agent.decide(arms, chosen=["a"])
    assert agent.decide(arms).chosen == ["a", "b"]
