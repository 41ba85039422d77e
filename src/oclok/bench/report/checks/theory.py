"""Checks of what the paper proves, on the runs that kept count of it."""
# Tested in tests/bench/report/checks/test_base.py: checks of each kind judge made-up results.

from __future__ import annotations

import pandas as pd
from scipy.special import betaincinv

from oclok.bench.analysis import measures
from oclok.bench.analysis.measures import BOUNDS
from oclok.bench.analysis.scores import NotMeasured, Scores
from oclok.bench.report.checks.base import LEVEL, Check, Finding

_RUN = ["variant", "policy", "repeat"]


def bands_hold() -> Check:
    """Check Lemma 1, for policies that it is about: all means in their bands, in most repeats."""

    def measure(scores: Scores) -> Finding:
        known = _known(scores, "in_band", "certificate_widths")
        held = measures.at_the_end(measures.held_so_far(known))["value"]
        rounds = measures.longest_runs(known)["in_band"]
        return _finding(held, _delta(known), f"in {rounds.mean():.2%} of all rounds")

    return Check("in at least 1 - δ of runs", measure)


def regret_stays_below_bounds() -> Check:
    """Check Theorem 1: α-regret is below both bounds in all rounds, in most repeats."""

    def measure(scores: Scores) -> Finding:
        known = _known(scores, *BOUNDS)
        runs = measures.longest_runs(known)
        regret = measures.cumulative_alpha_regret(known)["value"]
        bounds = runs[list(BOUNDS)]
        is_below = bounds.ge(regret, axis=0).all(axis=1)
        held = is_below.groupby([runs[name] for name in _RUN]).all()
        tightest = (bounds.min(axis=1) / regret)[regret > 0].min()
        return _finding(
            held, _delta(known), f"bounds are at least {tightest:.3g} times a positive regret"
        )

    return Check("in all rounds of at least 1 - δ of runs", measure)


def _delta(known: pd.DataFrame) -> float:
    """Return the largest δ of the policies; the paper's where a table does not say."""
    return max(measures.deltas(known), default=0.05)


def _known(scores: Scores, *columns: str) -> pd.DataFrame:
    if not measures.knows(scores.rounds, *columns):
        raise NotMeasured(f"no column {' or '.join(columns)}")
    return measures.where_known(scores.rounds, *columns)


def _finding(held: pd.Series, delta: float, words: str) -> Finding:
    """Judge by the exact confidence interval (Clopper and Pearson) of the share of runs."""
    k, n = int(held.sum()), len(held)
    tail = (1 - LEVEL) / 2
    low = betaincinv(k, n - k + 1, tail) if k else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    text = f"in {k} of {n} runs ({low:.0%} to {high:.0%}); {words}"
    return Finding(text, True if low >= 1 - delta else False if high < 1 - delta else None)
