"""The command line: parse, call, print."""
# Tested in tests/bench/cli/test_run.py: the commands are run there.

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oclok import __version__
from oclok.bench import datasets
from oclok.bench.cli import run
from oclok.service import cli as service_cli

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Decide sets under uncertainty: simulate, compare, report, serve.",
)
app.command(add_help_option=False)(run.run)  # its --help also knows experiments
app.command()(run.paper)
app.command()(run.report)
service_cli.add_commands(app)


data_app = typer.Typer(help="Real data for the simulations, and where to get them.")


@data_app.callback()
def data(context: typer.Context) -> None:
    """List the real data that simulations can use; none is needed, as stand-ins come with oclok.

    `oclok data check PATH` says whether a copy is good; `oclok run … --data PATH` uses it.
    """
    if context.invoked_subcommand is None:
        print(datasets.CATALOGUE)


@data_app.command()
def check(path: Annotated[Path, typer.Argument(help="A file or folder with data.")]) -> None:
    """Read data and print a summary."""
    print(datasets.check(path))


app.add_typer(data_app, name="data", invoke_without_command=True)


@app.callback(invoke_without_command=True)
def _oclok(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"oclok {__version__}")
        raise typer.Exit
