"""Checks of the average reward over that of the benchmark, at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from oclok.analysis.scores import Scores
from oclok.report.checks.base import Check, Finding, about


def alike(share: float, policies: Sequence[str], to: str, at: float | None = None) -> Check:
    """Check that the rewards of `policies` are within a `share` of another's."""

    def measure(scores: Scores) -> Finding:
        gaps = [scores.reward(p, at) / scores.reward(to, at) - 1 for p in policies]
        shown = [f"{scores.show(p, at)} ({g:+.1%})" for p, g in zip(policies, gaps, strict=True)]
        return Finding(_join(scores.show(to, at), *shown), all(abs(g) <= share for g in gaps))

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
        pairs = [(p, q) for p in policies for q in than]
        gains = [scores.reward(p, at) / scores.reward(q, at) - 1 for p, q in pairs]
        ranked = sorted(zip(gains, pairs, strict=True))
        ends = ranked if len(ranked) < 3 else [ranked[0], ranked[-1]]
        shown = [f"{p} over {q}: {gain:+.1%}" for gain, (p, q) in ends]
        rewards = [scores.show(p, at) for p in (*policies, *than)]
        return Finding(_join(*rewards, *shown), all(least <= g <= most for g in gains))

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
        gap = 1 - scores.reward(policy, at) / scores.reward(of, at)
        text = _join(scores.show(of, at), scores.show(policy, at), f"{gap:.2%} less")
        return Finding(text, least <= gap <= most)

    return Check(f"less by {least:.2%} to {most:.2%}", measure)


def falling(policies: Sequence[str]) -> Check:
    """Check that each of `policies` has a lower reward than the one before."""

    def measure(scores: Scores) -> Finding:
        rewards = [scores.reward(p) for p in policies]
        holds = all(a > b for a, b in pairwise(rewards))
        return Finding(_join(*(scores.show(p) for p in policies)), holds)

    return Check("each has a lower reward than the one named before it", measure)


def rising(policies: Sequence[str], steps: Sequence[tuple[float, float]]) -> Check:
    """Check that each policy has a higher reward at the second lengthscale of each step."""

    def measure(scores: Scores) -> Finding:
        cells = [(p, a, b) for p in policies for a, b in steps]
        wrong = [
            f"{scores.show_at(p, a)}, but {scores.show_at(p, b)}"
            for p, a, b in cells
            if scores.reward(p, b) <= scores.reward(p, a)
        ]
        first, last = steps[0][0], steps[-1][1]
        shown = [
            f"{p}: {scores.reward(p, first):.3f} to {scores.reward(p, last):.3f}" for p in policies
        ]
        return Finding(_join(f"from l = {first:g} to {last:g}", *shown, *wrong), not wrong)

    words = ", ".join(f"{b:g} than at {a:g}" for a, b in steps)
    return Check(f"every policy is better at l = {words}", measure)


def all_below(level: float, policies: Sequence[str], at: float) -> Check:
    """Check that the reward of each of `policies` is below `level`."""

    def measure(scores: Scores) -> Finding:
        holds = all(scores.reward(p, at) < level for p in policies)
        return Finding(_join(*(scores.show(p, at) for p in policies)), holds)

    return Check(f"every reward below {level:g} of the benchmark's", measure)


def all_reach(level: float, policies: Sequence[str], at: Sequence[float | None] = (None,)) -> Check:
    """Check that each of `policies` has at least the reward `level` at each lengthscale."""

    def measure(scores: Scores) -> Finding:
        cells = [(p, scale) for p in policies for scale in at]
        holds = all(scores.reward(p, scale) >= level for p, scale in cells)
        return Finding(_join(*(scores.show_at(p, scale) for p, scale in cells)), holds)

    return Check(f"at least {level:g} of the benchmark's reward", measure)


def none_reach(level: float, policies: Sequence[str], at: Sequence[float]) -> Check:
    """Check that none of `policies` has the reward `level` at all of the lengthscales."""

    def measure(scores: Scores) -> Finding:
        lowest = [min(scores.reward(p, scale) for scale in at) for p in policies]
        cells = [(p, scale) for p in policies for scale in at]
        text = _join(*(scores.show_at(p, scale) for p, scale in cells))
        return Finding(text, all(reward < level for reward in lowest))

    return Check(f"below {level:g} of the benchmark's reward at one of them at least", measure)


def only_these_pass(
    level: float, policies: Sequence[str], others: Sequence[str], at: Sequence[float]
) -> Check:
    """Check that `policies` pass a `level` at some lengthscale and `others` do at none."""

    def measure(scores: Scores) -> Finding:
        best = {p: max(scores.reward(p, scale) for scale in at) for p in (*policies, *others)}
        holds = all((best[p] > level) == (p in policies) for p in best)
        return Finding("best over l: " + _join(*(f"{p}: {r:.3f}" for p, r in best.items())), holds)

    return Check(f"these pass {level:g} at some l, the others at none", measure)


def lowest(policy: str, among: Sequence[str], at: Sequence[float]) -> Check:
    """Check that `policy` has the lowest reward at each lengthscale."""

    def measure(scores: Scores) -> Finding:
        rewards = [{p: scores.reward(p, scale) for p in (policy, *among)} for scale in at]
        worst = [min(reward, key=lambda p: reward[p]) for reward in rewards]
        shown = [scores.show_at(p, scale) for p, scale in zip(worst, at, strict=True)]
        return Finding("the lowest are " + _join(*shown), all(p == policy for p in worst))

    return Check(f"lowest at l = {', '.join(f'{scale:g}' for scale in at)}", measure)


def only_this_rises(policy: str, others: Sequence[str], step: tuple[float, float]) -> Check:
    """Check that `policy` is better at the second of two lengthscales, and no other is."""
    before, after = step

    def measure(scores: Scores) -> Finding:
        rises = {p: scores.reward(p, after) - scores.reward(p, before) for p in (policy, *others)}
        holds = all((rise > 0) == (p == policy) for p, rise in rises.items())
        shown = [f"{p}: {rise:+.4f}" for p, rise in rises.items()]
        return Finding(f"from l = {before:g} to {after:g} " + _join(*shown), holds)

    return Check("its reward is higher, that of no other is", measure)


def _join(*parts: str) -> str:
    return "; ".join(parts)
