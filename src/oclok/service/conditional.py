"""Answers that are not computed, sent or even packed again while nothing has changed."""
# Tested in tests/service/test_page.py: answers are requested twice over HTTP.

from __future__ import annotations

import gzip
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from fastapi import Request, Response
from pydantic_core import to_json

#: Bytes from which on answers are compressed.
LEAST_BYTES = 1_000


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
