"""How calls of the API are registered: their roles and problems, and answers that are kept."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from operator import attrgetter
from typing import Any, TypeVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from oclok.service.access import Access
from oclok.service.answers import Problem

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

REASONS = {
    400: "The body is not JSON.",
    401: "There is no key, or it is not known.",
    403: "The key may not do this.",
    404: "There is no such agent or decision.",
    409: "There is something else under this name, or the agent is paused or archived.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "Something in the request is wrong; the detail says what.",
    503: "The database cannot be reached, or too much is under way; try again.",
}
#: Statuses of requests without a body; of the others all.
BODILESS = (401, 403, 404, 422, 503)
#: Bytes from which on answers are compressed.
LEAST_BYTES = 1_000
#: Quick calls that are worked on at the same time; more wait.
THREADS = 40
_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="oclok-request")
UNCHANGED = {304: {"description": "As in the answer whose ETag is in If-None-Match."}}
#: Tells OpenAPI of the key.
KEY = Depends(HTTPBearer(auto_error=False, description="A key"))


class Router(APIRouter):
    """Routes whose key is checked before the body is read; agents that it `knows` are in memory."""

    def __init__(self, access: Access, knows: Callable[[str], bool]) -> None:
        class CheckedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def checked(request: Request) -> Response:
                    agent = request.path_params.get("agent")
                    if role := getattr(self.endpoint, "role", None):
                        access.check(authorization(request), role, agent)
                    return await self.quick(request, agent) or await handle(request)

                return checked

            async def quick(self, request: Request, agent: str | None) -> Response | None:
                """Answer a quick call; None where FastAPI has to, which says what is wrong, say."""
                read = getattr(self.endpoint, "read", None)
                if read is None or not knows(agent or "") or "idempotency-key" in request.headers:
                    return None
                try:
                    body = read(await request.body())
                except ValidationError:
                    return None
                loop = asyncio.get_running_loop()
                made = await loop.run_in_executor(_POOL, self.endpoint, agent, body)
                return Response(
                    to_json(made), self.status_code or 200, media_type="application/json"
                )

        named = attrgetter("name")  # stable names for clients
        super().__init__(route_class=CheckedRoute, generate_unique_id_function=named)

    def call(
        self, method: str, path: str, role: str, tag: str = "agents", quick: Any = None, **more: Any
    ) -> Callable[[Endpoint], Endpoint]:
        """Register a call that needs a key with a role.

        A quick call skips what FastAPI does for any: its body, of the type `quick`, is read and
        checked in one pass over the bytes, and what it returns are values for JSON.
        """
        statuses = BODILESS if method in ("GET", "DELETE") else REASONS
        more["responses"] = problems(*statuses) | more.get("responses", {})
        register = self.api_route(path, methods=[method], tags=[tag], dependencies=[KEY], **more)

        def decorate(endpoint: Endpoint) -> Endpoint:
            endpoint.role = role  # type: ignore[attr-defined]
            endpoint.read = quick and TypeAdapter(quick).validate_json  # type: ignore[attr-defined]
            return register(endpoint)

        return decorate

    def view(self, path: str, answer: Any, tag: str = "agents") -> Callable[[Endpoint], Endpoint]:
        """Register a call that is answered by 304 while nothing has changed."""
        return self.call("GET", path, "read", tag, response_model=answer, responses=UNCHANGED)


def answered(request: Request, version: str, make: Callable[[], Any]) -> Response:
    """Return what `make` does as JSON, or 304 if the client has this version of it."""
    tag = etag(f"{version} {request.url.query}".encode())
    return packed(request, tag, "application/json", lambda: to_json(make()))


def packed(request: Request, tag: str, kind: str, make: Callable[[], bytes]) -> Response:
    """Return content that the client keeps and revalidates; compressed if it may be."""
    headers = {"ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = make()
    headers |= {"Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if len(content) >= LEAST_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        content = gzip.compress(content, 6)
    return Response(content, media_type=kind, headers=headers)


def etag(content: bytes) -> str:
    """Return a weak entity tag."""
    return f'W/"{blake2b(content, digest_size=9).hexdigest()}"'


def authorization(request: Request) -> str | None:
    """Return the header with the key; Personalizer's clients have one of their own."""
    key = request.headers.get("ocp-apim-subscription-key")
    return request.headers.get("authorization") or (None if key is None else f"Bearer {key}")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe problems by their statuses."""
    return {status: {"model": Problem, "description": REASONS[status]} for status in statuses}
