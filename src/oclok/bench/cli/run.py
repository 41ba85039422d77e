"""`oclok run`, `oclok paper` and `oclok report`: run experiments, summarise, report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from oclok.bench.cli.progress import progress_on
from oclok.bench.cli.tables import experiments_table, paired_table, policies_table, summary_table
from oclok.bench.experiments import (
    EXPERIMENTS,
    PAPER,
    Experiment,
    Settings,
    find_experiment,
    table_experiment,
)
from oclok.bench.experiments import run as run_experiment
from oclok.bench.experiments.published import quirks
from oclok.errors import ExperimentError

RESULTS = Path("results")
#: Name of the experiment on a file with data.
OWN_DATA = "table"

Rounds = Annotated[int | None, typer.Option(help="Number of rounds T.")]
Repeats = Annotated[int | None, typer.Option(help="Number of independent repeats.")]
Seed = Annotated[int, typer.Option(help="Where all randomness comes from.")]
Output = Annotated[Path | None, typer.Option(help="Folder for the results.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few rounds and repeats, for a look.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete earlier results and start over.")]
Jobs = Annotated[int | None, typer.Option(help="Number of processes; one per core if left out.")]
Cluster = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler to run on, such as tcp://host:8786.")
]
Reference = Annotated[
    str | None, typer.Option(help="Label of the policy to compare with; the first if left out.")
]
Oracle = Annotated[
    str | None,
    typer.Option(help="Solver of movies: exact (the default), greedy, or tim+, the paper's."),
]
AsPublished = Annotated[
    bool, typer.Option("--as-published", help="With the quirks of the paper's own scripts.")
]


def run(
    context: typer.Context,
    experiment: Annotated[
        str | None,
        typer.Argument(help="A name that --list shows, a file such as mine.py, or module:name."),
    ] = None,
    rounds: Rounds = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    data: Annotated[
        Path | None, typer.Option(help="Real data instead of what comes with oclok.")
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(help="Only these, such as oclok-ucb,acc-ucb; may be repeated."),
    ] = None,
    oracle: Oracle = None,
    as_published: AsPublished = False,
    quirk: Annotated[
        list[str] | None,
        typer.Option(help="With this quirk of the scripts, such as jitter; may be repeated."),
    ] = None,
    k: Annotated[int | None, typer.Option(help="For table: arms to pick in a round.")] = None,
    round_column: Annotated[
        str, typer.Option(help="For table: column that says which round a row belongs to.")
    ] = "round",
    outcome_column: Annotated[
        str, typer.Option(help="For table: column with the outcomes.")
    ] = "outcome",
    features: Annotated[
        list[str] | None,
        typer.Option(
            help="For table: columns that are features, such as price,size; by default all others."
        ),
    ] = None,
    quick: Quick = False,
    output: Output = None,
    fresh: Fresh = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
    reference: Reference = None,
    list_: Annotated[bool, typer.Option("--list", help="Show what can be run.")] = False,
    help_: Annotated[
        bool, typer.Option("--help", help="Show this message, with the policies of EXPERIMENT.")
    ] = False,
) -> None:
    """Run one experiment: of oclok, or your own.

    Finished runs are kept: after Ctrl-C the same command goes on where it was, and after a
    change only the runs that it affects are made again. The same seed gives the same numbers,
    however many cores there are.

    * `oclok run crowdsourcing --quick` takes a look,

    * `oclok run crowdsourcing --data dataset_TSMC2014_TKY.txt` uses real data; see `oclok data`,

    * `oclok run movies --oracle tim+` solves rounds as the paper did,

    * `oclok run movies --as-published` does it all as the paper's scripts do,

    * `oclok run channels --policies oclok-ucb,random --rounds 1000` compares two policies,

    * `oclok run my_experiment.py` runs the experiment in a file of your own,

    * `oclok run table --data my.csv --k 5` compares all policies on your own data.
    """
    if list_:
        Console().print(experiments_table(EXPERIMENTS.values()))
        print(f"\nYour own data: oclok run {OWN_DATA} --data my.csv --k 5")
        print("Your own experiment: oclok run my_experiment.py")
        return
    if experiment is None or (help_ and experiment == OWN_DATA and data is None):
        print(context.get_help())
        return
    if experiment == OWN_DATA:
        chosen = table_experiment(data, k, round_column, outcome_column, _split(features))
    elif k is not None or features:
        raise ExperimentError(
            f"{experiment} takes no --{'features' if features else 'k'}; leave it out"
        )
    else:
        chosen = find_experiment(experiment, EXPERIMENTS)
    if help_:
        print(context.get_help())
        Console().print(policies_table(chosen))
        for name, sentence in quirks.in_scripts(chosen).items():
            print(f"--quirk {name}: {sentence}")
        return
    home = RESULTS / "quick" if quick else RESULTS  # a look is not in the way of the real thing
    if as_published or quirk:
        chosen = quirks.as_published(chosen, quirk or ())
        home /= "+".join(quirk) if quirk else quirks.FOLDER
    settings = chosen.settings(
        rounds=rounds,
        repeats=repeats,
        seed=seed,
        policies=_split(policies),
        quick=quick,
        data=None if data is None else str(data.resolve()),
        oracle=oracle,
    )
    if reference is not None:
        (reference,) = chosen.settings(policies=[reference]).policies
    folder = output or home / chosen.name
    with _interruptible(folder):
        _run_and_report(
            chosen, settings, folder, reference, fresh=fresh, jobs=jobs, cluster=cluster
        )


def paper(
    rounds: Rounds = None,
    repeats: Repeats = None,
    seed: Seed = 0,
    oracle: Oracle = None,
    as_published: AsPublished = False,
    quick: Quick = False,
    output: Output = None,
    fresh: Fresh = False,
    jobs: Jobs = None,
    cluster: Cluster = None,
) -> None:
    """Run all experiments of the paper, each in a folder of its own, with an index page.

    It takes minutes at the paper's settings; `oclok paper --quick` takes a look. For real data,
    use `oclok run` with `--data` and the same folder. With `--as-published`, the simulations
    also run with the quirks of the paper's scripts, and the index page compares the two; each
    repeat has a draw of its own there, as one draw for all of them would decide nothing.
    """
    folder = output or (RESULTS / "quick" if quick else RESULTS)
    planned = [(folder / experiment.name, experiment) for experiment in PAPER]
    for experiment in PAPER if as_published else ():
        names = [name for name in quirks.in_scripts(experiment) if name != quirks.ONE_DRAW]
        if names:
            place = folder / quirks.FOLDER / experiment.name
            planned.append((place, quirks.as_published(experiment, names)))
    with _interruptible(folder):
        for place, experiment in planned:
            settings = experiment.settings(
                rounds=rounds,
                repeats=repeats,
                seed=seed,
                quick=quick,
                oracle=oracle if "oracle" in experiment.options else None,
            )
            _run_and_report(experiment, settings, place, fresh=fresh, jobs=jobs, cluster=cluster)
        from oclok.bench.report import write_index

        print(f"All reports: {write_index(folder, [experiment.name for experiment in PAPER])}")


def report(
    folder: Annotated[Path, typer.Argument(help="Where `oclok run` left its results.")],
    reference: Reference = None,
) -> None:
    """Draw the figures and write the report of results that are there.

    For example `oclok report results/crowdsourcing`.
    """
    # Imports Matplotlib, which takes a second that no other command should wait for.
    from oclok.bench.report import write

    console = Console(stderr=True)
    with console.status("Reading the results") as status:
        page = write(folder, reference, progress=status.update if console.is_terminal else print)
    print(f"Figures: {folder / 'figures'}\nReport: {page}")


def _run_and_report(
    experiment: Experiment,
    settings: Settings,
    folder: Path,
    reference: str | None = None,
    **how: Any,
) -> None:
    with progress_on(Console(stderr=True), experiment.name) as progress:
        results = run_experiment(experiment, settings, folder, progress=progress, **how)
    title = experiment.title or experiment.name
    console = Console()
    console.print(summary_table(results, title, experiment.notes(settings)))
    paired = paired_table(results, reference or settings.policies[0])
    if paired is not None:
        console.print(paired)
    if results.attrs["notes"]:
        print(f"Note: {results.attrs['notes']}")
    report(folder, reference)


def _split(given: list[str] | None) -> list[str]:
    """Return the names in an option that may be repeated and may have several, with commas."""
    return [name for names in given or [] for name in names.split(",")]


@contextmanager
def _interruptible(folder: Path) -> Iterator[None]:
    """Make Ctrl-C end the command with a line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"\noclok: stopped; finished runs are kept in {folder}: the same command "
            "(without --fresh) goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
