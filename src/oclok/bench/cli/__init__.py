"""The command line: parse, call, print. One file per group of commands."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from oclok import __version__
from oclok.bench.cli import data, report, run
from oclok.errors import OclokError
from oclok.service import cli as service_cli

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Decide sets under uncertainty: simulate, compare, report, serve.",
)
app.command(add_help_option=False)(run.run)  # its --help also knows experiments
app.command()(run.paper)
app.command()(report.report)
app.add_typer(data.data_app, name="data", invoke_without_command=True)
service_cli.add_commands(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with `arguments`, those of the process if left out."""
    try:
        app(arguments, prog_name="oclok")
    except OclokError as error:
        print(f"oclok: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _oclok(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"oclok {__version__}")
        raise typer.Exit
