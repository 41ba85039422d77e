"""Slow clients are cut off, keys come before bodies, and a signal ends the process in time."""

from __future__ import annotations

import asyncio
import signal
import socket
import time

import numpy as np
import pytest

from oclok.service.database import Database
from oclok.service.limits import HEADER_SECONDS, READ_SECONDS, Connection


def half_sent(server, body: bytes = b'{"arms": [', size: int = 1000) -> socket.socket:
    """Return a connection that has sent the headers, and half a body."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    head = (
        f"POST /v1/agents/a/decisions HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    )
    connection.sendall(head.encode() + body)
    return connection


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_ends_the_process_within_ten_seconds(start_server, settings, workers):
    server = start_server(workers=workers)
    server.client.put("/v1/agents/a", json=settings)
    slow = [half_sent(server) for _ in range(3)]
    half_headers = socket.create_connection(("127.0.0.1", server.port))
    half_headers.sendall(b"GET / HTTP/1.1\r\nHost:")
    rng = np.random.default_rng(0)
    A = rng.integers(1, 100, (5, 60)).astype(float)
    hard = {"kind": "Program", "A": A.tolist(), "lower": A[:, :30].sum(axis=1).tolist()}
    hard["upper"] = hard["lower"]
    arms = [{"id": n, "features": {"x": rng.random()}} for n in range(60)]
    import json

    body = json.dumps({"arms": arms, "oracle": hard}).encode()
    searching = half_sent(server, body, len(body))
    start = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    assert time.monotonic() - start < 10 + 5  # the machine may be busy
    for connection in (*slow, half_headers, searching):
        connection.close()


def test_the_key_is_checked_before_the_body_is_read(start_server, storage):
    from oclok.service.access import Access

    database = Database(storage)
    database.migrate()
    Access(database).add("somebody", ["read"], None)
    server = start_server(storage)
    connection = half_sent(server)
    assert b" 401 " in connection.recv(100)  # though the body is not there
    connection.close()


class Transport(asyncio.Transport):
    """A connection whose client does nothing."""

    def __init__(self):
        super().__init__()
        self.is_aborted = False

    def get_extra_info(self, name, default=None):
        return default

    def abort(self):
        self.is_aborted = True

    def is_closing(self):
        return self.is_aborted

    def write(self, data):
        pass

    def close(self):
        self.is_aborted = True

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Timers:
    """An event loop's timers, which go off when the test says so."""

    def __init__(self, loop):
        self.loop, self.timers = loop, []

    def __getattr__(self, name):
        return getattr(self.loop, name)

    def call_later(self, delay, callback, *arguments):
        handle = self.loop.call_later(1e6, callback, *arguments)
        self.timers.append((delay, handle, callback, arguments))
        return handle

    def pass_by(self, seconds):
        for delay, handle, callback, arguments in self.timers:
            if delay <= seconds and not handle.cancelled():
                callback(*arguments)


def connected(loop) -> tuple[Connection, Transport, Timers]:
    import uvicorn
    from uvicorn.server import ServerState

    async def app(scope, receive, send):
        await asyncio.Event().wait()

    config = uvicorn.Config(app, log_config=None)
    config.load()
    timers = Timers(loop)
    connection = Connection(config, ServerState(), {}, _loop=timers)
    transport = Transport()
    connection.connection_made(transport)
    return connection, transport, timers


def test_a_client_that_sends_no_complete_headers_is_cut_off():
    async def run():
        connection, transport, timers = connected(asyncio.get_running_loop())
        connection.data_received(b"GET / HTTP/1.1\r\nHost: ")
        timers.pass_by(HEADER_SECONDS - 1)
        assert not transport.is_aborted
        timers.pass_by(HEADER_SECONDS)
        assert transport.is_aborted

    asyncio.run(run())


def test_a_client_that_sent_its_headers_has_time():
    async def run():
        connection, transport, timers = connected(asyncio.get_running_loop())
        connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        timers.pass_by(HEADER_SECONDS)
        assert not transport.is_aborted
        connection.pause_writing()
        connection.resume_writing()
        timers.pass_by(READ_SECONDS)
        assert not transport.is_aborted
        connection.pause_writing()
        timers.pass_by(READ_SECONDS)
        assert transport.is_aborted
        connection.connection_lost(None)

    asyncio.run(run())


def test_a_body_that_does_not_arrive_is_a_408(storage, monkeypatch):
    from oclok.service import limits
    from oclok.service.app import create_app

    monkeypatch.setattr(limits, "BODY_SECONDS", 0.05)
    app = create_app(storage)
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/agents/a/decisions", "headers": headers}
    scope |= {"query_string": b"", "http_version": "1.1", "root_path": "", "raw_path": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408
