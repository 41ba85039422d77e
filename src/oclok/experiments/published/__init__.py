"""The published scripts' own ways, for repeating the paper's numbers; nothing else uses them."""

from __future__ import annotations

from oclok.experiments.published.quirks import FOLDER, QUIRKS, Quirk, as_published, concerns

__all__ = ["FOLDER", "QUIRKS", "Quirk", "as_published", "concerns"]
