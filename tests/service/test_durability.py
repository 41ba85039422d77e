"""Nothing acknowledged is lost, nothing is counted twice, whenever processes or databases die."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest
from pydantic_core import from_json

from oclok.service.database import Database
from oclok.service.log import Log
from oclok.service.replay import check, replay
from oclok.service.replica import Replica

#: Moments at which each combination is killed; 25 of each of four make a hundred.
KILLS = int(os.environ.get("OCLOK_KILLS", "2"))


class Reader:
    """Reads a log as it grows, by itself: a model, and the outcomes by hand."""

    def __init__(self, storage: str) -> None:
        self.log = Log(Database(storage))
        self.model = Replica(self.log.agent("a"), self.log, use_snapshot=False)
        self.outcomes: dict = {}

    def read(self) -> None:
        for event in self.log.after(self.model.id, self.model.seq):
            if event.kind == "outcomes":
                for arm, value in from_json(event.body)["outcomes"]:
                    self.outcomes.setdefault((event.decision, arm), value)
            self.model.apply(event)

    def agrees(self, server, make_arms) -> bool:
        """Return whether a server expects of arms what a model of all that is in the log does."""
        self.read()
        posterior = self.model.learner.posterior
        arms = {arm["id"]: arm["features"] for arm in make_arms(np.random.default_rng(1))}
        request = {"arms": [{"id": arm, "features": f} for arm, f in arms.items()]}
        request["oracle"] = {"kind": "TopK", "k": len(arms)}
        chosen = server.client.post("/v1/agents/a/decisions", json=request).json()["chosen"]
        means = {arm["id"]: arm["mean"] for arm in chosen}
        expected = posterior.predict(self.model.agent.encode(arms)).mean
        return [means[arm] for arm in arms] == pytest.approx(expected.tolist(), abs=1e-9)

    def check(self, server, traffic, make_arms) -> None:
        """Check that a server knows all that it has acknowledged, once."""
        self.read()
        posterior = self.model.learner.posterior
        assert len(posterior) == len(self.outcomes)
        answer = server.client.get("/v1/agents/a").json()
        assert answer["learned"] == len(self.outcomes)
        assert answer["events"] == self.model.seq
        assert self.agrees(server, make_arms)
        for key, value in traffic.learned.items():
            assert self.outcomes[key] == value
        rng = np.random.default_rng(0)
        names = sorted(traffic.decided)
        for name in rng.permutation(names)[:10].tolist():
            decision = server.client.get(f"/v1/agents/a/decisions/{name}").json()
            assert [arm["id"] for arm in decision["chosen"]] == traffic.decided[name]
            for told in decision["outcomes"]:
                if (name, told["arm"]) in traffic.learned:
                    assert told["outcome"] == traffic.learned[name, told["arm"]]
                    assert told["status"] == "learned"
                elif told["status"] == "waiting":  # it can be learned from
                    item = {"decision": name, "arm": told["arm"], "outcome": 0.5}
                    learned = server.client.post("/v1/agents/a/outcomes", json=[item]).json()
                    assert learned["learned"] == 1


@pytest.mark.parametrize(
    "storage",
    ["sqlite"] + (["postgresql"] if "OCLOK_KILLS" in os.environ else []),
    indirect=True,
)
def test_kill_while_agents_are_changed(storage, start_server, settings, make_traffic):
    """What was acknowledged holds, what was deleted stays away, `check` and `replay` agree."""
    server = start_server(storage, 2)
    assert server.client.put("/v1/agents/a", json=settings).status_code == 201
    acknowledged = {"deadline": 0.0}
    alive, deleted = set(), set()
    rng = np.random.default_rng(5)

    def change(number: int) -> None:
        """Change, clone and delete until the server is gone."""
        import httpx

        client = httpx.Client(base_url=server.url, timeout=60)
        with contextlib.suppress(httpx.TransportError):
            for n in range(10_000):
                deadline = float(1_000_000 * number + n + 1)
                if client.patch("/v1/agents/a", json={"deadline": deadline}).status_code == 200:
                    acknowledged["deadline"] = deadline
                name = f"clone-{number}-{n}"
                body = {"name": name, "learned": bool(n % 2)}
                if client.post("/v1/agents/a/clone", json=body).status_code == 201:
                    alive.add(name)
                if n % 2:
                    alive.discard(name)  # perhaps, if the answer is lost
                    if client.delete(f"/v1/agents/{name}").status_code == 204:
                        deleted.add(name)
                client.post("/v1/agents/a/erase", json={"arm": "w0"})

    for number in range(1, KILLS + 1):
        with make_traffic(server.url, seed=number, threads=1) as traffic:  # the log stays small
            _wait(lambda traffic=traffic: len(traffic.learned) > 10)
            thread = threading.Thread(target=change, args=(number,))
            before = len(deleted)
            thread.start()
            _wait(lambda before=before: len(deleted) > before)
            time.sleep(rng.uniform(0, 0.5))  # at a random moment
            server.kill()
            thread.join()
        server.start()
        names = {row.name for row in Log(Database(storage)).agents()}
        assert alive <= names
        assert not deleted & names
        now = server.client.get("/v1/agents/a").json()["settings"]["deadline"]
        assert (now or 0.0) >= acknowledged["deadline"]
        assert not any(check(Database(storage)).values())
    server.kill(signal.SIGTERM)
    assert replay(Database(storage), "a").differing == []


@pytest.mark.parametrize(
    ("storage", "workers"),
    [("sqlite", 1), ("postgresql", 2)]
    + ([("sqlite", 2), ("postgresql", 1)] if "OCLOK_KILLS" in os.environ else []),
    indirect=["storage"],
)
def test_kill_at_random_moments(storage, workers, start_server, settings, make_traffic, make_arms):
    rng = np.random.default_rng(workers)
    server = start_server(storage, workers)
    assert server.client.put("/v1/agents/a", json=settings).status_code == 201
    traffic, reader = make_traffic(server.url, seed=0), Reader(storage)
    for _ in range(KILLS):
        before = len(traffic.learned)
        with traffic:
            deadline = time.monotonic() + 120
            while len(traffic.learned) < before + 10 and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(rng.uniform(0, 0.5))
            server.kill()
        traffic.seed += 1
        server.start()
        reader.check(server, traffic, make_arms)
    assert len(traffic.learned) >= 10 * KILLS
    assert set(traffic.statuses) <= {200, 201}


def test_the_database_stops_and_starts_under_load(
    postgres, start_server, settings, make_traffic, make_arms
):
    storage = postgres.fresh()
    server = start_server(storage, 1)
    server.client.put("/v1/agents/a", json=settings)
    with make_traffic(server.url, seed=5) as traffic:
        for _ in range(max(1, KILLS // 5)):
            before, refused = len(traffic.learned), traffic.statuses.get(503, 0)
            _wait(lambda n=before + 20: len(traffic.learned) > n)
            postgres.stop()
            _wait(lambda n=refused + 5: traffic.statuses.get(503, 0) > n)
            assert server.client.get("/readyz").status_code == 503
            assert server.client.get("/healthz").status_code == 200
            postgres.start()
        before = len(traffic.learned)
        _wait(lambda n=before + 20: len(traffic.learned) > n)
    assert set(traffic.statuses) <= {200, 201, 503}
    assert set(traffic.retry_after) == {"1"}
    reader = Reader(storage)
    _wait(lambda: reader.agrees(server, make_arms))
    reader.check(server, traffic, make_arms)


def _wait(condition) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
