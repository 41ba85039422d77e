"""Keep C libraries from printing: HiGHS writes debugging lines with printf."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Iterator

_LOCK = threading.Lock()
_NAMES = ("stdout", "__stdoutp")  # of glibc and musl, and of macOS


class _Stream:
    """The C library's `stdout`, which can point to the null device; a no-op where there is none.

    Only C code that calls printf is affected. Python writes to the file descriptor, so what other
    threads print in the meantime still appears.
    """

    def __init__(self) -> None:
        self._users = 0
        self._pointer: ctypes.c_void_p | None = None
        with contextlib.suppress(OSError, AttributeError, ValueError, TypeError):
            libc = ctypes.CDLL(None)
            libc.fopen.restype = ctypes.c_void_p
            name = next(name for name in _NAMES if hasattr(libc, name))
            self._null = libc.fopen(os.devnull.encode(), b"w")
            self._pointer = ctypes.c_void_p.in_dll(libc, name) if self._null else None
        self._original = None if self._pointer is None else self._pointer.value

    def mute(self) -> None:
        with _LOCK:
            self._users += 1
            if self._pointer is not None:
                self._pointer.value = self._null

    def unmute(self) -> None:
        with _LOCK:
            self._users -= 1
            if self._pointer is not None and self._users == 0:
                self._pointer.value = self._original


_stream: _Stream | None = None


@contextlib.contextmanager
def silenced_printf() -> Iterator[None]:
    """Discard what C code prints to standard output inside the block, by any thread."""
    global _stream
    with _LOCK:
        _stream = _stream or _Stream()
    _stream.mute()
    try:
        yield
    finally:
        _stream.unmute()
