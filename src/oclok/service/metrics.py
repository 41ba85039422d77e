"""Counts and times for Prometheus; with several workers, of all of them."""
# Tested in tests/service/test_routes.py: they are asked for over HTTP.

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from oclok.threads import blas_thread_count

if TYPE_CHECKING:
    from oclok.service.service import Service

#: Calls whose times the page shows.
LATEST = 1_000
#: Methods with a label of their own; anything else counts as "other", which bounds cardinality.
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
#: Agents with gauges of their own: those used latest.
MOST_AGENTS = 200
LEVELS = {"green": 0, "grey": 0, "amber": 1, "red": 2}
GAUGES = {
    "open_decisions": "Decisions that wait for outcomes.",
    "waiting": "Outcomes that have not come.",
    "quarantined": "Outcomes kept out of learning.",
    "health": "0: well or too early to say; 1: amber; 2: red.",
    "calibration_spread": "Root mean square of standardised residuals; above 1: overconfident.",
    "learner_lag_steps": "Steps of learning that are due.",
    "unread_events": "Events of the log that this worker has not read.",
    "late_outcomes": "Decisions that wait longer than usual.",
    "lost_outcomes": "Outcomes that were given up.",
    "mean_outcome": "Mean of recent outcomes.",
    "snapshot_age_events": "Events since the latest snapshot.",
    "idle_seconds": "Seconds since the latest event.",
}


class Metrics:
    """What is counted."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._latest: dict[str, deque[float]] = {}
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "oclok_request_seconds",
            "Time that requests took.",
            ["method", "route", "status"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._outcomes = Counter(
            "oclok_outcomes", "Outcomes told.", ["agent", "result"], registry=self._registry
        )
        self._errors = Counter(
            "oclok_database_errors",
            "Requests that the database could not serve.",
            registry=self._registry,
        )
        self._decisions = Counter(
            "oclok_decisions", "Decisions made.", ["agent"], registry=self._registry
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        method = method if method in METHODS else "other"
        self._requests.labels(method, route, str(status)).observe(seconds)
        call = f"{method} {route.rsplit('/', 1)[-1]}"
        if method == "POST" and status < 300:
            self._latest.setdefault(call, deque(maxlen=LATEST)).append(seconds)

    def speed(self) -> dict[str, dict[str, float]]:
        """Return median and 99% quantile, in seconds, of the latest calls of this process."""
        return {
            call: {
                "count": len(seconds),
                "median": float(np.quantile(list(seconds), 0.5)),
                "p99": float(np.quantile(list(seconds), 0.99)),
            }
            for call, seconds in self._latest.items()
        }

    def decided(self, agent: str, count: int = 1) -> None:
        """Count decisions."""
        self._decisions.labels(agent).inc(count)

    def told(self, agent: str, result: str, count: int) -> None:
        """Count outcomes."""
        if count:
            self._outcomes.labels(agent, result).inc(count)

    def database_failed(self) -> None:
        """Count a request that the database could not serve."""
        self._errors.inc()

    def _samples(self) -> list[tuple[str, dict[str, float]]]:
        """Return the gauges of the agents used latest; those of others are left out."""
        from oclok.service import views

        replicas = sorted(self._service.replicas, key=lambda replica: -replica.used)[:MOST_AGENTS]
        latest = self._service.log.latest([replica.id for replica in replicas])
        now, samples = time.time(), []
        for replica in replicas:
            row = views.row(replica)
            mean = replica.agent.mean_outcome()
            counts = replica.agent.counts()
            values = {
                **{name: counts[name] for name in ("open_decisions", "waiting", "quarantined")},
                "health": LEVELS[row.verdict.level],
                "calibration_spread": replica.learner.calibration().spread,
                "learner_lag_steps": replica.learner.waiting,
                "unread_events": max(0, latest.get(replica.id, replica.seq) - replica.seq),
                "late_outcomes": row.late,
                "lost_outcomes": row.never_came,
                "mean_outcome": mean,
                "snapshot_age_events": replica.seq - replica.snapshot_seq,
                "idle_seconds": now - replica.time,
            }
            samples.append((replica.name, values))
        return samples

    def text(self) -> bytes:
        """Return all numbers in Prometheus' format."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        lines = [generate_latest(registry).decode()]
        lines.append("# HELP oclok_blas_threads Threads of a BLAS call in this worker.\n")
        lines.append(f"# TYPE oclok_blas_threads gauge\noclok_blas_threads {blas_thread_count()}\n")
        samples = self._samples()
        for name, help_ in GAUGES.items():
            lines.append(f"# HELP oclok_{name} {help_}\n# TYPE oclok_{name} gauge\n")
            lines += [f'oclok_{name}{{agent="{agent}"}} {row[name]}\n' for agent, row in samples]
        damaged = len(self._service.damaged)
        lines.append("# HELP oclok_damaged_agents Agents of which events are missing.\n")
        lines.append(f"# TYPE oclok_damaged_agents gauge\noclok_damaged_agents {damaged}\n")
        return "".join(lines).encode()
