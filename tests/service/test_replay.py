"""A damaged log is noticed: by readers, by writers, by readiness, and on the command line."""

from __future__ import annotations

import os
import sqlite3
import stat

import numpy as np
import pytest
from starlette.testclient import TestClient

from oclok.errors import DamagedLogError, StorageError
from oclok.service.app import create_app
from oclok.service.database import Database
from oclok.service.log import Event, Log
from oclok.service.replay import check, replay
from oclok.service.service import Service


@pytest.fixture
def path(tmp_path):
    """The file of a database with two agents, of which "a" has 30 events."""
    file = tmp_path / "oclok.db"
    service = _service(f"sqlite:///{file}")
    for name in ("a", "b"):
        service.put_agent(name, {"oracle": {"kind": "TopK", "k": 1}})
    for n in range(30):
        _decide(service, "a", f"d{n}")
    service.database.close()
    return file


def _service(url: str) -> Service:
    database = Database(url)
    database.migrate()
    return Service(database)


def _decide(service: Service, name: str, decision: str) -> None:
    arms = [{"id": n, "features": {"x": float(n)}} for n in range(3)]
    request = {"arms": arms, "oracle": None, "include": [], "exclude": [], "chosen": None}
    service.decide(name, request | {"id": decision})


def _run(path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("damage", "missing"),
    [("seq BETWEEN 20 AND 24", 20), ("seq > 25", 26), ("seq = 1", 1), ("seq > 0", 1)],
)
@pytest.mark.parametrize("has_snapshot", [False, True])
def test_missing_events_are_named(path, damage, missing, has_snapshot):
    if has_snapshot:
        service = _service(f"sqlite:///{path}")
        replica = service.replica("a")
        service.log.save_snapshot(replica.id, *replica.dumped())
        service.database.close()
    _run(path, f"DELETE FROM events WHERE agent = 1 AND {damage}")
    database = Database(f"sqlite:///{path}")
    told = f"event {missing} of agent a is missing"
    assert told in check(database)["a"]
    assert check(database)["b"] == ""
    with pytest.raises(DamagedLogError, match=told):
        replay(database, "a")
    service = Service(database)
    with pytest.raises(DamagedLogError, match=told):
        service.replica("a")
    service.replica("b")


def test_a_snapshot_that_cannot_be_read_is_named(path):
    service = _service(f"sqlite:///{path}")
    replica = service.replica("a")
    service.log.save_snapshot(replica.id, *replica.dumped())
    assert not any(check(service.database).values())
    _run(path, "UPDATE snapshots SET content = x'00'")
    assert "the snapshot cannot be read" in check(service.database)["a"]


def test_a_damaged_agent_is_503_and_not_ready_and_others_go_on(path):
    _run(path, "DELETE FROM events WHERE agent = 1 AND seq BETWEEN 20 AND 24")
    with TestClient(create_app(f"sqlite:///{path}"), base_url="http://localhost") as client:
        _until(lambda: client.get("/readyz").json().get("detail", "").startswith("event 20"))
        assert client.get("/readyz").status_code == 503
        body = {"arms": [{"id": 1, "features": {"x": 1.0}}]}
        answer = client.post("/v1/agents/a/decisions", json=body)
        assert answer.status_code == 503
        assert "event 20" in answer.json()["detail"]
        assert client.post("/v1/agents/b/decisions", json=body).status_code == 201


def test_a_reader_notices_a_gap_while_it_runs(path):
    service = _service(f"sqlite:///{path}")
    service.replica("a")
    other = Log(Database(f"sqlite:///{path}"))
    other.append(1, [Event("expire", b"{}"), Event("expire", b"{}")])
    _run(path, "DELETE FROM events WHERE agent = 1 AND seq = 31")
    service.refresh()
    assert "event 31" in service.damaged["a"]
    with pytest.raises(DamagedLogError):
        service.replica("a")
    row = ", time, body) SELECT agent, 31, kind, time, body FROM events WHERE agent=1 AND seq=32"
    _run(path, f"INSERT INTO events (agent, seq, kind{row}")
    assert service.replica("a").seq == 32  # repaired
    assert service.damaged == {}


def test_a_file_that_is_gone_is_noticed(path):
    service = _service(f"sqlite:///{path}")
    service.replica("a")
    service.database.probe()
    path.rename(path.with_suffix(".moved"))
    with pytest.raises(StorageError, match="is gone"):
        _decide(service, "a", "later")
    with pytest.raises(StorageError, match="is gone"):
        service.database.probe()
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="was replaced"):
        _decide(service, "a", "later")


def test_a_full_disk_is_not_ready(start_server, settings, make_arms):
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("no limits for other processes here")
    server = start_server()
    server.client.put("/v1/agents/a", json=settings)
    process, unlimited = server.process.pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    body = {"arms": make_arms(np.random.default_rng(0))}
    assert server.client.post("/v1/agents/a/decisions", json=body).status_code == 201
    resource.prlimit(process, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    assert server.client.post("/v1/agents/a/decisions", json=body).status_code == 503
    assert server.client.get("/readyz").status_code == 503
    assert server.client.get("/healthz").status_code == 200
    resource.prlimit(process, resource.RLIMIT_FSIZE, unlimited)
    _until(lambda: server.client.get("/readyz").status_code == 200)
    assert server.client.post("/v1/agents/a/decisions", json=body).status_code == 201


def test_files_are_private(path):
    for file in path.parent.glob("oclok.db*"):
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600, file


def _until(condition) -> None:
    import time

    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
