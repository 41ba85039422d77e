"""Axes in rows, curves with bands, one legend outside: what all figures are made of.

A curve is a table of `middle`, and of `low` and `high` where it has a band, indexed by policy
and by what the x-axis counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from oclok.figures.style import GREY, Style

PANELS_A_ROW = 5
_MOST_POINTS = 200
_MARKERS = 7


def make_panels(titles: Sequence[str], *, share_y: bool = True) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a panel for each of the `titles`, and the panels by title."""
    rows = -(-len(titles) // PANELS_A_ROW)
    columns = -(-len(titles) // rows)
    width = 6.4 if columns == 1 else min(3.0 + 1.2 * columns, 8.4)
    height = 3.4 if columns == 1 else 0.9 + 2.3 * rows
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    panels = dict(zip(titles, grid, strict=False))
    for title, axes in panels.items():
        axes.set_title(title.replace("=", " = "))
        axes.xaxis.set_major_locator(MaxNLocator(3 if columns > 2 else 6, integer=True))
    for axes in grid[len(titles) :]:
        axes.set_axis_off()
    return figure, panels


def part(curves: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return the rows whose index starts with `keys`, indexed by the rest."""
    return pd.DataFrame(curves.xs(keys))


def draw_curves(axes: Axes, curves: pd.DataFrame, looks: Mapping[str, Style]) -> None:
    """Draw the curves of one panel, in the order of `looks`."""
    present = [policy for policy in looks if policy in curves.index.get_level_values(0)]
    for i, policy in enumerate(present):
        curve = _thin(part(curves, policy))
        x, look = curve.index.to_numpy(), looks[policy]
        axes.plot(
            *(x, curve["middle"].to_numpy()),
            label=policy,
            color=look.color,
            linestyle=look.linestyle,
            linewidth=look.width,
            zorder=look.zorder,
            marker=look.marker,
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            markevery=_staggered(len(x), i, len(present)),
        )
        if "low" in curve and (curve["high"] > curve["low"]).any():
            low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
            axes.fill_between(x, low, high, color=look.color, alpha=0.16, linewidth=0, zorder=1.5)


def draw_level(axes: Axes, y: float, label: str) -> None:
    """Draw a thin horizontal line to compare with."""
    axes.axhline(y, color=GREY, linewidth=1.0, linestyle=(0, (1, 2)), label=label, zorder=1.8)


def limit_to_settled(panels: Mapping[str, Axes], curves: pd.DataFrame) -> None:
    """Choose y-limits by the lines after the first tenth: an average of few rounds is wild."""
    rounds = curves.index.get_level_values(-1)
    settled = curves.loc[rounds >= rounds.max() / 10, "middle"]
    low, high = min(settled.min(), 0.9), max(settled.max(), 1.0)
    margin = 0.05 * (high - low)
    for axes in panels.values():
        axes.set_ylim(low - margin, high + margin)


def label_in_milliseconds(axes: Axes) -> None:
    """Make the y-axis logarithmic, with plain numbers."""
    axes.set_yscale("log")
    label_plainly(axes.yaxis, *axes.get_ylim())


def label_plainly(axis: Axis, low: float, high: float) -> None:
    """Put plain numbers at a logarithmic axis, at 1, 2 and 5 where there is room."""
    digits = (1.0, 2.0, 5.0) if high / low < 100 else (1.0,)
    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def finish(figure: Figure, x: str, y: str) -> Figure:
    """Name the axes and put one legend outside of them, where it hides no curve."""
    panels = [axes for axes in figure.axes if axes.axison]
    entries: dict[str, Artist] = {}
    for axes in panels:
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    for axes in panels:
        place = axes.get_subplotspec()
        if place is not None and place.is_first_col():
            axes.set_ylabel(y)
        axes.set_xlabel(x)
    handles, labels = list(entries.values()), list(entries)
    if len(panels) == 1:
        figure.legend(handles, labels, loc="outside right upper")
    else:
        entry = 0.65 + 0.06 * max(map(len, labels))  # inches: line, gaps and letters
        columns = max(1, min(len(labels), 4, int(figure.get_figwidth() / entry)))
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
    return figure


def _thin(curve: pd.DataFrame) -> pd.DataFrame:
    """Return at most `_MOST_POINTS` rows, the first and the last among them."""
    count = min(len(curve), _MOST_POINTS)
    return curve.iloc[np.linspace(0, len(curve) - 1, count).round().astype(int)]


def _staggered(points: int, curve: int, curves: int) -> slice:
    """Return which points of a curve get a marker: all if few, else some that no other marks.

    Markers at the same points would hide the curves below one that coincides with them.
    """
    step = max(points // _MARKERS, curves)
    return slice(curve * step // curves, None, step) if points > curves else slice(None)
