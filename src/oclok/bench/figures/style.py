"""How a policy looks, the same in all figures: in colour, to the colour-blind, and in print.

Colours are those of Okabe and Ito, and of Tol where more are needed. No two policies of a figure
share a colour up to twelve of them, nor a marker up to twelve that are not the paper's, so each
can be recognised without colour. The paper's headline method is the thickest line and on top;
markers lie above all lines, so that a curve that coincides with another still shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Literal, TypeAlias

import matplotlib as mpl

from oclok.bench.labels import ACC, CC, OCLOK, RANDOM, soclok

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"
INDIGO, OLIVE, WINE, BROWN = "#332288", "#999933", "#882255", "#7A4B12"

#: What a figure has to fit in.
Size: TypeAlias = Literal["one-column", "two-column"]
#: Width in inches of a column, and of the text, of a paper in two columns.
WIDTHS: dict[Size, float] = {"one-column": 3.4, "two-column": 7.0}

#: Matplotlib's settings for all figures; sizes are in points on paper.
SETTINGS: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.4,
    "legend.labelspacing": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "oclok",
    "pdf.fonttype": 42,  # text stays text: journals refuse Type 3 fonts
}

#: Decorates what draws or writes a figure.
styled = mpl.rc_context(SETTINGS)


@dataclass(frozen=True)
class Style:
    """Colour, marker, dashes (on, off, … in line widths; empty is solid) and width of a curve."""

    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.3

    @property
    def zorder(self) -> float:
        """Thick lines come on top of thin ones."""
        return 2.0 + self.width / 10


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """Return a style for each of the `labels`, in their order; the paper's policies have theirs."""
    policies = list(dict.fromkeys(labels))
    taken = {_FIXED[policy].color for policy in policies if policy in _FIXED}
    free = cycle(sorted(_FREE, key=lambda style: style.color in taken))  # new colours first
    return {policy: _FIXED[policy] if policy in _FIXED else next(free) for policy in policies}


_DASH, _SHORT, _DOT, _DASH_DOT = (5, 1.5), (2.5, 1.2), (1, 1), (5, 1.2, 1, 1.2)

_FIXED = {
    OCLOK: Style(BLACK, "o", width=2.6),
    soclok(100): Style(BLUE, "D", width=1.8),
    soclok(50): Style(GREEN, "v", _SHORT, 1.4),
    soclok(20): Style(SKY, "P", _DASH_DOT, 1.4),
    soclok(10): Style(PURPLE, "X", _DOT, 1.6),
    soclok(4): Style(INDIGO, "p", width=1.8),
    soclok(2): Style(OLIVE, "<", _SHORT, 1.4),
    soclok(1): Style(WINE, "h", _DASH_DOT, 1.4),
    ACC: Style(VERMILLION, "^", _DASH, 1.2),
    CC: Style(ORANGE, "s", width=1.8),
    RANDOM: Style(GREY, "*", _DOT, 1.4),
}

_FREE = [
    *(Style(BLUE, ">"), Style(VERMILLION, "d", _DASH), Style(GREEN, "H", _DOT, 1.5)),
    *(Style(PURPLE, "8", _DASH_DOT), Style(BLACK, "x", _SHORT), Style(ORANGE, "+")),
    *(Style(SKY, "1", _DASH), Style(WINE, "2"), Style(INDIGO, "3", _DASH_DOT)),
    *(Style(OLIVE, "4", _SHORT), Style(BROWN, "|", _DOT, 1.5), Style(GREY, ".", _DASH)),
]
