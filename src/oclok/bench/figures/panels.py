"""Axes in rows, curves with bands, labels or a legend outside: what all figures are made of.

A curve is a table of `middle`, and of `low` and `high` where it has a band, indexed by policy
and by what the x-axis counts.
"""
# Tested in tests/bench/figures/test_curves.py: panels are what curves are drawn in.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from oclok.bench.analysis import measures
from oclok.bench.figures.style import WIDTHS, Size, Style, styled, styles
from oclok.errors import InputError
from oclok.typing import FloatArray

#: Where the names of curves stand: in a legend below the axes, or at the ends of the curves.
Legend: TypeAlias = Literal["below", "lines"]

#: A line to compare with.
DOTTED: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (1, 2)), "zorder": 1.8}

#: Formats, and what their files say of their origin: nothing that changes from day to day.
_FORMATS: dict[str, dict[str, str | None]] = {
    ".pdf": {"Creator": "oclok", "CreationDate": None},
    ".svg": {"Date": None},
    ".png": {"Software": "oclok"},
}
_PANELS_PER_ROW: dict[Size, int] = {"one-column": 2, "two-column": 5}
_MOST_POINTS = 200
_MARKERS = 7


class Options(TypedDict, total=False):
    """What can be chosen of every figure.

    Attributes:
        order: labels of the policies to show, in the order of the legend; all, as in the table,
            if left out.
        band: the shaded area around means: "std", "stderr" or "ci95", as `measures.band` says.
        size: "one-column" (3.4 inches) or "two-column" (7 inches).
        legend: "below" the axes, or names at the ends of "lines".
    """

    order: Sequence[str]
    band: measures.Band
    size: Size
    legend: Legend


@styled
def save(drawn: Figure | Axes | Sequence[Axes], path: str | os.PathLike[str]) -> list[Path]:
    """Write a figure, the same bytes for the same figure, and return the files.

    Args:
        drawn: a figure, or the axes that a function of this package returned.
        path: with the ending .pdf, .svg or .png, that one is written; with none, all three.
    """
    axes = drawn if isinstance(drawn, Axes | Figure) else next(iter(drawn), None)
    figure = axes.figure if isinstance(axes, Axes) else axes
    if not isinstance(figure, Figure):
        raise InputError(f"expected a Matplotlib figure or axes; got {drawn!r}")
    path = Path(path)
    is_one = path.suffix in _FORMATS
    files = [path] if is_one else [path.with_name(path.name + ending) for ending in _FORMATS]
    for file in files:
        is_svg = file.suffix == ".svg"  # pages show it on their own background, light or dark
        figure.savefig(file, dpi=200, metadata=_FORMATS[file.suffix], transparent=is_svg)
    return files


