from __future__ import annotations

import logging

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from oclok import Agent
from oclok.agent.health import FeatureWatch, feature_findings
from oclok.agent.schema import Schema
from oclok.oracles import TopK
from oclok.persistence import dumps, loads
from oclok.policies import BayesUCB, Window


class World:
    """An agent, arms with a few features, and outcomes that can be bent."""

    def __init__(self, seed: int = 0, noise_std: float = 0.1, **settings: object) -> None:
        self.now = 0.0
        self.rng = np.random.default_rng(seed)
        settings = {"policy": BayesUCB(RBF(1.0), noise_std), **settings}
        self.agent = Agent(TopK(3), clock=lambda: self.now, **settings)  # type: ignore[arg-type]

    def arms(self, count: int = 12, **changed: object) -> dict:
        rng = self.rng
        row = lambda: {"x": rng.random(), "city": str(rng.choice(["a", "b"]))}  # noqa: E731
        arms = {f"w{i}": row() for i in range(count)}
        for name, values in changed.items():
            for arm in arms.values():
                arm[name] = values() if callable(values) else values
        return arms

    def play(self, rounds: int, shift: float = 0.0, **changed: object) -> None:
        for _ in range(rounds):
            arms = self.arms(**changed)
            decision = self.agent.decide(arms)
            self.now += 60.0
            self.agent.learn(
                decision.id,
                {
                    arm: np.sin(3 * arms[arm]["x"]) + shift + self.rng.normal(0, 0.1)
                    for arm in decision.chosen
                },
            )

    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.agent.health()]


def test_nothing_is_found_where_all_is_well() -> None:
    """Outcomes are those of a sample of the prior, through random Fourier features."""
    for seed in range(4):
        world = World(seed)
        agent, rng = world.agent, world.rng
        frequencies = phases = None
        for t in range(120):
            decision = agent.decide(world.arms())
            world.now += 60.0
            X = decision.offer.contexts[decision.offer.chosen]
            if frequencies is None:
                frequencies = rng.standard_normal((X.shape[1], 500))
                phases = rng.uniform(0, 2 * np.pi, 500)
                weights = rng.standard_normal(500)
            f = np.cos(X @ frequencies + phases) @ weights / np.sqrt(250)
            outcomes = f + rng.normal(0, 0.1, len(f))
            agent.learn(decision.id, dict(zip(decision.chosen, outcomes, strict=True)))
            if t % 10 == 0:
                assert world.kinds() == []


def test_overconfidence_is_found() -> None:
    world = World(noise_std=0.01)
    world.play(40)
    found = world.agent.health()
    assert found[0].kind == "calibration"
    assert "overconfident" in found[0].message


def test_rare_clicks_are_no_overconfidence() -> None:
    world = World(policy=BayesUCB(RBF(1.0), 0.14))
    for _ in range(150):
        decision = world.agent.decide(world.arms())
        clicks = (world.rng.random(3) < 0.02).astype(float)
        world.agent.learn(decision.id, dict(zip(decision.chosen, clicks, strict=True)))
    assert world.kinds() == []


def test_a_world_that_changed_is_found() -> None:
    world = World()
    world.play(100)
    assert "drift" not in world.kinds()
    world.play(20, shift=3.0)
    assert "drift" in world.kinds()


def test_a_world_that_changed_long_ago_is_found() -> None:
    """A shift that a window of the latest outcomes no longer shows."""
    world = World(policy=BayesUCB(RBF(1.0), 0.1, forget=Window(150)))
    world.play(150)
    assert world.kinds() == []
    world.play(300, shift=3.0)
    [found] = [finding for finding in world.agent.health() if finding.kind == "drift"]
    assert found.severity == "info"
    assert "outcomes ago" in found.message


def test_the_verdict_is_that_of_the_calibration() -> None:
    world = World(noise_std=0.02)
    world.play(40)
    assert world.agent.policy.calibration().verdict == "overconfident"  # type: ignore[attr-defined]
    assert "calibration" in world.kinds()


def test_a_feature_that_never_varies_is_found() -> None:
    world = World()
    world.play(20, floor=7)
    assert [(f.kind, f.subject) for f in world.agent.health()] == [("constant", "floor")]


