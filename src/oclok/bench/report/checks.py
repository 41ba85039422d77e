"""How sentences about results are checked: a rule in words, and numbers that must be in a range.

Words are read alike in all sentences. The readings were fixed before full runs were made, but with
rough figures of short trial runs at hand:

| words                               | are read as                                             |
|-------------------------------------|---------------------------------------------------------|
| about x, around x                   | within a third of x                                     |
| the same, equal, close, very close  | within 5%                                               |
| practically identical               | within 2%                                               |
| substantially                       | by at least 10%                                         |
| better by x                         | the ratio of two average rewards, minus 1               |

A number is measured in every repeat. The sentence holds if the 95% confidence interval of each
number's mean (Student's t) is inside its range, and does not if one is outside; otherwise it is
inconclusive.

Rewards are shares of the benchmark's. Where the benchmark's own reward is not positive in every
repeat, shares mean nothing: comparisons are then made by regret, and the rest is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import product
from math import inf, nan
from typing import NamedTuple, TypeAlias

import pandas as pd
from scipy.stats import binomtest

from oclok.bench.analysis import measures
from oclok.bench.analysis.measures import BOUNDS
from oclok.bench.analysis.paired import LEVEL, student_interval
from oclok.bench.analysis.tables import show_time
from oclok.bench.report.scores import NoRatio, NotMeasured, Scores
from oclok.typing import FloatArray

CLOSE, IDENTICAL, SUBSTANTIAL = 0.05, 0.02, 0.10
MOST_SHOWN = 4

#: Allowance for rounding in means and limits.
_ROUNDING = 1e-9

#: Truth values (Kleene's), ascending; None is not known.
_TRUTH = [False, None, True]

#: A policy and a lengthscale; None where the experiment has none.
Cell: TypeAlias = tuple[str, float | None]


class Finding(NamedTuple):
    """What was measured, in words, and whether it is as it should be; None if inconclusive."""

    measured: str
    holds: bool | None = None
    mean: float = nan  # over repeats, of one number


class Check(NamedTuple):
    """A rule in words, and the code that applies it; that may raise `NotMeasured`."""

    rule: str
    measure: Callable[[Scores], Finding]


def quantity(
    label: str, values: FloatArray, least: float = -inf, most: float = inf, form: str = ".3f"
) -> Finding:
    """Find whether a number measured in every repeat, shape (repeats,), is in its range."""
    mean, low, high = float(values.mean()), -inf, inf
    words = f"{label}: {mean:{form}}"
    if values.size > 1:
        low, high = student_interval(values)
        words += f" ({low:{form}} to {high:{form}})"
    if low >= least - _ROUNDING and high <= most + _ROUNDING:
        return Finding(words, True, mean)
    return Finding(words, False if high < least or low > most else None, mean)


def every(parts: Sequence[Finding], *context: str) -> Finding:
    """Return the finding that holds if all `parts` do; of many, it shows some that are in doubt."""
    shown = [part.measured for part in parts]
    if len(parts) > MOST_SHOWN:
        doubtful = [part.measured for part in parts if part.holds is not True]
        certain = len(parts) - len(doubtful)
        shown = [f"{certain} of {len(parts)} comparisons are certain", *doubtful[:MOST_SHOWN]]
    return Finding("; ".join([*context, *shown]), conjunction(part.holds for part in parts))


def conjunction(parts: Iterable[bool | None]) -> bool | None:
    """Return whether all hold, where None is not known."""
    return min(parts, key=_TRUTH.index)


def disjunction(parts: Iterable[bool | None]) -> bool | None:
    """Return whether any holds, where None is not known."""
    return max(parts, key=_TRUTH.index)


def about(x: float) -> tuple[float, float]:
    """Return the range that "about x" stands for, for any sign of x."""
    low, high = sorted((x * 2 / 3, x * 4 / 3))
    return low, high


def better(
    policies: Sequence[str],
    than: Sequence[str],
    least: float,
    most: float = inf,
    at: float | None = None,
) -> Check:
    """Check that each of `policies` earns more `than` each other, by a share in [least, most]."""

    def measure(scores: Scores) -> Finding:
        gains = [_gain(scores, p, q, at, least, most) for p, q in product(policies, than)]
        return every(gains, *(_reward(scores, (p, at)).measured for p in (*policies, *than)))

    if most == inf:
        return Check(f"better by at least {least:.0%}", measure)
    if most < 0:
        return Check(f"less by {-most:.2%} to {-least:.2%}", measure)
    return Check(f"better by {least:.1%} to {most:.1%}", measure)


def alike(share: float, policies: Sequence[str], to: str, at: float | None = None) -> Check:
    """Check that the rewards of `policies` are within a `share` of another's."""
    check = better(policies, [to], -share, share, at)
    return Check(f"within {share:.0%} of the reward of {to}", check.measure)


