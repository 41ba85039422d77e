"""Limits of requests: their size, type and host, and how slow their client may be.

uvicorn limits idle time between requests only. Here a client that has not sent its headers or its
body in time, or does not read its answer, loses its connection.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from oclok.service.access import Access
from oclok.service.metrics import Metrics
from oclok.service.problems import problem
from oclok.service.requests import MOST_BYTES
from oclok.service.telemetry import ACCESS, REQUEST, request_id

#: Seconds in which a client must have sent its headers, and its whole body.
HEADER_SECONDS, BODY_SECONDS = 10.0, 30.0
#: Seconds for which a client may read nothing of its answer.
READ_SECONDS = 30.0
#: Browsers load scripts and data from here and nowhere else.
HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class Limits:
    """Middleware that refuses bodies that are too large, too slow or not JSON, and other hosts."""

    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        headers = dict(scope["headers"])
        name = request_id(headers.get(b"x-request-id"))
        fields = {"request": name}
        if scope["path"].startswith("/v1/agents/"):
            fields["agent"] = scope["path"].split("/")[3][:64]
        seen = {"status": 500, "size": 0, "ended": False}
        deadline = asyncio.get_running_loop().time() + BODY_SECONDS

        async def counted() -> Message:
            try:
                async with asyncio.timeout_at(None if seen["ended"] else deadline):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(
                    408, f"the body must arrive within {BODY_SECONDS:g} s", {"Connection": "close"}
                ) from None
            seen["ended"] = not message.get("more_body", False)
            seen["size"] += len(message.get("body", b""))
            if seen["size"] > MOST_BYTES:
                raise HTTPException(413, f"the body must have at most {MOST_BYTES:,} bytes")
            return message

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                own = [*HEADERS, (b"x-request-id", name.encode())]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        refusal = self._refusal(scope["method"], headers)
        token = REQUEST.set(fields)
        try:
            if refusal is not None:
                await problem(*refusal)(scope, receive, noted)
            else:
                await self.app(scope, counted, noted)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - start
            self.metrics.request(scope["method"], route, seen["status"], seconds)
            told = {"fields": {"status": seen["status"], "ms": round(1000 * seconds, 2)}}
            ACCESS.info("%s %s", scope["method"], route, extra=told)
            REQUEST.reset(token)

    def _refusal(self, method: str, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        if not self.access.allows_host(headers.get(b"host", b"").decode("latin-1")):
            return 403, "without keys only requests to localhost are answered; see `oclok keys add`"
        if method in ("POST", "PUT", "PATCH"):
            kind = headers.get(b"content-type", b"").split(b";")[0].strip().lower()
            if kind != b"application/json":
                return 415, "the content type must be application/json"
            size = headers.get(b"content-length", b"0")
            if size.isdigit() and int(size) > MOST_BYTES:
                return 413, f"the body must have at most {MOST_BYTES:,} bytes; it has {int(size):,}"
        return None


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
