"""Tables of rounds → the numbers behind summaries, figures and reports. No Matplotlib here."""

from oclok.extras import needs

with needs("bench"):
    from oclok.bench.analysis.measures import summarise
    from oclok.bench.analysis.paired import compare
    from oclok.bench.analysis.tables import Results, complete, load

__all__ = ["Results", "compare", "complete", "load", "summarise"]
