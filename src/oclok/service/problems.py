"""Errors as `application/problem+json`: what was wrong, what was seen, what was expected."""
# Tested in tests/service/test_routes.py: errors are seen as answers.

from __future__ import annotations

import logging
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from oclok.errors import InputError, OclokError, StorageError

LOGGER = logging.getLogger("oclok.service")
TITLES = {
    400: "Bad request",
    401: "No valid key",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    422: "Wrong input",
    500: "Internal error",
    503: "Not available now",
}
#: Seconds after which to try again if the database cannot be reached.
RETRY_AFTER = 1
#: Problems of a request that are told one by one.
MOST_ERRORS = 20


class NotFoundError(InputError):
    """There is no such agent or decision."""


class BusyError(OclokError):
    """Too much of this is under way; try again."""


class ConflictError(OclokError):
    """What is there differs from what was asked for."""


def problem(status: int, detail: str, **more: Any) -> JSONResponse:
    """Return a problem as an answer."""
    headers = {}
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status}
    return JSONResponse(
        {**body, "detail": detail, **more},
        status,
        headers=headers,
        media_type="application/problem+json",
    )


def install(app: FastAPI) -> None:
    """Let an app answer errors as problems."""

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [
            {"at": "/".join(map(str, e["loc"])), "message": e["msg"]}
            for e in error.errors()[:MOST_ERRORS]
        ]
        is_json = any(e["type"] == "json_invalid" for e in error.errors())
        first = errors[0] if errors else {"at": "", "message": "invalid"}
        return problem(400 if is_json else 422, f"{first['at']}: {first['message']}", errors=errors)

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> JSONResponse:
        answer = problem(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(OclokError)
    def wrong(request: Request, error: OclokError) -> JSONResponse:
        status = 422
        if isinstance(error, NotFoundError):
            status = 404
        elif isinstance(error, ConflictError):
            status = 409
        elif isinstance(error, StorageError | BusyError):
            status = 503
        return problem(status, str(error))

    @app.exception_handler(sa.exc.SQLAlchemyError)
    def unreachable(request: Request, error: sa.exc.SQLAlchemyError) -> JSONResponse:
        LOGGER.warning("the database cannot be reached: %s", error)
        return problem(503, "the database cannot be reached; try again")

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> JSONResponse:
        LOGGER.exception("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "an error of the service; its log says more")


__all__ = ["BusyError", "ConflictError", "InputError", "NotFoundError", "install", "problem"]
