"""What claims are measured by: rewards, regrets and times, by policy, lengthscale and repeat."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import pandas as pd

from oclok.bench.analysis import measures
from oclok.typing import FloatArray


class NotMeasured(Exception):  # noqa: N818 (an answer, not a mistake)
    """The results do not have what a claim is about."""


class NoRatio(NotMeasured):
    """The benchmark's own reward is not positive in every repeat, so no ratio to it makes sense."""


class Scores:
    """Answers about one experiment's results; raises `NotMeasured` where there is none.

    Every answer is an array with one number per repeat, in the order of repeats.

    Args:
        rounds: one row per round, as `oclok.bench.analysis.measures` describes.
    """

    def __init__(self, rounds: pd.DataFrame) -> None:
        self.rounds = rounds

    @property
    def repeats(self) -> int:
        """The number of repeats."""
        return int(self.rounds["repeat"].nunique())

    @property
    def draws(self) -> int:
        """The number of repeats whose rounds differ: 1 where all repeats share them."""
        benchmark = self._sums["best_expected_reward"].round(9)
        return int(benchmark.groupby(level=[0, 1]).nunique().max())

    def ratio(self, policy: str, at: float | None = None) -> FloatArray:
        """Return the average reward over that of the benchmark, in the end, at a lengthscale."""
        sums = self._of(policy, at)
        benchmark = sums["best_expected_reward"]
        if (benchmark <= 0).any():
            raise NoRatio(
                f"the benchmark's own reward is negative in {(benchmark <= 0).sum()} of "
                f"{len(benchmark)} repeats"
            )
        return np.asarray(sums["expected_reward"] / benchmark)

    def regret(self, policy: str, at: float | None = None) -> FloatArray:
        """Return the cumulative regret in the end."""
        return np.asarray(self._of(policy, at)["regret"])

    def milliseconds(self, policy: str) -> FloatArray:
        """Return the median time of a round."""
        return np.asarray(self._times(policy).groupby(level="repeat").median())

    def final_milliseconds(self, policy: str) -> FloatArray:
        """Return the median time of a round among the last tenth of rounds."""
        times = self._times(policy)
        rounds = times.index.get_level_values("round")
        return np.asarray(times[rounds > 0.9 * rounds.max()].groupby(level="repeat").median())

    def growth(self, policy: str) -> FloatArray:
        """Return the p of the power tᵖ that fits the time of round t best.

        Least squares on a log-log scale. The first quarter of rounds is left out, where fixed
        costs dominate.
        """
        times = self._times(policy)
        rounds = times.index.get_level_values("round")
        late = times[rounds > 0.25 * rounds.max()].unstack("repeat").dropna()
        if len(late) < 2:
            raise NotMeasured("too few rounds")
        slope, _ = np.polyfit(np.log(late.index), np.log(late), 1)
        return np.asarray(slope)

    def _times(self, policy: str) -> pd.Series:
        if not measures.knows(self.rounds, "seconds"):
            raise NotMeasured("no column seconds")
        self._of(policy, None)
        table = self._milliseconds
        chosen = table[(table["variant"] == "") & (table["policy"] == policy)]
        return chosen.set_index(["repeat", "round"])["value"].dropna()

    @cached_property
    def _milliseconds(self) -> pd.DataFrame:
        return measures.milliseconds(self.rounds)

    @cached_property
    def _sums(self) -> pd.DataFrame:
        """Sums over the longest runs, by variant, policy and repeat."""
        columns = ["expected_reward", "best_expected_reward", "regret"]
        runs = measures.longest_runs(self.rounds)
        return runs.groupby(["variant", "policy", "repeat"])[columns].sum()

    def _of(self, policy: str, at: float | None) -> pd.DataFrame:
        for (variant, label), sums in self._sums.groupby(level=[0, 1]):
            if label == policy and _lengthscale(str(variant)) == at:
                return sums
        raise NotMeasured(f"no {policy}" + ("" if at is None else f" at l = {at:g}"))


def _lengthscale(variant: str) -> float | None:
    match = re.fullmatch(r"l=([\d.]+)", variant)
    return float(match[1]) if match else None