def make_panels(
    titles: Sequence[str], options: Options, *, share_y: bool = True, row_height: float = 0.0
) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with a panel for each of the `titles`, and the panels by title."""
    size = options.get("size", "two-column")
    if size not in WIDTHS:
        raise InputError(f"size must be one of {', '.join(WIDTHS)}; got {size!r}")
    width = WIDTHS[size]
    rows = -(-len(titles) // _PANELS_PER_ROW[size])
    columns = -(-len(titles) // rows)
    usual = 0.05 + min(0.62 * width, 2.6) if columns == 1 else 1.8
    figure = Figure(figsize=(width, 0.3 + rows * (row_height or usual)), layout="constrained")
    grid = list(figure.subplots(rows, columns, sharey=share_y, squeeze=False).flat)
    panels = dict(zip(titles, grid, strict=False))
    for title, axes in panels.items():
        axes.set_title(title.replace("=", " = "))
        ticks = 3 if width / columns < 2.4 else 6
        axes.xaxis.set_major_locator(MaxNLocator(ticks, integer=True, steps=[1, 2, 5, 10]))
    for axes in grid[len(titles) :]:
        axes.set_axis_off()
    return figure, panels


def looks_of(table: pd.DataFrame, options: Options) -> dict[str, Style]:
    """Return the styles of the policies to show, in their order.

    Styles are given out to all policies of the table, so that they are the same in all its figures.
    """
    known = measures.policies(table)
    shown = list(options.get("order", known))
    for label in (label for label in shown if label not in known):
        raise InputError(f"order names {label!r}, which is not in the table; it has {known}")
    looks = styles(known)
    return {label: looks[label] for label in shown}


def part(curves: pd.DataFrame, key: str) -> pd.DataFrame:
    """Return the rows whose index starts with `key`, indexed by the rest."""
    return pd.DataFrame(curves.xs(key))


def draw_curves(axes: Axes, curves: pd.DataFrame, looks: Mapping[str, Style]) -> None:
    """Draw the curves of one panel, in the order of `looks`."""
    present = [policy for policy in looks if policy in curves.index.get_level_values(0)]
    for i, policy in enumerate(present):
        curve = _thin(part(curves, policy))
        x, look = curve.index.to_numpy(), looks[policy]
        y = curve["middle"].to_numpy()
        size = 7.0 if look.marker == "*" else 4.5  # a star is mostly points
        marked = _staggered(len(x), i, len(present))
        # Markers that are lines have no face, and would vanish behind a white edge.
        edge = {} if look.marker in "x+1234|" else _WHITE_EDGE
        axes.plot(
            *(x, y),
            label=policy,
            color=look.color,
            linestyle=(0.0, look.dashes or None),
            linewidth=look.width,
            zorder=look.zorder,
            marker=look.marker,
            markersize=size,
            markevery=marked,
            **edge,
        )
        above: dict[str, Any] = {"marker": look.marker, "color": look.color, "zorder": 2.5}
        axes.scatter(x[marked], y[marked], size**2, linewidths=0.5, **above)
        if "low" in curve and (curve["high"] > curve["low"]).any():
            low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
            axes.fill_between(x, low, high, color=look.color, alpha=0.16, linewidth=0, zorder=1.5)


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
    _name_axes(figure, panels, x, y)
    legend = options.get("legend", "below")
    if legend == "lines":
        for axes in panels:
            _label_lines(axes)
    elif legend == "below":
        _draw_legend(figure)
    else:
        raise InputError(f'legend must be "below" or "lines"; got {legend!r}')
    return panels


def _name_axes(figure: Figure, panels: Sequence[Axes], x: str, y: str) -> None:
    """Name the axes of an only panel, or those of all panels at once: there is no room for each."""
    if len(panels) == 1:
        panels[0].set_ylabel(y)
    else:
        figure.supylabel(y, fontsize="medium")
    rows = [place.rowspan.start for axes in panels if (place := axes.get_subplotspec())]
    lowest = [axes for axes, row in zip(panels, rows, strict=True) if row == rows[-1]]
    # Matplotlib's label for all panels would collide with a legend below them.
    is_odd = len(lowest) % 2 == 1
    lowest[(len(lowest) - 1) // 2].set_xlabel(x, x=0.5 if is_odd else 1.08)


def _draw_legend(figure: Figure) -> None:
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


_WHITE_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5}


def _label_lines(axes: Axes) -> None:
    """Write the name of each line at its right end, moved apart where they would overlap."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    height = axes.figure.bbox.height / axes.figure.dpi  # inches
    gap = 9.5 / (72 * axes.get_position().height * height)
    points = [np.asarray(line.get_xydata())[-1] for line in lines]
    ends = (axes.transScale + axes.transLimits).transform(points)[:, 1]
    for line, y in zip(lines, _apart(np.clip(ends, 0, 1), gap), strict=True):
        axes.annotate(
            str(line.get_label()),
            (1.02, y),
            xycoords="axes fraction",
            va="center",
            color=line.get_color(),
            annotation_clip=False,
        )


def _apart(heights: FloatArray, gap: float) -> FloatArray:
    """Return `heights` moved down where they are closer than `gap`, and up from below 0.

    >>> _apart(np.array([0.52, 0.5, 0.9]), 0.1).round(2).tolist()
    [0.52, 0.42, 0.9]
    >>> _apart(np.array([0.0, 0.02, 0.9]), 0.1).round(2).tolist()
    [0.0, 0.1, 0.9]
    """
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(heights))
    lowered = np.minimum.accumulate((heights[order] - steps)[::-1])[::-1]
    places = np.empty(len(heights))
    places[order] = np.maximum(lowered, 0) + steps
    return places


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
