"""A control group, and what the agent earns beyond it.

A share of decisions, the holdout, is left to the baseline. A decision belongs to it if the hash of
its unit (or of its own id) is below the holdout, so that a unit stays in its group, no outcome can
influence the assignment, and a smaller holdout only moves units from the baseline to the agent.

    n_g     decisions of group g that count, g = 0 (baseline), 1 (agent)
    m_g     their mean: what a decision earns, the sum of its outcomes
    E_g     Σ_b (Σ_{i in b} (y_i - m_g))², over buckets b of units: robust against outcomes of one
            unit that resemble each other
    s_g     (E_g + A Ē) / (n_g - 1 + A), with Ē the pooled value: a small group borrows the other's
    v       s_0 / n_0 + s_1 / n_1, variance of m_1 - m_0
    n       n_0 n_1 / (n_0 + n_1)

The difference is within c √v of the truth at all times at once, with the boundary c of
`oclok.confidence` at n. The ratio m_1 / m_0 has Fieller's interval with the same c; it contains 1
exactly if the difference contains 0.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from oclok.confidence import boundary
from oclok.persistence import Persistent
from oclok.typing import FloatArray
from oclok.validation import as_probability

#: Units are hashed into this many buckets, which bounds memory.
BUCKETS = 1_024
#: Least decisions of either group for an interval.
LEAST_DECISIONS = 50
#: A: weight of the pooled variance, in decisions.
POOLED = 400.0
#: r of `oclok.confidence`: the intervals are tightest at about 8 r effective decisions.
TIGHT = 50.0
#: Most periods, and the length of the first ones in seconds; it doubles when they are full.
MOST_PERIODS, FIRST_PERIOD = 64, 60.0


class Assignment(NamedTuple):
    """The group of a decision, and the bucket of its unit."""

    is_holdout: bool
    bucket: int


def assign(key: str, holdout: float) -> Assignment:
    """Return the group of the unit, or decision, with this key.

    Examples:
        >>> assign("user 7", 0.5) == assign("user 7", 0.5)
        True
        >>> assign("user 7", 0.0).is_holdout
        False
    """
    digest = hashlib.blake2b(key.encode(), digest_size=12, person=b"oclok holdout").digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return Assignment(share < holdout, int.from_bytes(digest[8:], "big") % BUCKETS)


class Group(NamedTuple):
    """Decisions of one group, and what a decision earned on average; NaN without any."""

    decisions: int
    mean: float


class Period(NamedTuple):
    """Both groups within a period that starts at `start`, in seconds, and lasts `length`."""

    start: float
    length: float
    agent: Group
    baseline: Group


@dataclass(frozen=True)
class Lift:
    """What the agent earns per decision beyond the baseline.

    A decision earns the sum of its outcomes; those that never came count like the others of
    their decision. The intervals hold at all times at once with probability `level`: look as
    often as you like, and stop when you like.

    Attributes:
        agent, baseline: decisions that count, and their mean.
        difference: of the means, with `lower` and `upper`; NaN where it is too early.
        ratio: of the means, with `ratio_lower` and `ratio_upper`.
        level: of the intervals.
        verdict: "too early", "better", "worse" or "undecided".
        periods: both groups over time, oldest first.
    """

    agent: Group
    baseline: Group
    difference: float
    lower: float
    upper: float
    ratio: float
    ratio_lower: float
    ratio_upper: float
    level: float
    verdict: Literal["too early", "better", "worse", "undecided"]
    periods: tuple[Period, ...] = ()

    def __str__(self) -> str:
        if self.verdict == "too early":
            few = min(self.agent.decisions, self.baseline.decisions)
            return f"too early: {few} of {LEAST_DECISIONS} decisions in the smaller group"
        return (
            f"{self.verdict}: {self.agent.mean:.4g} per decision ({self.agent.decisions:,}) "
            f"against {self.baseline.mean:.4g} ({self.baseline.decisions:,}) of the baseline, "
            f"{self.difference:+.3g} ({self.level:.0%} interval {self.lower:+.3g} to "
            f"{self.upper:+.3g}), {self.ratio - 1:+.1%} ({self.ratio_lower - 1:+.1%} to "
            f"{self.ratio_upper - 1:+.1%})"
        )


class LiftTally(Persistent):
    """Sums from which the lift is computed; decisions can be added and taken out again."""

    def __init__(self) -> None:
        self._counts = np.zeros((2, BUCKETS))
        self._sums = np.zeros((2, BUCKETS))
        self._length = FIRST_PERIOD
        self._periods: dict[int, FloatArray] = {}  # (group, [decisions, sum])

    def add(self, group: int, bucket: int, time: float, value: float, count: int = 1) -> None:
        """Count a decision made at `time` that earned `value`; `count=-1` takes it out."""
        self._counts[group, bucket] += count
        self._sums[group, bucket] += count * value
        key = int(time // self._length)
        period = self._periods.setdefault(key, np.zeros((2, 2)))
        period[group] += count, count * value
        while len(self._periods) > MOST_PERIODS:
            self._length *= 2
            merged: dict[int, FloatArray] = {}
            for key, totals in self._periods.items():
                merged.setdefault(key // 2, np.zeros((2, 2)))[...] += totals
            self._periods = merged

    def lift(self, level: float = 0.95) -> Lift:
        """Return the lift so far."""
        level = as_probability(level, "level")
        n, total = self._counts.sum(axis=1), self._sums.sum(axis=1)
        baseline, agent = (_group(n[g], total[g]) for g in (0, 1))
        periods = tuple(
            Period(key * self._length, self._length, _group(*t[1]), _group(*t[0]))
            for key, t in sorted(self._periods.items())
        )
        if n.min() < LEAST_DECISIONS:
            unknown = (math.nan,) * 6
            return Lift(agent, baseline, *unknown, level, "too early", periods)
        mean = total / n
        residuals = ((self._sums - mean[:, None] * self._counts) ** 2).sum(axis=1)
        variance = variances(n, residuals)
        c = float(boundary(n[0] * n[1] / n.sum(), 1 - level, TIGHT))
        difference = float(mean[1] - mean[0])
        width = c * math.sqrt(float(variance.sum()))
        ratio, low, high = _ratio(mean, variance, c)
        verdict: Literal["better", "worse", "undecided"] = "undecided"
        if abs(difference) > width:
            verdict = "better" if difference > 0 else "worse"
        ends = difference - width, difference + width
        return Lift(agent, baseline, difference, *ends, ratio, low, high, level, verdict, periods)

    def _state(self) -> dict[str, Any]:
        keys = np.array(sorted(self._periods), dtype=np.int64)
        totals = np.array([self._periods[key] for key in keys.tolist()]).reshape(-1, 2, 2)
        places = np.flatnonzero(self._counts)
        return {
            "places": places,
            "counts": self._counts.flat[places],
            "sums": self._sums.flat[places],
            "length": self._length,
            "keys": keys,
            "totals": totals,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._counts, self._sums = np.zeros((2, BUCKETS)), np.zeros((2, BUCKETS))
        self._counts.flat[state["places"]] = state["counts"]
        self._sums.flat[state["places"]] = state["sums"]
        self._length = state["length"]
        self._periods = dict(zip(state["keys"].tolist(), state["totals"], strict=True))


def variances(n: FloatArray, residuals: FloatArray) -> FloatArray:
    """Return s_g / n_g, where `residuals` is E_g; the groups are on the first axis."""
    pooled = residuals.sum(axis=0) / (n.sum(axis=0) - 2)
    result: FloatArray = (residuals + POOLED * pooled) / (n - 1 + POOLED) / n
    return result


def _ratio(mean: FloatArray, variance: FloatArray, c: float) -> tuple[float, float, float]:
    """Return m_1 / m_0 and its Fieller interval; infinite ends where m_0 may be 0."""
    below, above = float(mean[0]), float(mean[1])
    if below <= 0:
        return math.nan, -math.inf, math.inf
    a = below**2 - c**2 * float(variance[0])
    b, d = above * below, above**2 - c**2 * float(variance[1])
    if a <= 0:
        return above / below, -math.inf, math.inf
    root = math.sqrt(max(b**2 - a * d, 0.0))
    return above / below, (b - root) / a, (b + root) / a


def _group(decisions: float, total: float) -> Group:
    return Group(round(decisions), total / decisions if decisions else math.nan)
