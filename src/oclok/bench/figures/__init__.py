"""Tables of rounds → figures: those of the paper, of any experiment, of any simulation."""
# Tested in tests/bench/figures/test_curves.py: it hands on to the files beside it.

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oclok.errors import InputError
from oclok.extras import needs

with needs("bench"):
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from oclok.bench.figures.comparison import paired_regret
    from oclok.bench.figures.curves import (
        average_reward,
        calibration,
        coverage,
        cumulative_regret,
        regret_and_bounds,
        time_per_round,
    )
    from oclok.bench.figures.style import styled

__all__ = [
    "average_reward",
    "calibration",
    "coverage",
    "cumulative_regret",
    "paired_regret",
    "regret_and_bounds",
    "save",
    "time_per_round",
]

#: Formats, and what their files say of their origin: nothing that changes from day to day.
_FORMATS: dict[str, dict[str, str | None]] = {
    ".pdf": {"Creator": "oclok", "CreationDate": None},
    ".svg": {"Date": None},
    ".png": {"Software": "oclok"},
}


@styled
def save(drawn: Figure | Axes | Sequence[Axes], path: str | os.PathLike[str]) -> list[Path]:
    """Write a figure, the same bytes for the same figure, and return the files.

    Args:
        drawn: what a function of this package returned, or a figure.
        path: with the ending .pdf, .svg or .png, that one is written; with none, all three.
    """
    figure = drawn if isinstance(drawn, Figure) else _figure_of(drawn)
    path = Path(path)
    if path.suffix in _FORMATS:
        files = [path]
    else:
        files = [path.with_name(path.name + ending) for ending in _FORMATS]
    for file in files:
        is_svg = file.suffix == ".svg"  # pages show it on their own background, light or dark
        figure.savefig(file, dpi=200, metadata=_FORMATS[file.suffix], transparent=is_svg)
    return files


def _figure_of(drawn: Axes | Sequence[Axes]) -> Figure:
    axes = drawn if isinstance(drawn, Axes) else next(iter(drawn), None)
    figure = axes.figure if isinstance(axes, Axes) else None
    if not isinstance(figure, Figure):
        raise InputError(f"expected a Matplotlib figure or axes; got {drawn!r}")
    return figure
