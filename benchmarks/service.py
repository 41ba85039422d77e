"""The service on loopback against the same agent in process; what a snapshot saves."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from typing import Any

import numpy as np

from benchmarks.report import Result, Row, Target, say
from benchmarks.server import Server, storages
from benchmarks.timing import interleaved, seconds
from oclok import Agent
from oclok.oracles import TopK

ARMS, FEATURES, CHOSEN, ROUNDS = 100, 8, 5, 100
#: Outcomes in the log at a restart, in events of so many.
OUTCOMES, AT_ONCE = 1_000_000, 1_000
SETTINGS = {"oracle": {"kind": "TopK", "k": CHOSEN}, "outcome_range": [-100, 100]}


def run(quick: bool) -> Result:
    import httpx

    repeats, load, turns = (20, 2.0, 1) if quick else (200, 5.0, 5)
    rng = np.random.default_rng(0)
    with storages() as storage, Server(storage()) as one, Server(storage(), 2) as two:
        say("service: POST decisions against agent.decide")
        local = Agent(oracle=TopK(CHOSEN), outcome_range=(-100, 100))
        with httpx.Client(base_url=one.url, timeout=60) as client:
            client.put("/v1/agents/a", json=SETTINGS)
            for _ in range(20 if quick else ROUNDS):
                _play(client, local, rng)
            offered = arms(rng)
            body = _body(offered)
            post = lambda: client.post(PATH, content=body, headers=JSON)  # noqa: E731
            times = interleaved({"post": post, "decide": lambda: local.decide(offered)}, repeats)
        ratio = times["post"] / times["decide"]
        say("service: one worker and two, saturated, in turn")
        with httpx.Client(base_url=two.url, timeout=60) as client:
            client.put("/v1/agents/a", json=SETTINGS)
            for _ in range(20 if quick else ROUNDS):
                _play(client, local, rng)
        measured = [[_capacity(server, load) for server in (one, two)] for _ in range(turns)]
        full, both = np.array(measured).transpose(1, 2, 0)  # of each: rates, and CPU times
        rate, rates = np.median(full[0]), np.median(both[0])
        say("service: at half of that")
        half, taken = _load(one.url, 8, turns * load, rate / 2)
    say("service: restart with and without a snapshot")
    outcomes = OUTCOMES // 50 if quick else OUTCOMES
    with tempfile.TemporaryDirectory() as folder:
        with_snapshot, without = _restarts(f"sqlite:///{folder}/log.db", outcomes)
    tail = float(np.quantile(taken, 0.99) / np.median(taken))
    rows: list[Row] = [
        {
            "agent.decide, ms": 1e3 * times["decide"],
            "POST decisions, ms": 1e3 * times["post"],
            "decisions/s": rate,
            "CPU, ms": np.median(full[1]),
            "at half: decisions/s": half,
            "at half: median, ms": 1e3 * float(np.median(taken)),
            "at half: p99, ms": 1e3 * float(np.quantile(taken, 0.99)),
            "two workers: decisions/s": rates,
            "two workers: CPU, ms": np.median(both[1]),
            "restart, s": with_snapshot,
            "rebuild, s": without,
        }
    ]
    targets = [
        Target("restart over rebuild", 0.1, with_snapshot / without, at_most=True),
        Target("POST decisions over agent.decide", 4.0, ratio, at_most=True),
        Target("p99 over median at half of the saturating load", 3.0, tail, at_most=True),
        Target("two workers over one", 1.5, float(np.median(both[0] / full[0]))),
    ]
    notes = (
        f"{ARMS} arms × {FEATURES} features, {CHOSEN} chosen, PostgreSQL (SQLite where there is "
        "none to start), loopback, 8 connections per worker; client, database and workers on the "
        f"same {os.cpu_count()} cores. CPU: of the workers, per decision; each worker also reads "
        f"the other's decisions. Restart: {outcomes:,} outcomes in the log, {AT_ONCE:,} per event; "
        "the model is built from the oldest snapshot that there can be and what came after it, or "
        "from the whole log."
    )
    return Result("Service: HTTP, load and restart", rows, targets, notes)


def _capacity(server: Server, duration: float) -> tuple[float, float]:
    """Return decisions per second of a saturated server, and its CPU time, in ms, of each."""
    before = server.cpu()
    rate, taken = _load(server.url, 8 * server.workers, duration)
    return rate, 1e3 * (server.cpu() - before) / len(taken)


PATH = "/v1/agents/a/decisions"
JSON = {"content-type": "application/json"}


def arms(rng: np.random.Generator) -> dict[str, dict[str, float]]:
    X = rng.random((ARMS, FEATURES))
    return {f"a{n}": {f"x{d}": float(v) for d, v in enumerate(row)} for n, row in enumerate(X)}


def _body(offered: dict[str, Any]) -> bytes:
    from pydantic_core import to_json

    return to_json({"arms": [{"id": arm, "features": f} for arm, f in offered.items()]})


def _play(client: Any, local: Agent, rng: np.random.Generator) -> None:
    """Let service and agent decide and learn the same."""
    offered = arms(rng)
    answer = client.post("/v1/agents/a/decisions", content=_body(offered), headers=JSON).json()
    decision = local.decide(offered)
    noise = 0.1 * rng.standard_normal(ARMS)
    y = {arm: np.sin(3 * offered[arm]["x0"]) + noise[n] for n, arm in enumerate(offered)}
    items = [
        {"decision": answer["id"], "arm": arm["id"], "outcome": y[arm["id"]]}
        for arm in answer["chosen"]
    ]
    client.post("/v1/agents/a/outcomes", json=items)
    local.learn(decision.id, {arm: y[str(arm)] for arm in decision.chosen})


def _load(
    url: str, connections: int, duration: float, rate: float | None = None
) -> tuple[float, list[float]]:
    """Return decisions per second, and how long each took; as fast as it goes, or at a rate."""
    body = _body(arms(np.random.default_rng(1)))
    taken: list[float] = []
    start = time.perf_counter()

    def ask(number: int) -> None:
        rng = np.random.default_rng(number)
        # The standard library's client takes a quarter of httpx's time, on cores that are shared.
        client = HTTPConnection(url.removeprefix("http://"), timeout=60)

        def post() -> None:
            client.request("POST", PATH, body, JSON)
            client.getresponse().read()

        while time.perf_counter() < start + duration:
            if rate is not None:
                time.sleep(rng.exponential(connections / rate))
            taken.append(seconds(post))
        client.close()

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(taken) / (time.perf_counter() - start), taken


def _restarts(storage: str, outcomes: int) -> tuple[float, float]:
    """Return seconds that a model takes from its snapshot, and from the whole log.

    Outcomes are linear in the features: what is cheapest to learn, and so to learn again.
    """
    import json

    from pydantic_core import to_json

    from oclok.service.background import SHARE
    from oclok.service.database import Database
    from oclok.service.log import Event, Log
    from oclok.service.replica import Replica

    database = Database(storage)
    database.migrate()
    log = Log(database)
    log.add_agent("a", json.dumps(SETTINGS))
    row = log.agent("a")
    assert row is not None
    rng = np.random.default_rng(2)
    slopes = rng.standard_normal(FEATURES)
    for _ in range(outcomes // AT_ONCE):
        X = rng.random((AT_ONCE, FEATURES))
        features = [{f"x{d}": v for d, v in enumerate(x)} for x in X.tolist()]
        y = X @ slopes + 0.1 * rng.standard_normal(AT_ONCE)
        body = to_json({"features": features, "outcomes": y.tolist()})
        log.append(row.id, [Event("observations", body)])
    model = Replica(row, log, use_snapshot=False)

    def read(until: int) -> None:
        for event in log.after(row.id, model.seq, until):
            model.apply(event)
            model.learner.catch_up()

    # As late as a snapshot can be: most of what it could have saved is lost.
    events = outcomes // AT_ONCE
    before = seconds(lambda: read(int(events / (1 + 2 * SHARE))))
    log.save_snapshot(row.id, *model.dumped())
    without = before + seconds(lambda: read(events))
    return seconds(lambda: Replica(row, log).build()), without


if __name__ == "__main__":
    print(run("--quick" in sys.argv).markdown())
