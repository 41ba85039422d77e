"""The OpenAPI description: a type and an example for everything, for generated clients.

Oracles and features of requests are checked by `oracle_from_json` and `Schema`, whose messages name
the mistake; the forms here only tell which fields there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any, Literal, Union

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter, create_model
from pydantic_core import CoreSchema

from oclok.oracles.arguments import oracle_kinds, parameters_of

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


Node = str | int
Bounds = list[float | None] | None


def _labels(example: str) -> Any:
    """Return the type of one label per arm, or the name of a feature that holds it."""
    return Annotated[str | list[Node], Field(examples=[example])]


#: Types of the arguments of oracles, by name.
ARGUMENTS: dict[str, Any] = {
    "k": Annotated[int, Field(ge=1, examples=[5])],
    "reward": Annotated[str, Field(description="NumPy function of the sum, such as log1p.")],
    "costs": Annotated[str | list[float], Field(examples=["price"])],
    "budget": Annotated[float, Field(examples=[100])],
    "groups": Annotated[str | list[Node | float | bool | None], Field(examples=["city"])],
    "limits": Annotated[int | dict[str, int], Field(examples=[2])],
    "left": _labels("sender"),
    "right": _labels("receiver"),
    "tail": _labels("from"),
    "head": _labels("to"),
    "source": Annotated[Node, Field(examples=["depot"])],
    "target": Annotated[Node, Field(examples=["customer"])],
    "at_most": bool,
    "solver": Literal["exact", "greedy"],
    "epsilon": float,
    "ell": float,
    "seed": int,
    "A": Annotated[list[list[float]], Field(examples=[[[1, 1, 1]]])],
    "lower": Annotated[Bounds, Field(examples=[[None]])],
    "upper": Annotated[Bounds, Field(examples=[[2]])],
    "time_limit": Annotated[float, Field(description="Longest time for the search, in seconds.")],
}


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _form(kind: str, oracle: type) -> type[_Form]:
    """Return the model of an oracle: the arguments of its constructor."""
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    for name, argument in parameters_of(oracle).items():
        if argument.default is Parameter.empty:
            fields[name] = ARGUMENTS[name], ...
        else:
            none = argument.default is None
            fields[name] = ARGUMENTS[name] | None if none else ARGUMENTS[name], argument.default
    summary = (oracle.__doc__ or "").splitlines()[0]
    return create_model(kind, __base__=_Form, __doc__=summary, **fields)


FORMS = {kind: _form(kind, oracle) for kind, oracle in oracle_kinds().items()}
Oracle: Any = Annotated[Union[tuple(FORMS.values())], Field(discriminator="kind")]  # noqa: UP007

FeatureKind = Literal["number", "boolean", "category", "list", "timestamp", "ignored"]


class FeatureForm(_Form):
    """A feature: its kind, and what its values are encoded with."""

    kind: FeatureKind
    missing: bool = Field(True, description="Whether values may be missing.")
    mean: float | list[float] | None = Field(None, description="Of numbers and lists.")
    scale: float | list[float] | None = Field(None, description="Of numbers and lists.")
    values: list[str | int] | None = Field(None, description="Of a category.")
    buckets: int | None = Field(None, description="Columns shared by other values of a category.")
    length: int | None = Field(None, description="Of a list.")
    declared: bool | None = Field(None, description="Whether a feature is ignored by request.")


@dataclass(frozen=True)
class Described:
    """Describes a field in OpenAPI by another type than the one that checks it."""

    form: Any

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(TypeAdapter(self.form).core_schema)
