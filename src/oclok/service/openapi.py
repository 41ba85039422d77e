"""The OpenAPI description, so that generated clients have a type for everything."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

PROBLEM = "application/problem+json"
TAGS = {
    "agents": "Make agents, and see how they are.",
    "decisions": "Let an agent decide, and see why it decided so.",
    "outcomes": "Tell an agent what came of its decisions, or of those of the past.",
    "personalizer": "Azure Personalizer's calls, for clients that only change their address.",
    "service": "The service itself.",
}


def install(app: FastAPI) -> None:
    """Let an app describe its errors by the type they have, and nothing that is not used."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _tidied(describe())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _tidied(description: dict[str, Any]) -> dict[str, Any]:
    for operations in description["paths"].values():
        for operation in operations.values():
            for status, answer in operation["responses"].items():
                if int(status) >= 400:  # FastAPI describes problems as plain JSON
                    answer["content"] = {
                        PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}
                    }
                for content in answer.get("content", {}).values():
                    content.setdefault("schema", {"type": "string"})
    for name in ("JsonValue", "HTTPValidationError", "ValidationError"):
        description["components"]["schemas"].pop(name, None)
    description["tags"] = [{"name": name, "description": TAGS[name]} for name in TAGS]
    return description
