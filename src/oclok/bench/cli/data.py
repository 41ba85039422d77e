"""`oclok data`: the real data that simulations can use."""
# Tested in tests/bench/cli/test_run.py: commands are tested together.

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oclok.bench import datasets

data_app = typer.Typer(help="Real data for the simulations: what there is, and where to get it.")


@data_app.callback()
def data(context: typer.Context) -> None:
    """List the real data that simulations can use; none is needed, as stand-ins come with oclok.

    `oclok data check PATH` says whether a copy is good; `oclok run … --data PATH` uses it.
    """
    if context.invoked_subcommand is not None:
        return
    for item in datasets.catalogue():
        print(
            f"{item.name}, for `oclok run {item.simulation}`\n"
            f"  get it from  {item.home}\n"
            f"  size         {item.size}\n"
            f"  licence      {item.licence}\n"
            f"  give         --data {item.give}\n"
        )


@data_app.command()
def check(path: Annotated[Path, typer.Argument(help="A file or folder with data.")]) -> None:
    """Read data and say what they hold."""
    print(datasets.check(path))
