"""The two calls of every round, decisions and outcomes, without what FastAPI does for any call.

A middleware answers them before FastAPI sees them. Bodies are parsed and checked in one pass over
the bytes. What this reader takes, the models of `requests` take as well, with the same values;
everything else goes the usual way, which either takes it or says what is wrong. So descriptions
and messages have one source, `requests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypeVar

from fastapi import Request, Response
from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder
from msgspec.structs import asdict
from pydantic_core import to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oclok.service import requests
from oclok.service.problems import EXPECTED, explained
from oclok.service.requests import LARGEST_INTEGER, MOST_ARMS
from oclok.validation import LARGEST_OUTCOME

#: Requests that are worked on at the same time; more wait.
THREADS = 40

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

Integer = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Number = Annotated[float, Meta(ge=-LARGEST_OUTCOME, le=LARGEST_OUTCOME)]
ArmId = Annotated[str, Meta(min_length=1, max_length=256)] | Integer
ArmIds = Annotated[list[ArmId], Meta(max_length=MOST_ARMS)]
DecisionId = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9._:~-]{1,128}\Z")]
Numbers = Annotated[list[Number], Meta(min_length=1, max_length=requests.MOST_NUMBERS)]
Value = Annotated[str, Meta(max_length=1_000)] | bool | Integer | Number | Numbers | None
Features = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=128)], Value],
    Meta(min_length=1, max_length=requests.MOST_FEATURES),
]


class Arm(Struct, forbid_unknown_fields=True, gc=False):
    """One thing that can be chosen."""

    id: ArmId
    features: Features


class Decision(Struct, forbid_unknown_fields=True):
    """Arms to choose from, by the oracle of the agent."""

    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ARMS)]
    context: Features | None = None
    include: ArmIds = []
    exclude: ArmIds = []
    id: DecisionId | None = None
    chosen: ArmIds | None = None
    unit: Annotated[str, Meta(min_length=1, max_length=256)] | None = None


class Outcome(Struct, forbid_unknown_fields=True, gc=False):
    """The outcome of a chosen arm."""

    decision: DecisionId
    arm: ArmId
    outcome: Number | None = None
    correct: bool = False
    accept: bool = False


_DECISION = Decoder(Decision)
_OUTCOMES = Decoder(Annotated[list[Outcome], Meta(min_length=1, max_length=requests.MOST_OUTCOMES)])
#: Other fields of a request, as they are if left out.
_ABSENT = {
    name: field.default
    for name, field in requests.DecisionRequest.model_fields.items()
    if not field.is_required()
}


def read_decision(body: bytes) -> dict[str, Any]:
    """Return a request for a decision; `MsgspecError` if it is not of the plain kind."""
    request = _DECISION.decode(body)
    return {**_ABSENT, **asdict(request), "arms": [asdict(arm) for arm in request.arms]}


def read_outcomes(body: bytes) -> list[dict[str, Any]]:
    """Return outcomes; `MsgspecError` if they are not of the plain kind."""
    return [asdict(item) for item in _OUTCOMES.decode(body)]


_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="oclok-request")


def quickly(
    read: Callable[[bytes], Any], call: Callable[[str, Any], Any], status: int
) -> Callable[[Endpoint], Endpoint]:
    """Let a call be answered by `Quick` where it can.

    Args:
        read: turns a body into the request for `call`; `MsgspecError` if it does not know it.
        call: `(agent, request) → answer`, as values for JSON; runs in a thread.
        status: of the answer.
    """

    def decorate(endpoint: Endpoint) -> Endpoint:
        endpoint.quick = read, call, status  # type: ignore[attr-defined]
        return endpoint

    return decorate


class Quick:
    """Middleware that answers quick calls to agents it `knows`; the app answers all others."""

    def __init__(self, app: ASGIApp, routes: list[Any], knows: Callable[[str], bool]) -> None:
        self.app, self._knows = app, knows
        self._routes = [route for route in routes if hasattr(route.endpoint, "quick")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        for route in self._routes if scope.get("method") == "POST" else ():
            if match := route.path_regex.match(path):
                scope.update(route=route, path_params=match.groupdict())
                request = Request(scope, receive)
                try:
                    route.check(request)
                    body = await request.body()
                    answer = await self._answer(request, body, *route.endpoint.quick)
                except EXPECTED as error:
                    answer = explained(error)
                if answer is not None:
                    await answer(scope, receive, send)
                    return

                async def receive(body: bytes = body) -> Message:
                    return {"type": "http.request", "body": body}

        await self.app(scope, receive, send)

    async def _answer(
        self, request: Request, body: bytes, read: Any, call: Any, status: int
    ) -> Response | None:
        agent = request.path_params["agent"]
        if not self._knows(agent) or "idempotency-key" in request.headers:
            return None
        try:
            parsed = read(body)
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        made = await asyncio.get_running_loop().run_in_executor(_POOL, call, agent, parsed)
        return Response(to_json(made), status, media_type="application/json")
