"""Oracles whose arguments are column names, and arms that must or must not be chosen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.errors import InputError, OclokError
from oclok.oracles import Knapsack, Matching, Partition, TopK
from oclok.policies import BayesUCB


def offers(seed: int, count: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "price": rng.uniform(1, 30, count).round(2),
            "region": rng.choice(["north", "south", "east"], count),
            "driver": rng.choice([f"d{i}" for i in range(6)], count),
            "rider": rng.choice([f"r{i}" for i in range(6)], count),
            "score": rng.random(count),
        },
        index=[f"o{i}" for i in range(count)],
    )


def new_agent(oracle: object, **settings: object) -> Agent:
    agent = Agent(oracle, policy=BayesUCB(RBF(3.0), 0.1), **settings)  # type: ignore[arg-type]
    past = offers(99)
    agent.observe(past, past["score"])
    return agent


def test_a_knapsack_of_a_column_stays_within_its_budget() -> None:
    agent = new_agent(Knapsack(costs="price", budget=50))
    for seed in range(5):
        arms = offers(seed)
        decision = agent.decide(arms)
        assert 0 < arms.price[decision.chosen].sum() <= 50
        index = decision.table().loc[arms.index, "index"].to_numpy()
        by_hand = Knapsack(arms.price.to_numpy(), 50)(index)
        assert decision.chosen == arms.index[by_hand].tolist()


def test_groups_are_those_of_a_column() -> None:
    agent = new_agent(Partition(groups="region", limits=2))
    for form in (offers(0), offers(0).to_dict("index")):
        chosen = offers(0).loc[agent.decide(form).chosen]
        assert chosen.groupby("region").size().eq(2).all()


def test_pairs_are_those_of_two_columns() -> None:
    agent = new_agent(Matching(left="driver", right="rider"))
    chosen = offers(0).loc[agent.decide(offers(0)).chosen]
    assert len(chosen) > 1
    assert chosen.driver.is_unique
    assert chosen.rider.is_unique


@pytest.mark.parametrize(
    "oracle",
    [
        TopK(4),
        Knapsack(costs="price", budget=60),
        Partition(groups="region", limits=2),
        Matching(left="driver", right="rider"),
    ],
    ids=lambda oracle: type(oracle).__name__,
)
def test_arms_can_be_included_and_excluded_by_id(oracle: object) -> None:
    agent = new_agent(oracle)
    free = agent.decide(offers(0))
    worst = free.table().index[-1]
    banned = free.chosen[0]
    decision = agent.decide(offers(0), include=[worst], exclude=[banned])
    assert worst in decision.chosen
    assert banned not in decision.chosen
    reasons = {arm.arm: arm.reason for arm in agent.explain(decision.id).arms}
    assert reasons[worst] == "included by request"
    assert reasons[banned] == "excluded by request"
    before = agent.policy.round
    with pytest.raises(OclokError):
        agent.decide(offers(0), include=[worst], exclude=[worst])
    assert agent.policy.round == before


def test_an_oracle_can_be_given_for_one_decision() -> None:
    agent = new_agent(TopK(1))
    assert len(agent.decide(offers(0), oracle=TopK(7)).chosen) == 7
    spent = offers(0).price[agent.decide(offers(0), oracle=Knapsack("price", 40)).chosen].sum()
    assert 0 < spent <= 40
    assert len(agent.decide(offers(0)).chosen) == 1


def test_a_column_that_only_the_oracle_reads_need_not_be_a_feature() -> None:
    features = {"score": "number", "region": "category", "driver": "ignored", "rider": "ignored"}
    agent = Agent(Knapsack("price", 50), features, policy=BayesUCB(RBF(3.0), 0.1))
    agent.decide(offers(0))
    assert agent.schema is not None
    assert "price" not in agent.schema.features
    assert len(agent.decide(offers(1), oracle=TopK(2)).chosen) == 2
    agent.observe(offers(2), offers(2).score)
    with pytest.raises(InputError, match="not in the schema: 'cost'"):
        agent.decide(offers(1).assign(cost=1.0))
    with pytest.raises(InputError, match="arms have no column 'cost'; they have 'price'"):
        agent.decide(offers(1), oracle=Knapsack("cost", 50))


def test_an_agent_with_an_oracle_by_name_survives_a_restart(tmp_path: object) -> None:
    agent = new_agent(Partition(groups="region", limits={"north": 1, "south": 2, "east": 0}))
    agent.save(tmp_path / "agent")  # type: ignore[operator]
    loaded = Agent.load(tmp_path / "agent")  # type: ignore[operator]
    assert loaded.decide(offers(3)).chosen == agent.decide(offers(3)).chosen
