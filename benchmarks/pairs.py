"""What a served pair, one decision and its outcomes, costs: CPU of the workers, latency, storage.

python -m benchmarks.pairs [--decisions 2000] [--case "100 × 8"] [--workers 2] [--postgres]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import Result, Row, Target, say
from benchmarks.server import Server, storages

JSON = {"content-type": "application/json"}
CHOSEN = 5
#: Pairs at the end over which the CPU time is averaged.
MEASURED = 300


@dataclass(frozen=True)
class Case:
    """Arms on offer in each decision."""

    arms: int = 100
    numbers: int = 8
    categories: int = 0
    decimals: int = 6

    def offer(self, rng: np.random.Generator) -> tuple[list[dict[str, Any]], np.ndarray]:
        """Return arms, and the mean outcome of each."""
        X = np.round(rng.random((self.arms, self.numbers)), self.decimals)
        levels = rng.integers(6, size=(self.arms, self.categories))
        arms = [
            {
                "id": f"a{n}",
                "features": {f"x{d}": v for d, v in enumerate(x)}
                | {f"c{d}": f"level {v}" for d, v in enumerate(c)},
            }
            for n, (x, c) in enumerate(zip(X.tolist(), levels.tolist(), strict=True))
        ]
        means = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
        return arms, means + (0.3 * (levels[:, 0] == 2) if self.categories else 0.0)


CASES = {
    "100 × 8": Case(),
    "100 × 8 and 5 categories": Case(categories=5),
    "20 × 8": Case(arms=20),
    "1,000 × 8": Case(arms=1_000),
    "100 × 8, 53 random bits each": Case(decimals=17),
}


class Pairs:
    """Plays decisions and their outcomes, one after the other, on one connection."""

    def __init__(self, server: Server, case: Case, name: str = "a", seed: int = 0) -> None:
        self.server, self.case, self.name = server, case, name
        self.rng = np.random.default_rng(seed)
        self._client = HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        settings = {"oracle": {"kind": "TopK", "k": CHOSEN}, "outcome_range": [-100, 100]}
        self._ask("PUT", f"/v1/agents/{name}", settings)

    def play(self, count: int, pause: float = 0.0) -> list[float]:
        """Return how long each decision took, in ms; `pause` is the mean time before each, in s."""
        taken = []
        for _ in range(count):
            time.sleep(self.rng.exponential(pause))
            arms, means = self.case.offer(self.rng)
            body = json.dumps({"arms": arms}).encode()
            start = time.perf_counter()
            answer = self._ask("POST", f"/v1/agents/{self.name}/decisions", body)
            taken.append(1e3 * (time.perf_counter() - start))
            noise = 0.1 * self.rng.standard_normal(CHOSEN)
            items = [
                {"decision": answer["id"], "arm": arm["id"]}
                | {"outcome": float(means[int(arm["id"][1:])] + z)}
                for arm, z in zip(answer["chosen"], noise, strict=True)
            ]
            self._ask("POST", f"/v1/agents/{self.name}/outcomes", items)
        return taken

    def _ask(self, method: str, path: str, body: Any) -> Any:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._client.request(method, path, content, JSON)
        answer = self._client.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return json.loads(content)


def measure(case: Case, decisions: int, storage: str, workers: int = 1) -> Row:
    """Return what the last of `decisions` pairs cost."""
    with Server(storage, workers) as server:
        players = [Pairs(server, case, seed=n) for n in range(workers)]
        measured = min(MEASURED, decisions // 2)
        for player in players:
            player.play((decisions - measured) // workers)
        before = server.cpu()
        taken = [ms for player in players for ms in player.play(measured // workers)]
        cpu = 1e3 * (server.cpu() - before) / len(taken)
        # A worker that is busy all the time makes 1 / cpu pairs a second: now a quarter of that.
        taken = [ms for player in players for ms in player.play(measured // workers, 3e-3 * cpu)]
    row: Row = {
        "decisions": decisions,
        "CPU per pair, ms": cpu,
        "at a quarter of the load: median, ms": float(np.median(taken)),
        "p99, ms": float(np.quantile(taken, 0.99)),
        "slowest, ms": max(taken),
    }
    if storage.startswith("sqlite"):
        row["kB per decision"] = size(storage) / 1e3 / (decisions + measured)
    return row


def size(storage: str) -> int:
    """Return the bytes of a closed SQLite database without its snapshots."""
    import sqlite3

    with sqlite3.connect(storage.removeprefix("sqlite:///")) as connection:
        connection.execute("DELETE FROM snapshots")
    connection.execute("VACUUM")
    connection.close()
    return Path(storage.removeprefix("sqlite:///")).stat().st_size


def run(quick: bool) -> Result:
    decisions = 60 if quick else 2_000
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for n, (name, case) in enumerate(CASES.items()):
            say(f"pairs: {name}")
            rows.append({"arms": name} | measure(case, decisions, f"sqlite:///{folder}/{n}.db"))
    with storages() as fresh:
        for workers in (1, 2):
            say(f"pairs: {workers} workers on PostgreSQL")
            row = measure(CASES["100 × 8"], decisions, fresh(), workers)
            rows.append({"arms": f"100 × 8, PostgreSQL, {workers} workers"} | row)
    cpu = [float(row["CPU per pair, ms"]) for row in rows]
    tail = float(rows[0]["p99, ms"]) / float(rows[0]["at a quarter of the load: median, ms"])
    targets = [
        Target("CPU per pair of 100 × 8, ms", 8.0, cpu[0], at_most=True),
        Target("the same with five categories over that", 1.5, cpu[1] / cpu[0], at_most=True),
        Target("20 arms over 100", 0.7, cpu[2] / cpu[0], at_most=True),
        Target("two workers over one", 1.25, cpu[6] / cpu[5], at_most=True),
        Target("p99 over median at a quarter of the saturating load", 3.0, tail, at_most=True),
        Target("kB per decision", 6.0, float(rows[0]["kB per decision"]), at_most=True),
    ]
    notes = (
        f"CPU of all workers over the last {MEASURED} pairs, one decision and {CHOSEN} outcomes "
        "each, learning included; `oclok serve` with its defaults, nothing in the environment; one "
        f"connection per worker; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    )
    return Result("Served pairs", rows, targets, notes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=2_000)
    parser.add_argument("--case", default="100 × 8", choices=CASES)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgres", action="store_true")
    chosen = parser.parse_args()
    with storages(postgres=chosen.postgres) as new:
        print(measure(CASES[chosen.case], chosen.decisions, new(), chosen.workers))
