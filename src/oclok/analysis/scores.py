"""What claims are measured by: rewards, times and their growth, by policy and lengthscale."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import pandas as pd

from oclok.analysis import measures
from oclok.analysis.summary import summarise


class NotMeasured(Exception):  # noqa: N818 (an answer, not a mistake)
    """The results do not have what a claim is about."""


class Scores:
    """Answers about one experiment's results; raises `NotMeasured` where there is none.

    Args:
        rounds: one row per round, as `oclok.analysis.measures` describes.
    """

    def __init__(self, rounds: pd.DataFrame) -> None:
        self.rounds = rounds
        self._summary = summarise(rounds)

    def reward(self, policy: str, at: float | None = None) -> float:
        """Return the average reward over that of the benchmark, in the end, at a lengthscale."""
        return float(self._row(policy, at)["reward"])

    def show(self, policy: str, at: float | None = None) -> str:
        """Return the reward as text, with its standard deviation where there are repeats."""
        row = self._row(policy, at)
        spread = f" ± {row['reward_std']:.3f}" if self.rounds["repeat"].nunique() > 1 else ""
        return f"{policy}: {row['reward']:.3f}{spread}"

    def show_at(self, policy: str, at: float | None) -> str:
        """Return the reward as text that also names the lengthscale, if there is one."""
        text = self.show(policy, at)
        return text if at is None else text.replace(":", f" at l = {at:g}:")

    def milliseconds(self, policy: str) -> float:
        """Return the median time of a round."""
        return float(self._times(policy).median())

    def final_milliseconds(self, policy: str) -> float:
        """Return the median time of a round among the last tenth of rounds."""
        times = self._times(policy)
        rounds = times.index.get_level_values("round")
        return float(times[rounds > 0.9 * rounds.max()].median())

    def growth(self, policy: str) -> float:
        """Return the p of the power tᵖ that fits the time of round t best.

        Least squares on a log-log scale, of medians over repeats. The first quarter of rounds is
        left out, where fixed costs dominate.
        """
        medians = self._times(policy).groupby(level="round").median()
        late = medians[medians.index > 0.25 * medians.index.max()]
        if len(late) < 2:
            raise NotMeasured("too few rounds")
        return float(np.polyfit(np.log(late.index), np.log(late), 1)[0])

    def _times(self, policy: str) -> pd.Series:
        if not measures.knows(self.rounds, "seconds"):
            raise NotMeasured("no column seconds")
        self._row(policy, None)
        table = self._milliseconds
        chosen = table[(table["variant"] == "") & (table["policy"] == policy)]
        return chosen.set_index(["repeat", "round"])["value"].dropna()

    @cached_property
    def _milliseconds(self) -> pd.DataFrame:
        return measures.milliseconds(self.rounds)

    def _row(self, policy: str, at: float | None) -> pd.Series:
        for place, (variant, label) in enumerate(self._summary.index):
            if label == policy and _lengthscale(variant) == at:
                return self._summary.iloc[place]
        raise NotMeasured(f"no {policy}" + ("" if at is None else f" at l = {at:g}"))


def _lengthscale(variant: str) -> float | None:
    match = re.fullmatch(r"l=([\d.]+)", variant)
    return float(match[1]) if match else None
