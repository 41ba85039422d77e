"""BLAS threads for the size at hand: small matrices are faster on one.

NumPy and SciPy bring a BLAS library each, each with a pool of threads that spin while they
wait. Alternating between two pools makes rounds many times slower, so the posteriors make their
large calls through SciPy's library alone, and a call below `SMALL` operations, or on a busy
machine, runs on one thread.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

#: Operations below which one thread is used: a second one gains little on an idle machine, and
#: costs a multiple on a busy one.
SMALL = 5e7
#: Calls until the number of threads is read again, once it was 1: reading it takes 10 µs.
UNREAD = 100

#: By these an operator chooses the number of threads.
_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_unread = 0


class blas_threads:  # noqa: N801  (used as a statement: `with blas_threads(work):`)
    """Limit BLAS to one thread while `work`, a count of operations, is small."""

    __slots__ = ("_before", "_work")

    def __init__(self, work: float) -> None:
        self._work = work
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        global _unread
        if _unread:
            _unread -= 1
        elif self._work < SMALL or _is_busy():
            for library in _libraries():
                threads = library.get_num_threads()
                if threads > 1:
                    library.set_num_threads(1)
                    self._before.append((library, threads))
            if not self._before:
                _unread = UNREAD

    def __exit__(self, *exception: object) -> None:
        for library, threads in self._before:
            library.set_num_threads(threads)


def use_one_blas_thread() -> None:
    """Run every BLAS call of this process on one thread, unless the environment says otherwise.

    NumPy is loaded long before a command knows that it is to serve, so the environment cannot.
    """
    import scipy.linalg.blas  # noqa: F401  (libraries that come later are not limited)
    from threadpoolctl import threadpool_limits

    if not any(name in os.environ for name in _VARIABLES):
        threadpool_limits(1, user_api="blas")


def blas_thread_count() -> int:
    """Return the largest number of threads that a BLAS library of this process may use."""
    from threadpoolctl import threadpool_info

    return max((i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"), default=1)


def _is_busy() -> bool:
    """Return whether more processes want to run than there are cores."""
    cores = os.cpu_count() or 1
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > cores


@cache
def _libraries() -> list[Any]:
    """Return SciPy's BLAS, or all there are where it has none of its own."""
    import scipy.linalg.blas  # noqa: F401  (so that its library is loaded, and found)
    from threadpoolctl import ThreadpoolController

    found = list(ThreadpoolController().select(user_api="blas").lib_controllers)
    return [library for library in found if "scipy.libs" in str(library.filepath)] or found
