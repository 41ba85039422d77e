"""Connections that are cut off when their client is too slow.

uvicorn limits idle time between requests only. Here a client that has not sent complete headers,
or does not read its answer, loses its connection; `Limits` does the same for bodies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from functools import partial
from types import FrameType
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

#: Seconds in which a client must have sent its headers, and its whole body.
HEADER_SECONDS, BODY_SECONDS = 10.0, 30.0
#: Seconds for which a client may read nothing of its answer.
READ_SECONDS = 30.0
#: Seconds after a signal at which the process ends, whatever is still under way.
EXIT_SECONDS = 9.0


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


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type,misc]
    """An HTTP connection with limits on the time that its client may take."""

    _headers: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Expect the headers of the first request."""
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Note whether the headers of a request are complete."""
        super().data_received(data)
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._headers = _cancelled(self._headers)
        elif self._headers is None:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._headers, self._reading = _cancelled(self._headers), _cancelled(self._reading)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Expect the client to read its answer."""
        super().pause_writing()
        self._reading = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that it did."""
        self._reading = _cancelled(self._reading)
        super().resume_writing()

    def _expect_headers(self) -> None:
        self._headers = self.loop.call_later(HEADER_SECONDS, self.transport.abort)


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    if timer is not None:
        timer.cancel()
    return None
