"""What the service says of itself: log lines with request ids."""

from __future__ import annotations

import json
import logging
import re
import secrets
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

ACCESS = logging.getLogger("oclok.access")
#: Id and agent of the request that the current task or thread works on.
REQUEST: ContextVar[dict[str, str] | None] = ContextVar("oclok_request", default=None)


class LineFormatter(logging.Formatter):
    """Time, level, message, and the request if there is one: as text, or as one JSON object."""

    def __init__(self, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line; the traceback is a field, or follows as text."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields: dict[str, Any] = {**(REQUEST.get() or {}), **getattr(record, "fields", {})}
        error = self.formatException(record.exc_info) if record.exc_info else None
        if self._is_json:
            entry = {"time": when, "level": record.levelname.lower(), "logger": record.name}
            entry |= {"message": record.getMessage(), **fields}
            return json.dumps(entry if error is None else entry | {"error": error}, default=str)
        words = [when, record.levelname, record.getMessage()]
        line = " ".join(words + [f"{name}={value}" for name, value in fields.items()])
        return line if error is None else f"{line}\n{error}"


def logging_config(style: str, level: str) -> dict[str, Any]:
    """Return the configuration for `logging.config.dictConfig`: everything to standard error."""
    formatter = {"()": f"{__name__}.LineFormatter", "is_json": style == "json"}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": formatter},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
    }


def request_id(given: bytes | None) -> str:
    """Return the id that a client or proxy gave its request, or a new one."""
    if given is not None and re.fullmatch(rb"[A-Za-z0-9._:-]{1,128}", given):
        return given.decode()
    return secrets.token_hex(8)
