"""The figures of an experiment: a panel per variant, a curve per policy, a band over repeats.

Each function takes a table of `simulate` or `oclok.bench.experiments.run` and the
options of `oclok.bench.figures.panels.Options`, and returns the Matplotlib axes, one per panel.
"""

from __future__ import annotations

from typing import Unpack

import pandas as pd
from matplotlib.axes import Axes

from oclok.bench.analysis import measures
from oclok.bench.analysis.measures import BELIEVED, BOUNDS
from oclok.bench.analysis.tables import complete
from oclok.bench.figures.panels import (
    Options,
    draw_curves,
    draw_level,
    finish,
    label_in_milliseconds,
    limit_to_settled,
    looks_of,
    make_panels,
    part,
)
from oclok.bench.figures.style import BLACK, BLUE, GREY, VERMILLION, Style, styled


@styled
def average_reward(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the average reward up to round t over the benchmark's."""
    table = complete(table)
    looks = looks_of(table, options)
    curves = measures.band(
        measures.reward_over_benchmark(table), "round", options.get("band", "std")
    )
    figure, panels = make_panels(measures.variants(table), options)
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), looks)
    limit_to_settled(panels, curves[curves.index.isin(list(looks), level="policy")])
    for axes in panels.values():
        draw_level(axes, 1.0, "Benchmark")
    return finish(figure, "Round t", "Average reward / benchmark", options)


@styled
def cumulative_regret(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the cumulative regret at the end of each horizon T.

    Where there is one horizon only, the regret up to each of its rounds is drawn instead.
    """
    table = complete(table)
    values = measures.regret_by_horizon(table)
    curves = measures.band(values, "horizon", options.get("band", "std"))
    figure, panels = make_panels(measures.variants(table), options, share_y=False)
    for variant, axes in panels.items():
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
    figure, panels = make_panels(measures.variants(table), options)
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), looks_of(table, options))
        label_in_milliseconds(axes)
    return finish(figure, "Round t", "Time per round (ms)", options)


@styled
def regret_and_bounds(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the α-regret up to each round under two bounds on it, one panel per policy.

    Args:
        table: with the columns `certificate_widths`, the sum of 2B√β_t σ over the chosen base
            arms of all rounds up to this one (Lemma 2), and `certificate_information`, what
            Theorem 1 makes of it with the information gain of the outcomes so far; and perhaps
            `regret_median`, what the posterior believes the regret to be.
        **options: see `Options`.
    """
    known = measures.where_known(complete(table), *BOUNDS)
    runs = measures.longest_runs(known)
    values = {"α-regret": measures.cumulative_alpha_regret(known)}
    columns = BOUNDS
    if BELIEVED.keys() <= set(runs.columns) and runs[list(BELIEVED)].notna().all(axis=None):
        columns = BOUNDS | BELIEVED
    values |= {label: runs.assign(value=runs[column]) for column, label in columns.items()}
    looks = dict(zip(values, _BOUND_STYLES, strict=False))

    shown = options.get("order", measures.policies(known))
    pairs = [
        (variant, policy)
        for variant in measures.variants(known)
        for policy in shown
        if policy in set(known.loc[known["variant"] == variant, "policy"])
    ]
    figure, panels = make_panels([" ".join(reversed(pair)).strip() for pair in pairs], options)
    kind = options.get("band", "std")
    tables = {label: measures.band(found, "round", kind) for label, found in values.items()}
    for pair, axes in zip(pairs, panels.values(), strict=True):
        curves = pd.concat([part(found, *pair) for found in tables.values()], keys=list(tables))
        draw_curves(axes, curves, looks)
        # An α below 1 can make the α-regret negative, which a log scale would hide.
        is_positive = part(curves, "α-regret")["low"].iloc[-1] > 0
        axes.set_yscale("log" if is_positive else "symlog")
    return finish(figure, "Round t", "Regret up to round t", options)


@styled
def coverage(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw the share of repeats in which all bands of Lemma 1 have held up to round t.

    Args:
        table: with the columns `in_band`, 1 where every base arm's true mean was in its band, and
            `delta`: the lemma promises a share of at least 1 - δ.
        **options: see `Options`.
    """
    table = complete(table)
    looks = looks_of(table, options)
    known = measures.where_known(table, "in_band")
    known = known[known["policy"].isin(list(looks))]
    curves = measures.band(measures.held_so_far(known), "round")[["middle"]]
    figure, panels = make_panels(measures.variants(known), options)
    deltas = measures.deltas(known)
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), looks)
        for delta in deltas:
            policy = known.loc[known["delta"] == delta, "policy"].iloc[0]
            color = looks[policy].color if len(deltas) > 1 else GREY
            draw_level(axes, 1 - delta, f"Promised: {1 - delta:g}", color)
        axes.set_ylim(-0.03, 1.03)
    return finish(figure, "Round t", "Repeats with all bands right", options)


@styled
def calibration(table: pd.DataFrame, **options: Unpack[Options]) -> list[Axes]:
    """Draw how many outcomes lay inside the interval of each nominal level, over all rounds.

    Args:
        table: with the columns `coverage_10`, …, `coverage_90`.
        **options: see `Options`.
    """
    table = complete(table)
    known = measures.where_known(table, "coverage_50")
    curves = measures.band(measures.calibration(known), "level", options.get("band", "std"))
    figure, panels = make_panels(measures.variants(known), options)
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), looks_of(table, options))
        axes.plot(
            *([0, 100], [0, 100]),
            color=GREY,
            linewidth=1.0,
            linestyle=(0, (1, 2)),
            label="Calibrated",
        )
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
    return finish(figure, "Nominal level of the interval (%)", "Outcomes inside it (%)", options)


_BOUND_STYLES = (
    Style(BLACK, "o", width=1.4),
    Style(BLUE, "s", (5, 1.5), 1.4),
    Style(VERMILLION, "^", (1, 1), 1.6),
    Style(GREY, "d", (3, 1, 1, 1), 1.4),
)
