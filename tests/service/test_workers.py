"""Several processes that share one database learn from each other."""

from __future__ import annotations

import os
import signal
import socket
import time

import numpy as np
import pytest
from pydantic_core import from_json

from oclok import Agent
from oclok.oracles import TopK
from oclok.service.database import Database
from oclok.service.decisions import logged, restored
from oclok.service.log import Log
from oclok.service.packing import records
from oclok.service.replica import Replica


def test_two_workers_agree_with_one_agent_that_learned_everything_alone(
    postgres, start_server, settings, make_traffic, make_arms
):
    storage = postgres.fresh()
    server = start_server(storage, workers=2)
    server.client.put("/v1/agents/a", json=settings)
    with make_traffic(server.url, seed=1, threads=4) as traffic:
        deadline = time.monotonic() + 60
        while len(traffic.learned) < 60 and time.monotonic() < deadline:
            time.sleep(0.02)
    log = Log(Database(storage))
    row = log.agent("a")
    alone = Agent(oracle=TopK(2), outcome_range=(-100, 100), seed=0)
    reader = Replica(row, log, use_snapshot=False)
    for event in log.after(row.id, 0):
        reader.apply(event)
        if event.kind == "decision":
            decision = restored(reader.agent, event).decision
            arms = _arms(event)
            alone.decide(arms, include=decision.chosen, id=decision.id)
        elif event.kind == "outcomes":
            alone.learn(event.decision, dict(from_json(event.body)["outcomes"]))
    assert len(alone.policy.posterior) >= 60
    asked = make_arms(np.random.default_rng(9))
    expected, _ = alone.policy.posterior.predict(
        alone.encode({arm["id"]: arm["features"] for arm in asked})
    )
    for _ in range(12):  # asks both workers, by connection
        _wait_until(lambda: np.allclose(_means(server, asked), expected, rtol=0, atol=1e-9))


def test_workers_know_each_others_decisions_at_once(postgres, start_server, settings, make_arms):
    server = start_server(postgres.fresh(), workers=2)
    server.client.put("/v1/agents/a", json=settings)
    rng = np.random.default_rng(2)
    import httpx

    for n in range(10):
        body = {"arms": make_arms(rng), "id": f"d{n}"}
        with httpx.Client(base_url=server.url, timeout=60) as one:
            chosen = one.post("/v1/agents/a/decisions", json=body).json()["chosen"]
        item = {"decision": f"d{n}", "arm": chosen[0]["id"], "outcome": 1.0}
        with httpx.Client(base_url=server.url, timeout=60) as other:
            assert other.post("/v1/agents/a/outcomes", json=[item]).json()["learned"] == 1
        with httpx.Client(base_url=server.url, timeout=60) as other:
            assert other.post("/v1/agents/a/decisions", json=body).json()["chosen"] == chosen
    text = server.client.get("/metrics").text
    assert 'oclok_decisions_total{agent="a"} 20.0' in text  # of both workers


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_use_one_blas_thread_by_default(start_server, monkeypatch, workers):
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    server = start_server(workers=workers)
    assert "\noclok_blas_threads 1.0\n" in server.client.get("/metrics").text


def test_workers_end_when_the_process_that_started_them_is_killed(start_server):
    server = start_server(workers=2)
    os.kill(server.process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=5):
                time.sleep(0.1)
        except OSError:
            return  # nobody listens any more
    raise AssertionError(server.log())


@pytest.mark.parametrize("storage", ["sqlite"], indirect=True)
def test_a_snapshot_makes_the_same_model_as_the_whole_log(storage, settings, make_arms):
    from oclok.service.service import Service

    database = Database(storage)
    database.migrate()
    service = Service(database)
    service.put_agent("a", settings | {"features": None, "mode": "live"})
    rng = np.random.default_rng(3)

    def play(rounds: int) -> None:
        for _ in range(rounds):
            request = {"arms": make_arms(rng), "oracle": None, "include": [], "exclude": []}
            answer = service.decide("a", request | {"id": None, "chosen": None})
            items = [
                {"decision": answer["id"], "arm": arm["id"], "outcome": rng.random()}
                | {"correct": False, "accept": False}
                for arm in answer["chosen"]
            ]
            service.learn("a", items)

    play(30)
    model = service.replica("a")
    service.log.save_snapshot(model.id, *model.dumped())
    play(10)
    row = service.log.agent("a")
    with_snapshot = Replica(row, service.log)
    assert with_snapshot.seq == 60
    with_snapshot.build()
    without = Replica(row, service.log, use_snapshot=False)
    without.build()
    X = model.agent.encode({arm["id"]: arm["features"] for arm in make_arms(rng, 30)})
    expected = model.agent.policy.posterior.predict(X).mean
    for other in (with_snapshot, without):
        assert other.seq == model.seq == 80
        assert other.agent.policy.round == 40
        np.testing.assert_allclose(
            other.agent.policy.posterior.predict(X).mean, expected, atol=1e-9
        )
    service.log.save_snapshot(model.id, model.seq, b"from another version")
    again = Replica(row, service.log)
    assert again.seq == 0  # not used; the log has it all
    again.build()
    assert again.seq == 80


def _arms(event) -> dict:
    return {arm["id"]: arm["features"] for arm in records(logged(event))}


def _wait_until(is_true) -> None:
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline


def _means(server, asked: list) -> list:
    import httpx

    request = {"arms": asked, "oracle": {"kind": "TopK", "k": len(asked)}}
    with httpx.Client(base_url=server.url, timeout=60) as client:
        answer = client.post("/v1/agents/a/decisions", json=request).json()
    by_id = {arm["id"]: arm["mean"] for arm in answer["chosen"]}
    return [by_id[arm["id"]] for arm in asked]
