"""Cover inequalities in exact arithmetic: why a set that misses a constraint can be ruled out.

| symbol | meaning                                                                             |
|--------|-------------------------------------------------------------------------------------|
| a, b   | the constraint a x ≤ b, which x misses; a has shape (M,)                            |
| y      | x where a > 0 and 1 - x where a < 0, so that the constraint is Σ w y ≤ c            |
| w, c   | |a|, and b + the sum of w where a < 0; as integers, all multiplied by a power of 2  |
| C      | a cover: base arms with y = 1 whose weights exceed c                                |
| E      | C and further base arms, such that any |C| of E exceed c; then Σ_E y ≤ |C| - 1      |
"""

from __future__ import annotations

import math
from bisect import insort
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from oclok.typing import BoolArray, FloatArray


class CoverCut(NamedTuple):
    """Coefficients -1, 0 and 1, shape (M,), whose product with x is at most `bound`."""

    coefficients: FloatArray
    bound: float


def exceeds(terms: FloatArray, bound: float) -> bool:
    """Return whether the sum of `terms` is above `bound`, in exact arithmetic."""
    if math.isinf(bound):
        return bound < 0
    try:
        return math.fsum([*terms.tolist(), -bound]) > 0  # correctly rounded, so its sign is right
    except OverflowError:
        return sum(map(Fraction, terms.tolist()), Fraction(-bound)) > 0


def cover_cut(a: FloatArray, b: float, x: BoolArray) -> CoverCut:
    """Return an inequality that x misses and every 0-1 point with a x ≤ b meets.

    The cover is made small by leaving out light base arms, then extended by others, heavy ones
    first, for as long as the |C| lightest of all exceed c. The cover is empty, and the inequality
    0 ≤ -1, if no x at all meets the constraint.
    """
    w, c = _as_integers(np.abs(a), b, a < 0)
    y = np.where(a < 0, ~x, x) & (a != 0)
    cover = sorted(np.flatnonzero(y).tolist(), key=w.__getitem__)
    total = sum(w[m] for m in cover)
    while cover and total - w[cover[0]] > c:
        total -= w[cover.pop(0)]
    extended, lightest = list(cover), [w[m] for m in cover]
    others = set(np.flatnonzero(a).tolist()).difference(cover)
    for m in sorted(others, key=w.__getitem__, reverse=True):
        if cover and w[m] >= lightest[-1]:
            extended.append(m)
        elif cover and total - lightest[-1] + w[m] > c:
            total += w[m] - lightest.pop()
            insort(lightest, w[m])
            extended.append(m)
        else:
            break
    coefficients = np.zeros(a.size)
    coefficients[extended] = np.sign(a[extended])
    return CoverCut(coefficients, len(cover) - 1 - float(np.count_nonzero(coefficients < 0)))


def _as_integers(w: FloatArray, b: float, is_complemented: BoolArray) -> tuple[list[int], int]:
    ratios = [number.as_integer_ratio() for number in [*w.tolist(), float(b)]]
    unit = max(denominator for _, denominator in ratios)
    *weights, bound = (numerator * (unit // denominator) for numerator, denominator in ratios)
    return weights, bound + sum(weights[m] for m in np.flatnonzero(is_complemented))
