"""Many agents in one service, and one that is attacked.

python -m benchmarks.agents > benchmarks/agents.md
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np

from benchmarks.pairs import CASES, Case, Pairs
from benchmarks.report import Result, Row, document, say
from benchmarks.server import Server, storages
from oclok.service.database import Database
from oclok.service.log import Log

#: Agents there are, and agents in use.
COUNTS = ((100, 100), (1_000, 100), (1_000, 1_000), (10_000, 100))
#: Pairs that each agent in use has played, pairs that are measured, and seconds of rest.
PLAYED, MEASURED, REST = 1, 300, 20.0
#: Connections, so that every worker gets some.
CLIENTS = 8
#: Requests of the attack at once, and how often.
ATTACKERS, WAVES = 45, 5
CASE = CASES["20 × 8"]


def measure(storage: str, count: int, used: int, workers: int = 2) -> Row:
    """Return what `count` agents cost, of which `used` were used since the start."""
    settings = json.dumps({"oracle": {"kind": "TopK", "k": 5}, "outcome_range": [-100, 100]})
    log = Log(Database(storage))
    log.database.migrate()
    for n in range(count):
        log.add_agent(f"a{n}", settings)
    log.database.close()
    with Server(storage, workers) as server:
        _play(server, used, PLAYED * used)
    start = time.perf_counter()
    with Server(storage, workers) as server:
        ready = time.perf_counter() - start
        _play(server, used, workers * used)  # so that most workers have most models
        before = server.cpu()
        _play(server, used, MEASURED)
        pair = (server.cpu() - before) / MEASURED
        time.sleep(5)  # what is left to learn
        before = server.cpu()
        time.sleep(REST)
        idle = (server.cpu() - before) / REST
        return {
            "agents": count,
            "in use": used,
            "start, s": ready,
            "memory, MB": server.memory() / 2**20,
            "CPU at rest, %": 100 * idle,
            "CPU per pair, ms": 1e3 * pair,
        }


def _play(server: Server, agents: int, pairs: int) -> None:
    """Play pairs, each of the next agent, on connections to all workers."""
    clients = [Pairs(server, CASE, "a0", seed) for seed in range(CLIENTS)]
    for n in range(pairs):
        client = clients[(n + n // agents) % CLIENTS]
        client.name = f"a{n % agents}"
        client.play(1)


def attack(storage: str) -> Row:
    """Return how long decisions of another agent take while costly oracles are asked for."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool:
        with Server(storage) as server:
            other, attacked = (Pairs(server, CASE, name) for name in ("other", "attacked"))
            attacked.play(1)
            pool.submit(_attack, server.url, 0).result()
            quiet = other.play(200, pause=0.01)
            attackers = pool.submit(_attack, server.url, WAVES)
            during: list[float] = []
            while not attackers.done():
                during += other.play(1, pause=0.01)
            pool.submit(_attack, server.url, 1)
            time.sleep(0.5)
            end = time.perf_counter()
        ended = time.perf_counter() - end
        answers = attackers.result()
    return {
        "quiet: median, ms": float(np.median(quiet)),
        "p95 before, ms": float(np.quantile(quiet, 0.95)),
        "attacked: median, ms": float(np.median(during)),
        "p95, ms": float(np.quantile(during, 0.95)),
        "slowest, ms": max(during),
        "decisions": len(during),
        "searches": sum(status == 422 for status, _ in answers),
        "longest request of the attack, s": max(seconds for _, seconds in answers),
        "SIGTERM during searches, s": ended,
    }


def _attack(url: str, waves: int) -> list[tuple[int, float]]:
    """Send requests that no oracle can answer; return status and seconds of each answer."""
    import httpx

    rng = np.random.default_rng(0)
    A = rng.integers(1, 100, (5, 60)).astype(float)
    bound = A[:, :30].sum(axis=1).tolist()
    arms, _ = Case(arms=60).offer(rng)
    oracle = {"kind": "Program", "A": A.tolist(), "lower": bound, "upper": bound}
    limits = httpx.Limits(max_connections=ATTACKERS)

    def ask(client: httpx.Client) -> tuple[int, float]:
        start = time.perf_counter()
        answer = client.post("/v1/agents/attacked/decisions", json={"arms": arms, "oracle": oracle})
        return answer.status_code, time.perf_counter() - start

    with (
        httpx.Client(base_url=url, timeout=120, limits=limits) as client,
        ThreadPoolExecutor(ATTACKERS) as threads,
    ):
        return [answer for _ in range(waves) for answer in threads.map(ask, [client] * ATTACKERS)]


def main() -> None:
    rows: list[Row] = []
    with storages() as fresh:
        attacked = attack(fresh()) | {"load average": os.getloadavg()[0]}
        for count, used in COUNTS:
            say(f"agents: {count}, of which {used} in use")
            rows.append(measure(fresh(), count, used) | {"load average": os.getloadavg()[0]})
    first = float(rows[0]["memory, MB"])
    for row in rows:
        row["memory over that of the first"] = float(row["memory, MB"]) / first
    results = {
        "attack": Result(
            "One agent is attacked, another decides",
            [attacked],
            notes=f"{WAVES} times {ATTACKERS} requests at once, with a `Program` of five "
            "equalities over 60 arms that no search solves in time; one worker, which shares the "
            "cores with both clients.",
        ),
        "agents": Result(
            "Many agents",
            rows,
            notes="Two workers; a pair is a decision among 20 arms with 8 features, and 5 "
            f"outcomes. Each agent in use had played {PLAYED} pair before the start, and 2 after "
            f"it. CPU at rest is that of all processes over {REST:g} s, in % of one core.",
        ),
    }
    print(document({}, results))


if __name__ == "__main__":
    main()
