"""Memory that was freed goes back to the system, where the C library is glibc."""
# Tested in tests/service/test_workers.py: workers set it up when they start.

from __future__ import annotations

import contextlib
import ctypes

#: Of glibc's malloc.h: from which size on memory is taken from the system, and goes back at once.
M_MMAP_THRESHOLD, LARGE = -3, 1 << 20
#: How many heaps threads share. With one per thread, what each of them has freed is lost to the
#: others: 5 to 9 MB of 250 over a simulated day, 2 to 4 with one heap. Allocation is no bottleneck.
M_ARENA_MAX, HEAPS = -8, 1


def keep_memory_small() -> None:
    """Let threads share a heap, and large arrays go back to the system when they are freed.

    By itself glibc raises this limit up to 32 MB as arrays come and go, and keeps what is below.
    """
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE)
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def return_free_memory() -> None:
    """Return what is free by now; glibc keeps it for whoever asks next."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
