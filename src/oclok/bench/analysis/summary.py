"""The results in one table: a row per variant and policy."""

from __future__ import annotations

import math

import pandas as pd

from oclok.bench.analysis import measures
from oclok.bench.analysis.tables import complete


def summarise(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return what each policy reached in its longest runs.

    Args:
        rounds: one row per round, as `oclok.bench.analysis.measures` describes.

    Returns:
        Indexed by `variant` and `policy`, with the columns `reward` (average over that of the
        benchmark; NaN in variants whose benchmark is not above 0 in every repeat, where such a
        ratio means nothing) and `regret` (cumulative), each with its `_std` over repeats, and
        `milliseconds`, the median over all rounds and repeats; NaN where no time was taken.
    """
    rounds = complete(rounds)
    longest = measures.longest_runs(rounds)
    reward = measures.spread(measures.at_the_end(measures.reward_over_benchmark(longest)))
    regret = measures.spread(measures.at_the_end(measures.regret_by_horizon(longest), by="horizon"))
    table = pd.DataFrame(
        {
            "reward": reward["mean"],
            "reward_std": reward["std"],
            "regret": regret["mean"],
            "regret_std": regret["std"],
            "milliseconds": float("nan"),
        }
    )
    best = longest.groupby(["variant", "policy", "repeat"])["best_expected_reward"].sum()
    has_ratio = best.groupby("variant").min() > 0
    variant = table.index.get_level_values("variant")
    table.loc[~has_ratio[variant].to_numpy(), ["reward", "reward_std"]] = float("nan")
    if measures.knows(rounds, "seconds"):
        times = measures.milliseconds(rounds).groupby(["variant", "policy"])["value"].median()
        table["milliseconds"] = times
    order = [
        (variant, policy)
        for variant in measures.variants(rounds)
        for policy in measures.policies(rounds)
        if (variant, policy) in table.index
    ]
    return table.loc[order]


def show_time(milliseconds: float) -> str:
    """Return a time with three digits, in the unit that suits it.

    Examples:
        >>> [show_time(t) for t in (0.3, 12.5, 250.0, 65_000.0)]
        ['0.300 ms', '12.5 ms', '250 ms', '65.0 s']
    """
    number, unit = (milliseconds, "ms") if milliseconds < 1e3 else (milliseconds / 1e3, "s")
    if not number > 0:
        return "–"
    return f"{number:.{max(0, 2 - math.floor(math.log10(number)))}f} {unit}"
