"""What an agent has learned, by feature."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.service.database import Database
from oclok.service.learned import learned, version
from oclok.service.service import Service

ASKED = {"oracle": None, "include": [], "exclude": [], "id": None, "chosen": None}


@pytest.fixture
def service(storage):
    Database(storage).migrate()
    made = Service(Database(storage))
    made.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [-9, 9]})
    return made


def decide(service, arms: list[dict]) -> None:
    service.decide("a", ASKED | {"arms": arms})


def arms(rng: np.random.Generator, count: int = 8) -> list[dict]:
    return [
        {
            "id": n,
            "features": {
                "strong": float(rng.uniform(0, 10)),
                "weak": float(rng.uniform(0, 10)),
                "kind": ["a", "b"][rng.integers(2)],
                "vector": rng.random(3).tolist(),
            },
        }
        for n in range(count)
    ]


def test_the_feature_that_matters_comes_first_with_its_slope(service):
    rng = np.random.default_rng(0)
    past = arms(rng, 150)
    rows = [
        {"features": a["features"], "outcome": 0.4 * a["features"]["strong"] + rng.normal(0, 0.1)}
        for a in past
    ]
    service.observe("a", rows)
    decide(service, arms(rng))
    service.replica("a").learner.catch_up()
    seen = learned(service, service.replica("a"))
    first = seen.features[0]
    assert first.name == "strong"
    assert first.relevance > 0.8
    assert sum(feature.relevance for feature in seen.features) == pytest.approx(1)
    rise = (first.mean[-1] - first.mean[0]) / (first.values[-1] - first.values[0])
    assert rise == pytest.approx(0.4, abs=0.1)
    assert all(lo < m < hi for lo, m, hi in zip(first.lower, first.mean, first.upper, strict=True))


def test_nothing_was_learned_before_there_are_outcomes(service):
    decide(service, arms(np.random.default_rng(1)))
    assert learned(service, service.replica("a")).features == []


def test_it_is_computed_again_only_when_much_was_learned(service):
    rng = np.random.default_rng(2)
    replica = service.replica("a")
    rows = [{"features": arm["features"], "outcome": 1.0} for arm in arms(rng, 60)]
    service.observe("a", rows)
    for _ in range(20):
        decide(service, arms(rng))
    replica.learner.catch_up()
    first, before = learned(service, replica), version(replica)
    decide(service, arms(rng))
    replica.learner.catch_up()
    assert replica.learner.steps > before
    assert version(replica) == before
    assert learned(service, replica) is first
    for _ in range(20):
        decide(service, arms(rng))
    replica.learner.catch_up()
    assert version(replica) > before
    assert learned(service, replica) is not first
