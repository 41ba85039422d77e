"""How a policy looks, the same in all figures: in colour, to the colour-blind, and in print.

Colours are those of Okabe and Ito. No two policies share a marker, so each can be told apart
without colour; thick lines are drawn below thin ones, so that one curve on top of another hides
neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl

from oclok.labels import ACC, CC, OCLOK, RANDOM, soclok

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"

#: Matplotlib's settings for all figures; sizes are in points on paper.
SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "oclok",
}

#: Decorates what draws or writes a figure.
styled = mpl.rc_context(SETTINGS)


@dataclass(frozen=True)
class Style:
    """Colour, marker, dashes (on, off, … in line widths; empty is solid) and width of a curve."""

    color: str
    marker: str
    dashes: tuple[float, ...] = ()
    width: float = 1.5

    @property
    def linestyle(self) -> tuple[float, tuple[float, ...] | None]:
        """The dashes as Matplotlib wants them."""
        return (0.0, self.dashes or None)

    @property
    def zorder(self) -> float:
        """Thick lines come first and thin ones on top."""
        return 3.0 - self.width / 10


def styles(labels: Iterable[str]) -> dict[str, Style]:
    """Return a style for each of the `labels`, those of the paper's policies being fixed."""
    policies = list(dict.fromkeys(labels))
    result = {policy: _FIXED[policy] for policy in policies if policy in _FIXED}
    taken = {style.marker for style in result.values()}
    free = [style for style in _FREE if style.marker not in taken]
    others = [policy for policy in policies if policy not in result]
    result |= {policy: free[i % len(free)] for i, policy in enumerate(others)}
    return {policy: result[policy] for policy in policies}


_DASH, _SHORT, _DOT, _DASH_DOT = (5, 1.5), (2.5, 1.2), (1, 1), (5, 1.2, 1, 1.2)

_FIXED = {
    OCLOK: Style(BLACK, "o", width=1.0),
    soclok(100): Style(BLUE, "D", width=4.2),
    soclok(50): Style(GREEN, "v", _SHORT, 2.6),
    soclok(20): Style(SKY, "P", _DASH_DOT, 1.8),
    soclok(10): Style(PURPLE, "X", _DOT, 2.0),
    soclok(4): Style(BLUE, "p", width=4.2),
    soclok(2): Style(GREEN, "<", _SHORT, 2.6),
    soclok(1): Style(SKY, "h", _DASH_DOT, 1.8),
    ACC: Style(VERMILLION, "^", _DASH, 1.4),
    CC: Style(ORANGE, "s", width=3.0),
    RANDOM: Style(GREY, "*", _DOT, 1.4),
}

_FREE = [
    Style(PURPLE, ">", width=1.6),
    Style(GREEN, "d", _DASH, 1.2),
    Style(BLUE, "H", _DOT, 1.6),
    Style(GREY, "8", _DASH_DOT, 1.6),
    *(Style(PURPLE, ".", _SHORT, 1.2), Style(VERMILLION, "|", _DOT, 1.8)),
    *(Style(SKY, "1", width=1.2), Style(ORANGE, "2", _SHORT, 1.4), Style(BLACK, "3", _DOT, 1.4)),
    *(Style(BLUE, "4", width=1.2), Style(GREY, "x", width=1.2), Style(GREEN, "+", _DOT, 1.4)),
    # The paper's movies need no more than three of its sparse policies: their markers are spare.
    *(Style(SKY, "h", _DASH_DOT, 1.8), Style(GREEN, "<", _SHORT, 2.6)),
]
