"""A control group over HTTP: groups, lift, guard, and the same in every replica of the log."""

from __future__ import annotations

import numpy as np
import pytest

from oclok.service.database import Database
from oclok.service.lifecycle import Lifecycle
from oclok.service.service import Service

SETTINGS = {
    "oracle": {"kind": "TopK", "k": 2},
    "holdout": 0.4,
    "baseline": {"sort": "price", "descending": True},
    "guard": 0.2,
}


def arms(rng: np.random.Generator) -> list[dict]:
    return [{"id": f"a{i}", "features": {"x": rng.random(), "price": float(i)}} for i in range(6)]


@pytest.fixture
def service(tmp_path) -> Service:  # type: ignore[no-untyped-def]
    database = Database(f"sqlite:///{tmp_path}/oclok.db")
    database.migrate()
    return Service(database)


def played(service: Service, rounds: int) -> list[dict]:
    rng = np.random.default_rng(0)
    answers = []
    for i in range(rounds):
        request = {"arms": arms(rng), "oracle": None, "include": [], "exclude": []}
        answer = service.decide("a", {**request, "id": None, "chosen": None, "unit": f"u{i % 50}"})
        y = 1.0 if answer["group"] == "agent" else 0.5
        service.learn(
            "a",
            [
                {"decision": answer["id"], "arm": arm["id"], "outcome": y + rng.normal(0, 0.1)}
                | {"correct": False, "accept": False}
                for arm in answer["chosen"]
            ],
        )
        answers.append(answer)
    return answers


def test_another_replica_of_the_log_comes_to_the_same(service: Service, tmp_path) -> None:  # type: ignore[no-untyped-def]
    service.put_agent("a", SETTINGS)
    answers = played(service, 40)
    assert {answer["group"] for answer in answers} == {"agent", "baseline"}
    assert all(0 < answer["propensity"] <= 1 for answer in answers)
    assert any(answer["stepped_in"] for answer in answers)
    other = Service(Database(f"sqlite:///{tmp_path}/oclok.db"))
    ours, theirs = service.replica("a"), other.replica("a")
    theirs.build()
    ours.learner.catch_up()
    assert ours.agent.guard_report() == theirs.agent.guard_report()
    assert ours.agent.lift().agent == theirs.agent.lift().agent


def test_the_same_id_gives_the_same_group(service: Service) -> None:
    service.put_agent("a", SETTINGS)
    rng = np.random.default_rng(1)
    request = {"arms": arms(rng), "oracle": None, "include": [], "exclude": [], "unit": "u"}
    first = service.decide("a", {**request, "id": "d", "chosen": None})
    assert service.decide("a", {**request, "id": "d", "chosen": None}) == first


def test_a_smaller_holdout_keeps_what_was_learned_and_begins_the_lift_anew(
    service: Service,
) -> None:
    service.put_agent("a", SETTINGS)
    played(service, 10)
    assert service.replica("a").agent.lift().agent.decisions > 0
    Lifecycle(service.log, "me").change("a", {"holdout": 0.1, "guard": None})
    replica = service.replica("a")
    replica.catch_up()
    assert replica.agent.lift().agent.decisions == 0
    assert replica.agent.guard_report() is None
    assert replica.agent.counts()["learned"] == 20
    answers = played(service, 10)
    assert replica.agent.lift().agent.decisions == sum(a["group"] == "agent" for a in answers)
