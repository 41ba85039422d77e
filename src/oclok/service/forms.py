"""Oracles and features as OpenAPI describes them: one typed schema per kind.

Requests are checked by `oracle_from_json` and `Schema`, whose messages name the mistake; these
classes only tell generated clients which fields there are.
"""
# Tested in tests/service/test_openapi.py: forms have the fields that oracles and features have.

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic_core import CoreSchema

#: One label per arm, or the name of a feature that holds it.
Labels = str | list[str | int]
#: One number per arm, or the name of a feature that holds it.
Numbers = str | list[float]
Seconds = Annotated[float | None, Field(description="Longest time for the search, in seconds.")]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TopK(_Form):
    """The k arms with the largest index."""

    kind: Literal["TopK"]
    k: int = Field(ge=1, examples=[5])
    reward: str | None = Field(None, description="NumPy function of the sum, such as log1p.")


class Knapsack(_Form):
    """Arms whose costs fit into a budget."""

    kind: Literal["Knapsack"]
    costs: Numbers = Field(examples=["price"])
    budget: float = Field(examples=[100])
    time_limit: Seconds = None


class Partition(_Form):
    """At most `limits` arms of each group."""

    kind: Literal["Partition"]
    groups: str | list[str | int | float | bool | None] = Field(examples=["city"])
    limits: int | dict[str, int] = Field(examples=[2])


class Matching(_Form):
    """Arms that are edges, no two of which share a node."""

    kind: Literal["Matching"]
    left: Labels = Field(examples=["worker"])
    right: Labels = Field(examples=["task"])
    k: int | None = None
    at_most: bool = False


class Coverage(_Form):
    """k nodes whose edges cover the most."""

    kind: Literal["Coverage"]
    left: Labels = Field(examples=["sender"])
    right: Labels = Field(examples=["receiver"])
    k: int = Field(ge=1, examples=[3])
    solver: Literal["exact", "greedy"] = "exact"
    time_limit: Seconds = None


class TIMPlus(_Form):
    """k seeds that influence the most nodes."""

    kind: Literal["TIMPlus"]
    left: Labels = Field(examples=["sender"])
    right: Labels = Field(examples=["receiver"])
    k: int = Field(ge=1, examples=[3])
    epsilon: float = 0.1
    ell: float = 1
    seed: int | None = None
    time_limit: Seconds = None


class Path(_Form):
    """A path from source to target."""

    kind: Literal["Path"]
    tail: Labels = Field(examples=["from"])
    head: Labels = Field(examples=["to"])
    source: str | int = Field(examples=["depot"])
    target: str | int = Field(examples=["customer"])


class Program(_Form):
    """Linear constraints: lower ≤ A x ≤ upper, where x says which arms are chosen."""

    kind: Literal["Program"]
    A: list[list[float]] = Field(examples=[[[1, 1, 1]]])
    lower: list[float | None] | None = Field(None, examples=[[None]])
    upper: list[float | None] | None = Field(None, examples=[[2]])
    time_limit: Seconds = None


Oracle = Annotated[
    TopK | Knapsack | Partition | Matching | Coverage | TIMPlus | Path | Program,
    Field(discriminator="kind"),
]

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


class Described:
    """Describes a field in OpenAPI by another type than the one that checks it."""

    def __init__(self, form: Any) -> None:
        self.form = form

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return handler(source)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(TypeAdapter(self.form).core_schema)
