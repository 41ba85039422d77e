"""The published scripts' own ways, for repeating the paper's numbers; nothing else uses them."""

from __future__ import annotations

from oclok.bench.experiments.published.quirks import (
    FOLDER,
    ONE_DRAW,
    QUIRKS,
    as_published,
    in_scripts,
)

__all__ = ["FOLDER", "ONE_DRAW", "QUIRKS", "as_published", "in_scripts"]