def ordered(rule: str, pairs: Sequence[tuple[Cell, Cell]], by_regret: bool = False) -> Check:
    """Check that the first cell of each pair is better than the second."""
    return Check(rule, lambda scores: every([_difference(scores, *p, by_regret) for p in pairs]))


def reach(
    policies: Sequence[str],
    least: float = -inf,
    most: float = inf,
    at: Sequence[float | None] = (None,),
) -> Check:
    """Check that the rewards of all `policies` at all lengthscales are in [least, most]."""
    cells = list(product(policies, at))
    span = f"at least {least:g}" if most == inf else f"below {most:g}"
    return Check(
        f"{span} of the benchmark's reward",
        lambda scores: every([_reward(scores, cell, least, most) for cell in cells]),
    )


def none_reach(level: float, policies: Sequence[str], at: Sequence[float]) -> Check:
    """Check that none of `policies` has the reward `level` at all of the lengthscales."""

    def measure(scores: Scores) -> Finding:
        rows = [[_reward(scores, (p, x), most=level) for x in at] for p in policies]
        fails = (disjunction(cell.holds for cell in row) for row in rows)
        return Finding("; ".join(c.measured for row in rows for c in row), conjunction(fails))

    return Check(f"below {level:g} of the benchmark's reward at one of them at least", measure)


def only_these_pass(
    level: float, policies: Sequence[str], others: Sequence[str], at: Sequence[float]
) -> Check:
    """Check that `policies` pass a `level` at some lengthscale and `others` do at none."""

    def measure(scores: Scores) -> Finding:
        best, verdicts = [], []
        for p in (*policies, *others):
            cells = [_reward(scores, (p, x), least=level) for x in at]
            known = [cell for cell in cells if cell.mean == cell.mean]
            passes = disjunction(cell.holds for cell in known)
            verdicts.append(passes if p in policies or passes is None else not passes)
            best.append(max(known, key=lambda cell: cell.mean).measured)
        return Finding("best over l: " + "; ".join(best), conjunction(verdicts))

    return Check(f"these pass {level:g} at some l that has a ratio, the others at none", measure)


def takes_more_than(minutes: float, policy: str) -> Check:
    """Check that the last rounds of `policy` take more than some minutes each."""

    def measure(scores: Scores) -> Finding:
        times = scores.milliseconds(policy, after=0.9)
        return every([quantity(f"{policy}, ms per round", times, minutes * 6e4, form=".3g")])

    return Check(f"median of the last tenth of rounds above {minutes:g} min", measure)


def grows(policies: Sequence[str], above: float = -inf, most: float = inf) -> Check:
    """Check that the time of round t grows like a power of t between `above` and `most`."""
    span = f"above {above:g}" if above > -inf else f"at most {most:.2f}"
    return Check(
        f"time of round t grows like a power of t {span}",
        lambda scores: every(
            [quantity(f"{p}, power", scores.growth(p), above, most, ".2f") for p in policies]
        ),
    )


