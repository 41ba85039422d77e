"""The pictures of an experiment: a panel per variant, a curve per policy, a band over repeats.

Each function takes `results`, one row per round with the columns that `oclok.analysis.measures`
describes, and returns a Matplotlib figure.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from oclok.analysis import measures
from oclok.analysis.measures import BOUNDS, DELTA
from oclok.figures.panels import (
    PANELS_A_ROW,
    draw_curves,
    draw_level,
    finish,
    label_in_milliseconds,
    label_plainly,
    limit_to_settled,
    make_panels,
    part,
)
from oclok.figures.style import BLACK, BLUE, GREY, VERMILLION, Style, styled, styles
from oclok.labels import OCLOK

#: Intervals of relative regret that reach below this are cut off there: the axis is logarithmic.
LEAST_SHOWN = 0.05


@styled
def average_reward(results: pd.DataFrame) -> Figure:
    """Draw the average reward up to round t over the benchmark's, mean ± std over repeats."""
    values = measures.reward_over_benchmark(results)
    curves = measures.mean_and_band(values, "round")
    figure, panels = make_panels(measures.variants(values))
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), styles(measures.policies(results)))
    limit_to_settled(panels, curves)
    for axes in panels.values():
        draw_level(axes, 1.0, "Benchmark")
    return finish(figure, "Round t", "Average reward / benchmark")


@styled
def cumulative_regret(results: pd.DataFrame) -> Figure:
    """Draw the cumulative regret at the end of each horizon T, mean ± std over repeats.

    Where there is one horizon only, the regret up to each of its rounds is drawn instead.
    """
    values = measures.regret_by_horizon(results)
    curves = measures.mean_and_band(values, "horizon")
    figure, panels = make_panels(measures.variants(values), share_y=False)
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), styles(measures.policies(results)))
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=min(0.0, axes.dataLim.y0))
    x = "Number of rounds T" if measures.has_horizons(results) else "Round t"
    return finish(figure, x, "Cumulative regret")


@styled
def time_per_round(results: pd.DataFrame) -> Figure:
    """Draw the milliseconds that a round takes on a log scale, median and quartiles over repeats.

    Both are running medians over `oclok.analysis.measures.SMOOTHING` rounds.
    """
    values = measures.milliseconds(measures.where_known(results, "seconds"))
    curves = measures.smooth_quartiles(values)
    figure, panels = make_panels(measures.variants(values))
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), styles(measures.policies(results)))
        label_in_milliseconds(axes)
    return finish(figure, "Round t", "Time per round (ms)")


@styled
def regret_and_bounds(results: pd.DataFrame) -> Figure:
    """Draw the α-regret up to each round under two bounds on it, one panel per policy.

    Args:
        results: with the columns `certificate_widths`, the sum of 2B√β_t σ over the chosen base
            arms of all rounds up to this one (Lemma 2), and `certificate_information`, what
            Theorem 1 makes of it with the information gain of the outcomes so far.
    """
    known = measures.where_known(results, *BOUNDS)
    runs = measures.longest_runs(known)
    values = {"α-regret": measures.cumulative_alpha_regret(known)}
    values |= {label: runs.assign(value=runs[column]) for column, label in BOUNDS.items()}
    looks = dict(zip(values, _BOUND_STYLES, strict=True))

    pairs = [
        (variant, policy)
        for variant in measures.variants(known)
        for policy in measures.policies(known[known["variant"] == variant])
    ]
    figure, panels = make_panels([" ".join(reversed(pair)).strip() for pair in pairs])
    tables = {label: measures.mean_and_band(table, "round") for label, table in values.items()}
    for pair, axes in zip(pairs, panels.values(), strict=True):
        curves = pd.concat([part(table, *pair) for table in tables.values()], keys=list(tables))
        draw_curves(axes, curves, looks)
        # An α below 1 can make the α-regret negative, which a log scale would hide.
        is_positive = part(curves, "α-regret")["low"].iloc[-1] > 0
        axes.set_yscale("log" if is_positive else "symlog")
    return finish(figure, "Round t", "Regret up to round t")


@styled
def coverage(results: pd.DataFrame, delta: float = DELTA) -> Figure:
    """Draw the share of repeats in which all bands of Lemma 1 have held up to round t.

    Args:
        results: with the column `in_band`, 1 where every base arm's true mean was in its band.
        delta: the lemma promises a share of at least 1 - δ.
    """
    values = measures.held_so_far(measures.where_known(results, "in_band"))
    curves = measures.mean_and_band(values, "round")[["middle"]]
    figure, panels = make_panels(measures.variants(values))
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), styles(measures.policies(results)))
        draw_level(axes, 1 - delta, f"Promised: {1 - delta:g}")
        axes.set_ylim(-0.03, 1.03)
    return finish(figure, "Round t", "Share of repeats with all bands right")


@styled
def calibration(results: pd.DataFrame) -> Figure:
    """Draw how many outcomes lay inside the interval of each nominal level, over all rounds.

    Args:
        results: with the columns `coverage_10`, …, `coverage_90`.
    """
    values = measures.calibration(measures.where_known(results, "coverage_50"))
    curves = measures.mean_and_band(values, "level")
    figure, panels = make_panels(measures.variants(values))
    for variant, axes in panels.items():
        draw_curves(axes, part(curves, variant), styles(measures.policies(results)))
        axes.plot(
            [0, 100], [0, 100], color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label="Deserved"
        )
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
    return finish(figure, "Interval foreseen (%)", "Outcomes inside it (%)")


@styled
def paired_regret(results: pd.DataFrame, reference: str = OCLOK) -> Figure:
    """Draw each policy's regret relative to a `reference`, with paired 95% intervals."""
    table = measures.paired_regret(results, reference)
    variants = [v for v in measures.variants(results) if v in table.index]
    policies = [p for p in measures.policies(results) if p != reference]
    figure, panels = make_panels(variants)
    rows = -(-len(variants) // PANELS_A_ROW)
    figure.set_size_inches(8.4, rows * (0.9 + 0.19 * len(policies)))
    for variant, axes in panels.items():
        shown = part(table, variant).reindex(policies)
        places = range(len(policies))
        low = shown["low"].clip(lower=LEAST_SHOWN)
        error = [shown["middle"] - low, shown["high"] - shown["middle"]]
        axes.errorbar(shown["middle"], places, xerr=error, fmt="o", color=BLACK, markersize=4)
        axes.axvline(1.0, color=GREY, linewidth=1.0)
        axes.axvline(0.5, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)))
        axes.set_xscale("log")
        label_plainly(axes.xaxis, *axes.get_xlim())
        axes.set_yticks(places, policies)
        axes.set_xlabel(f"Regret / {reference}'s")
    panels[variants[0]].invert_yaxis()
    return figure


_BOUND_STYLES = (
    Style(BLACK, "o", width=1.4),
    Style(BLUE, "s", (5, 1.5), 1.6),
    Style(VERMILLION, "^", (1, 1), 1.8),
)
