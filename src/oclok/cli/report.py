"""`oclok report`: the figures and the page of results that are there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oclok.experiments import ResultsFolder


def report(
    folder: Annotated[Path, typer.Argument(help="Where `oclok run` left its results.")],
) -> None:
    """Draw the figures and write the report of results that are there.

    For example `oclok report results/crowdsourcing`.
    """
    ResultsFolder(folder).read()
    write_report(folder)


def write_report(folder: Path) -> None:
    """Write the report of `folder` and print where it is."""
    # Imports Matplotlib, which takes a second that no other command should wait for.
    from oclok.report import write

    page = write(folder)
    print(f"Figures: {folder / 'figures'}\nReport: {page}")
