"""Work beside requests: what was told is learned, and snapshots are made, without a request."""

from __future__ import annotations

import time

import numpy as np

from oclok.service import background, sharing, views
from oclok.service.access import Access
from oclok.service.background import Background
from oclok.service.database import Database
from oclok.service.replica import Replica, make_agent
from oclok.service.service import Service

ASKED = {"oracle": None, "include": [], "exclude": [], "id": None, "chosen": None}


def test_snapshots_are_made_and_hold_what_the_log_says(storage, make_arms, monkeypatch):
    monkeypatch.setattr(background, "LEAST_EVENTS", 10)
    database = Database(storage)
    database.migrate()
    service = Service(database)
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [0, 2]})
    model = service.replica("a")
    work = Background(service, Access(database))
    work.start()
    rng = np.random.default_rng(0)
    try:
        for played in range(40):
            answer = service.decide("a", ASKED | {"arms": make_arms(rng)})
            told = {"outcome": float(rng.random()), "correct": False, "accept": False}
            service.learn(
                "a",
                [{"decision": answer["id"], "arm": arm["id"], **told} for arm in answer["chosen"]],
            )
            if played == 20:
                until(lambda: service.log.snapshot_seq(model.id) > 0)
        until(lambda: service.log.snapshot_seq(model.id) > 40 and not model.learner.waiting)
    finally:
        work.stop()
    row = service.log.agent("a")
    again = Replica(row, service.log)
    assert again.seq > 40
    again.build()
    assert len(model.learner.policy.posterior) == 80  # though no request asked for it
    X = model.agent.encode({arm["id"]: arm["features"] for arm in make_arms(rng, 20)})
    np.testing.assert_allclose(
        again.learner.posterior.predict(X).mean,
        model.learner.posterior.predict(X).mean,
        atol=1e-9,
    )


def test_a_service_that_stops_leaves_a_list_of_agents_as_they_are(storage, make_arms):
    database = Database(storage)
    database.migrate()
    service = Service(database)
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}})
    work = Background(service, Access(database))
    work.start()
    try:
        for seed in range(3):
            service.decide("a", ASKED | {"arms": make_arms(np.random.default_rng(seed))})
            until(lambda: service.log.agent("a").summary is not None)
    finally:
        work.stop()
    assert views.stored(service.log.agent("a")).rounds == 3


def test_a_worker_that_drops_a_model_lets_others_lead(storage, make_arms, tmp_path, monkeypatch):
    monkeypatch.setenv(sharing.FOLDER, str(tmp_path))
    database = Database(storage)
    database.migrate()
    service = Service(database)
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}})
    replica = service.replica("a")
    model, follower = f"{replica.id}-{replica.epoch}", make_agent(replica.settings).policy
    work = Background(service, Access(database))
    work.start()
    try:
        service.decide("a", ASKED | {"arms": make_arms(np.random.default_rng(0))})
        until((tmp_path / f"{model}.model").exists)
        other = sharing.Sharing(str(tmp_path))
        for _ in range(3):  # of which the leader has taken one
            follower.observe(np.eye(2), [0.0, 1.0])
        other.work(model, follower)
        assert follower.is_following
        service.drop(replica)
        until(lambda: other.work(model, follower) or not follower.is_following)
    finally:
        work.stop()


def until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