def faster(
    policies: Sequence[str],
    than: Sequence[str],
    least: float = 1.0,
    most: float = inf,
    after: float = 0.9,
) -> Check:
    """Check that each of `policies` is faster `than` each other by a factor in [least, most].

    By medians of the rounds `after` this share of all rounds.
    """

    def measure(scores: Scores) -> Finding:
        times = {p: scores.milliseconds(p, after) for p in (*than, *policies)}
        return every(
            [
                quantity(f"{p} over {q}, times", times[q] / times[p], least, most, ".2f")
                for p, q in product(policies, than)
            ],
            *(f"{p}: {show_time(float(time.mean()))}" for p, time in times.items()),
        )

    span = f"{least:.3g} to {most:.3g}" if most < inf else f"more than {least:g}"
    rounds = "the last tenth of rounds" if after == 0.9 else "all rounds"
    return Check(f"{span} times as fast, by medians of {rounds}", measure)


def bands_hold(scores: Scores) -> Finding:
    """Check Lemma 1, for policies that it is about: all means in their bands, in most runs."""
    known = _known(scores, "in_band", "certificate_widths")
    held = measures.at_the_end(measures.held_so_far(known))["value"]
    rounds = measures.longest_runs(known)["in_band"]
    return _share(held, known, f"in {rounds.mean():.2%} of all rounds")


def regret_stays_below_bounds(scores: Scores) -> Finding:
    """Check Theorem 1: the α-regret is below both bounds in all rounds, in most runs."""
    known = _known(scores, *BOUNDS)
    runs = measures.longest_runs(known)
    regret = measures.cumulative_alpha_regret(known)["value"]
    bounds = runs[list(BOUNDS)]
    is_below = bounds.ge(regret, axis=0).all(axis=1)
    held = is_below.groupby([runs[name] for name in ("variant", "policy", "repeat")]).all()
    tightest = (bounds.min(axis=1) / regret)[regret > 0].min()
    return _share(held, known, f"bounds are at least {tightest:.3g} times a positive regret")


def _known(scores: Scores, *columns: str) -> pd.DataFrame:
    if not measures.knows(scores.rounds, *columns):
        raise NotMeasured(f"no column {' or '.join(columns)}")
    return measures.where_known(scores.rounds, *columns)


def _share(held: pd.Series, known: pd.DataFrame, words: str) -> Finding:
    """Judge by the exact confidence interval (Clopper and Pearson) of the share of runs.

    δ is the largest of the policies'; the paper's where a table does not say.
    """
    delta = max(measures.deltas(known), default=0.05)
    k, n = int(held.sum()), len(held)
    low, high = binomtest(k, n).proportion_ci(LEVEL)
    text = f"in {k} of {n} runs ({low:.0%} to {high:.0%}); {words}"
    return Finding(text, True if low >= 1 - delta else False if high < 1 - delta else None)


def _reward(scores: Scores, cell: Cell, least: float = -inf, most: float = inf) -> Finding:
    """Return the share of the benchmark's reward, or the regret where it has none."""
    try:
        return quantity(_name(*cell), scores.ratio(*cell), least, most)
    except NoRatio as reason:
        regret = quantity(f"{_name(*cell)}, regret", scores.regret(*cell), form=".1f")
        return Finding(f"{regret.measured} ({reason})")


def _gain(
    scores: Scores, policy: str, over: str, at: float | None, least: float, most: float
) -> Finding:
    """Return by which share the reward of a policy exceeds that of another."""
    name = f"{_name(policy, at)} over {over}"
    try:
        gain = scores.ratio(policy, at) / scores.ratio(over, at) - 1
    except NoRatio:
        return Finding(f"{name}: no share")
    return quantity(name, gain, least, most, form="+.2%")


def _difference(scores: Scores, cell: Cell, other: Cell, by_regret: bool) -> Finding:
    """Return by how much the reward of one cell exceeds that of another, or its regret is less."""
    name = f"{_name(*cell)} against {_name(*other)}"
    with suppress(NoRatio):
        if not by_regret:
            gain = scores.ratio(*cell) - scores.ratio(*other)
            return quantity(name, gain, least=0.0, form="+.4f")
    gain = scores.regret(*other) - scores.regret(*cell)
    return quantity(f"{name}, less regret by", gain, least=0.0, form=".1f")


def _name(policy: str, at: float | None) -> str:
    return policy if at is None else f"{policy} at l = {at:g}"
