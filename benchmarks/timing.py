"""Medians of interleaved repeats: what slows the machine down slows everybody down."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any


def seconds(action: Callable[[], Any]) -> float:
    """Return how long one call takes."""
    start = perf_counter()
    action()
    return perf_counter() - start


#: An action that takes less than this is called again, as often as fits: the first call after
#: something else pays for filling the processor's caches anew, which can double its time.
TURN = 5e-3


def interleaved(actions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median time in seconds of each of `actions`, called in turn again and again."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            times[name].append(_turn(action))
    return {name: median(values) for name, values in times.items()}


def _turn(action: Callable[[], Any]) -> float:
    """Return the median time of a call in one turn."""
    taken = [seconds(action)]
    while sum(taken) < TURN:
        taken.append(seconds(action))
    return median(taken)
