"""Which figures a report shows, and the words that go with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from oclok import figures
from oclok.analysis import measures
from oclok.analysis.measures import BOUNDS
from oclok.analysis.summary import summarise


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report.

    Attributes:
        name: of its files.
        title: its heading.
        caption: what is drawn, exactly.
        draw: makes it from the table of rounds.
        column: of the summary that tells its ends in the text for those who cannot see it.
        needs: columns without which it is left out.
        only_for: name of the only experiment that it is of use for; empty for all.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[pd.DataFrame], Figure]
    column: str = ""
    needs: tuple[str, ...] = ()
    only_for: str = ""

    def is_in(self, rounds: pd.DataFrame) -> bool:
        """Return whether the results have what it shows."""
        if self.only_for and set(rounds["experiment"]) != {self.only_for}:
            return False
        return not self.needs or measures.knows(rounds, *self.needs)

    def alt(self, rounds: pd.DataFrame) -> str:
        """Return what it shows in words, for those who cannot see it."""
        if not self.column:
            return f"Line chart: {self.title.lower()}. The verdicts below give its numbers."
        summary = summarise(rounds)[self.column]
        names = (f"{policy} {variant}".strip() for variant, policy in summary.index)
        ends = (f"{name} {value:.3g}" for name, value in zip(names, summary, strict=True))
        return f"Line chart: {self.title.lower()}. Overall, {', '.join(ends)}."


_REPEATS = "Lines are means over repeats, bands one standard deviation either way."

#: All figures, in the order of the page.
FIGURES = (
    ReportFigure(
        "average-reward",
        "Average reward over that of the benchmark",
        "Expected reward summed up to round t, divided by the same sum for the benchmark, which "
        "gives the oracle the true means. Policies that depend on the number of rounds T are shown "
        f"for the largest T. {_REPEATS} Wild first rounds and wide bands may lie outside the axes.",
        figures.average_reward,
        "reward",
    ),
    ReportFigure(
        "cumulative-regret",
        "Cumulative regret",
        "Expected reward of the benchmark minus that of the policy, summed over all rounds. "
        "Policies that depend on the number of rounds T were run anew for each T; the others once, "
        f"and read off at each T. With one T only, the sum up to round t is shown. {_REPEATS}",
        figures.cumulative_regret,
        "regret",
    ),
    ReportFigure(
        "time-per-round",
        "Time per round",
        "Milliseconds to select a super arm and to learn from its outcomes, on a log scale. Lines "
        "are medians over repeats and bands their quartiles, both smoothed by a running median "
        f"over {measures.SMOOTHING} rounds.",
        figures.time_per_round,
        "milliseconds",
        needs=("seconds",),
    ),
    ReportFigure(
        "regret-and-bounds",
        "Regret under its two bounds",
        "The α-regret up to round t, with two bounds on it that are known while the policy runs: "
        "the widths of the bands of all base arms chosen so far (Lemma 2), and what Theorem 1 "
        f"makes of them with the information gained so far. {_REPEATS}",
        figures.regret_and_bounds,
        needs=tuple(BOUNDS),
    ),
    ReportFigure(
        "coverage",
        "How often the bands hold",
        "The share of repeats in which the true mean of every available base arm has been inside "
        "its band in all rounds up to t. Lemma 1 promises the dotted line at least, if f is drawn "
        "from the policy's own prior.",
        figures.coverage,
        needs=("in_band",),
    ),
    ReportFigure(
        "calibration",
        "Is the confidence deserved?",
        "The share of all outcomes that lay inside the central interval of each nominal level, as "
        "the posterior foresaw it just before the outcome came. On the dotted line, confidence is "
        f"deserved; below it a policy is overconfident, above it underconfident. {_REPEATS}",
        figures.calibration,
        needs=("coverage_50",),
    ),
    ReportFigure(
        "paired-regret",
        "Regret relative to O'CLOK-UCB's",
        "Mean cumulative regret over that of O'CLOK-UCB on the same repeats, with the 95% "
        "confidence interval of the mean paired difference. Left of the solid line is better; the "
        "dotted line is half. Intervals are cut off at 0.05.",
        figures.paired_regret,
        only_for="policies",
    ),
)
