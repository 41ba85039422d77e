"""An agent with a control group and a guard: groups, propensities, lift and what changes them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.agent.arms import as_arms
from oclok.agent.rollout import Baseline
from oclok.errors import InputError
from oclok.oracles import Knapsack, TopK
from oclok.persistence import dumps, loads
from oclok.policies import BayesUCB, Random, ThompsonSampling

FEATURES = {"x": {"kind": "number", "mean": 0, "scale": 1, "missing": False}}
PRICES = (3.0, 1.0, 2.0, 5.0, 4.0)
CHEAPEST = {"sort": "price"}


def new_agent(**settings: object) -> Agent:
    settings = {"policy": BayesUCB(RBF(0.3), 0.1), "baseline": CHEAPEST, **settings}
    return Agent(TopK(2), FEATURES, clock=lambda: 0.0, **settings)  # type: ignore[arg-type]


def arms(rng: np.random.Generator) -> dict:
    return {f"a{i}": {"x": rng.random(), "price": price} for i, price in enumerate(PRICES)}


def plain(rng: np.random.Generator) -> dict:
    return {f"a{i}": {"x": rng.random()} for i in range(5)}


def test_a_share_of_decisions_is_the_baselines() -> None:
    agent, rng = new_agent(holdout=0.3), np.random.default_rng(0)
    groups = Counter()
    for i in range(300):
        decision = agent.decide(arms(rng), id=str(i))
        groups[decision.group] += 1
        if decision.group == "baseline":
            assert decision.chosen == ["a1", "a2"]
        assert agent.decide(arms(rng), id=str(i)).group == decision.group
    assert abs(groups["baseline"] / 300 - 0.3) < 4 * np.sqrt(0.21 / 300)


def test_a_unit_is_always_in_the_same_group_whatever_comes_of_it() -> None:
    agent, rng = new_agent(holdout=0.5), np.random.default_rng(0)
    groups: dict[str, set[str]] = {}
    for i in range(200):
        unit = f"user {i % 20}"
        decision = agent.decide(arms(rng), unit=unit)
        groups.setdefault(unit, set()).add(decision.group)
        agent.learn(decision.id, {arm: rng.random() for arm in decision.chosen})
    assert all(len(found) == 1 for found in groups.values())
    assert {group for found in groups.values() for group in found} == {"agent", "baseline"}


def test_what_the_caller_says_can_be_the_baseline() -> None:
    agent, rng = new_agent(holdout=0.5, baseline="chosen"), np.random.default_rng(0)
    for i in range(20):
        decision = agent.decide(plain(rng), chosen=["a0", "a4"], id=str(i))
        assert decision.group == "agent" or decision.chosen == ["a0", "a4"]
    with pytest.raises(InputError, match="chosen="):
        agent.decide(plain(rng))


def test_propensities_of_a_deterministic_agent_with_a_holdout_are_exact() -> None:
    agent, rng = new_agent(holdout=0.2), np.random.default_rng(0)
    for i in range(60):
        decision = agent.decide(arms(rng), id=str(i))
        offer = decision.offer
        assert offer is not None
        ours = np.isin(offer.ids, decision.preferred)
        theirs = np.isin(offer.ids, ["a1", "a2"])
        np.testing.assert_allclose(offer.propensity, 0.8 * ours + 0.2 * theirs)
        same = set(decision.preferred) == {"a1", "a2"}
        own = 0.8 if decision.group == "agent" else 0.2
        assert offer.super_arm_propensity == pytest.approx(1.0 if same else own)
        assert offer.propensity_draws == 0
        agent.learn(decision.id, {arm: rng.random() for arm in decision.chosen})


def test_without_chance_the_set_has_probability_one() -> None:
    decision = Agent(TopK(2), FEATURES).decide({str(i): {"x": i} for i in range(5)})
    assert decision.offer is not None
    assert decision.offer.propensity is None
    assert decision.offer.super_arm_propensity == 1


@pytest.mark.parametrize(
    "policy",
    [Random(seed=0), ThompsonSampling(RBF(0.3), 0.3, seed=0)],
    ids=["random", "thompson"],
)
@pytest.mark.parametrize("guard", [None, 0.5])
def test_weights_of_sets_average_to_one(policy: object, guard: float | None) -> None:
    """Σ 1{S = s} / P(s) over the sets s that can be played is their number, in expectation."""
    if guard is not None and isinstance(policy, Random):
        pytest.skip("a guard needs a posterior")
    agent = new_agent(policy=policy, holdout=0.3, baseline="uniform", guard=guard)
    rng = np.random.default_rng(0)
    fixed = plain(rng)
    weights, inclusion = [], np.zeros(5)
    for i in range(100):
        offer = agent.decide(fixed, id=str(i)).offer
        assert offer is not None
        assert offer.propensity is not None
        weights.append(1 / offer.super_arm_propensity)
        inclusion[offer.chosen] += 1 / offer.propensity[offer.chosen]
    assert abs(np.mean(weights) - 10) < 4 * np.std(weights) / 10 + 0.5  # C(5, 2) sets
    np.testing.assert_allclose(inclusion / 100, 1, atol=0.5)


def test_the_lift_counts_complete_decisions_and_follows_corrections() -> None:
    agent, rng = new_agent(holdout=0.5), np.random.default_rng(0)
    made = [agent.decide(arms(rng), id=str(i)) for i in range(300)]
    for decision in made:
        y = 1.0 if decision.group == "agent" else 0.5
        agent.learn(decision.id, {decision.chosen[0]: y})
    assert agent.lift().agent.decisions == 0
    for decision in made:
        y = 1.0 if decision.group == "agent" else 0.5
        agent.learn(decision.id, {decision.chosen[1]: y + rng.normal(0, 0.1)})
    lift = agent.lift()
    assert lift.agent.decisions + lift.baseline.decisions == 300
    assert lift.verdict == "better"
    assert lift.lower < 1.0 < lift.upper
    ours = [decision for decision in made if decision.group == "agent"]
    for decision in ours:
        agent.learn(decision.id, dict.fromkeys(decision.chosen, 0.1), correct=True)
    again = loads(dumps(agent)).lift()  # type: ignore[attr-defined]
    assert again.verdict == "worse"
    assert again.agent.mean == pytest.approx(0.2)


def test_another_holdout_begins_the_lift_anew() -> None:
    agent, rng = new_agent(holdout=0.5), np.random.default_rng(0)
    early = [agent.decide(arms(rng), id=str(i)) for i in range(20)]
    for decision in early[:10]:
        agent.learn(decision.id, dict.fromkeys(decision.chosen, 1.0))
    agent.roll_out(holdout=0.1, baseline=CHEAPEST)
    for decision in early[10:]:
        agent.learn(decision.id, dict.fromkeys(decision.chosen, 1.0))
    assert agent.lift().agent.decisions == agent.lift().baseline.decisions == 0
    groups = {decision.id for decision in early if decision.group == "agent"}
    again = [agent.decide(arms(rng), id=f"{i}x") for i in range(5)]
    assert groups
    assert len(again) == 5


def test_from_shadow_to_live_and_back() -> None:
    agent, rng = new_agent(mode="shadow"), np.random.default_rng(0)
    decision = agent.decide(arms(rng), chosen=["a0", "a1"])
    assert decision.chosen == ["a0", "a1"]
    agent.roll_out("live", holdout=0.9, baseline=CHEAPEST, guard=0.05)
    assert agent.decide(arms(rng)).group in ("agent", "baseline")
    report = agent.guard_report()
    assert report is not None
    assert report.decisions == 1
    agent.roll_out("live", holdout=0.1, baseline=CHEAPEST, guard=0.05)
    assert agent.guard_report() == report
    agent.roll_out("shadow")
    with pytest.raises(InputError, match="chosen="):
        agent.decide(arms(rng))


def test_the_guard_steps_in_and_says_so() -> None:
    agent, rng = new_agent(guard=0.05), np.random.default_rng(0)
    stepped = 0
    for _ in range(30):
        decision = agent.decide(arms(rng))
        stepped += decision.stepped_in
        if decision.stepped_in:
            assert decision.chosen == ["a1", "a2"]
        agent.learn(decision.id, {arm: 1 + rng.normal(0, 0.1) for arm in decision.chosen})
    report = agent.guard_report()
    assert report is not None
    assert 0 < stepped == report.stepped_in <= report.decisions == 30


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"holdout": 0.1, "baseline": None}, "holdout= needs baseline="),
        ({"guard": 0.1, "baseline": None}, "guard= needs baseline="),
        ({"holdout": 1.0}, r"holdout must be a share of decisions in \[0, 1\)"),
        ({"mode": "shadow", "holdout": 0.1}, 'need mode="live"'),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        new_agent(**settings)


def test_a_guard_needs_a_posterior() -> None:
    with pytest.raises(InputError, match="needs a policy with a posterior"):
        new_agent(policy=Random(seed=0), guard=0.05).decide(arms(np.random.default_rng(0)))


ARMS = as_arms(
    {
        "a": {"price": 3.0, "rating": 0.1},
        "b": {"price": 1.0, "rating": 0.9},
        "c": {"price": 2.0, "rating": None},
        "d": {"price": None, "rating": 0.4},
    }
)
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"sort": "price"}, [1, 2]),
        ({"sort": "price", "descending": True}, [0, 2]),
        ({"score": "rating"}, [1, 3]),
    ],
)
def test_a_rule_takes_the_first_by_its_column(rule: dict, expected: list[int]) -> None:
    baseline = Baseline(rule)
    chosen = baseline.choose(TopK(2), ARMS, RNG)
    assert chosen.tolist() == expected
    p = baseline.propensities(TopK(2), 4, chosen, chosen, 0)
    assert p.arms[expected].tolist() == [1, 1]
    assert (p.super_arm, p.draws) == (1.0, 0)
    assert baseline.propensities(TopK(2), 4, chosen, np.array([0, 3]), 0).super_arm == 0


def test_a_rule_ends_in_a_feasible_set() -> None:
    baseline, oracle = Baseline({"sort": "price"}), Knapsack([3.0, 1.0, 2.0, 9.0], 3.0)
    chosen = baseline.choose(oracle, ARMS, RNG)
    assert chosen.tolist() == [1, 2]


def test_uniform_sets_of_a_top_k_are_counted_and_others_drawn() -> None:
    baseline = Baseline("uniform")
    chosen = np.array([0, 1])
    exact = baseline.propensities(TopK(2), 4, chosen, chosen, 0)
    np.testing.assert_allclose(exact.arms, 0.5)
    assert (exact.super_arm, exact.draws) == (1 / 6, 0)
    oracle = Knapsack([1.0, 1.0, 1.0, 1.0], 2.0)  # the same sets, and it cannot count them
    drawn = baseline.propensities(oracle, 4, chosen, chosen, 0)
    assert drawn.draws > 100
    np.testing.assert_allclose(drawn.arms, 0.5, atol=4 * np.sqrt(0.25 / drawn.draws))
    assert abs(drawn.super_arm - 1 / 6) < 4 * np.sqrt(0.14 / drawn.draws)


@pytest.mark.parametrize(
    "rule", ["cheapest", 3, ["sort"], {"sort": 3}, {"price": "sort"}, {"score": "x", "k": 1}]
)
def test_other_rules_are_refused(rule: object) -> None:
    with pytest.raises(InputError, match="baseline must be"):
        Baseline(rule)  # type: ignore[arg-type]
