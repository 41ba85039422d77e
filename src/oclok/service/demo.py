"""A demo agent with simulated traffic: couriers for parcels, some of whom report late or never."""
# Tested in tests/service/test_client.py: a client plays its traffic.

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from oclok.errors import OclokError
from oclok.service.client import Client

AGENT = "couriers"
CITIES = ("Oslo", "Rome", "Bonn", "Lima")
#: Decisions per second.
RATE = 4.0


def start(url: str) -> None:
    """Send traffic to the service at `url` from a thread, for as long as the process runs."""
    threading.Thread(target=_run, args=(url,), daemon=True).start()


def _run(url: str) -> None:
    rng = np.random.default_rng(0)
    client = Client(url, agent=AGENT)
    late: list[tuple[float, str, dict[Any, float]]] = []
    while True:
        try:
            client.create(
                {"kind": "Partition", "groups": "city", "limits": 2},
                outcome_range=(0.0, 5.0),
                deadline=60.0,
            )
            while True:
                play(client, rng, late)
                time.sleep(rng.exponential(1 / RATE))
        except OclokError:  # not started yet, or deleted
            time.sleep(1.0)


def play(
    client: Client, rng: np.random.Generator, late: list[tuple[float, str, dict[Any, float]]]
) -> None:
    """Decide once, and tell the outcomes that are in by now."""
    couriers = _couriers(rng)
    decision = client.decide(couriers)
    outcomes = {arm: _rating(couriers[arm], rng) for arm in decision.chosen}
    seen = {arm: y for arm, y in outcomes.items() if rng.random() > 0.03}  # the others are lost
    late.append((time.monotonic() + rng.exponential(3.0), decision.id, seen))
    now = time.monotonic()
    for entry in [entry for entry in late if entry[0] <= now]:
        late.remove(entry)
        if entry[2]:
            client.learn(entry[1], entry[2])


def _couriers(rng: np.random.Generator) -> dict[Any, dict[str, Any]]:
    return {
        f"courier-{n}": {
            "years": round(float(rng.gamma(2.0, 3.0)), 1),
            "distance": round(float(rng.uniform(0, 20)), 1),
            "city": CITIES[rng.integers(len(CITIES))],
            "bike": bool(rng.random() < 0.4),
        }
        for n in sorted(rng.choice(200, 20, replace=False).tolist())
    }


def _rating(courier: dict[str, Any], rng: np.random.Generator) -> float:
    best = 2.0 + np.log1p(courier["years"]) - 0.1 * courier["distance"] + 0.6 * courier["bike"]
    return float(np.clip(best + 0.4 * rng.standard_normal(), 0.0, 5.0))
