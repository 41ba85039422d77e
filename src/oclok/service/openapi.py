"""The OpenAPI description: a type and an example for everything, for generated clients."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

PROBLEM = "application/problem+json"
TAGS = {
    "agents": "Make agents, and see how they are.",
    "decisions": "Let an agent decide, and see why it decided so.",
    "outcomes": "Send outcomes of decisions, or of the past.",
    "personalizer": "Azure Personalizer's calls, for clients that only change their address.",
    "service": "The service itself.",
}
#: Examples of types that have none of their own.
PLAIN = {"string": "text", "integer": 1, "number": 0.5, "boolean": True}


def install(app: FastAPI) -> None:
    """Let an app describe its errors by the type they have, and give examples of everything."""
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
    schemas = description["components"]["schemas"]
    for name in ("JsonValue", "HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for schema in schemas.values():
        schema.setdefault("examples", [example(schema, schemas)])
    description["tags"] = [{"name": name, "description": TAGS[name]} for name in TAGS]
    return description


def example(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """Return an example of a schema, put together from those of its required fields."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example(schemas[schema["$ref"].rsplit("/", 1)[-1]], schemas)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return example(next(each for each in options if each.get("type") != "null"), schemas)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [example(schema["items"], schemas)]
    if schema.get("type") == "object":
        required = schema.get("required", ())
        return {
            name: example(field, schemas)
            for name, field in schema.get("properties", {}).items()
            if name in required or "examples" in field
        }
    return PLAIN[schema["type"]]
