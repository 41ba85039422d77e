"""Problems, simulation, experiments, figures and the paper: an extra beside the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oclok.bench.problems import (
    Channels,
    Codependency,
    Crowdsourcing,
    Drift,
    Groups,
    Movies,
    Problem,
    Round,
    Table,
)

if TYPE_CHECKING:
    from oclok.bench.simulation import simulate

__all__ = [
    "Channels",
    "Codependency",
    "Crowdsourcing",
    "Drift",
    "Groups",
    "Movies",
    "Problem",
    "Round",
    "Table",
    "simulate",
]


def __getattr__(name: str) -> Any:
    """Import `simulate` on first use: problems alone do not need pandas."""
    if name == "simulate":
        from oclok.bench.simulation import simulate

        return simulate
    raise AttributeError(f"module 'oclok.bench' has no attribute {name!r}")
