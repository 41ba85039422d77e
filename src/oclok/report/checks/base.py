"""What a check is: a rule in words, and the code that applies it.

Words are read alike in all sentences. The readings were fixed before full runs were made, but with
rough figures of short trial runs at hand; claims close to a limit are to be taken as such:

| words                               | are read as                                             |
|-------------------------------------|---------------------------------------------------------|
| about x, around x                   | within a third of x                                     |
| the same, equal, close, very close  | within 5%                                               |
| practically identical               | within 2%                                               |
| substantially                       | by at least 10%                                         |
| better by x                         | the ratio of two average rewards, minus 1               |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oclok.analysis.scores import Scores

CLOSE, IDENTICAL, SUBSTANTIAL = 0.05, 0.02, 0.10


@dataclass(frozen=True)
class Finding:
    """What was measured, in words, and whether the sentence holds."""

    measured: str
    holds: bool


@dataclass(frozen=True)
class Check:
    """A rule in words, and the code that applies it; that may raise `NotMeasured`."""

    rule: str
    measure: Callable[[Scores], Finding]


def about(x: float) -> tuple[float, float]:
    """Return the range that "about x" stands for.

    Example:
        >>> low, high = about(0.3)
        >>> round(low, 3), round(high, 3)
        (0.2, 0.4)
    """
    return x * 2 / 3, x * 4 / 3
