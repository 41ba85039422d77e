"""The service on loopback against the same agent in process; what a snapshot saves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from typing import Any

import numpy as np

from benchmarks.report import Result, Row, Target, say
from benchmarks.timing import interleaved, seconds
from oclok import Agent
from oclok.oracles import TopK

ARMS, FEATURES, CHOSEN, ROUNDS = 100, 8, 5, 100
#: Outcomes in the log at a restart, in events of so many.
OUTCOMES, AT_ONCE = 1_000_000, 1_000
SETTINGS = {"oracle": {"kind": "TopK", "k": CHOSEN}, "outcome_range": [-100, 100]}


def run(quick: bool) -> Result:
    import httpx

    repeats, load = (20, 3.0) if quick else (200, 15.0)
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        say("service: POST decisions against agent.decide")
        server = _Server(f"sqlite:///{folder}/one.db", 1)
        local = Agent(oracle=TopK(CHOSEN), outcome_range=(-100, 100))
        with httpx.Client(base_url=server.url, timeout=60) as client:
            client.put("/v1/agents/a", json=SETTINGS)
            for _ in range(20 if quick else ROUNDS):
                _play(client, local, rng)
            offered = arms(rng)
            body = _body(offered)
            post = lambda: client.post("/v1/agents/a/decisions", content=body, headers=JSON)  # noqa: E731
            times = interleaved({"post": post, "decide": lambda: local.decide(offered)}, repeats)
        ratio = times["post"] / times["decide"]
        say("service: saturated, and at half of that")
        full, _ = _load(server.url, 8, load)
        half, taken = _load(server.url, 8, load, full / 2)
        server.stop()
        server = _Server(f"sqlite:///{folder}/two.db", 2)
        httpx.put(f"{server.url}/v1/agents/a", json=SETTINGS, timeout=60)
        both, _ = _load(server.url, 16, load)
        server.stop()
        say("service: restart with and without a snapshot")
        outcomes = OUTCOMES // 50 if quick else OUTCOMES
        with_snapshot, without = _restarts(f"sqlite:///{folder}/log.db", outcomes)
    tail = float(np.quantile(taken, 0.99) / np.median(taken))
    rows.append(
        {
            "agent.decide, ms": 1e3 * times["decide"],
            "POST decisions, ms": 1e3 * times["post"],
            "decisions/s": full,
            "at half: decisions/s": half,
            "at half: median, ms": 1e3 * float(np.median(taken)),
            "at half: p99, ms": 1e3 * float(np.quantile(taken, 0.99)),
            "two workers: decisions/s": both,
            "restart, s": with_snapshot,
            "rebuild, s": without,
        }
    )
    targets = [
        Target("restart over rebuild", 0.1, with_snapshot / without, at_most=True),
        Target("POST decisions over agent.decide", 4.0, ratio, at_most=True),
        Target("p99 over median at half of the saturating load", 3.0, tail, at_most=True),
        Target("two workers over one", 1.5, both / full),
    ]
    notes = (
        f"{ARMS} arms × {FEATURES} features, {CHOSEN} chosen, SQLite, loopback, 8 connections per "
        f"worker, client and server on the same cores. Restart: {outcomes:,} outcomes in the log, "
        f"{AT_ONCE:,} per event; the model is built from its snapshot, or from the whole log."
    )
    return Result("Service: HTTP, load and restart", rows, targets, notes)


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
    """Return seconds that a model takes from its snapshot, and from the whole log."""
    import json

    from pydantic_core import to_json

    from oclok.service.database import Database
    from oclok.service.log import Event, Log
    from oclok.service.model import Model

    database = Database(storage)
    database.migrate()
    log = Log(database)
    log.add_agent("a", json.dumps(SETTINGS))
    row = log.agent("a")
    assert row is not None
    rng = np.random.default_rng(2)
    for _ in range(outcomes // AT_ONCE):
        X = rng.random((AT_ONCE, FEATURES))
        features = [{f"x{d}": v for d, v in enumerate(x)} for x in X.tolist()]
        y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(AT_ONCE)
        body = to_json({"features": features, "outcomes": y.tolist()})
        log.append(row.id, [Event("observations", body)])
    model = Model(row, log, use_snapshot=False)
    without = seconds(model.build)
    log.save_snapshot(row.id, *model.dumped())

    def restart() -> None:
        Model(row, log).build()

    return seconds(restart), without


class _Server:
    def __init__(self, storage: str, workers: int) -> None:
        import httpx

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "oclok", "serve", "--storage", storage]
        command += ["--port", str(port), "--workers", str(workers)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            command, start_new_session=True, env=environment, stdout=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise RuntimeError("the service does not start")

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(60)


if __name__ == "__main__":
    print(run("--quick" in sys.argv).markdown())
