"""Checks of the time that a round takes, to select and to update."""
# Tested in tests/bench/report/checks/test_base.py: checks of each kind judge made-up results.

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf

from oclok.bench.analysis.scores import Scores
from oclok.bench.analysis.summary import show_time
from oclok.bench.report.checks.base import Check, Finding, Quantity, every


def takes_more_than(minutes: float, policy: str) -> Check:
    """Check that the last rounds of `policy` take more than some minutes each."""

    def measure(scores: Scores) -> Finding:
        times = scores.final_milliseconds(policy)
        return every([Quantity(f"{policy}, ms per round", times, 6e4 * minutes, form=",.2f")])

    return Check(f"median of the last tenth of rounds above {minutes:g} min", measure)


def grows(policies: Sequence[str], above: float = -inf, most: float = inf) -> Check:
    """Check that the time of round t grows like a power of t between `above` and `most`."""

    def measure(scores: Scores) -> Finding:
        return every(
            [Quantity(f"{p}, power", scores.growth(p), above, most, ".2f") for p in policies]
        )

    span = f"above {above:g}" if above > -inf else f"at most {most:.2f}"
    return Check(f"time of round t grows like a power of t {span}", measure)


def faster(
    policies: Sequence[str], than: Sequence[str], least: float = 1.0, most: float = inf
) -> Check:
    """Check that each of `policies` is so many times faster `than` each other, at the end."""

    def measure(scores: Scores) -> Finding:
        times = {p: scores.final_milliseconds(p) for p in (*than, *policies)}
        shown = (f"{p}: {show_time(float(time.mean()))}" for p, time in times.items())
        return every(
            [
                Quantity(f"{p} over {q}, times", times[q] / times[p], least, most, ".2f")
                for p, q in product(policies, than)
            ],
            *shown,
        )

    span = f"{least:g} to {most:g}" if most < inf else f"more than {least:g}"
    return Check(f"{span} times as fast, by medians of the last tenth of rounds", measure)


def equally_fast(policies: tuple[str, str], factor: float) -> Check:
    """Check that two policies take the same time up to a `factor`."""
    first, second = policies

    def measure(scores: Scores) -> Finding:
        times = {p: scores.milliseconds(p) for p in policies}
        ratio = times[first] / times[second]
        shown = (f"{p}: {show_time(float(time.mean()))}" for p, time in times.items())
        label = f"{first} over {second}, times"
        return every([Quantity(label, ratio, 1 / factor, factor, ".2f")], *shown)

    return Check(f"median times within a factor of {factor:g}", measure)
