"""The page at `/`: a shell whose scripts call the API; nothing of an agent is in its HTML."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from oclok.service.router import etag, packed

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
    content, kind, tag = found
    return packed(request, tag, kind, lambda: content)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Return content, type and entity tag of every file, by its path."""
    folder = resources.files("oclok.service").joinpath("static")
    found = {}
    for place, prefix in ((folder, ""), (folder.joinpath("vendor"), "vendor/")):
        for file in place.iterdir():
            kind = KINDS.get(file.name.rsplit(".", 1)[-1])
            if kind is not None:
                content = file.read_bytes()
                found[prefix + file.name] = (content, f"{kind}; charset=utf-8", etag(content))
    return found
