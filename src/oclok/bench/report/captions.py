"""Which figures a report shows, and the words that go with them."""
# Tested in tests/bench/report/test_report.py: captions are seen in the report.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pandas as pd
from matplotlib.axes import Axes

from oclok.bench import figures
from oclok.bench.analysis import measures
from oclok.bench.analysis.tables import records


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report."""

    name: str  # of its files
    title: str
    caption: str
    draw: Callable[[pd.DataFrame], list[Axes]]
    column: str = ""  # of the summary: its values are the text for those who cannot see the figure
    needs: tuple[str, ...] = ()  # columns without which it is left out
    words: str = ""  # the text for those who cannot see it, where no column is

    def alt(self, summary: pd.DataFrame) -> str:
        """Return what the figure shows in words, with numbers of the `summary`."""
        words = self.words
        if self.column:
            rows = ((f"{p} {v}".strip(), row[self.column]) for v, p, row in records(summary))
            words = f"Overall, {', '.join(f'{name} {value:.3g}' for name, value in rows)}."
        return f"Chart: {self.title[:1].lower()}{self.title[1:]}. {words}".strip()


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
        "Policies that depend on the number of rounds T were run once for each T; the others once, "
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
        needs=tuple(measures.BOUNDS),
    ),
    ReportFigure(
        "coverage",
        "How often the bands hold",
        "The share of repeats in which the true mean of every available base arm has been inside "
        "its band in all rounds up to t. Lemma 1 promises at least the dotted line, 1 - δ, if f "
        "is drawn from the policy's own prior.",
        figures.coverage,
        needs=("in_band",),
    ),
    ReportFigure(
        "calibration",
        "Is the confidence deserved?",
        "The share of all outcomes that lay inside the central interval of each nominal level, as "
        "the posterior predicted it just before the outcome came. On the dotted line a policy is "
        f"calibrated; below it overconfident, above it underconfident. {_REPEATS}",
        figures.calibration,
        needs=("coverage_50",),
    ),
)


def paired_figure(compared: pd.DataFrame, reference: str) -> ReportFigure:
    """Return the figure of a paired comparison: ratios if all are defined, else differences."""
    scale: Literal["ratio", "difference"]
    scale = "ratio" if compared["ratio"].notna().all() else "difference"
    mean, equal = ("geometric mean", 1) if scale == "ratio" else ("mean", 0)
    ends = (
        f"{policy} {variant}: {row[scale]:.3g} ({row[f'{scale}_low']:.3g} to "
        f"{row[f'{scale}_high']:.3g})"
        for variant, policy, row in records(compared)
    )
    return ReportFigure(
        "paired-regret",
        f"Regret against {reference}: {scale} in the same repeat",
        f"The {mean} over repeats of the {scale} of the policy's cumulative regret and that of "
        f"{reference} in the same repeat, with a 95% interval. Left of the grey line at {equal}, "
        "where both are equal, a policy is better. Filled: the difference is significant at 5% by "
        "a paired t-test with Holm's correction for the number of policies.",
        partial(figures.paired_regret, reference=reference, scale=scale),
        words="; ".join(ends),
    )
