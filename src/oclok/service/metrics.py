"""Counts and times for Prometheus; with several workers, of all of them."""
# Tested in tests/service/test_routes.py: they are asked for over HTTP.

from __future__ import annotations

import os
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
#: Methods that are counted by their names; whoever makes others up makes no more labels.
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE")
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


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

    def decided(self, agent: str) -> None:
        """Count a decision."""
        self._decisions.labels(agent).inc()

    def told(self, agent: str, result: str, count: int) -> None:
        """Count outcomes."""
        if count:
            self._outcomes.labels(agent, result).inc(count)

    def text(self) -> bytes:
        """Return all numbers in Prometheus' format."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        lines = [generate_latest(registry).decode()]
        lines.append("# HELP oclok_blas_threads Threads of a BLAS call in this worker.\n")
        lines.append(f"# TYPE oclok_blas_threads gauge\noclok_blas_threads {blas_thread_count()}\n")
        for name, help_ in (
            ("open_decisions", "Decisions that wait for outcomes."),
            ("waiting", "Outcomes that have not come."),
            ("quarantined", "Outcomes kept out of learning."),
        ):
            lines.append(f"# HELP oclok_{name} {help_}\n# TYPE oclok_{name} gauge\n")
            for replica in self._service.replicas:
                count = replica.agent.counts()[name]
                lines.append(f'oclok_{name}{{agent="{replica.name}"}} {count}\n')
        return "".join(lines).encode()
