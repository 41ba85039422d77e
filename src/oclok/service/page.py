"""The page at `/`: a shell whose scripts call the API; nothing of an agent is in its HTML."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from oclok.service.router import etag, packed

STATIC = Path(__file__).with_name("static")
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


def page_routes() -> APIRouter:
    """Return the routes of the page, of the API's reference, and of their scripts and styles."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    @router.get("/agents/{agent}")
    @router.get("/agents/{agent}/decisions/{decision}")
    def page(request: Request) -> Response:
        return _served(request, "page.html")

    @router.get("/docs")
    def reference(request: Request) -> Response:
        return _served(request, "reference.html")

    @router.get("/static/{name:path}")
    def static(request: Request, name: str) -> Response:
        return _served(request, name)

    return router


def _served(request: Request, name: str) -> Response:
    found = _files().get(name)
    if found is None:
        raise HTTPException(404, f"there is no file {name!r}")
    content, tag = found
    kind = f"{KINDS[Path(name).suffix[1:]]}; charset=utf-8"
    return packed(request, tag, kind, lambda: content)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """Return content and entity tag of every file by its path."""
    found = {}
    for path in STATIC.rglob("*"):
        if path.suffix[1:] in KINDS:
            content = path.read_bytes()
            found[path.relative_to(STATIC).as_posix()] = content, etag(content)
    return found
