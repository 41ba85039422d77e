"""An agent behind HTTP, used like one in process; `AsyncClient` is the same, awaited."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote

from oclok.errors import InputError, OclokError, StorageError
from oclok.extras import needs
from oclok.service.calls import Call, Calls, ClientDecision

with needs("service"):
    import httpx

__all__ = ["AsyncClient", "Client", "ClientDecision"]

#: Seconds until the second, third, … attempt, unless the service says how long to wait.
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
AGAIN = (502, 503, 504)

P = ParamSpec("P")
R = TypeVar("R")
Method = Callable[Concatenate[Calls, P], Call[R]]
_CALLS = Calls()


class _Base:
    http: Any
    _kind: type[Any]

    def __init__(
        self, url: str, key: str | None = None, agent: str = "default", timeout: float = 30.0
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.agent = agent
        self.http = self._kind(base_url=url, headers=headers, timeout=timeout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.http.base_url)!r}, agent={self.agent!r})"

    def __getitem__(self, agent: str) -> Self:
        """Return a client of another agent of the same service."""
        other = type(self).__new__(type(self))
        other.agent, other.http = agent, self.http
        return other

    def _request(self, call: Call[Any]) -> dict[str, Any]:
        headers = {} if call.key is None else {"Idempotency-Key": call.key}
        url = f"/v1/agents/{quote(self.agent, safe='')}{call.path}"
        return {"method": call.method, "url": url, "json": call.body, "headers": headers}


def _sync(method: Method[P, R]) -> Callable[Concatenate[Client, P], R]:
    @wraps(method)
    def run(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        call = method(_CALLS, *args, **kwargs)
        return call.read(self._answer(call))

    return run


def _async(
    method: Method[P, R],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, R]]:
    @wraps(method)
    async def run(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        call = method(_CALLS, *args, **kwargs)
        return call.read(await self._answer(call))

    return run


class Client(_Base):
    """The agents of a service.

    Args:
        url: where it is, such as "http://127.0.0.1:8000".
        key: made by `oclok keys add`, if it has keys.
        agent: the name of the agent; `client["other"]` is a client of another one.
        timeout: seconds that an answer may take.

    Decisions, outcomes and observations have ids, so that calls can be repeated without harm: each
    is, a few times, while the service cannot be reached.
    """

    http: httpx.Client
    _kind = httpx.Client

    create = _sync(Calls.create)
    decide = _sync(Calls.decide)
    decide_batch = _sync(Calls.decide_batch)
    learn = _sync(Calls.learn)
    observe = _sync(Calls.observe)
    accept = _sync(Calls.accept)
    explain = _sync(Calls.explain)
    health = _sync(Calls.health)
    describe = _sync(Calls.describe)
    change = _sync(Calls.change)
    reset = _sync(Calls.reset)
    clone = _sync(Calls.clone)
    erase = _sync(Calls.erase)
    delete = _sync(Calls.delete)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, call: Call[Any]) -> Any:
        for pause in (*PAUSES, None):
            answer: httpx.Response | Exception
            try:
                answer = self.http.request(**self._request(call))
            except httpx.TransportError as reason:
                answer = reason
            wait = _pause(call, pause, answer)
            if wait is None:
                return _checked(answer)
            time.sleep(wait)
        raise AssertionError  # the last attempt returns or raises


class AsyncClient(_Base):
    """The agents of a service, for asyncio: as `Client`, with methods to be awaited."""

    http: httpx.AsyncClient
    _kind = httpx.AsyncClient

    create = _async(Calls.create)
    decide = _async(Calls.decide)
    decide_batch = _async(Calls.decide_batch)
    learn = _async(Calls.learn)
    observe = _async(Calls.observe)
    accept = _async(Calls.accept)
    explain = _async(Calls.explain)
    health = _async(Calls.health)
    describe = _async(Calls.describe)
    change = _async(Calls.change)
    reset = _async(Calls.reset)
    clone = _async(Calls.clone)
    erase = _async(Calls.erase)
    delete = _async(Calls.delete)

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _answer(self, call: Call[Any]) -> Any:
        for pause in (*PAUSES, None):
            answer: httpx.Response | Exception
            try:
                answer = await self.http.request(**self._request(call))
            except httpx.TransportError as reason:
                answer = reason
            wait = _pause(call, pause, answer)
            if wait is None:
                return _checked(answer)
            await asyncio.sleep(wait)
        raise AssertionError  # the last attempt returns or raises


def _pause(
    call: Call[Any], pause: float | None, answer: httpx.Response | Exception
) -> float | None:
    """Return the seconds until the next attempt; None if this is the answer."""
    if isinstance(answer, Exception):
        if pause is None or not (call.is_safe or isinstance(answer, httpx.ConnectError)):
            raise StorageError(f"the service cannot be reached: {answer}") from None
        return pause
    if not call.is_safe or answer.status_code not in AGAIN or pause is None:
        return None
    wait = answer.headers.get("Retry-After", "")
    return float(wait) if wait.isdigit() else pause


def _checked(answer: Any) -> Any:
    """Return the body of an answer, or raise its error."""
    if answer.status_code == 204:
        return None
    try:
        body = answer.json()
    except ValueError:
        raise StorageError(f"not an answer of the service: status {answer.status_code}") from None
    if answer.is_success:
        return body
    detail = str(body.get("detail", answer.status_code)) if isinstance(body, dict) else str(body)
    if answer.status_code in (400, 413, 415, 422):
        raise InputError(detail)
    raise (StorageError if answer.status_code >= 500 else OclokError)(detail)
