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
from oclok.bench.analysis.measures import BOUNDS
from oclok.bench.analysis.summary import summarise


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
        words: what it shows, for those who cannot see it, where no column does.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[pd.DataFrame], list[Axes]]
    column: str = ""
    needs: tuple[str, ...] = ()
    words: str = ""

    def is_in(self, rounds: pd.DataFrame) -> bool:
        """Return whether the results have what it shows."""
        return not self.needs or measures.knows(rounds, *self.needs)

    def alt(self, rounds: pd.DataFrame) -> str:
        """Return what it shows in words, for those who cannot see it."""
        if not self.column:
            return f"Chart: {self.title[:1].lower()}{self.title[1:]}. {self.words}".strip()
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
    """Return the figure that compares all policies with a `reference`, as `compared` says.

    Ratios are drawn where all are defined, differences elsewhere.
    """
    scale: Literal["ratio", "difference"]
    scale = "ratio" if compared["ratio"].notna().all() else "difference"
    ends = (
        f"{policy} {variant}: {row[scale]:.3g} ({row[f'{scale}_low']:.3g} to "
        f"{row[f'{scale}_high']:.3g})"
        for (variant, policy), row in zip(compared.index, compared.to_dict("records"), strict=True)
    )
    mean = "The geometric mean over repeats of" if scale == "ratio" else "The mean over repeats of"
    line = 1 if scale == "ratio" else 0
    return ReportFigure(
        "paired-regret",
        f"Regret against {reference}: {scale} in the same repeat",
        f"{mean} the {scale} of the policy's cumulative regret and that of {reference} in the same "
        "repeat, with a 95% interval. Left of the grey line at "
        f"{line}, where both are equal, a policy is better. Filled: the difference is significant "
        "at 5% by a paired t-test with Holm's correction for the number of policies.",
        partial(figures.paired_regret, reference=reference, scale=scale),
        words="; ".join(ends),
    )
