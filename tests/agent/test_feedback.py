"""Decide, learn, late, twice, corrected, expired, quarantined, saved and loaded, in any order."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.errors import FeedbackError, InputError, OutcomeError
from oclok.oracles import TopK
from oclok.policies import UCB, BayesUCB, Policy, Random

DEADLINE = 10.0
FEATURES = {"x": {"kind": "number", "mean": 0, "scale": 1, "missing": False}}
TEST_POINTS = np.linspace(-0.5, 1.5, 7)[:, None]
GOOD = st.floats(0, 1).map(lambda x: round(x, 3))
WRONG = 1e7


def stands_out(outcome: float, told: list[float]) -> bool:
    """Whether `outcome` is one of few among enough others that are not all the same."""
    if len(told) < 8:
        return False
    different = sum(y not in (WRONG, np.median([*told, outcome])) for y in told)
    wrong = told.count(WRONG) + 1
    return wrong <= min(4, len(told) // 5) and different >= wrong + 2


@dataclass
class Plain:
    """What the agent should know, in plain dicts."""

    decided: dict[str, float] = field(default_factory=dict)
    features: dict[tuple[str, str], float] = field(default_factory=dict)
    waiting: set[tuple[str, str]] = field(default_factory=set)
    learned: dict[tuple[str, str], float] = field(default_factory=dict)
    quarantined: dict[tuple[str, str], float] = field(default_factory=dict)
    forgotten: set[tuple[str, str]] = field(default_factory=set)


class Told(RuleBasedStateMachine):
    """An agent with a deadline, and no default outcome."""

    default: float | None = None

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.rng = np.random.default_rng(5)
        self.plain = Plain()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "agent"
        self.told: list[float] = []
        self.agent = Agent(
            TopK(2),
            FEATURES,
            deadline=DEADLINE,
            default_outcome=self.default,
            policy=BayesUCB(RBF(0.3), 0.1),
            clock=lambda: self.now,
        )

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(count=st.integers(1, 4))
    def decide(self, count: int) -> None:
        name = f"d{len(self.plain.decided)}"
        arms = {f"a{i}": {"x": float(self.rng.random())} for i in range(count)}
        decision = self.agent.decide(arms, id=name)
        assert self.agent.decide({"other": {"x": 0.0}}, id=name).chosen == decision.chosen
        assert len(decision.chosen) == min(2, count)
        self.plain.decided[name] = self.now
        for arm in decision.chosen:
            self.plain.features[name, arm] = arms[arm]["x"]
            self.plain.waiting.add((name, arm))

    @rule(seconds=st.sampled_from([0.0, 3.0, 20.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        for key in sorted(self.plain.waiting):
            if self.plain.decided[key[0]] <= self.now - DEADLINE:
                self.plain.waiting.remove(key)
                if self.default is None:
                    self.plain.forgotten.add(key)
                else:
                    self.plain.learned[key] = self.default

    @precondition(lambda self: self.plain.waiting)
    @rule(data=st.data(), outcome=GOOD)
    def learn(self, data: st.DataObject, outcome: float) -> None:
        decision, arm = data.draw(st.sampled_from(sorted(self.plain.waiting)))
        others = {a: None for d, a in self.plain.features if d == decision and a != arm}
        assert self.agent.learn(decision, {**others, arm: outcome}).learned == [arm]
        self.plain.waiting.remove((decision, arm))
        self.plain.learned[decision, arm] = outcome
        self.told.append(outcome)

    @precondition(lambda self: self.plain.waiting and stands_out(WRONG, self.told))
    @rule(data=st.data())
    def learn_what_cannot_be_right(self, data: st.DataObject) -> None:
        decision, arm = data.draw(st.sampled_from(sorted(self.plain.waiting)))
        assert self.agent.learn(decision, {arm: WRONG}).quarantined == [arm]
        self.plain.waiting.remove((decision, arm))
        self.plain.quarantined[decision, arm] = WRONG
        self.told.append(WRONG)

    @precondition(lambda self: self.plain.learned or self.plain.quarantined)
    @rule(data=st.data())
    def learn_twice(self, data: st.DataObject) -> None:
        known = {**self.plain.learned, **self.plain.quarantined}
        decision, arm = data.draw(st.sampled_from(sorted(known)))
        told = self.agent.learn(decision, {arm: known[decision, arm]})
        assert (told.repeated, told.learned) == ([arm], [])

    @precondition(lambda self: len(self.plain.features) > len(self.plain.waiting))
    @rule(data=st.data(), outcome=GOOD)
    def contradict(self, data: st.DataObject, outcome: float) -> None:
        settled = sorted(set(self.plain.features) - self.plain.waiting)
        decision, arm = data.draw(st.sampled_from(settled))
        if self.plain.learned.get((decision, arm)) == outcome:
            return
        others = {a: 0.5 for d, a in self.plain.waiting if d == decision}
        with pytest.raises(FeedbackError, match="correct=True"):
            self.agent.learn(decision, {**others, arm: outcome})

    @precondition(lambda self: len(self.plain.features) > len(self.plain.waiting))
    @rule(data=st.data(), outcome=GOOD)
    def correct(self, data: st.DataObject, outcome: float) -> None:
        settled = sorted(set(self.plain.features) - self.plain.waiting)
        key = data.draw(st.sampled_from(settled))
        told = self.agent.learn(key[0], {key[1]: outcome}, correct=True)
        is_same = self.plain.learned.get(key) == outcome
        assert told.corrected == ([] if is_same else [key[1]])
        self.plain.quarantined.pop(key, None)
        self.plain.forgotten.discard(key)
        self.plain.learned[key] = outcome

    @precondition(lambda self: self.plain.quarantined)
    @rule(data=st.data())
    def accept(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.plain.quarantined)))
        self.agent.accept(*key)
        self.plain.learned[key] = self.plain.quarantined.pop(key)
        self.agent.learn(key[0], {key[1]: 0.5}, correct=True)  # WRONG would drown all the others
        self.plain.learned[key] = 0.5

    @rule()
    def save_and_load(self) -> None:
        self.agent.save(self.path)
        self.agent = Agent.load(self.path, clock=lambda: self.now)

    @rule(data=st.data())
    def say_nonsense(self, data: st.DataObject) -> None:
        with pytest.raises(FeedbackError):
            self.agent.learn("nobody's", {"a0": 1.0})
        if not self.plain.features:
            return
        decision, arm = data.draw(st.sampled_from(sorted(self.plain.features)))
        others = {a: 0.25 for d, a in self.plain.waiting if d == decision}
        for outcomes in ({"zz": 1.0}, {arm: "high"}, {arm: np.inf}, {arm: 1e200}, [1.0]):
            told = {**others, **outcomes} if isinstance(outcomes, dict) else outcomes
            with pytest.raises((FeedbackError, OutcomeError)):
                self.agent.learn(decision, told)
        if (decision, arm) not in self.plain.quarantined:
            with pytest.raises(FeedbackError, match="not quarantined"):
                self.agent.accept(decision, arm)

    @invariant()
    def nothing_is_lost_and_nothing_counted_twice(self) -> None:
        self.agent.expire()
        assert self.agent.counts()["open_decisions"] == len({d for d, _ in self.plain.waiting})
        assert len(self.agent.policy.posterior) == len(self.plain.learned)
        mentioned = [f for f in self.agent.health() if f.kind == "quarantine"]
        assert bool(mentioned) == bool(self.plain.quarantined)
        mean, _ = self.agent.policy.posterior.predict(TEST_POINTS)
        expected = np.zeros(len(TEST_POINTS))
        if self.plain.learned:
            X = np.array([[self.plain.features[key]] for key in self.plain.learned])
            judge = GaussianProcessRegressor(RBF(0.3), alpha=0.01, optimizer=None)
            expected = judge.fit(X, list(self.plain.learned.values())).predict(TEST_POINTS)
        np.testing.assert_allclose(mean, expected, atol=1e-7)


class Defaulted(Told):
    """An agent that takes silence for an outcome."""

    default = 0.25


TestTold = Told.TestCase
TestDefaulted = Defaulted.TestCase
TestTold.settings = TestDefaulted.settings = settings(
    max_examples=10, stateful_step_count=40, deadline=None
)


def agent_with(**settings: object) -> Agent:
    return Agent(TopK(3), FEATURES, policy=BayesUCB(RBF(0.5), 0.1), **settings)  # type: ignore[arg-type]


def arms(count: int = 3, seed: int = 0) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return {f"a{i}": {"x": float(rng.random())} for i in range(count)}


def test_outcomes_outside_of_the_range_are_refused_together() -> None:
    agent = agent_with(outcome_range=(0, 5))
    decision = agent.decide(arms())
    with pytest.raises(OutcomeError, match=r"of arm 'a1' must be between 0 and 5; got 5\.5"):
        agent.learn(decision.id, {"a0": 1.0, "a1": 5.5})
    assert agent.learn(decision.id, {"a0": 1.0, "a1": 5.0, "a2": 0}).learned == ["a0", "a1", "a2"]


def test_outcomes_are_as_pandas_and_databases_give_them() -> None:
    agent = agent_with()
    decision = agent.decide(arms())
    column = pd.Series([0.5, None, None], index=["a0", "a1", "a2"], dtype="Float64")
    assert agent.learn(decision.id, column.to_dict()).learned == ["a0"]
    told = {"a0": Decimal("0.5"), "a1": Decimal("0.7"), "a2": Decimal("nan")}
    assert agent.learn(decision.id, told).learned == ["a1"]
    assert agent.learn(decision.id, {"a2": np.float32("nan")}).learned == []
    with pytest.raises(OutcomeError, match=r"a dict .* such as series.to_dict\(\); got Series"):
        agent.learn(decision.id, column)  # type: ignore[arg-type]


def test_with_a_range_nothing_is_quarantined() -> None:
    agent = agent_with(outcome_range=(-np.inf, np.inf))
    for seed in range(10):
        decision = agent.decide(arms(seed=seed))
        agent.learn(decision.id, dict.fromkeys(decision.chosen, 0.01 * seed))
    decision = agent.decide(arms())
    assert agent.learn(decision.id, {"a0": 1e6}).learned == ["a0"]


def test_a_wrong_outcome_among_the_very_first_is_undone_when_others_tell() -> None:
    agent, clean = agent_with(), agent_with()
    for seed, outcomes in enumerate([(1e4, 0.5, 0.4), (0.6, 0.3, 0.5), (0.7, 0.2, 0.4)]):
        for each in (agent, clean):
            decision = each.decide(arms(seed=seed), id=str(seed))
            each.learn(decision.id, dict(zip(decision.chosen, outcomes, strict=True)))
        if seed == 0:
            clean.learn("0", {"a0": 0.5}, correct=True)
    assert [finding.kind for finding in agent.health()] == ["quarantine"]
    mean = agent.policy.posterior.predict([[0.0], [1.0]]).mean
    expected = clean.policy.posterior.predict([[0.0], [1.0]]).mean
    np.testing.assert_allclose(mean, expected, atol=0.1)
    agent.accept("0", "a0")
    assert agent.health() == [] or agent.health()[0].kind != "quarantine"
    assert np.abs(agent.policy.posterior.predict([[0.0], [1.0]]).mean).max() > 100


@pytest.mark.parametrize("policy", [Random(seed=0), UCB(), None], ids=str)
def test_any_policy_survives_outcomes_that_cannot_be_right(policy: Policy | None) -> None:
    agent = Agent(TopK(3), FEATURES, policy=policy)
    for seed, outcomes in enumerate([(1e4, 0.5, 0.4), *[(0.6, 0.3, 0.5)] * 9, (1e7, -1e8, 1e9)]):
        decision = agent.decide(arms(seed=seed))
        learned = agent.learn(decision.id, dict(zip(decision.chosen, outcomes, strict=True)))
    assert len(learned.quarantined) == 3
    assert len(agent.decide(arms()).chosen) == 3


def test_a_clock_that_runs_backwards_does_no_harm() -> None:
    now = [100.0]
    agent = agent_with(deadline=10, default_outcome=0, clock=lambda: now[0])
    agent.decide(arms(), id="first")
    now[0] = 50.0
    agent.decide(arms(), id="second")
    now[0] = 109.0
    assert agent.expire() == 0
    now[0] = 110.0
    assert agent.expire() == 6


def test_a_late_outcome_takes_the_place_of_the_default_one_when_told_to() -> None:
    now = [0.0]
    agent = agent_with(deadline=60, default_outcome=0, clock=lambda: now[0])
    decision = agent.decide(arms())
    now[0] = 61.0
    with pytest.raises(FeedbackError, match="had none before its deadline, and 0 was learned"):
        agent.learn(decision.id, {"a0": 1.0})
    assert agent.learn(decision.id, {"a0": 1.0}, correct=True).corrected == ["a0"]
    assert agent.learn(decision.id, {"a1": 0.0}).repeated == ["a1"]
    assert sorted(agent.policy.posterior.outcomes) == [0, 0, 1]


def test_observations_are_learned_unless_they_cannot_be_right() -> None:
    agent = agent_with()
    past = arms(50)
    outcomes = np.random.default_rng(0).random(50)
    wrong = outcomes.copy()
    wrong[7] = 1e5
    with pytest.raises(OutcomeError, match=r"1 of 50 outcomes cannot be right .* of arm 'a7'"):
        agent.observe(past, wrong)
    assert len(agent.policy.posterior) == 0
    agent.observe(past, outcomes)
    assert len(agent.policy.posterior) == 50


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"deadline": 0}, "deadline must be"),
        ({"default_outcome": 1.0}, "give deadline="),
        ({"deadline": 1, "default_outcome": 7, "outcome_range": (0, 5)}, "between 0 and 5; got 7"),
        ({"deadline": 1, "default_outcome": "x"}, "default_outcome must be a number"),
        ({"deadline": 1, "default_outcome": np.nan}, "default_outcome must be a number"),
        ({"outcome_range": (5, 0)}, "outcome_range must be"),
        ({"outcome_range": 5}, "outcome_range must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        agent_with(**settings)


def test_refusals_name_every_wrong_outcome_in_one_pass():
    agent = Agent(oracle=TopK(3), outcome_range=(0.0, 1.0))
    agent.decide({n: {"x": float(n)} for n in range(5)}, id="d")
    chosen = list(agent.outcomes_of("d"))
    outcomes = {chosen[0]: 0.5, chosen[1]: 7.0, "nobody": 0.1}
    refused = agent.refusals("d", outcomes)
    assert set(refused) == {chosen[1], "nobody"}
    assert "between 0 and 1" in refused[chosen[1]]
    assert "did not choose" in refused["nobody"]
    agent.learn("d", {chosen[0]: 0.5})
    assert set(agent.refusals("d", {chosen[0]: 0.6})) == {chosen[0]}
    assert agent.refusals("d", {chosen[0]: 0.6}, correct=True) == {}


@pytest.mark.parametrize("huge", [10**400, -(10**400), 10**5_000], ids=["huge", "negative", "long"])
def test_an_outcome_beyond_all_floats_is_refused(huge: int) -> None:
    agent = Agent(TopK(1))
    decision = agent.decide({1: {"x": 1.0}, 2: {"x": 2.0}})
    with pytest.raises(OutcomeError, match="must be between"):
        agent.learn(decision.id, {decision.chosen[0]: huge})
    assert agent.counts()["waiting"] == 1


@pytest.mark.parametrize("wrong", [True, 1.0, "1"])
def test_outcomes_are_for_the_arm_itself_and_not_for_what_equals_its_id(wrong: object) -> None:
    agent = Agent(TopK(1))
    decision = agent.decide({1: {"x": 1.0}})
    with pytest.raises(FeedbackError, match="did not choose arm"):
        agent.learn(decision.id, {wrong: 0.5})  # type: ignore[dict-item]
    assert agent.learn(decision.id, {np.int64(1): 0.5}).learned == [1]  # type: ignore[dict-item]
