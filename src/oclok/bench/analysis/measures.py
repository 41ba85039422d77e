"""The numbers behind figures, tables and claims, from a tidy table of rounds.

Functions take a table as `tables.complete` returns it, and return one with a `value`
per row, before any averaging over repeats; `band` then averages.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from oclok.errors import InputError

#: What a band around a mean can be.
Band: TypeAlias = Literal["std", "stderr", "ci95"]
BANDS: dict[Band, str] = {
    "std": "one standard deviation either way",
    "stderr": "one standard error of the mean either way",
    "ci95": "95% confidence intervals of the mean",
}

#: Columns with bounds on the regret up to a round, and what the legend calls them.
BOUNDS = {
    "certificate_widths": "Bound from band widths",
    "certificate_information": "Bound from information gain",
}

#: The column with the regret up to a round as the posterior sees it, and its name in legends.
BELIEVED = {"regret_median": "Regret believed, median"}

#: A running median over this many rounds steadies the clock.
SMOOTHING = 9

_CURVE = ["variant", "policy"]
_RUN = ["variant", "policy", "horizon", "repeat"]


def longest_runs(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rounds of the runs with the largest horizon of each policy, in order."""
    largest = results.groupby(_CURVE)["horizon"].transform("max")
    return results[results["horizon"] == largest].sort_values([*_RUN, "round"])


def reward_over_benchmark(results: pd.DataFrame) -> pd.DataFrame:
    """Return the average expected reward up to each round over that of the benchmark.

    The benchmark gives the round's oracle the true means. Both averages are up to the same round,
    so the value is Σ expected_reward / Σ best_expected_reward.
    """
    runs = longest_runs(results)
    sums = runs.groupby(_RUN)[["expected_reward", "best_expected_reward"]].cumsum()
    value = sums["expected_reward"] / sums["best_expected_reward"]
    return runs[[*_CURVE, "repeat", "round"]].assign(value=value)


def regret_by_horizon(results: pd.DataFrame) -> pd.DataFrame:
    """Return the cumulative regret at the end of each horizon, in the column `value`.

    A policy that was run for one horizon only is read off at the others' horizons. Where there is
    one horizon in all, its rounds take the place of horizons.
    """
    runs = results.sort_values([*_RUN, "round"])
    runs = runs.assign(value=runs.groupby(_RUN)["regret"].cumsum())
    if not has_horizons(results):
        points = runs
    else:
        horizons = results["horizon"].unique()
        is_single = runs.groupby(_CURVE)["horizon"].transform("nunique") == 1
        is_end = runs["round"] == runs["horizon"]
        points = runs[is_end | (is_single & runs["round"].isin(horizons))]
    return points[[*_CURVE, "repeat", "round", "value"]].rename(columns={"round": "horizon"})


def has_horizons(results: pd.DataFrame) -> bool:
    """Return whether there are runs for more than one horizon."""
    return results["horizon"].nunique() > 1


def milliseconds(results: pd.DataFrame) -> pd.DataFrame:
    """Return the milliseconds that each round of the longest runs took."""
    runs = longest_runs(results)
    return runs[[*_CURVE, "repeat", "round"]].assign(value=1e3 * runs["seconds"])


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
    value = runs.groupby(_RUN)["in_band"].cummin()
    return runs[[*_CURVE, "repeat", "round"]].assign(value=value)


def cumulative_alpha_regret(results: pd.DataFrame) -> pd.DataFrame:
    """Return the α-regret up to each round; the regret where the table has no α-regret."""
    runs = longest_runs(results)
    regret = runs["regret"]
    if "alpha_regret" in runs:
        regret = runs["alpha_regret"].fillna(regret)
    value = regret.groupby([runs[name] for name in _RUN]).cumsum()
    return runs[[*_CURVE, "repeat", "round"]].assign(value=value)


def knows(results: pd.DataFrame, *columns: str) -> bool:
    """Return whether there are rows in which all of the `columns` are known, and finite."""
    return set(columns) <= set(results.columns) and bool(_finite(results, columns).any())


def where_known(results: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Return the rows in which all of the `columns` are known, of which there must be some."""
    if not knows(results, *columns):
        raise InputError(f"the results have no rows with {' and '.join(columns)}; some are needed")
    return results[_finite(results, columns)]


def _finite(results: pd.DataFrame, columns: tuple[str, ...]) -> pd.Series[bool]:
    """Return in which rows all of the `columns` are numbers; a bound may be infinite."""
    return pd.DataFrame(np.isfinite(results[list(columns)].astype(float))).all(axis=1)


def at_the_end(values: pd.DataFrame, by: str = "round") -> pd.DataFrame:
    """Return the rows of the last round (or horizon) of each curve."""
    return values[values[by] == values.groupby(_CURVE)[by].transform("max")]


def calibration(results: pd.DataFrame) -> pd.DataFrame:
    """Return the share of outcomes inside the interval of each nominal `level`, in percent."""
    ends = longest_runs(results).groupby(_RUN, as_index=False).last()
    levels = [column for column in ends.columns if re.fullmatch(r"coverage_\d+", column)]
    long = ends.melt([*_CURVE, "repeat"], levels, "level", "value")
    percent = long["level"].str.removeprefix("coverage_").astype(int)
    return long.assign(level=percent, value=100 * long["value"])


def spread(values: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Return `mean`, `std` and `count` over repeats by variant, policy and the columns `by`.

    The standard deviation is that of a sample, and 0 where there is one repeat.
    """
    grouped = values.groupby([*_CURVE, *by])["value"]
    return grouped.agg(["mean", "std", "count"]).fillna({"std": 0.0})


def band(values: pd.DataFrame, x: str, kind: Band = "std") -> pd.DataFrame:
    """Return `middle`, the mean over repeats, with `low` and `high` around it.

    Args:
        values: one `value` per repeat.
        x: column that the curve is over.
        kind: "std", a standard deviation either way; "stderr", a standard error of the mean;
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


def deltas(results: pd.DataFrame) -> list[float]:
    """Return each δ that policies with a certificate have, ascending; none if unknown."""
    return sorted(results["delta"].dropna().unique()) if "delta" in results else []


def variants(results: pd.DataFrame) -> list[str]:
    """Return each variant once, in the order of the table, which is that of the experiment."""
    return list(dict.fromkeys(results["variant"]))


def policies(results: pd.DataFrame) -> list[str]:
    """Return each policy's label once, in the order of the table, which is the declared one."""
    return list(dict.fromkeys(results["policy"]))
