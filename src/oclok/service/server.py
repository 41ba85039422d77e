"""Starting the service: one process, or several that share one port and one database."""
# Tested in tests/service/test_workers.py: servers are started there.

from __future__ import annotations

import os
import tempfile

from oclok.errors import InputError
from oclok.service.access import Keys, is_loopback
from oclok.service.database import Database

#: By these the processes of the service are told what `serve` was told.
STORAGE, WORKERS = "OCLOK_STORAGE", "OCLOK_WORKERS"


def serve(storage: str, host: str, port: int, workers: int) -> None:
    """Answer requests until told to stop."""
    import uvicorn

    if workers < 1:
        raise InputError(f"workers must be at least 1; got {workers}")
    database = Database(storage)
    database.migrate()
    if not is_loopback(host) and not Keys(database).all():
        raise InputError(
            f"without keys the service listens on this machine only, not on {host}; make one with "
            f"`oclok keys add`"
        )
    database.close()
    os.environ[STORAGE] = storage
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if workers > 1:
        os.environ[WORKERS] = str(workers)
        folder = tempfile.TemporaryDirectory(prefix="oclok-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder.name
    uvicorn.run(
        "oclok.service.server:worker",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_worker_healthcheck=60,  # a machine that is busy is not a worker that hangs
    )


def worker() -> object:
    """Return the application of one process."""
    from oclok.service.app import create_app

    return create_app(os.environ[STORAGE])
