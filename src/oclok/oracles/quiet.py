"""Keep C libraries from printing: HiGHS writes debugging lines with printf."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator
from functools import cache

_lock = threading.Lock()
_blocks = 0  # that are open now


@contextlib.contextmanager
def silenced_printf() -> Iterator[None]:
    """Discard what C code prints to standard output inside the block, by any thread.

    The C library's `stdout` points to the null device meanwhile. Python writes to the file
    descriptor, so what other threads print still appears. No-op where there is no C library.
    """
    global _blocks
    stdout, original, null = _streams()
    with _lock:
        _blocks += 1
        stdout.value = null
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _blocks == 0:
                stdout.value = original


@cache
def _streams() -> tuple[ctypes.c_void_p, int | None, int | None]:
    """Return the variable `stdout` of the C library, its value, and a stream to nowhere."""
    with contextlib.suppress(OSError, AttributeError, ValueError, TypeError):
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        name = "stdout" if hasattr(libc, "stdout") else "__stdoutp"  # of macOS
        stdout = ctypes.c_void_p.in_dll(libc, name)
        null = libc.fopen(os.devnull.encode(), b"w")
        return stdout, stdout.value, null or stdout.value
    return ctypes.c_void_p(), None, None
