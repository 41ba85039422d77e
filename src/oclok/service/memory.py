"""Memory that was freed goes back to the system, where the C library is glibc."""
# Tested in tests/service/test_workers.py: workers set it up when they start.

from __future__ import annotations

import contextlib
import ctypes

#: Of glibc's malloc.h: from which size on memory is taken from the system, and goes back at once.
M_MMAP_THRESHOLD, LARGE = -3, 1 << 20


def return_large_blocks() -> None:
    """Let large arrays go back to the system when they are freed.

    By itself glibc raises this limit up to 32 MB as arrays come and go, and keeps what is below.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)


def return_free_memory() -> None:
    """Return what is free by now; glibc keeps it for the thread that used it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
