"""What happened over time, counted by the server."""

from __future__ import annotations

import time

import numpy as np
import pytest

from oclok.service.database import Database
from oclok.service.history import RANGES, history
from oclok.service.service import Service

SETTINGS = {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [0, 5], "deadline": None}
ASKED = {"oracle": None, "include": [], "exclude": [], "id": None, "chosen": None}


@pytest.fixture
def service(storage):
    Database(storage).migrate()
    return Service(Database(storage))


def play(service, make_arms, rounds: int, told: int = 2) -> list[float]:
    """Decide, and tell the outcomes of so many arms of each decision."""
    rng = np.random.default_rng(0)
    outcomes = []
    for _ in range(rounds):
        answer = service.decide("a", ASKED | {"arms": make_arms(rng)})
        for arm in answer["chosen"][:told]:
            outcomes.append(float(rng.uniform(0, 5)))
            item = {"decision": answer["id"], "arm": arm["id"], "outcome": outcomes[-1]}
            service.learn("a", [item | {"correct": False, "accept": False}])
        service.replica("a").learner.catch_up()
    return outcomes


@pytest.mark.parametrize("name", list(RANGES))
def test_every_decision_and_outcome_is_counted_once(service, make_arms, name):
    service.put_agent("a", SETTINGS)
    outcomes = play(service, make_arms, 20, told=1)
    seen = history(service.replica("a"), name, time.time())
    assert sum(seen.decisions) == seen.total.decisions == 20
    assert sum(seen.outcomes) == seen.total.learned == 20
    assert seen.total.waiting == 20
    assert seen.total.mean_outcome == pytest.approx(np.mean(outcomes))
    weighted = [n * mean for n, mean in zip(seen.outcomes, seen.mean, strict=True) if n]
    assert sum(weighted) == pytest.approx(sum(outcomes), rel=1e-3)
    assert len(seen.mean) == len(seen.expected) == RANGES[name][1]


def test_what_is_before_the_range_does_not_count(service, make_arms):
    service.put_agent("a", SETTINGS)
    play(service, make_arms, 5)
    later = history(service.replica("a"), "hour", time.time() + 7_200)
    assert later.total.decisions == sum(later.decisions) == 0
    assert later.total.mean_outcome is None
    assert history(service.replica("a"), "all", time.time() + 7_200).total.decisions == 5


def test_what_was_expected_stays_and_is_within_the_range_of_outcomes(service, make_arms):
    service.put_agent("a", SETTINGS)
    play(service, make_arms, 30)
    replica, now = service.replica("a"), time.time()
    before = history(replica, "all", now)
    replica.learner.observe(
        np.zeros((200, replica.learner.policy.posterior.dimension)), [5.0] * 200
    )
    replica.learner.catch_up()  # the model thinks otherwise now
    assert history(replica, "all", now) == before
    bands = [
        (low, mid, high)
        for low, mid, high in zip(before.lower, before.expected, before.upper, strict=True)
        if mid is not None
    ]
    assert bands
    assert all(0 <= low <= mid <= high <= 5 for low, mid, high in bands)
