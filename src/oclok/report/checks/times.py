"""Checks of the time that a round takes, to select and to update."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from oclok.analysis.scores import Scores
from oclok.analysis.summary import show_time
from oclok.report.checks.base import Check, Finding


def takes_more_than(minutes: float, policy: str) -> Check:
    """Check that the last rounds of `policy` take more than some minutes each."""

    def measure(scores: Scores) -> Finding:
        time = scores.final_milliseconds(policy)
        return Finding(f"{policy}: {show_time(time)} per round at the end", time > 6e4 * minutes)

    return Check(f"median of the last tenth of rounds above {minutes:g} min", measure)


def grows(policies: Sequence[str], above: float = -inf, most: float = inf) -> Check:
    """Check that the time of round t grows like a power of t in (above, most]."""

    def measure(scores: Scores) -> Finding:
        powers = {p: scores.growth(p) for p in policies}
        shown = "; ".join(f"{p}: t^{round(power, 2) + 0.0:.2f}" for p, power in powers.items())
        return Finding(shown, all(above < power <= most for power in powers.values()))

    span = f"above {above:g}" if above > -inf else f"at most {most:.2f}"
    return Check(f"time of round t grows like a power of t {span}", measure)


def faster(
    policies: Sequence[str], than: Sequence[str], least: float = 1.0, most: float = inf
) -> Check:
    """Check that each of `policies` is so many times faster `than` each other, at the end."""

    def measure(scores: Scores) -> Finding:
        times = {p: scores.final_milliseconds(p) for p in (*than, *policies)}
        ratios = [times[q] / times[p] for p in policies for q in than]
        shown = "; ".join(f"{p}: {show_time(time)}" for p, time in times.items())
        holds = all(least < ratio <= most for ratio in ratios)
        return Finding(f"{shown}; {_ratios(ratios)}", holds)

    span = f"{least:g} to {most:g}" if most < inf else f"more than {least:g}"
    return Check(f"{span} times as fast, by medians of the last tenth of rounds", measure)


def equally_fast(policies: tuple[str, str], factor: float) -> Check:
    """Check that two policies take the same time up to a `factor`."""

    def measure(scores: Scores) -> Finding:
        first, second = (scores.milliseconds(p) for p in policies)
        ratio = max(first, second) / min(first, second)
        shown = "; ".join(f"{p}: {show_time(scores.milliseconds(p))}" for p in policies)
        return Finding(f"{shown}; factor {ratio:.2f}", ratio <= factor)

    return Check(f"median times within a factor of {factor:g}", measure)


def _ratios(ratios: Sequence[float]) -> str:
    low, high = (f"{ratio:.2g}" for ratio in (min(ratios), max(ratios)))
    return f"{low} times as fast" if low == high else f"{low} to {high} times as fast"
