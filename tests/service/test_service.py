"""The service without HTTP: what requests do, and what they leave to the background."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from oclok.service import views
from oclok.service.database import Database
from oclok.service.service import Service

ASKED = {"oracle": None, "include": [], "exclude": [], "id": None, "chosen": None}
BOTH = pytest.mark.parametrize("storage", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def make_service(storage):
    """A function that makes services, as processes of their own would have, on one database."""
    Database(storage).migrate()
    return lambda: Service(Database(storage))


def items(answer: dict, outcome: float = 1.0) -> list[dict]:
    told = {"outcome": outcome, "correct": False, "accept": False}
    return [{"decision": answer["id"], "arm": arm["id"], **told} for arm in answer["chosen"]]


@pytest.mark.parametrize("outcome_range", [None, [-100, 100]])
def test_requests_take_no_step_of_learning(make_service, make_arms, outcome_range):
    service = make_service()
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": outcome_range})
    rng = np.random.default_rng(0)
    answers = [service.decide("a", ASKED | {"arms": make_arms(rng)}) for _ in range(3)]
    learner = service.replica("a").learner
    learner.catch_up()
    steps = learner.steps
    for answer in answers:
        assert service.learn("a", items(answer, float(rng.random())))["learned"] == 2
    seen = views.agent(service.replica("a"))
    assert (seen.learned, learner.steps, learner.waiting) == (6, steps, 3)


@BOTH
def test_one_decision_is_made_when_two_processes_get_the_same_id_at_once(make_service, make_arms):
    services = [make_service() for _ in range(4)]
    services[0].put_agent("a", {"oracle": {"kind": "TopK", "k": 2}})
    rng = np.random.default_rng(1)
    for n in range(5):
        answers: list[dict] = []
        barrier = threading.Barrier(len(services))

        def decide(service, arms, name=f"d{n}", answers=answers, barrier=barrier) -> None:
            barrier.wait(60)
            answers.append(service.decide("a", ASKED | {"arms": arms, "id": name}))

        threads = [threading.Thread(target=decide, args=(s, make_arms(rng))) for s in services]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(answers) == len(services)
        assert all(answer == answers[0] for answer in answers)
        told = [service.learn("a", items(answers[0])) for service in services]
        assert sum(each["learned"] for each in told) == 2
        assert sum(each["repeated"] for each in told) == 2 * len(services) - 2
    for service in services:
        service.refresh()
        assert views.agent(service.replica("a")).rounds == 5
        assert len(service.replica("a").learner.posterior) == 10


def test_a_replica_that_ran_out_of_memory_is_built_again(make_service, make_arms, monkeypatch):
    service = make_service()
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [0, 2]})
    answer = service.decide("a", ASKED | {"arms": make_arms(np.random.default_rng(0))})
    broken = service.replica("a")

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(broken.agent, "learn", fail)
    with pytest.raises(MemoryError):
        service.learn("a", items(answer))
    again = service.replica("a")
    assert again is not broken
    assert again.seq == 2
    assert len(again.learner.posterior) == 2  # the outcomes were in the log
    assert service.learn("a", items(answer))["repeated"] == 2


def test_a_decision_does_not_wait_for_those_who_read_the_replica(make_service, make_arms):
    service = make_service()
    service.put_agent("a", {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [0, 2]})
    rng = np.random.default_rng(0)
    service.decide("a", ASKED | {"arms": make_arms(rng)})
    replica, answers = service.replica("a"), []

    def decide() -> None:
        answers.extend(service.decide("a", ASKED | {"arms": make_arms(rng)}) for _ in range(2))

    with replica.lock:  # a snapshot is written, say
        thread = threading.Thread(target=decide)
        thread.start()
        thread.join(60)
        assert len(answers) == 2
        assert replica.seq == 1
    for answer in answers:
        assert service.learn("a", items(answer))["learned"] == 2
    assert replica.seq == 5
    assert views.agent(replica).rounds == 3