def test_a_feature_in_another_unit_is_found() -> None:
    world = World()
    world.play(90)
    world.play(10, x=lambda: 1000 * world.rng.random())
    assert ("range", "x") in [(f.kind, f.subject) for f in world.agent.health()]


def test_new_values_of_a_category_are_found() -> None:
    world = World()
    world.play(90)
    world.play(20, city=lambda: f"new {world.rng.integers(100)}")
    assert ("category", "city") in [(f.kind, f.subject) for f in world.agent.health()]


def test_a_column_of_names_is_ignored_and_said() -> None:
    world = World()
    world.agent.decide(world.arms(30, name=lambda: f"worker {world.rng.random()}"))
    assert [(f.kind, f.subject) for f in world.agent.health()] == [("ignored", "name")]
    told = World(features={"x": "number", "city": "category", "name": "ignored"})
    told.agent.decide(told.arms(30, name=lambda: f"worker {told.rng.random()}"))
    assert told.agent.health() == []


def test_decisions_that_wait_too_long_are_found() -> None:
    world = World()
    world.play(5)
    forgotten = world.agent.decide(world.arms())
    world.play(20)
    found = [finding for finding in world.agent.health() if finding.kind == "late"]
    assert len(found) == 1
    assert repr(forgotten.id) in found[0].message


def test_outcomes_that_never_come_are_found() -> None:
    world = World(deadline=100.0)
    for _ in range(50):
        world.agent.decide(world.arms())
        world.now += 10
    assert "lost" in world.kinds()


def test_findings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.play(20, floor=7)
    with caplog.at_level(logging.INFO, logger="oclok.agent"):
        world.agent.health()
        world.agent.health()
    assert [record.message for record in caplog.records] == [
        "constant: feature 'floor' never varied; leave it out"
    ]


def test_health_is_looked_at_without_being_asked(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    with caplog.at_level(logging.INFO, logger="oclok.agent"):
        world.play(250, floor=7)
    assert len([r for r in caplog.records if r.message.startswith("constant")]) == 1


def test_the_worst_comes_first() -> None:
    world = World(noise_std=0.01)
    world.play(40, floor=7)
    severities = [finding.severity for finding in world.agent.health()]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert len(set(severities)) == 2


SCHEMA = Schema(
    {
        "x": {"kind": "number", "mean": 0, "scale": 1, "missing": False},
        "kind": {"kind": "category", "values": ["a", "b"], "buckets": 4, "missing": False},
        "y": {"kind": "number", "mean": 0, "scale": 1},
    }
)


def contexts(count: int, x: float = 1.0, others: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.zeros((count, SCHEMA.dimension))
    X[:, 0] = x * rng.random(count)
    new = rng.random(count) < others
    X[np.arange(count), np.where(new, rng.integers(3, 5, count), rng.integers(1, 3, count))] = 1
    X[new, 5] = 1
    return X


def found(watch: FeatureWatch) -> dict[str, str]:
    return {f"{f.kind} {f.subject}": f.message for f in feature_findings(SCHEMA, watch)}


def test_features_that_never_vary_are_found() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    for seed in range(3):
        watch.record(contexts(100, seed=seed))
    assert list(found(watch)) == ["constant y"]


def test_the_share_outside_of_the_first_range_follows_what_comes() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    for seed in range(20):
        watch.record(contexts(100, seed=seed))
    assert not watch.outside.any()
    for seed in range(100):
        watch.record(contexts(100, x=5.0, seed=seed))
    share = np.mean(np.random.default_rng(0).random(10_000) * 5 > 1.25)
    assert abs(watch.outside[0] - share) < 0.05
    assert f"{watch.outside[0]:.0%} of late arms" in found(watch)["range x"]
    for seed in range(100):
        watch = loads(dumps(watch))  # type: ignore[assignment]
        watch.record(contexts(100, seed=seed))
    assert watch.outside[0] < 0.02
    assert "range x" not in found(watch)


def test_the_share_of_values_without_a_column_is_found() -> None:
    watch = FeatureWatch(SCHEMA.dimension)
    for seed in range(20):
        watch.record(contexts(100, seed=seed))
    assert "category kind" not in found(watch)
    for seed in range(100):
        watch.record(contexts(100, others=0.3, seed=seed))
    share = int(found(watch)["category kind"].split("%")[0].split()[-1]) / 100
    assert abs(share - 0.3) < 0.1
