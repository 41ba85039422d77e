"""Checks of average rewards over that of the benchmark, at the end.

Where the benchmark's own reward is not positive in every repeat, its shares mean nothing. What
compares two policies, or two lengthscales, is then measured by regret; the rest is unknown.
"""
# Tested in tests/bench/report/checks/test_base.py: checks of each kind judge made-up results.

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, product

from oclok.bench.analysis.scores import NoRatio, Scores
from oclok.bench.report.checks.base import (
    Check,
    Finding,
    Quantity,
    Unknown,
    about,
    conjunction,
    disjunction,
    every,
)


def alike(share: float, policies: Sequence[str], to: str, at: float | None = None) -> Check:
    """Check that the rewards of `policies` are within a `share` of another's."""

    def measure(scores: Scores) -> Finding:
        gaps = [_gain(scores, p, to, at, -share, share) for p in policies]
        return every(gaps, *(_reward(scores, p, at) for p in (to, *policies)))

    return Check(f"within {share:.0%} of the reward of {to}", measure)


def better(
    least: float,
    policies: Sequence[str],
    than: Sequence[str],
    most: float = math.inf,
    at: float | None = None,
) -> Check:
    """Check that each of `policies` is better `than` each other by a share in [least, most]."""

    def measure(scores: Scores) -> Finding:
        gains = [_gain(scores, p, q, at, least, most) for p, q in product(policies, than)]
        return every(gains, *(_reward(scores, p, at) for p in (*policies, *than)))

    span = f"at least {least:.0%}" if most == math.inf else f"{least:.1%} to {most:.1%}"
    return Check(f"better by {span}", measure)


def better_by_about(share: float, policy: str, than: Sequence[str]) -> Check:
    """Check that `policy` is better `than` each other by about a `share`."""
    least, most = about(share)
    return better(least, [policy], than, most)


def short_by_about(share: float, policy: str, of: str, at: float) -> Check:
    """Check that the reward of `policy` is about a `share` short of another's."""
    least, most = about(share)

    def measure(scores: Scores) -> Finding:
        gap = _gain(scores, policy, of, at, -most, -least)
        return every([gap], _reward(scores, of, at), _reward(scores, policy, at))

    return Check(f"less by {least:.2%} to {most:.2%}", measure)


def falling(policies: Sequence[str]) -> Check:
    """Check that each of `policies` has a lower reward than the one before."""

    def measure(scores: Scores) -> Finding:
        steps = [_difference(scores, (a, None), (b, None)) for a, b in pairwise(policies)]
        return every(steps, *(_reward(scores, p, None) for p in policies))

    return Check("each has a lower reward than the one named before it", measure)


def rising(policies: Sequence[str], steps: Sequence[tuple[float, float]]) -> Check:
    """Check that each policy is better at the second lengthscale of each step."""

    def measure(scores: Scores) -> Finding:
        gains = [_difference(scores, (p, b), (p, a)) for p in policies for a, b in steps]
        open_ = [gain for gain in gains if gain.holds is not True]
        words = f"{len(gains) - len(open_)} of {len(gains)} steps are certainly upward"
        return Finding("; ".join([words, *map(str, open_)]), conjunction(g.holds for g in gains))

    words = ", ".join(f"{b:g} than at {a:g}" for a, b in steps)
    return Check(f"every policy is better at l = {words}", measure)


def all_below(level: float, policies: Sequence[str], at: float) -> Check:
    """Check that the reward of each of `policies` is below `level`."""

    def measure(scores: Scores) -> Finding:
        return every([_reward(scores, p, at, most=level) for p in policies])

    return Check(f"every reward below {level:g} of the benchmark's", measure)


def all_reach(level: float, policies: Sequence[str], at: Sequence[float | None] = (None,)) -> Check:
    """Check that each of `policies` has at least the reward `level` at each lengthscale."""

    def measure(scores: Scores) -> Finding:
        return every([_reward(scores, p, x, least=level) for p, x in product(policies, at)])

    return Check(f"at least {level:g} of the benchmark's reward", measure)


