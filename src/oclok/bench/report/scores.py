"""The measurements behind claims: rewards, regrets and times, by policy, lengthscale and repeat."""

from __future__ import annotations

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
    """Answers about one experiment's rounds; raises `NotMeasured` where there is none.

    Every answer is an array with one number per repeat, in the order of repeats.
    """

    def __init__(self, rounds: pd.DataFrame) -> None:
        self.rounds = rounds

    @property
    def draws(self) -> int:
        """The number of repeats whose rounds differ: 1 where all repeats share them."""
        benchmark = self._sums["best_expected_reward"].round(9)
        return int(benchmark.groupby(level=[0, 1]).nunique().max())

    def ratio(self, policy: str, at: float | None = None) -> FloatArray:
        """Return the final average reward over that of the benchmark, at a lengthscale."""
        sums = self._of(policy, at)
        benchmark = sums["best_expected_reward"]
        if (benchmark <= 0).any():
            raise NoRatio(
                f"the benchmark's own reward is negative in {(benchmark <= 0).sum()} of "
                f"{len(benchmark)} repeats"
            )
        return np.asarray(sums["expected_reward"] / benchmark)

    def regret(self, policy: str, at: float | None = None) -> FloatArray:
        """Return the final cumulative regret."""
        return np.asarray(self._of(policy, at)["regret"])

    def milliseconds(self, policy: str, after: float = 0.0) -> FloatArray:
        """Return the median time of a round, `after` this share of all rounds."""
        return np.asarray(self._times(policy, after).median())

    def growth(self, policy: str) -> FloatArray:
        """Return p of the power tᵖ that fits the time of round t best, by least squares of logs.

        The first quarter of rounds, where fixed costs dominate, is left out.
        """
        late = self._times(policy, 0.25).dropna()
        if len(late) < 2:
            raise NotMeasured("too few rounds")
        slope, _ = np.polyfit(np.log(late.index), np.log(late), 1)
        return np.asarray(slope)

    def _times(self, policy: str, after: float) -> pd.DataFrame:
        """Return milliseconds, round × repeat, after a share of all rounds."""
        if not measures.knows(self.rounds, "seconds"):
            raise NotMeasured("no column seconds")
        self._of(policy, None)
        is_meant = (self.rounds["variant"] == "") & (self.rounds["policy"] == policy)
        runs = measures.milliseconds(self.rounds[is_meant])
        runs = runs[runs["round"] > after * runs["round"].max()]
        return pd.DataFrame(runs.pivot(index="round", columns="repeat", values="value"))

    @cached_property
    def _sums(self) -> pd.DataFrame:
        """Sums over the longest runs, by variant, policy and repeat."""
        columns = ["expected_reward", "best_expected_reward", "regret"]
        runs = measures.longest_runs(self.rounds)
        return runs.groupby(["variant", "policy", "repeat"])[columns].sum()

    def _of(self, policy: str, at: float | None) -> pd.DataFrame:
        key = ("" if at is None else f"l={at:g}", policy)
        if key not in self._sums.index:
            raise NotMeasured(f"no {policy}" + ("" if at is None else f" at l = {at:g}"))
        return pd.DataFrame(self._sums.xs(key))
