"""The page at `/docs`: the OpenAPI description for people, without anything from elsewhere."""
# Tested in tests/service/test_openapi.py: it shows the OpenAPI description.

from __future__ import annotations

import json
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.responses import Response


def add_api_page(app: FastAPI) -> None:
    """Serve the page at `/docs`."""

    def docs() -> Response:
        return Response(api_page(app.openapi()), media_type="text/html; charset=utf-8")

    app.add_api_route("/docs", docs, methods=["GET"], include_in_schema=False)


def api_page(description: dict[str, Any]) -> str:
    """Return an OpenAPI description as HTML."""
    calls = [
        _call(method.upper(), path, operation)
        for path, operations in description["paths"].items()
        for method, operation in operations.items()
    ]
    schemas = [
        f'<section id="{escape(name)}"><h2>{escape(name)}</h2>'
        f"<p>{escape(schema.get('description', ''))}</p>"
        f"<pre>{_linked(schema.get('properties', schema))}</pre></section>"
        for name, schema in description["components"]["schemas"].items()
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>oclok: API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/static/page.css"></head><body><header>'
        '<a class="home" href="/">oclok</a></header><main><h1>API</h1>'
        f"<p>{escape(description['info']['description'])} Version {description['info']['version']}."
        ' For tools: <a href="/openapi.json">openapi.json</a>. Keys go into the header '
        "<code>Authorization: Bearer oclok_…</code>. Errors are problems (RFC 9457).</p>"
        f"{''.join(calls)}<h1>Schemas</h1>{''.join(schemas)}</main></body></html>"
    )


def _call(method: str, path: str, operation: dict[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    takes = f"<p>Takes {_linked(body['schema'])}</p>" if body else ""
    answers = "".join(
        f"<li>{status}: {escape(answer.get('description', ''))} {_answer(answer)}</li>"
        for status, answer in operation["responses"].items()
    )
    return (
        f"<section><h2><code>{method} {escape(path)}</code></h2>"
        f"<p>{escape(operation.get('description', operation.get('summary', '')))}</p>{takes}"
        f"<ul>{answers}</ul></section>"
    )


def _answer(answer: dict[str, Any]) -> str:
    schemas = [content.get("schema") for content in answer.get("content", {}).values()]
    return _linked(schemas[0]) if schemas and schemas[0] else ""


def _linked(schema: dict[str, Any]) -> str:
    """Return a schema as text in which the names of others are links."""
    if "$ref" in schema and len(schema) == 1:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    return escape(json.dumps(schema, indent=1, ensure_ascii=False))
