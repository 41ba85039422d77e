"""Nothing acknowledged is lost, nothing is counted twice, whenever processes or databases die."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from pydantic_core import from_json

from oclok.service.database import Database
from oclok.service.log import Log
from oclok.service.model import Model

#: Moments at which each combination is killed; 25 of each of four make a hundred.
KILLS = int(os.environ.get("OCLOK_KILLS", "2"))


def rebuilt(storage: str) -> tuple[Model, dict]:
    """Return a model that read the whole log, and the outcomes of the log by hand."""
    log = Log(Database(storage))
    row = log.agent("a")
    model = Model(row, log, use_snapshot=False)
    outcomes: dict = {}
    for event in log.after(row.id, 0):
        if event.kind == "outcomes":
            for arm, value in from_json(event.body)["outcomes"]:
                outcomes.setdefault((event.decision, arm), value)
        model.apply(event)
    return model, outcomes


def check(server, traffic, make_arms) -> None:
    """Check that a server knows all that it has acknowledged, once."""
    model, outcomes = rebuilt(server.storage)
    posterior = model.learner.posterior
    assert len(posterior) == len(outcomes)
    answer = server.client.get("/v1/agents/a").json()
    assert answer["learned"] == len(outcomes)
    assert answer["events"] == model.seq
    arms = {arm["id"]: arm["features"] for arm in make_arms(np.random.default_rng(1))}
    request = {"arms": [{"id": arm, "features": f} for arm, f in arms.items()]}
    request["oracle"] = {"kind": "TopK", "k": len(arms)}
    means = server.client.post("/v1/agents/a/decisions", json=request).json()["chosen"]
    expected = dict(zip(arms, posterior.predict(model.agent.encode(arms)).mean, strict=True))
    for arm in means:
        assert arm["mean"] == pytest.approx(expected[arm["id"]], abs=1e-9)
    for key, value in traffic.learned.items():
        assert outcomes[key] == value
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
    ("storage", "workers"),
    [("sqlite", 1), ("postgresql", 2)]
    + ([("sqlite", 2), ("postgresql", 1)] if "OCLOK_KILLS" in os.environ else []),
    indirect=["storage"],
)
def test_kill_at_random_moments(storage, workers, start_server, settings, make_traffic, make_arms):
    rng = np.random.default_rng(workers)
    server = start_server(storage, workers)
    assert server.client.put("/v1/agents/a", json=settings).status_code == 201
    traffic = make_traffic(server.url, seed=0)
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
        check(server, traffic, make_arms)
    assert len(traffic.learned) >= 10 * KILLS
    assert set(traffic.statuses) <= {200, 201}


def test_the_database_stops_and_starts_under_load(
    postgres, start_server, settings, make_traffic, make_arms
):
    server = start_server(postgres.fresh(), 1)
    server.client.put("/v1/agents/a", json=settings)
    with make_traffic(server.url, seed=5) as traffic:
        _wait(lambda: len(traffic.learned) > 20)
        postgres.stop()
        _wait(lambda: traffic.statuses.get(503, 0) > 5)
        assert server.client.get("/readyz").status_code == 503
        assert server.client.get("/healthz").status_code == 200
        postgres.start()
        before = len(traffic.learned)
        _wait(lambda: len(traffic.learned) > before + 20)
    assert set(traffic.statuses) <= {200, 201, 503}
    assert set(traffic.retry_after) == {"1"}
    check(server, traffic, make_arms)


def _wait(condition) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
