"""Counts and times for Prometheus; with several workers, of all of them."""
# Tested in tests/service/test_routes.py: a client reads them over HTTP.

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from oclok.service import views
from oclok.service.replica import Replica
from oclok.service.service import Service
from oclok.threads import blas_thread_count

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


class Metrics(Collector):
    """What is counted."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._latest: dict[str, deque[float]] = {}
        self._registry = CollectorRegistry()
        count = partial(Counter, registry=self._registry)
        self._decisions = count("oclok_decisions", "Decisions.", ["agent"])
        self._outcomes = count("oclok_outcomes", "Outcomes.", ["agent", "result"])
        self._errors = count("oclok_database_errors", "Requests that the database did not serve.")
        self._requests = Histogram(
            "oclok_request_seconds",
            "Time that requests took.",
            ["method", "route", "status"],
            registry=self._registry,
            buckets=BUCKETS,
        )

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        method = method if method in METHODS else "other"
        self._requests.labels(method, route, str(status)).observe(seconds)
        if status == 503:
            self._errors.inc()
        if method == "POST" and status < 300:
            call = f"{method} {route.rsplit('/', 1)[-1]}"
            self._latest.setdefault(call, deque(maxlen=LATEST)).append(seconds)

    def speed(self) -> dict[str, dict[str, float]]:
        """Return median and 99% quantile, in seconds, of the latest calls of this process."""
        speed = {}
        for call, seconds in self._latest.items():
            median, p99 = np.quantile(list(seconds), (0.5, 0.99)).tolist()
            speed[call] = {"count": len(seconds), "median": median, "p99": p99}
        return speed

    def decided(self, agent: str, count: int = 1) -> None:
        """Count decisions."""
        self._decisions.labels(agent).inc(count)

    def told(self, agent: str, result: str, count: int) -> None:
        """Count outcomes."""
        if count:
            self._outcomes.labels(agent, result).inc(count)

    def collect(self) -> Iterator[Metric]:
        """Yield gauges of this process, and of the agents used latest."""
        threads = "Threads of a BLAS call in this worker."
        yield GaugeMetricFamily("oclok_blas_threads", threads, blas_thread_count())
        missing = "Agents of which events are missing."
        yield GaugeMetricFamily("oclok_damaged_agents", missing, len(self._service.damaged))
        gauges = {
            name: GaugeMetricFamily(f"oclok_{name}", help_, labels=["agent"])
            for name, help_ in GAUGES.items()
        }
        replicas = sorted(self._service.replicas, key=lambda replica: -replica.used)[:MOST_AGENTS]
        latest = self._service.log.latest([replica.id for replica in replicas])
        for replica in replicas:
            unread = latest.get(replica.id, replica.seq) - replica.seq
            for name, value in self._gauges_of(replica, max(0, unread)).items():
                gauges[name].add_metric([replica.name], value)
        yield from gauges.values()

    def _gauges_of(self, replica: Replica, unread: int) -> dict[str, float]:
        row = views.row(replica)
        counts = replica.agent.counts()
        return {
            **{name: counts[name] for name in ("open_decisions", "waiting", "quarantined")},
            "health": LEVELS[row.verdict.level],
            "calibration_spread": replica.learner.calibration().spread,
            "learner_lag_steps": replica.learner.waiting,
            "unread_events": unread,
            "late_outcomes": row.late,
            "lost_outcomes": row.never_came,
            "mean_outcome": replica.agent.mean_outcome(),
            "snapshot_age_events": replica.seq - replica.snapshot_seq,
            "idle_seconds": time.time() - replica.time,
        }

    def text(self) -> bytes:
        """Return all numbers in Prometheus' format."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry) + generate_latest(self)
