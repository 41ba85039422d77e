"""Run an experiment: on all cores or a cluster, kept run by run, the same table wherever it ran."""
# Tested in tests/bench/experiments/test_runner.py: runs.
# Tested in tests/bench/experiments/test_backends.py: where they are done.

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from itertools import groupby
from typing import Any

import pandas as pd
from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from oclok import __version__
from oclok.bench.experiments.base import Experiment, Run, Settings, seeds
from oclok.bench.experiments.folder import ResultsFolder
from oclok.bench.experiments.specs import show
from oclok.bench.simulation import simulate
from oclok.errors import ExperimentError
from oclok.validation import as_count

#: Seconds after which a cluster that does not answer is given up.
PATIENCE = 5

#: Tasks take long enough to be sent one by one, and are wanted as they are finished.
_ONE_BY_ONE = {"batch_size": 1, "return_as": "generator_unordered"}


@dataclass(frozen=True)
class Progress:
    """How far an experiment is: rounds that are finished, all rounds, and what is running."""

    done: int
    total: int
    running: list[str]


def run(
    experiment: Experiment,
    settings: Settings,
    output: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    fresh: bool = False,
    progress: Callable[[Progress], object] = lambda _: None,
) -> pd.DataFrame:
    """Run an experiment and return its table, which is also kept in `output`.

    Finished runs are not run again, so an experiment that was stopped goes on where it was. A run
    whose parameters or code have changed since, in oclok or in your own files, is another run. The
    table is the same to the bit, `seconds` aside, however many cores there are and however often
    it was stopped.

    Args:
        experiment: the declaration.
        settings: from `experiment.settings()`.
        output: folder for the results.
        jobs: number of processes; one per core if left out.
        cluster: address of a Dask scheduler, such as "tcp://10.0.0.1:8786", to run there instead.
        fresh: delete the results that `output` holds and start over.
        progress: called at the start and whenever something is finished.

    Returns:
        One row per round of each run. The columns are those of `simulate` after
        `experiment`, `variant`, `policy`, `horizon`, `repeat` (from 0 on) and `data`, and before
        `policy_…` and `problem_…`, the parameters that were declared, and `run`, the identity of
        the run. The `attrs` have `notes` on the data, the `dates` of the first and the last run,
        and the package `versions` that they were made with.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from oclok.bench.experiments import EXPERIMENTS
        >>> experiment = EXPERIMENTS["channels"]
        >>> settings = experiment.settings(rounds=5, repeats=2, policies=["random"])
        >>> with TemporaryDirectory() as folder:
        ...     table = run(experiment, settings, folder, jobs=1)
        >>> len(table), table["policy"].unique().tolist()
        (10, ['Random'])
    """
    folder = ResultsFolder(output)
    runs = experiment.runs(settings)
    with workers(jobs, cluster) as (count, parallel):
        folder.open(describe(experiment, settings), fresh=fresh)
        left = dict(enumerate(_tasks(experiment, [run for run in runs if not folder.has(run)])))
        # Workers on other machines need not see the folder: they send what they find.
        work = partial(_work, experiment, settings, folder if cluster is None else None)

        def report_progress() -> None:
            done = _rounds(runs) - sum(map(_rounds, left.values()))
            running = list(left.values())[:count]  # tasks are taken up in their order
            progress(Progress(done, _rounds(runs), [_label(task) for task in running]))

        report_progress()
        for number, found in parallel(delayed(work)(*task) for task in list(left.items())):
            for run, table in found:
                folder.keep(run, table)
            del left[number]
            report_progress()
    return folder.gather(runs)


def play(experiment: Experiment, settings: Settings, run: Run) -> pd.DataFrame:
    """Return the table of one run; it depends on the arguments and nothing else."""
    _, noise_seed, policy_seed = seeds(settings, run.repeat)
    problem = experiment.problem(settings, run.variant, run.horizon, run.repeat)
    policy = experiment.policy(run.policy).policy(problem, policy_seed)
    table = simulate(policy, problem, noise_seed)
    where: dict[str, str | int] = {
        "experiment": experiment.name,
        "variant": run.variant,
        "policy": run.policy,
        "horizon": run.horizon,
        "repeat": run.repeat,
        "data": problem.data_name,
    }
    for position, (name, value) in enumerate(where.items()):
        table.insert(position, name, value)
    parameters = experiment.parameters(settings, run.variant, run.policy)
    table = table.assign(**parameters, run=run.identity)
    table.attrs |= origin()
    return table


