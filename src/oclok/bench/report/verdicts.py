"""A sentence of the paper, and what measurements say of it."""

from __future__ import annotations

from dataclasses import dataclass

from oclok.bench.analysis.scores import NotMeasured, Scores
from oclok.bench.report.checks import Check


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and how it is checked.

    Attributes:
        where: the figure or statement of the paper.
        text: the sentence, in short.
        check: the rule.
        note: why it fails, where it does and that is known.
        is_slowness: whether it says that something is slow, so that failing is good news.
    """

    where: str
    text: str
    check: Check
    note: str = ""
    is_slowness: bool = False


@dataclass(frozen=True)
class Verdict:
    """A claim, what was measured, and what follows.

    Attributes:
        claim: the sentence.
        measured: the numbers, or why there are none.
        holds: whether it does; None where it cannot be told from this many repeats, or
        is_measured: is False.
    """

    claim: Claim
    measured: str
    holds: bool | None
    is_measured: bool = True

    @property
    def word(self) -> str:
        """The verdict in words."""
        if not self.is_measured:
            return "not measured"
        if self.holds is False and self.claim.is_slowness:
            return "faster here"
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]

    @property
    def explanation(self) -> str:
        """Why a claim does not hold, or cannot be told, as far as it is known."""
        if self.holds or not self.is_measured:
            return ""
        return self.claim.note or ("No explanation was found." if self.holds is False else "")


def judge(claim: Claim, scores: Scores) -> Verdict:
    """Return the verdict on a claim."""
    try:
        finding = claim.check.measure(scores)
    except NotMeasured as reason:
        return Verdict(claim, str(reason), None, is_measured=False)
    return Verdict(claim, finding.measured, finding.holds)
