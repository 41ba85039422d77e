"""Tables of rounds → the numbers behind summaries, figures and reports. No Matplotlib here."""

from __future__ import annotations

from oclok.extras import needs

with needs("experiments"):
    from oclok.analysis.paired import compare
    from oclok.analysis.results import Results, load
    from oclok.analysis.summary import show_time, summarise
    from oclok.analysis.tables import complete

__all__ = ["Results", "compare", "complete", "load", "show_time", "summarise"]