def describe(experiment: Experiment, settings: Settings) -> dict[str, Any]:
    """Return what `settings.json` says; also reads the data, so that bad ones are found early."""
    problems = [experiment.problem(settings, name, 1, 0) for name in experiment.variants]
    specs = [experiment.policy(label) for label in settings.policies]
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "seed": settings.seed,
        "repeats": settings.repeats,
        "rounds": settings.rounds,
        "variants": list(experiment.variants),
        "policies": list(settings.policies),
        "policy_notes": experiment.notes(settings),
        "parameters": {
            spec.label: {name: show(value) for name, value in spec.parameters.items()}
            for spec in specs
        },
        "is_from_paper": experiment.is_from_paper,
        "data": "; ".join(dict.fromkeys(problem.data_name for problem in problems)),
        "options": dict(settings.options),
        **origin(),
        "code": dict(zip(("variants", "policies"), experiment.digests(settings), strict=True)),
    }


def origin() -> dict[str, Any]:
    """Return the date, and the versions of Python and all packages that numbers depend on."""
    found = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn", "pandas")}
    versions = {"python": platform.python_version(), "oclok": __version__, **found}
    return {"date": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions}


def _tasks(experiment: Experiment, runs: Sequence[Run]) -> list[list[Run]]:
    """Return lists of runs to be done in one place, long ones first to keep all workers busy."""

    def problem_of(run: Run) -> tuple[str, int]:
        return run.variant, run.repeat

    tasks = [[run] for run in runs]
    if experiment.shares_problem:
        tasks = [list(group) for _, group in groupby(sorted(runs, key=problem_of), problem_of)]
    return sorted(tasks, key=_rounds, reverse=True)


def _rounds(runs: Iterable[Run]) -> int:
    return sum(run.horizon for run in runs)


def _label(task: Sequence[Run]) -> str:
    first = task[0]
    return str(first) if len(task) == 1 else f"{first.variant} repeat {first.repeat}".strip()


def _work(
    experiment: Experiment,
    settings: Settings,
    folder: ResultsFolder | None,
    number: int,
    task: Sequence[Run],
) -> tuple[int, list[tuple[Run, pd.DataFrame]]]:
    """Do a task in a worker; return its number, and the tables that it could not keep itself."""
    threadpool_limits(1)  # for good, as a worker may do other tasks in other threads
    found = []
    with warnings.catch_warnings():
        # Problems warn of odd data, and their tables carry the same as notes.
        warnings.simplefilter("ignore", UserWarning)
        for run in task:
            table = play(experiment, settings, run)
            if folder is None:
                found.append((run, table))
            else:
                folder.keep(run, table)
    return number, found


@contextmanager
def workers(jobs: int | None, cluster: str | None) -> Iterator[tuple[int, Parallel]]:
    """Give the number of workers, and the Joblib `Parallel` that puts them to work.

    `jobs` processes on this machine, one per core if None; or those of the Dask `cluster`. Sums in
    another order are other numbers, so BLAS gets one thread wherever tasks are done; many
    processes with one thread each are faster than threads that fight over cores anyway.
    """
    count = int(cpu_count()) if jobs is None else as_count(jobs, "jobs")
    if cluster is not None:
        with _connected(cluster), parallel_config("dask"):
            yield int(effective_n_jobs(-1)), Parallel(-1, **_ONE_BY_ONE)
        return
    try:
        with threadpool_limits(1):
            yield count, Parallel(count, **_ONE_BY_ONE)
    except TerminatedWorkerError:
        raise ExperimentError(
            "a worker process died, perhaps for want of memory; finished runs are kept: "
            "try again with fewer --jobs"
        ) from None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise ExperimentError("--cluster needs Dask; install oclok[cluster]") from None
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=True)
    except (OSError, ValueError) as reason:
        seen = str(reason).splitlines()[0]
        raise ExperimentError(
            f"no Dask scheduler at {address}; start one with `dask scheduler`, or leave "
            f"--cluster out ({seen})"
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
            versions = set(client.run(_version).values())
        except TimeoutError:
            raise ExperimentError(
                f"the Dask cluster at {address} has no workers; start some with "
                f"`dask worker {address}`"
            ) from None
        except ImportError:  # no oclok there
            versions = {"none"}
        if versions != {__version__}:
            raise ExperimentError(
                f"the workers at {address} have oclok {', '.join(sorted(versions))}; "
                f"install {__version__}, as here"
            )
        yield client


def _version() -> str:
    return __version__
