"""Axes in rows, curves with bands, labels or a legend outside: what all figures are made of.

A curve is a table of `middle`, and of `low` and `high` where it has a band, indexed by policy
and by what the x-axis counts.
"""
# Tested in tests/bench/figures/test_curves.py: panels are what curves are drawn in.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    NullLocator,
)

from oclok.bench.analysis import measures
from oclok.bench.figures.style import GREY, WIDTHS, Size, Style, styles
from oclok.errors import InputError

#: Where the names of curves stand: in a legend below the axes, or at the ends of the curves.
Legend: TypeAlias = Literal["below", "lines"]

_PANELS_PER_ROW: dict[Size, int] = {"one-column": 2, "two-column": 5}
_MOST_POINTS = 200
_MARKERS = 7


class Options(TypedDict, total=False):
    """What can be chosen of every figure.

    Attributes:
        order: labels of the policies to show, in the order of the legend; all, as in the table,
            if left out.
        band: what is shaded around means: "std", "stderr" or "ci95", as `measures.band` says.
        size: "one-column" (3.4 inches) or "two-column" (7 inches).
        legend: "below" the axes, or names at the ends of "lines".
    """

    order: Sequence[str]
    band: measures.Band
    size: Size
    legend: Legend


def make_panels(
    titles: Sequence[str], options: Options, *, share_y: bool = True
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a panel for each of the `titles`, and the panels by title."""
    size = options.get("size", "two-column")
    if size not in WIDTHS:
        raise InputError(f"size must be one of {', '.join(WIDTHS)}; got {size!r}")
    rows = -(-len(titles) // _PANELS_PER_ROW[size])
    columns = -(-len(titles) // rows)
    width = WIDTHS[size]
    height = 0.35 + min(0.62 * width, 2.6) if columns == 1 else 0.3 + rows * 1.8
    figure = Figure(figsize=(width, height), layout="constrained")
    grid = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    panels = dict(zip(titles, grid, strict=False))
    for title, axes in panels.items():
        axes.set_title(title.replace("=", " = "))
        axes.xaxis.set_major_locator(
            MaxNLocator(3 if width / columns < 2.4 else 6, integer=True, steps=[1, 2, 5, 10])
        )
    for axes in grid[len(titles) :]:
        axes.set_axis_off()
    return figure, panels


def looks_of(table: pd.DataFrame, options: Options) -> dict[str, Style]:
    """Return the styles of the policies to show, in their order.

    Styles are given out to all policies of the table, so that they are the same in all its figures.
    """
    known = measures.policies(table)
    shown = list(options.get("order", known))
    for label in shown:
        if label not in known:
            raise InputError(f"order names {label!r}, which is not in the table; it has {known}")
    looks = styles(known)
    return {label: looks[label] for label in shown}


def part(curves: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return the rows whose index starts with `keys`, indexed by the rest."""
    return pd.DataFrame(curves.xs(keys))


def draw_curves(axes: Axes, curves: pd.DataFrame, looks: Mapping[str, Style]) -> None:
    """Draw the curves of one panel, in the order of `looks`."""
    present = [policy for policy in looks if policy in curves.index.get_level_values(0)]
    for i, policy in enumerate(present):
        curve = _thin(part(curves, policy))
        x, look = curve.index.to_numpy(), looks[policy]
        y = curve["middle"].to_numpy()
        size = 7.0 if look.marker == "*" else 4.5  # a star is mostly points
        marked = _staggered(len(x), i, len(present))
        axes.plot(
            *(x, y),
            label=policy,
            color=look.color,
            linestyle=look.linestyle,
            linewidth=look.width,
            zorder=look.zorder,
            marker=look.marker,
            markersize=size,
            # Markers that are lines have no face, and would vanish behind a white edge.
            **({} if look.marker in "x+1234|" else _WHITE_EDGE),
            markevery=marked,
        )
        above: dict[str, Any] = {"marker": look.marker, "color": look.color, "zorder": 2.5}
        axes.scatter(x[marked], y[marked], size**2, linewidths=0.5, **above)
        if "low" in curve and (curve["high"] > curve["low"]).any():
            low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
            axes.fill_between(x, low, high, color=look.color, alpha=0.16, linewidth=0, zorder=1.5)


def draw_level(axes: Axes, y: float, label: str, color: str = GREY) -> None:
    """Draw a thin horizontal line to compare with."""
    axes.axhline(y, color=color, linewidth=1.0, linestyle=(0, (1, 2)), label=label, zorder=1.8)


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
    """Put plain numbers at a logarithmic axis, at 1, 2 and 5 where there is room for them."""
    digits = [1.0] if high / low > 100 else [1.0, 2.0, 5.0]
    if high / low < 6:
        digits = [1.0, 1.5, 2.0, 3.0, 5.0]
    is_narrow = high / low < 2  # none of these digits, or one, may be within
    axis.set_major_locator(MaxNLocator(3) if is_narrow else LogLocator(subs=digits))
    if is_narrow:
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def finish(figure: Figure, x: str, y: str, options: Options) -> list[Axes]:
    """Name axes and curves, and return the axes."""
    panels = [axes for axes in figure.axes if axes.axison]
    name_axes(figure, x, y)
    legend = options.get("legend", "below")
    if legend == "lines":
        for axes in panels:
            _label_lines(axes)
    elif legend == "below":
        draw_legend(figure)
    else:
        raise InputError(f'legend must be "below" or "lines"; got {legend!r}')
    return panels


def name_axes(figure: Figure, x: str, y: str = "") -> None:
    """Name the axes of an only panel, or those of all panels at once: there is no room for each."""
    panels = [axes for axes in figure.axes if axes.axison]
    if len(panels) == 1:
        panels[0].set_ylabel(y)
    else:
        figure.supylabel(y, fontsize="medium")
    lowest = [axes for axes in panels if _row(axes) == _row(panels[-1])]
    # Matplotlib's label for all panels would collide with a legend below them.
    is_odd = len(lowest) % 2 == 1
    lowest[(len(lowest) - 1) // 2].set_xlabel(x, x=0.5 if is_odd else 1.08)


def draw_legend(figure: Figure) -> None:
    """Put one legend below all panels, in as many columns as there is room for."""
    entries: dict[str, Artist] = {}
    for axes in figure.axes:
        entries |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if not entries:
        return
    entry = 0.5 + 0.062 * max(map(len, entries))  # inches: line, gaps and letters
    columns = max(1, min(len(entries), int(figure.get_figwidth() / entry)))
    rows = -(-len(entries) // columns)
    columns = -(-len(entries) // rows)  # as few as these rows need
    figure.set_figheight(figure.get_figheight() + 0.16 * rows)
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)


def _row(axes: Axes) -> int:
    place = axes.get_subplotspec()
    return 0 if place is None else place.rowspan.start


_WHITE_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5}


def _label_lines(axes: Axes) -> None:
    """Write the name of each line at its right end, moved apart where they would overlap."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    gap = 9.5 / (72 * axes.get_position().height * _height(axes))
    ends = [axes.transLimits.transform(axes.transScale.transform(_end(line))) for line in lines]
    heights = _apart([float(np.clip(end[1], 0, 1)) for end in ends], gap)
    for line, y in zip(lines, heights, strict=True):
        axes.annotate(
            str(line.get_label()),
            (1.02, y),
            xycoords="axes fraction",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
        )


def _height(axes: Axes) -> float:
    """Return the height of the figure in inches."""
    return float(axes.figure.bbox.height / axes.figure.dpi)


def _end(line: Artist) -> tuple[float, float]:
    """Return the last point of a line, in data coordinates; a level has its right end at 1."""
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())  # type: ignore[attr-defined]
    return float(x[-1]), float(y[-1])


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Return `heights` moved as little as is simple, none closer than `gap` and none below 0.

    Examples:
        >>> [round(height, 2) for height in _apart([0.5, 0.52, 0.9], 0.1)]
        [0.46, 0.56, 0.9]
        >>> [round(height, 2) for height in _apart([0.0, 0.02, 0.9], 0.1)]
        [0.0, 0.1, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    places = np.array(heights, dtype=float)[order]
    for _ in range(100):
        close = np.flatnonzero(np.diff(places) < gap - 1e-9)
        if not close.size:
            break
        for i in close:
            middle = (places[i] + places[i + 1]) / 2
            places[i], places[i + 1] = middle - gap / 2, middle + gap / 2
    lowest = 0.0
    for position, place in enumerate(places):
        places[position] = max(place, lowest)
        lowest = places[position] + gap - 1e-9
    result = np.empty(len(places))
    result[order] = places
    return result.tolist()


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
