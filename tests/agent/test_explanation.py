from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.neighbors import NearestNeighbors

from oclok import Agent
from oclok.agent.arms import as_arms
from oclok.errors import FeedbackError
from oclok.oracles import Partition, TopK
from oclok.policies import BayesUCB


def new_agent(**settings: object) -> Agent:
    return Agent(policy=BayesUCB(RBF(0.5), 0.1), **{"oracle": TopK(2), **settings})  # type: ignore[arg-type]


def arms(seed: int, count: int = 6) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return {f"s{seed}a{i}": {"x": rng.random(), "y": rng.random()} for i in range(count)}


def test_every_arm_has_what_the_policy_thought_of_it() -> None:
    agent = new_agent()
    agent.learn(agent.decide(arms(0), id="0").id, {"s0a0": 1.0})
    offered = arms(1)
    X = agent.schema.encode(as_arms(offered))
    index = agent.policy.index(X)
    mean, std = agent.policy.posterior.predict(X)
    decision = agent.decide(offered)
    table = decision.table().loc[list(offered)]
    np.testing.assert_allclose(table["index"], index)
    np.testing.assert_allclose(table["mean"], mean)
    np.testing.assert_allclose(table["std"], std)
    assert list(table.index[table["chosen"]]) == decision.chosen
    explained = agent.explain(decision.id)
    assert [arm.index for arm in explained.arms] == sorted(index, reverse=True)
    means = {arm.arm: arm.mean for arm in explained.arms}
    np.testing.assert_allclose([means[arm] for arm in offered], mean)
    assert {arm.arm for arm in explained.arms if arm.chosen} == set(decision.chosen)
    for arm in offered:
        assert arm in str(explained)


def test_evidence_is_the_nearest_outcomes() -> None:
    agent = new_agent()
    seen = []
    for seed in range(20):
        decision = agent.decide(arms(seed), id=str(seed))
        for arm in decision.chosen:
            agent.learn(decision.id, {arm: 0.1 * seed})
            place = decision.offer.ids.index(arm)
            seen.append((decision.id, arm, 0.1 * seed, decision.offer.contexts[place]))
    decision = agent.decide(arms(99))
    judge = NearestNeighbors(n_neighbors=3).fit(np.array([entry[3] for entry in seen]))
    distances, places = judge.kneighbors(decision.offer.contexts)
    for arm in agent.explain(decision.id).arms:
        row = decision.offer.ids.index(arm.arm)
        expected = [seen[place][:3] for place in places[row]]
        assert [(e.decision, e.arm, e.outcome) for e in arm.evidence] == expected
        np.testing.assert_allclose([e.distance for e in arm.evidence], distances[row], atol=1e-9)


def test_reasons_say_why() -> None:
    agent = new_agent(oracle=Partition([0, 0, 0, 1, 1, 1], limits=1))
    none = agent.explain(agent.decide(arms(50)).id)  # no index is positive in the first round
    assert {arm.reason for arm in none.arms} == {"no set of arms was worth choosing"}
    for seed in range(10):
        decision = agent.decide(arms(seed), id=str(seed))
        outcomes = {arm: arms(seed)[arm]["x"] for arm in decision.chosen}
        agent.learn(decision.id, outcomes)
    reasons = {"chosen": 0, "index": 0, "does": 0}
    for seed in range(10):
        explained = agent.explain(str(seed))
        lowest = min(arm.index for arm in explained.arms if arm.chosen)
        for arm in explained.arms:
            kind = "chosen" if arm.chosen else "index" if arm.index <= lowest else "does"
            assert arm.reason.startswith(kind)
            reasons[kind] += 1
            assert (arm.outcome is not None) == arm.chosen
    assert all(reasons.values())


def test_only_the_latest_decisions_can_be_explained() -> None:
    agent = new_agent(explainable=2)
    for seed in range(4):
        agent.decide(arms(seed), id=str(seed))
    with pytest.raises(FeedbackError, match="at most the latest 2 decisions"):
        agent.explain("1")
    assert agent.explain("2").decision == "2"
    again = agent.decide(arms(0), id="0")
    assert again.chosen == ["s0a0", "s0a1"]
    with pytest.raises(FeedbackError, match="too long ago"):
        again.table()
    with pytest.raises(FeedbackError, match="unknown"):
        agent.explain("never")


def test_in_shadow_mode_the_system_is_named() -> None:
    agent = new_agent(mode="shadow")
    decision = agent.decide(arms(0), chosen=["s0a5", "s0a0"])
    reasons = {arm.arm: arm.reason for arm in agent.explain(decision.id).arms}
    assert reasons["s0a5"] == "chosen by the deciding system, not by the agent"
