"""The numbers behind figures, tables and claims, from a tidy table of rounds.

Functions take a table as `tables.complete` returns it. Most return one `value` per repeat and
round, which `spread` and `band` then average over repeats.
"""

from __future__ import annotations

import re
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from oclok.bench.analysis.tables import complete
from oclok.errors import InputError

#: What is shaded around a mean.
Band: TypeAlias = Literal["std", "stderr", "ci95"]
BANDS: tuple[Band, ...] = ("std", "stderr", "ci95")

#: Columns with bounds on the regret up to a round, and their names in legends.
BOUNDS = {
    "certificate_widths": "Bound from band widths",
    "certificate_information": "Bound from information gain",
}

#: The column with the posterior's own estimate of the regret so far, and its name in legends.
BELIEVED = {"regret_median": "Regret believed, median"}

#: Times are running medians over this many rounds.
SMOOTHING = 9

_CURVE = ["variant", "policy"]
_RUN = ["variant", "policy", "horizon", "repeat"]


def longest_runs(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rounds of the runs with the largest horizon of each policy, in order."""
    largest = results.groupby(_CURVE)["horizon"].transform("max")
    return results[results["horizon"] == largest].sort_values([*_RUN, "round"])


def reward_over_benchmark(results: pd.DataFrame) -> pd.DataFrame:
    """Return Σ expected_reward / Σ best_expected_reward up to each round."""
    runs = longest_runs(results)
    sums = runs.groupby(_RUN)[["expected_reward", "best_expected_reward"]].cumsum()
    return _values(runs, sums["expected_reward"] / sums["best_expected_reward"])


def regret_by_horizon(results: pd.DataFrame) -> pd.DataFrame:
    """Return the cumulative regret at the end of each horizon.

    A policy that was run for one horizon only is read off at the others' horizons. Where there is
    one horizon in all, its rounds take the place of horizons.
    """
    runs = results.sort_values([*_RUN, "round"])
    runs = runs.assign(value=runs.groupby(_RUN)["regret"].cumsum())
    if has_horizons(results):
        is_single = runs.groupby(_CURVE)["horizon"].transform("nunique") == 1
        is_read_off = is_single & runs["round"].isin(results["horizon"].unique())
        runs = runs[is_read_off | (runs["round"] == runs["horizon"])]
    return runs[[*_CURVE, "repeat", "round", "value"]].rename(columns={"round": "horizon"})


def has_horizons(results: pd.DataFrame) -> bool:
    """Return whether there are runs for more than one horizon."""
    return results["horizon"].nunique() > 1


def milliseconds(results: pd.DataFrame) -> pd.DataFrame:
    """Return the milliseconds that each round of the longest runs took."""
    runs = longest_runs(results)
    return _values(runs, 1e3 * runs["seconds"])


def smooth_quartiles(values: pd.DataFrame) -> pd.DataFrame:
    """Return `low`, `middle` and `high` quartiles over repeats by round, as running medians."""
    grouped = values.groupby([*_CURVE, "round"])["value"]
    quartiles = grouped.quantile(np.array([0.25, 0.5, 0.75])).unstack()
    quartiles.columns = pd.Index(["low", "middle", "high"])
    windows = quartiles.groupby(level=_CURVE, group_keys=False)
    return windows.apply(lambda rows: rows.rolling(SMOOTHING, center=True, min_periods=1).median())


def held_so_far(results: pd.DataFrame) -> pd.DataFrame:
    """Return 1 while every base arm's mean has been inside its band in all rounds so far."""
    runs = longest_runs(results)
    return _values(runs, runs.groupby(_RUN)["in_band"].cummin())


def cumulative_alpha_regret(results: pd.DataFrame) -> pd.DataFrame:
    """Return the α-regret up to each round; the regret where the table has no α-regret."""
    runs = longest_runs(results)
    regret = runs.get("alpha_regret", runs["regret"]).fillna(runs["regret"])
    return _values(runs, regret.groupby([runs[name] for name in _RUN]).cumsum())


def calibration(results: pd.DataFrame) -> pd.DataFrame:
    """Return the share of outcomes inside the interval of each nominal `level`, in percent."""
    ends = longest_runs(results).groupby(_RUN, as_index=False).last()
    levels = [column for column in ends.columns if re.fullmatch(r"coverage_\d+", column)]
    long = ends.melt([*_CURVE, "repeat"], levels, "level", "value")
    percent = long["level"].str.removeprefix("coverage_").astype(int)
    return long.assign(level=percent, value=100 * long["value"])


def at_the_end(values: pd.DataFrame, by: str = "round") -> pd.DataFrame:
    """Return the rows of the last round (or horizon) of each curve."""
    return values[values[by] == values.groupby(_CURVE)[by].transform("max")]


def knows(results: pd.DataFrame, *columns: str) -> bool:
    """Return whether some row has a finite number in each of the `columns`."""
    return set(columns) <= set(results.columns) and bool(_finite(results, columns).any())


def where_known(results: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the rows with a finite number in each of the `columns`; none is an error."""
    if not knows(results, *columns):
        raise InputError(f"the results have no rows with {' and '.join(columns)}; some are needed")
    return results[_finite(results, columns)]


def spread(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Return `mean`, `std` and `count` over repeats by variant, policy and the columns `by`.

    The standard deviation is that of a sample, and 0 where there is one repeat.
    """
    grouped = values.groupby([*_CURVE, *by])["value"]
    return grouped.agg(["mean", "std", "count"]).fillna({"std": 0.0})


def band(values: pd.DataFrame, x: str, kind: Band = "std") -> pd.DataFrame:
    """Return `middle`, the mean over repeats by `x`, with `low` and `high` around it.

    `kind` is "std", a standard deviation either way; "stderr", a standard error of the mean; or
    "ci95", the 95% confidence interval of the mean (Student's t).
    """
    if kind not in BANDS:
        raise InputError(f"band must be one of {', '.join(BANDS)}; got {kind!r}")
    table = spread(values, x)
    mean, half, count = table["mean"], table["std"], table["count"]
    if kind != "std":
        half = half / np.sqrt(count)
    if kind == "ci95":
        half = half * stdtrit(np.maximum(count - 1, 1), 0.975)
    return pd.DataFrame({"low": mean - half, "middle": mean, "high": mean + half})


def summarise(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return what each policy reached in its longest runs: a row per variant and policy.

    Columns are `reward` (average over that of the benchmark; NaN in variants whose benchmark is not
    above 0 in every repeat) and `regret` (cumulative), each with its `_std` over repeats, and
    `milliseconds`, the median over all rounds and repeats; NaN where no time was taken.
    """
    rounds = complete(rounds)
    longest = longest_runs(rounds)
    reward = spread(at_the_end(reward_over_benchmark(longest)))
    regret = spread(at_the_end(regret_by_horizon(longest), by="horizon"))
    best = longest.groupby(["variant", "policy", "repeat"])["best_expected_reward"].sum()
    has_ratio = best.groupby("variant").min() > 0
    reward[~has_ratio[reward.index.get_level_values("variant")].to_numpy()] = np.nan
    table = pd.DataFrame({"reward": reward["mean"], "reward_std": reward["std"]})
    table = table.assign(regret=regret["mean"], regret_std=regret["std"], milliseconds=np.nan)
    if knows(rounds, "seconds"):
        table["milliseconds"] = milliseconds(rounds).groupby(_CURVE)["value"].median()
    pairs = product(variants(rounds), policies(rounds))
    return table.loc[[pair for pair in pairs if pair in table.index]]


def deltas(results: pd.DataFrame) -> list[float]:
    """Return each δ that policies with a certificate have, ascending; none if unknown."""
    return sorted(results["delta"].dropna().unique()) if "delta" in results else []


def variants(results: pd.DataFrame) -> list[str]:
    """Return each variant once, in the order of the table, which is that of the experiment."""
    return results["variant"].unique().tolist()


def policies(results: pd.DataFrame) -> list[str]:
    """Return each policy's label once, in the order of the table, which is the declared one."""
    return results["policy"].unique().tolist()


def _values(runs: pd.DataFrame, value: pd.Series) -> pd.DataFrame:
    return runs[[*_CURVE, "repeat", "round"]].assign(value=value)


def _finite(results: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series[bool]:
    return pd.DataFrame(np.isfinite(results[list(columns)].astype(float))).all(axis=1)
