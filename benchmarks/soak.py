"""A day of traffic, compressed, with late, lost, repeated and corrected feedback.

Memory over time, and how long decisions took since the line before.

    python -m benchmarks.soak [minutes]        24 hours in so many minutes, 15 by default

A decision's outcomes come after an hour on average by the compressed clock. 3% never come, 10% come
after the deadline of three hours, as corrections of what was learned in their place; 10% are told
twice, and 5% are corrected later. Outcomes are linear in the features, so that the model stays
small: what would grow is the service. Whatever is due is told before the next decision is asked
for: where decisions came fast, their outcomes take up the client an hour later.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.server import Server
from benchmarks.timing import seconds

PATH = "/v1/agents/a"
HOURS = 24
ARMS, CHOSEN = 20, 3
#: Hours until outcomes come, on average; and the deadline.
DELAY, DEADLINE = 1.0, 3.0
LOST, LATE, REPEATED, CORRECTED = 0.03, 0.10, 0.10, 0.05

#: When, in which order if at the same time, and what will be told.
Due = list[tuple[float, int, list[dict[str, Any]]]]
order = itertools.count()


def soak(minutes: float) -> None:
    import httpx

    duration = 60 * minutes
    hour = duration / HOURS
    rng = np.random.default_rng(0)
    told = dict.fromkeys(("decisions", "learned", "repeated", "corrected", "rejected"), 0)
    due: Due = []
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Server(f"sqlite:///{folder}/day.db") as server:
        client = httpx.Client(base_url=server.url, timeout=120)
        settings = {
            "oracle": {"kind": "TopK", "k": CHOSEN},
            "outcome_range": [-5, 5],
            "deadline": DEADLINE * hour,
            "default_outcome": 0.0,
        }
        assert client.put(PATH, json=settings).status_code == 201
        start, next_report = time.monotonic(), 0.05
        first = 0.0
        while (now := time.monotonic() - start) < duration:
            taken.append(seconds(lambda: _decide(client, rng, now, hour, due, told)))
            while due and due[0][0] <= now:
                answer = client.post(f"{PATH}/outcomes", json=heapq.heappop(due)[2])
                assert answer.status_code == 200, answer.text
                for kind in ("learned", "repeated", "corrected"):
                    told[kind] += answer.json()[kind]
                told["rejected"] += len(answer.json()["rejected"])
            if now / duration >= next_report - 1e-9:
                memory = server.memory()
                first = first or (memory if next_report >= 0.1 - 1e-9 else 0.0)
                ratio = f"{memory / first:.3f} of that at 10%" if first else ""
                median, p99 = 1e3 * np.quantile(taken, [0.5, 0.99])
                most = 1e3 * max(taken)
                times = f"decisions {median:.0f} ms, p99 {p99:.0f} ms, max {most:.0f} ms"
                print(f"{next_report:4.0%}  {memory / 2**20:6.1f} MB  {ratio}  {times}  {told}")
                sys.stdout.flush()
                taken.clear()
                next_report += 0.05
        memory = server.memory()
        agent = client.get(PATH).json()
        print(f"100%  {memory / 2**20:6.1f} MB  {memory / first:.3f} of that at 10%  {told}")
        print({name: agent[name] for name in ("rounds", "learned", "waiting", "late", "health")})
        assert agent["rounds"] == told["decisions"]


def _decide(
    client: Any,
    rng: np.random.Generator,
    now: float,
    hour: float,
    due: Due,
    told: dict[str, int],
) -> None:
    """Decide once, and plan what will be told of it, and when."""
    X = rng.random((ARMS, 3))
    features = [
        {"skill": x[0], "price": x[1], "hour": x[2], "city": ["Oslo", "Rome"][n % 2]}
        for n, x in enumerate(X.tolist())
    ]
    arms = [{"id": n, "features": each} for n, each in enumerate(features)]
    answer = client.post(f"{PATH}/decisions", json={"arms": arms})
    assert answer.status_code == 201, answer.text
    told["decisions"] += 1
    for chosen in answer.json()["chosen"]:
        x = X[chosen["id"]]
        y = float(x[0] - 0.5 * x[1] + 0.1 * rng.standard_normal())
        item = {"decision": answer.json()["id"], "arm": chosen["id"], "outcome": y}
        fate = rng.random()
        when = now + hour * min(rng.exponential(DELAY), 0.8 * DEADLINE)
        if fate < LOST:
            continue
        if fate < LOST + LATE:
            when = now + hour * (1.1 * DEADLINE + rng.exponential(DELAY))
            heapq.heappush(due, (when, next(order), [{**item, "correct": True}]))
            continue
        heapq.heappush(due, (when, next(order), [item]))
        if fate < LOST + LATE + REPEATED:
            heapq.heappush(due, (when + hour * rng.exponential(), next(order), [item]))
        elif fate < LOST + LATE + REPEATED + CORRECTED:
            after = {**item, "outcome": y + 0.2, "correct": True}
            heapq.heappush(due, (when + hour * rng.exponential(), next(order), [after]))


if __name__ == "__main__":
    soak(float(sys.argv[1]) if len(sys.argv) > 1 else 15.0)
