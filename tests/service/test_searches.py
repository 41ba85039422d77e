"""One request cannot take a worker down: searches end, take turns, and hold no lock."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time

import numpy as np
import pytest

from oclok.errors import InputError
from oclok.oracles import TopK
from oclok.policies import UCB
from oclok.service.config import Config
from oclok.service.database import Database
from oclok.service.problems import BusyError
from oclok.service.searches import MOST_INSIDE, MOST_WAITING, NICENESS, Searches, searched
from oclok.service.service import Service


def hard_program(rng: np.random.Generator) -> dict:
    """Return five equalities over 60 arms, for which nobody finds a feasible set."""
    A = rng.integers(1, 100, (5, 60)).astype(float)
    bound = A[:, :30].sum(axis=1).tolist()
    return {"kind": "Program", "A": A.tolist(), "lower": bound, "upper": bound}


def arms(rng: np.random.Generator, count: int = 60) -> list[dict]:
    return [{"id": n, "features": {"x": rng.random()}} for n in range(count)]


def test_the_attack_ends_in_time_and_leaves_other_agents_alone(start_server, settings):
    server = start_server()
    for name in ("attacked", "other"):
        server.client.put(f"/v1/agents/{name}", json=settings)
    rng = np.random.default_rng(0)
    body = {"arms": arms(rng), "oracle": hard_program(rng)}
    statuses = []

    def attack() -> None:
        import httpx

        with httpx.Client(base_url=server.url, timeout=120) as client:
            answer = client.post("/v1/agents/attacked/decisions", json=body)
            statuses.append((answer.status_code, answer.headers.get("retry-after")))

    threads = [threading.Thread(target=attack) for _ in range(45)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert server.client.get("/readyz").status_code == 200
        answer = server.client.post("/v1/agents/other/decisions", json={"arms": arms(rng, 5)})
        assert answer.status_code == 201
        answer = server.client.post("/v1/agents/attacked/decisions", json={"arms": arms(rng, 5)})
        assert answer.status_code == 201  # an oracle that does not search waits for nobody
    assert {status for status, _ in statuses} == {422, 503}
    assert {retry for status, retry in statuses if status == 503} == {"1"}
    assert sum(status == 422 for status, _ in statuses) >= 2


def test_only_so_many_search_at_once():
    searches, going = Searches(2), threading.Event()
    running = []

    def search() -> None:
        with searches.turn(7):
            running.append(1)
            going.wait(60)

    threads = [threading.Thread(target=search) for _ in range(2 + MOST_WAITING)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        try:
            with searches.turn(7):
                pass
        except BusyError:
            break
        time.sleep(0.01)
    assert len(running) == 2
    going.set()
    for thread in threads:
        thread.join()
    assert len(running) == 2 + MOST_WAITING
    with searches.turn(7):
        pass


def test_searches_of_all_agents_leave_threads_to_other_requests():
    searches = Searches(MOST_INSIDE)
    with contextlib.ExitStack() as turns:
        for agent in range(MOST_INSIDE):
            turns.enter_context(searches.turn(agent))
        with pytest.raises(BusyError), searches.turn(MOST_INSIDE):
            pass
    with searches.turn(MOST_INSIDE):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_searches_yield_to_other_threads():
    class Asks(TopK):
        """Says how nice its thread is."""

        def __call__(self, index):
            self.niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
            return super().__call__(index)

    oracle = Asks(2)
    scored = UCB(oracle=TopK(4)).propose(np.eye(4))
    assert len(searched(scored, oracle).super_arm) == 2
    assert oracle.niceness == min(19, os.getpriority(os.PRIO_PROCESS, 0) + NICENESS)


@pytest.fixture
def service(storage):
    database = Database(storage)
    database.migrate()
    return Service(database, Config(oracle_seconds=0.2))


def ask(service, oracle=None, **more):
    rng = np.random.default_rng(1)
    request = {"arms": arms(rng), "oracle": oracle, "include": [], "exclude": []}
    return service.decide("a", request | {"id": None, "chosen": None} | more)


def test_settings_can_forbid_oracles_in_requests(service, settings):
    service.put_agent("a", settings | {"request_oracles": False})
    assert len(ask(service)["chosen"]) == 2
    with pytest.raises(InputError, match="takes no oracles"):
        ask(service, {"kind": "TopK", "k": 1})


def test_an_agents_own_oracle_is_limited_and_chooses_by_the_same_indices(service, settings):
    costs = [1.0] * 60
    oracle = {"kind": "Knapsack", "costs": costs, "budget": 3.0}
    service.put_agent("a", settings | {"oracle": oracle})
    answer = ask(service)
    assert len(answer["chosen"]) <= 3
    from oclok.service.replay import replay

    items = [
        {"decision": answer["id"], "arm": arm["id"], "outcome": 1.0} for arm in answer["chosen"]
    ]
    service.learn("a", [item | {"correct": False, "accept": False} for item in items])
    for _ in range(3):
        ask(service, time_budget=0.1)
    assert replay(service.database, "a").differing == []
