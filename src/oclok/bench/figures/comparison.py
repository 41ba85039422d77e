"""Policies against a reference, with paired intervals: a row per policy, a panel per variant."""

from __future__ import annotations

from typing import Literal, TypeAlias, Unpack

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from oclok.bench.analysis import measures
from oclok.bench.analysis.paired import SIGNIFICANCE, choose_reference, compare
from oclok.bench.analysis.tables import complete
from oclok.bench.figures.panels import (
    Options,
    draw_legend,
    label_plainly,
    looks_of,
    make_panels,
    name_axes,
    part,
)
from oclok.bench.figures.style import BLACK, GREY, styled
from oclok.errors import InputError

#: What is compared: the ratio of regrets, or their difference.
Scale: TypeAlias = Literal["ratio", "difference"]


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
    figure, panels = make_panels(variants, options)
    grid_rows = figure.axes[0].get_subplotspec().get_gridspec().nrows  # type: ignore[union-attr]
    figure.set_figheight(grid_rows * (0.45 + 0.19 * len(rows)) + 0.3)
    for variant, axes in panels.items():
        _draw(axes, part(found, variant).reindex(rows), scale, reference)
        axes.set_yticks(range(len(rows)), rows)
        axes.grid(False, axis="y")
    name_axes(figure, f"Regret {'/' if scale == 'ratio' else '−'} that of {reference}")
    figure.axes[0].set_ylim(len(rows) - 0.5, -0.5)
    draw_legend(figure)
    return list(panels.values())


def _draw(axes: Axes, shown: pd.DataFrame, scale: Scale, reference: str) -> None:
    middle, low, high = (shown[f"{scale}{end}"] for end in ("", "_low", "_high"))
    significant = (shown["p_holm"] < SIGNIFICANCE).to_numpy()
    axes.axvline(
        1.0 if scale == "ratio" else 0.0, color=GREY, linewidth=1.0, label=f"As {reference}"
    )
    places = np.arange(len(shown))
    for chosen, face, label in (
        (significant, BLACK, f"Differs (p < {SIGNIFICANCE:g} after Holm's correction)"),
        (~significant, "white", "Not shown to differ"),
    ):
        error = [(middle - low)[chosen], (high - middle)[chosen]]
        if chosen.any():
            axes.errorbar(
                *(middle[chosen], places[chosen]),
                xerr=error,
                fmt="o",
                color=BLACK,
                markerfacecolor=face,
                markersize=4,
                linewidth=1.0,
                label=label,
            )
    if scale == "ratio":
        axes.set_xscale("log")
        label_plainly(axes.xaxis, *axes.get_xlim())
