"""The figures of an experiment: a panel per variant, a curve or row per policy.

Each function takes a table of `simulate` or `oclok.bench.experiments.run` and the
options of `oclok.bench.figures.panels.Options`, and returns the Matplotlib axes, one per panel.
"""

from __future__ import annotations

from itertools import product
from typing import Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from oclok.bench.analysis import measures
from oclok.bench.analysis.measures import BELIEVED, BOUNDS
from oclok.bench.analysis.paired import SIGNIFICANCE, choose_reference, compare
from oclok.bench.analysis.tables import complete
from oclok.bench.figures import panels
from oclok.bench.figures.panels import Options, draw_curves, finish, looks_of, make_panels, part
from oclok.bench.figures.style import BLACK, BLUE, GREY, VERMILLION, Style, styled
from oclok.errors import InputError

#: What is compared: the ratio of regrets, or their difference.
Scale: TypeAlias = Literal["ratio", "difference"]


@styled
def average_reward(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the average reward up to round t over the benchmark's."""
    table = complete(table)
    looks = looks_of(table, options)
    values = measures.reward_over_benchmark(table)
    curves = measures.band(values, "round", options.get("band", "std"))
    figure, grid = make_panels(measures.variants(table), options)
    # An average of few rounds is wild: limits are set by the lines after the first tenth.
    rounds = curves.index.get_level_values("round")
    is_shown = (rounds >= rounds.max() / 10) & curves.index.isin(list(looks), level="policy")
    settled = curves.loc[is_shown, "middle"]
    low, high = min(settled.min(), 0.9), max(settled.max(), 1.0)
    margin = 0.05 * (high - low)
    for variant, axes in grid.items():
        draw_curves(axes, part(curves, variant), looks)
        axes.set_ylim(low - margin, high + margin)
        axes.axhline(1.0, color=GREY, label="Benchmark", **panels.DOTTED)
    return finish(figure, "Round t", "Average reward / benchmark", options)


@styled
def cumulative_regret(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the cumulative regret at the end of each horizon T.

    Where there is one horizon only, the regret up to each of its rounds is drawn instead.
    """
    table = complete(table)
    values = measures.regret_by_horizon(table)
    curves = measures.band(values, "horizon", options.get("band", "std"))
    figure, grid = make_panels(measures.variants(table), options, share_y=False)
    for variant, axes in grid.items():
        draw_curves(axes, part(curves, variant), looks_of(table, options))
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))
    x = "Number of rounds T" if measures.has_horizons(table) else "Round t"
    return finish(figure, x, "Cumulative regret", options)


@styled
def time_per_round(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the milliseconds per round on a log scale, median and quartiles over repeats.

    Both are running medians over `oclok.bench.analysis.measures.SMOOTHING` rounds.
    """
    table = measures.where_known(complete(table), "seconds")
    curves = measures.smooth_quartiles(measures.milliseconds(table))
    figure, grid = make_panels(measures.variants(table), options)
    for variant, axes in grid.items():
        draw_curves(axes, part(curves, variant), looks_of(table, options))
        axes.set_yscale("log")
        panels.label_plainly(axes.yaxis, *axes.get_ylim())
    return finish(figure, "Round t", "Time per round (ms)", options)


@styled
def regret_and_bounds(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the α-regret up to each round under two bounds on it, one panel per policy.

    The table needs the columns `certificate_widths`, the sum of 2B√β_t σ over the base arms chosen
    up to this round (Lemma 2), and `certificate_information`, the bound of Theorem 1 with the
    information gain so far. `regret_median`, the posterior's estimate of the regret, is optional.
    """
    known = measures.where_known(complete(table), *BOUNDS)
    runs = measures.longest_runs(known)
    is_believed = BELIEVED.keys() <= set(runs) and runs[list(BELIEVED)].notna().all(axis=None)
    columns = BOUNDS | BELIEVED if is_believed else BOUNDS
    values = {"α-regret": measures.cumulative_alpha_regret(known)}
    values |= {label: runs.assign(value=runs[column]) for column, label in columns.items()}
    kind = options.get("band", "std")
    curves = pd.concat({name: measures.band(rows, "round", kind) for name, rows in values.items()})
    looks = dict(zip(values, _BOUND_STYLES, strict=False))
    there = known.groupby(["variant", "policy"]).groups
    shown = options.get("order", measures.policies(known))
    pairs = [pair for pair in product(measures.variants(known), shown) if pair in there]
    figure, grid = make_panels([" ".join(reversed(pair)).strip() for pair in pairs], options)
    for (variant, policy), axes in zip(pairs, grid.values(), strict=True):
        drawn = pd.DataFrame(curves.xs((variant, policy), level=("variant", "policy")))
        draw_curves(axes, drawn, looks)
        # An α below 1 can make the α-regret negative, which a log scale would hide.
        is_positive = part(drawn, "α-regret")["low"].iloc[-1] > 0
        axes.set_yscale("log" if is_positive else "symlog")
    return finish(figure, "Round t", "Regret up to round t", options)


@styled
def coverage(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the share of repeats in which all bands of Lemma 1 have held up to round t.

    The table needs the column `in_band`, 1 where every base arm's true mean was in its band. With
    `delta`, the share that the lemma promises, 1 - δ, is drawn, too.
    """
    table = complete(table)
    looks = looks_of(table, options)
    known = measures.where_known(table, "in_band")
    known = known[known["policy"].isin(list(looks))]
    curves = measures.band(measures.held_so_far(known), "round")[["middle"]]
    figure, grid = make_panels(measures.variants(known), options)
    deltas = measures.deltas(known)
    for variant, axes in grid.items():
        draw_curves(axes, part(curves, variant), looks)
        for delta in deltas:
            policy = known.loc[known["delta"] == delta, "policy"].iloc[0]
            color = looks[policy].color if len(deltas) > 1 else GREY
            promise = f"Promised: {1 - delta:g}"
            axes.axhline(1 - delta, color=color, label=promise, **panels.DOTTED)
        axes.set_ylim(-0.03, 1.03)
    return finish(figure, "Round t", "Repeats with all bands right", options)


@styled
def calibration(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw how many outcomes lay inside the interval of each nominal level, over all rounds.

    The table needs the columns `coverage_10`, …, `coverage_90`.
    """
    table = complete(table)
    known = measures.where_known(table, "coverage_50")
    curves = measures.band(measures.calibration(known), "level", options.get("band", "std"))
    figure, grid = make_panels(measures.variants(known), options)
    for variant, axes in grid.items():
        draw_curves(axes, part(curves, variant), looks_of(table, options))
        axes.axline((0, 0), (100, 100), **panels.DOTTED, color=GREY, label="Calibrated")
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
    return finish(figure, "Nominal level of the interval (%)", "Outcomes inside it (%)", options)


@styled
def paired_regret(
    table: pd.DataFrame,
    reference: str | None = None,
    scale: Scale = "ratio",
    **options: Unpack[Options],
) -> list[Axes]:
    """Draw the final regret of each policy against a reference, with 95% intervals.

    Args:
        table: with at least two policies and two repeats.
        reference: label of a policy; the first one if left out.
        scale: the "ratio" to the reference's regret, or the "difference". A policy whose ratio is
            not defined, since a regret is not above 0, has none drawn.
        **options: `order` and `size` of `oclok.bench.figures.panels.Options`.
    """
    if scale not in ("ratio", "difference"):
        raise InputError(f'scale must be "ratio" or "difference"; got {scale!r}')
    table = complete(table)
    reference = choose_reference(table, reference)
    found = compare(table, reference)
    rows = [label for label in looks_of(table, options) if label != reference]
    variants = [v for v in measures.variants(table) if v in found.index.unique("variant")]
    if not rows or not variants:
        raise InputError(f"there is no policy to compare with {reference}; at least one is needed")
    figure, grid = make_panels(variants, options, row_height=0.45 + 0.19 * len(rows))
    for variant, axes in grid.items():
        _draw_intervals(axes, part(found, variant).reindex(rows), scale, reference)
        axes.set_yticks(range(len(rows)), rows)
        axes.grid(False, axis="y")
    figure.axes[0].set_ylim(len(rows) - 0.5, -0.5)
    x = f"Regret {'/' if scale == 'ratio' else '−'} that of {reference}"
    return finish(figure, x, "", {**options, "legend": "below"})


def _draw_intervals(axes: Axes, shown: pd.DataFrame, scale: Scale, reference: str) -> None:
    equal = 1.0 if scale == "ratio" else 0.0
    axes.axvline(equal, color=GREY, linewidth=1.0, label=f"As {reference}")
    middle, low, high = (shown[f"{scale}{end}"] for end in ("", "_low", "_high"))
    significant = (shown["p_holm"] < SIGNIFICANCE).to_numpy()
    for chosen, face, label in (
        (significant, BLACK, f"Differs (p < {SIGNIFICANCE:g} after Holm's correction)"),
        (~significant, "white", "Not shown to differ"),
    ):
        if chosen.any():
            axes.errorbar(
                middle[chosen],
                np.flatnonzero(chosen),
                xerr=[(middle - low)[chosen], (high - middle)[chosen]],
                fmt="o",
                color=BLACK,
                markerfacecolor=face,
                markersize=4,
                linewidth=1.0,
                label=label,
            )
    if scale == "ratio":
        axes.set_xscale("log")
        panels.label_plainly(axes.xaxis, *axes.get_xlim())


_BOUND_STYLES = (
    Style(BLACK, "o", width=1.4),
    Style(BLUE, "s", (5, 1.5), 1.4),
    Style(VERMILLION, "^", (1, 1), 1.6),
    Style(GREY, "d", (3, 1, 1, 1), 1.4),
)