def none_reach(level: float, policies: Sequence[str], at: Sequence[float]) -> Check:
    """Check that none of `policies` has the reward `level` at all of the lengthscales."""

    def measure(scores: Scores) -> Finding:
        cells = {p: [_reward(scores, p, x, most=level) for x in at] for p in policies}
        text = "; ".join(str(cell) for row in cells.values() for cell in row)
        fails = (disjunction(cell.holds for cell in row) for row in cells.values())
        return Finding(text, conjunction(fails))

    return Check(f"below {level:g} of the benchmark's reward at one of them at least", measure)


def only_these_pass(
    level: float, policies: Sequence[str], others: Sequence[str], at: Sequence[float]
) -> Check:
    """Check that `policies` pass a `level` at some lengthscale and `others` do at none."""

    def measure(scores: Scores) -> Finding:
        best, verdicts = [], []
        for p in (*policies, *others):
            cells = [_reward(scores, p, x, least=level) for x in at]
            known = [cell for cell in cells if isinstance(cell, Quantity)]
            passes = disjunction(cell.holds for cell in known)
            verdicts.append(passes if p in policies or passes is None else not passes)
            best.append(max(known, key=lambda cell: cell.mean))
        return Finding("best over l: " + "; ".join(map(str, best)), conjunction(verdicts))

    return Check(f"these pass {level:g} at some l that has a ratio, the others at none", measure)


def lowest(policy: str, among: Sequence[str], at: Sequence[float]) -> Check:
    """Check that `policy` has the lowest reward at each lengthscale."""

    def measure(scores: Scores) -> Finding:
        gaps = [_difference(scores, (p, x), (policy, x)) for x, p in product(at, among)]
        open_ = [gap for gap in gaps if gap.holds is not True]
        words = f"lower in {len(gaps) - len(open_)} of {len(gaps)} comparisons, certainly"
        return Finding("; ".join([words, *map(str, open_)]), conjunction(g.holds for g in gaps))

    return Check(f"lowest at l = {', '.join(f'{scale:g}' for scale in at)}", measure)


def only_this_rises(
    policy: str, others: Sequence[str], step: tuple[float, float], by_regret: bool = False
) -> Check:
    """Check that `policy` is better at the second of two lengthscales, and no other is."""
    before, after = step

    def measure(scores: Scores) -> Finding:
        rise = _difference(scores, (policy, after), (policy, before), by_regret)
        falls = [_difference(scores, (p, before), (p, after), by_regret) for p in others]
        return every([rise, *falls])

    return Check("it is better, and no other is", measure)


def _reward(
    scores: Scores,
    policy: str,
    at: float | None,
    least: float = -math.inf,
    most: float = math.inf,
) -> Quantity | Unknown:
    """Return the share of the benchmark's reward, or the regret where it has none."""
    name = _name(policy, at)
    try:
        return Quantity(name, scores.ratio(policy, at), least, most)
    except NoRatio as reason:
        regret = Quantity(f"{name}, regret", scores.regret(policy, at), form=".1f")
        return Unknown(f"{regret} ({reason})")


def _gain(
    scores: Scores, policy: str, over: str, at: float | None, least: float, most: float
) -> Quantity | Unknown:
    """Return by which share the reward of a policy exceeds that of another."""
    name = f"{_name(policy, at)} over {over}"
    try:
        gain = scores.ratio(policy, at) / scores.ratio(over, at) - 1
    except NoRatio:
        return Unknown(f"{name}: no share")
    return Quantity(name, gain, least, most, form="+.2%")


def _difference(
    scores: Scores,
    cell: tuple[str, float | None],
    other: tuple[str, float | None],
    by_regret: bool = False,
) -> Quantity:
    """Return by how much a policy is better in one cell than (another) in another."""
    name = f"{_name(*cell)} against {_name(*other)}"
    try:
        if not by_regret:
            gain = scores.ratio(*cell) - scores.ratio(*other)
            return Quantity(name, gain, least=0.0, form="+.4f")
    except NoRatio:
        pass
    gain = scores.regret(*other) - scores.regret(*cell)
    return Quantity(f"{name}, less regret by", gain, least=0.0, form=".1f")


def _name(policy: str, at: float | None) -> str:
    return policy if at is None else f"{policy} at l = {at:g}"
