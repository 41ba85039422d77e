"""Where tasks are done: in this process, on all cores, or on a Dask cluster.

Sums in another order are other numbers, so BLAS gets one thread wherever tasks are done; many
processes with one thread each are faster than threads that fight over cores anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, cpu_count, effective_n_jobs, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from oclok import __version__
from oclok.errors import ExperimentError
from oclok.validation import as_count

#: Seconds after which a cluster that does not answer is given up.
PATIENCE = 5

#: Tasks take long enough to be sent one by one, and are wanted as they are finished.
_ONE_BY_ONE = {"batch_size": 1, "return_as": "generator_unordered"}


@contextmanager
def workers(jobs: int | None, cluster: str | None) -> Iterator[tuple[int, Parallel]]:
    """Give the number of workers, and the Joblib `Parallel` that puts them to work.

    `jobs` processes on this machine, one per core if None; or those of the Dask `cluster`.
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


def keep_to_one_thread() -> None:
    """Limit BLAS in a worker; for good, as it may do other tasks in other threads."""
    threadpool_limits(1)


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
        _check_workers(client, address)
        yield client


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ExperimentError(
            f"the Dask cluster at {address} has no workers; start some with `dask worker {address}`"
        ) from None
    try:
        versions = set(client.run(_version).values())
    except ImportError:  # no oclok there
        versions = {"none"}
    if versions != {__version__}:
        raise ExperimentError(
            f"the workers at {address} have oclok {', '.join(sorted(versions))}; "
            f"install {__version__}, as here"
        )


def _version() -> str:
    return __version__
