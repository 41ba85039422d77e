"""Errors as `application/problem+json`, with the value seen and the value expected."""
# Tested in tests/service/test_routes.py: errors are seen as answers.

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from oclok.errors import InputError, OclokError, StorageError

LOGGER = logging.getLogger("oclok.service")
#: Seconds after which to try again if the database cannot be reached.
RETRY_AFTER = 1
#: Problems of a request that are listed one by one.
MOST_ERRORS = 20


class NotFoundError(InputError):
    """There is no such agent or decision."""


class BusyError(OclokError):
    """Too much of this is under way; try again."""


class ConflictError(OclokError):
    """The request contradicts the present state."""


#: Errors that a request may have, and statuses of those of oclok; of all others 422.
EXPECTED = (HTTPException, OclokError, sa.exc.SQLAlchemyError)
STATUSES = {NotFoundError: 404, ConflictError: 409, StorageError: 503, BusyError: 503}


def problem(status: int, detail: str, **more: Any) -> JSONResponse:
    """Return a problem as an answer."""
    headers = {}
    if status == 503:
        headers["Retry-After"] = str(RETRY_AFTER)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    return JSONResponse(
        {**body, "detail": detail, **more},
        status,
        headers=headers,
        media_type="application/problem+json",
    )


def _explained(request: Request, error: Exception) -> JSONResponse:
    """Return one of the `EXPECTED` errors as an answer."""
    if isinstance(error, HTTPException):
        answer = problem(error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer
    if isinstance(error, sa.exc.SQLAlchemyError):
        LOGGER.warning("the database cannot be reached: %s", error)
        return problem(503, "the database cannot be reached; try again")
    found = (status for kind, status in STATUSES.items() if isinstance(error, kind))
    return problem(next(found, 422), str(error))


def install(app: FastAPI) -> None:
    """Let an app answer errors as problems."""
    for kind in EXPECTED:
        app.add_exception_handler(kind, _explained)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [
            {"at": "/".join(map(str, e["loc"])), "message": e["msg"]}
            for e in error.errors()[:MOST_ERRORS]
        ]
        is_json = any(e["type"] == "json_invalid" for e in error.errors())
        first = errors[0] if errors else {"at": "", "message": "invalid"}
        return problem(400 if is_json else 422, f"{first['at']}: {first['message']}", errors=errors)

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> JSONResponse:
        LOGGER.exception("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem(500, "an error of the service; its log says more")
