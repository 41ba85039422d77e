"""What a check is: a rule in words, and the numbers that have to be in their ranges.

Words are read alike in all sentences. The readings were fixed before full runs were made, but with
rough figures of short trial runs at hand; claims close to a limit are to be taken as such:

| words                               | are read as                                             |
|-------------------------------------|---------------------------------------------------------|
| about x, around x                   | within a third of x                                     |
| the same, equal, close, very close  | within 5%                                               |
| practically identical               | within 2%                                               |
| substantially                       | by at least 10%                                         |
| better by x                         | the ratio of two average rewards, minus 1               |

A number is measured in every repeat. The sentence holds if the 95% confidence interval of each
number's mean (Student's t) is inside its range, and does not if one is outside; else it cannot be
told from this many repeats.
"""
# Tested in tests/bench/report/test_claims.py: checks judge claims.

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from oclok.bench.analysis.scores import Scores
from oclok.typing import FloatArray

CLOSE, IDENTICAL, SUBSTANTIAL = 0.05, 0.02, 0.10
LEVEL = 0.95
MOST_SHOWN = 4

#: Rounding errors of means and limits.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Finding:
    """What was measured, in words, and whether the sentence holds; None if it cannot be told."""

    measured: str
    holds: bool | None


@dataclass(frozen=True)
class Check:
    """A rule in words, and the code that applies it; that may raise `NotMeasured`."""

    rule: str
    measure: Callable[[Scores], Finding]


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number measured in every repeat, and the range that a sentence says it is in.

    Attributes:
        label: what it is.
        values: one per repeat; shape (repeats,).
        least, most: the range.
        form: how a number is written.
    """

    label: str
    values: FloatArray
    least: float = -math.inf
    most: float = math.inf
    form: str = ".3f"

    @property
    def mean(self) -> float:
        """The mean over repeats."""
        return float(self.values.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of the mean; unbounded where there is one repeat."""
        n = self.values.size
        if n < 2:
            return -math.inf, math.inf
        margin = stdtrit(n - 1, (1 + LEVEL) / 2) * self.values.std(ddof=1) / math.sqrt(n)
        return float(self.mean - margin), float(self.mean + margin)

    @property
    def holds(self) -> bool | None:
        """Whether the mean is in the range; None if it cannot be told."""
        low, high = self.interval
        if low >= self.least - _ROUNDING and high <= self.most + _ROUNDING:
            return True
        return False if high < self.least or low > self.most else None

    def __str__(self) -> str:
        mean = f"{self.label}: {self.mean:{self.form}}"
        if self.values.size < 2:
            return mean
        low, high = (f"{end:{self.form}}" for end in self.interval)
        return f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class Unknown:
    """A number that a sentence is about and that has no meaning here, with the reason in words."""

    words: str
    holds: None = None

    def __str__(self) -> str:
        return self.words


def every(parts: Sequence[Quantity | Unknown], *context: object) -> Finding:
    """Return the finding that holds if all `parts` do.

    It shows `context` and the parts; of many, the lowest and the highest.
    """
    shown = list(parts)
    known = sorted((p for p in parts if isinstance(p, Quantity)), key=lambda part: part.mean)
    if len(known) > MOST_SHOWN:
        shown = [known[0], known[-1]]
    measured = "; ".join(map(str, (*context, *shown)))
    return Finding(measured, conjunction(part.holds for part in parts))


def conjunction(parts: Iterable[bool | None]) -> bool | None:
    """Return whether all hold, where None is not known."""
    known = list(parts)
    return False if False in known else None if None in known else True


def disjunction(parts: Iterable[bool | None]) -> bool | None:
    """Return whether any holds, where None is not known."""
    known = list(parts)
    return True if True in known else None if None in known else False


def about(x: float) -> tuple[float, float]:
    """Return the range that "about x" stands for.

    Examples:
        >>> low, high = about(0.3)
        >>> round(low, 3), round(high, 3)
        (0.2, 0.4)
    """
    return x * 2 / 3, x * 4 / 3
