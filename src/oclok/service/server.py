"""Starting the service: one process, or several that share one port and one database."""
# Tested in tests/service/test_workers.py: real servers are started.

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import tempfile
import threading
from functools import partial
from types import FrameType
from typing import Any

from oclok.errors import InputError
from oclok.service.access import Access, is_loopback
from oclok.service.config import Config
from oclok.service.database import Database
from oclok.service.sharing import FOLDER
from oclok.service.telemetry import logging_config

#: Tells workers which process started them.
PARENT = "OCLOK_PARENT"
#: Seconds that requests have to end after a signal; then their connections are cut, and the process
#: ends, whatever is still under way.
GRACE_SECONDS, EXIT_SECONDS = 4, 9.0

#: Of glibc's malloc.h: from which size on memory is taken from the system, and goes back at once.
M_MMAP_THRESHOLD, LARGE = -3, 1 << 20
#: How many heaps threads share. With one per thread, what each of them has freed is lost to the
#: others: 5 to 9 MB of 250 over a simulated day, 2 to 4 with one heap. Allocation is no bottleneck.
M_ARENA_MAX, HEAPS = -8, 1


def serve(config: Config) -> None:
    """Answer requests until a signal says to stop."""
    import uvicorn

    host, port = config.host, config.port
    database = Database(config.database_url)
    database.migrate()
    if not is_loopback(host) and not Access(database).needs_key:
        raise InputError(
            f"without keys the service listens on this machine only, not on {host}; make one with "
            f"`oclok keys add`"
        )
    database.close()
    config.to_environment()
    if config.workers > 1:
        os.environ[PARENT] = str(os.getpid())
        folder = tempfile.TemporaryDirectory(prefix="oclok-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder.name
        models = tempfile.TemporaryDirectory(prefix="oclok-models-")
        os.environ[FOLDER] = models.name
    listening = _listen(host, port)
    scheme = "http" if config.tls_certificate is None else "https"
    shown = f"[{host}]" if ":" in host else host
    print(f"oclok: {scheme}://{shown}:{port}{config.root_path}/ (API: /docs)", flush=True)
    uvicorn.run(
        "oclok.service.server:worker",
        factory=True,
        fd=listening.fileno(),
        workers=config.workers,
        http="oclok.service.limits:Connection",
        ws="none",  # which would be imported for nothing
        log_config=logging_config(config.log_format, config.log_level),
        access_log=False,
        root_path=config.root_path,
        ssl_certfile=config.tls_certificate,
        ssl_keyfile=config.tls_key,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=60,  # a machine that is busy is not a worker that hangs
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as reason:
        raise InputError(
            f"cannot listen on {host}, port {port}: {os.strerror(reason.errno or 0)}"
        ) from None
    # Connections inherit it. asyncio sets it only on sockets that say that they are TCP, not on
    # those of several workers, whose answers would each wait 40 ms for an acknowledgement.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def worker() -> object:
    """Return the application of one process."""
    from oclok.service.app import create_app
    from oclok.threads import use_one_blas_thread

    keep_memory_small()
    use_one_blas_thread()
    app = create_app(Config.from_environment())
    # Modules stay: 180,000 objects that the garbage collector would go through again and again, for
    # up to 250 ms in which all requests wait; what comes later are some thousands.
    gc.collect()
    gc.freeze()
    return app


def exit_in_time() -> None:
    """Let SIGTERM and SIGINT end the process even if a thread or a client does not cooperate.

    What was acknowledged is in the log, so that nothing is lost.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, partial(_exit_after, signal.getsignal(number)))


def _exit_after(handler: Any, number: int, frame: FrameType | None) -> None:
    backstop = threading.Timer(EXIT_SECONDS, os._exit, [0])
    backstop.daemon = True
    backstop.start()
    if callable(handler):
        handler(number, frame)


def keep_memory_small() -> None:
    """Let threads share a heap, and large arrays go back to the system when they are freed.

    By itself glibc raises this limit up to 32 MB as arrays come and go, and keeps what is below.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def return_free_memory() -> None:
    """Return free memory to the system, which glibc keeps for later."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
