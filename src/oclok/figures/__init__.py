"""Tables of rounds → pictures: the figures of the paper, of any experiment."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from oclok.figures.curves import (
    average_reward,
    calibration,
    coverage,
    cumulative_regret,
    paired_regret,
    regret_and_bounds,
    time_per_round,
)
from oclok.figures.style import styled

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


@styled
def save(figure: Figure, path: Path) -> None:
    """Write `figure` as `path` with .png and with .svg, the same bytes for the same figure."""
    figure.savefig(path.with_suffix(".png"), dpi=200, metadata={"Software": "oclok"})
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
