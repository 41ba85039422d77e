"""BLAS threads for the size at hand: small matrices are faster on one.

NumPy and SciPy bring a BLAS library each, each with a pool of threads that spin while they
wait. Alternating between two pools of two threads on two cores made a round 20 times slower,
so the posteriors make their large calls through SciPy's library alone, and below `SMALL`
floating-point operations a call runs on one thread.
"""

from __future__ import annotations

from functools import cache
from typing import Any

#: Operations below which a second thread gives nothing. With a dictionary of 125 and 92 arms,
#: 2.9e6 of them, it makes a round 10 to 15% shorter.
SMALL = 2e6


class blas_threads:  # noqa: N801  (used as a statement: `with blas_threads(work):`)
    """Limit BLAS to one thread while `work`, a count of operations, is small."""

    __slots__ = ("_before", "_work")

    def __init__(self, work: float) -> None:
        self._work = work
        self._before: list[int] | None = None

    def __enter__(self) -> None:
        if self._work < SMALL:
            libraries = _libraries()
            self._before = [library.get_num_threads() for library in libraries]
            for library, threads in zip(libraries, self._before, strict=True):
                if threads > 1:
                    library.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            for library, threads in zip(_libraries(), self._before, strict=True):
                if threads > 1:
                    library.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    import scipy.linalg.blas  # noqa: F401  (so that its library is loaded, and found)
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
