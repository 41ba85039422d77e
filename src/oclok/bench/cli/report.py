"""`oclok report`: the figures and the page of results that are there."""
# Tested in tests/bench/cli/test_run.py: commands are tested together.

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from oclok.bench.experiments import ResultsFolder


def report(
    folder: Annotated[Path, typer.Argument(help="Where `oclok run` left its results.")],
    reference: Annotated[
        str | None, typer.Option(help="Label of the policy to compare with; the first if left out.")
    ] = None,
) -> None:
    """Draw the figures and write the report of results that are there.

    For example `oclok report results/crowdsourcing`.
    """
    ResultsFolder(folder).read()
    write_report(folder, reference)


def write_report(folder: Path, reference: str | None = None) -> None:
    """Write the report of `folder` and print where it is."""
    # Imports Matplotlib, which takes a second that no other command should wait for.
    from oclok.bench.report import write

    console = Console(stderr=True)
    with console.status("Reading the results") as status:
        page = write(folder, reference, progress=status.update if console.is_terminal else print)
    print(f"Figures: {folder / 'figures'}\nReport: {page}")
