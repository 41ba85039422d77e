"""The page at `/`: a shell whose script asks the API; nothing of an agent is in its HTML."""

from __future__ import annotations

from functools import cache
from importlib import resources

from fastapi import APIRouter
from fastapi.responses import Response

FILES = {
    "elements.js": "text/javascript",
    "charts.js": "text/javascript",
    "page.js": "text/javascript",
    "page.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def page_routes() -> APIRouter:
    """Return the routes of the page and of what it needs."""
    router = APIRouter(include_in_schema=False)

    def page() -> Response:
        return Response(_file("page.html"), media_type="text/html; charset=utf-8")

    for path in ("/", "/agents/{agent}", "/agents/{agent}/decisions/{decision}"):
        router.add_api_route(path, page, methods=["GET"])

    def plotly() -> Response:
        headers = {"Cache-Control": "public, max-age=86400"}
        return Response(_plotly(), media_type="text/javascript", headers=headers)

    router.add_api_route("/static/plotly.min.js", plotly, methods=["GET"])
    for name, kind in FILES.items():
        router.add_api_route(f"/static/{name}", _served(name, kind), methods=["GET"])
    return router


def _served(name: str, kind: str):  # type: ignore[no-untyped-def]
    def serve() -> Response:
        return Response(_file(name), media_type=f"{kind}; charset=utf-8")

    return serve


@cache
def _file(name: str) -> bytes:
    return resources.files("oclok.service").joinpath("static", name).read_bytes()


@cache
def _plotly() -> bytes:
    return resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
