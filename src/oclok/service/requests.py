"""What the service takes: strict types with their limits, the schema of OpenAPI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, JsonValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from oclok.service import openapi
from oclok.service.openapi import Described
from oclok.validation import LARGEST_OUTCOME

#: Bytes of a request's body, and arms of a decision; more are refused.
MOST_BYTES, MOST_ARMS = 8_000_000, 10_000
#: Features of an arm, numbers in a list, outcomes and observations of a request.
MOST_FEATURES, MOST_NUMBERS, MOST_OUTCOMES = 500, 4_096, 10_000
#: Decisions of a batch.
MOST_DECISIONS = 1_000
#: Whole numbers up to this are the same in all languages that read JSON.
LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Expected:
    """Replaces the messages of a union's parts by one."""

    message: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="unexpected", custom_error_message=self.message
        )


AgentName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["couriers"])
]
DecisionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:~-]{1,128}$", examples=["order-1"])]
FeatureName = Annotated[str, Field(min_length=1, max_length=128)]
Integer = Annotated[int, Field(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
ArmId = Annotated[
    Annotated[str, Field(min_length=1, max_length=256)] | Integer,
    Expected("Expected a text of 1 to 256 characters, or a whole number up to 2^53"),
    Field(examples=["courier-7"]),
]
ArmIds = Annotated[list[ArmId], Field(max_length=MOST_ARMS)]
Number = Annotated[float, Field(ge=-LARGEST_OUTCOME, le=LARGEST_OUTCOME)]
Text = Annotated[str, Field(max_length=1_000)]
Numbers = Annotated[list[Number], Field(min_length=1, max_length=MOST_NUMBERS)]
Value = Annotated[
    Text | bool | Integer | Number | Numbers | None,
    Field(union_mode="left_to_right"),
    Expected(
        f"Expected a text of up to 1,000 characters, a number up to {LARGEST_OUTCOME:g}, a "
        f"boolean, a list of 1 to {MOST_NUMBERS:,} numbers, or null"
    ),
]
Features = Annotated[
    dict[FeatureName, Value],
    Field(min_length=1, max_length=MOST_FEATURES, examples=[{"years": 3.5, "city": "Lima"}]),
]
Share = Annotated[float, Field(gt=0, lt=1)]
Measures = Annotated[dict[FeatureName, Number], Field(min_length=1)]
Outcome = Annotated[
    Number | Measures | None,
    Expected(f"Expected a number up to {LARGEST_OUTCOME:g}, an object of such numbers, or null"),
]


def _json(value: Any) -> Any:
    """Return a value that every reader of JSON understands; `ValueError` otherwise."""
    if isinstance(value, dict):
        _json([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            _json(item)
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"whole numbers must be at most {LARGEST_INTEGER:,}")
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("texts must be Unicode; there is a lone surrogate") from None
    return value


OracleForm = Annotated[
    dict[str, JsonValue],
    AfterValidator(_json),
    Described(openapi.Oracle),
    Field(
        examples=[{"kind": "TopK", "k": 5}, {"kind": "Knapsack", "costs": "price", "budget": 100}],
        description="What may be chosen together, by kind and arguments.",
    ),
]
FeatureForms = Annotated[
    dict[
        FeatureName,
        Annotated[
            str | dict[str, JsonValue], Expected("Expected a kind, or an object with a kind")
        ],
    ],
    AfterValidator(_json),
    Field(min_length=1, max_length=MOST_FEATURES),
    Described(dict[str, openapi.FeatureKind | openapi.FeatureForm]),
    Field(examples=[{"years": "number", "city": {"kind": "category", "values": ["Oslo", "Lima"]}}]),
]


class Strict(BaseModel):
    """Takes the declared types only, without conversion."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Forgetting(Strict):
    """How to forget old outcomes: one of the two."""

    window: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        None, description="How many of the latest outcomes count."
    )
    discount: Share | None = Field(None, description="Factor of all weights at every update.")


class Sort(Strict):
    """The arms that come first by a feature: the smallest, or the largest if descending."""

    sort: FeatureName = Field(examples=["price"])
    descending: bool = False


class Score(Strict):
    """The feasible set with the largest sum of a feature."""

    score: FeatureName = Field(examples=["rating"])


Baseline = Annotated[
    Literal["chosen", "uniform"] | Sort | Score,
    Field(description="The old way: the request's `chosen`, at random, or by a feature."),
    Expected('Expected "chosen", "uniform", {"sort": a feature} or {"score": a feature}'),
]


class _Changeable(Strict):
    oracle: OracleForm | None = None
    deadline: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None, description="Seconds after which an outcome counts as lost.", examples=[3600]
    )
    default_outcome: Number | None = Field(None, description="Learned for a lost outcome.")
    mode: Literal["live", "shadow"] = "live"
    policy: Literal["ucb", "thompson"] = Field("ucb", description="How to explore.")
    exploration: Annotated[float, Field(ge=0, le=100)] | None = Field(
        None, description="Of ucb: standard deviations that the index adds; null: learned."
    )
    forgetting: Forgetting | None = None
    outcome_weights: Measures | None = Field(
        None, description="Outcomes may be objects of measures: these weigh their sum."
    )
    request_oracles: bool = Field(True, description="Whether a request may bring its own oracle.")
    explain: bool = Field(True, description="Whether to compute reasons, evidence and curves.")
    holdout: float = Field(0.0, ge=0, lt=1, description="Share of decisions in the control group.")
    baseline: Baseline | None = None
    guard: Share | None = Field(None, description="Share of the baseline's reward at risk.")


class Settings(_Changeable):
    """An agent's settings; `PATCH` changes all but `features` and `outcome_range`."""

    oracle: OracleForm
    features: FeatureForms | None = None
    outcome_range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = Field(
        None, examples=[[0, 5]]
    )


class SettingsChange(_Changeable):
    """Settings to change; those left out stay as they are."""

    state: Literal["active", "paused", "archived"] = Field("active", examples=["paused"])


class Clone(Strict):
    """The agent to make."""

    name: AgentName = Field(examples=["couriers-2"])
    learned: bool = Field(True, description="Whether it knows what this one has learned.")


class Erasure(Strict):
    """What to erase: one of the two."""

    arm: ArmId | None = Field(None, examples=["courier-7"])
    decision: DecisionId | None = None


class Arm(TypedDict):
    """One thing that can be chosen."""

    __pydantic_config__ = Strict.model_config  # type: ignore[misc]

    id: ArmId
    features: Features


class DecisionRequest(Strict):
    """Arms to choose from."""

    arms: Annotated[list[Arm], Field(min_length=1, max_length=MOST_ARMS)]
    context: Features | None = Field(
        None, description="Features of this decision, such as the user's, joined to every arm."
    )
    oracle: OracleForm | None = None
    include: ArmIds = []
    exclude: ArmIds = []
    id: DecisionId | None = Field(None, examples=["order-1"])
    chosen: ArmIds | None = Field(
        None, description="The choice of the deciding system (shadow mode), or of the baseline."
    )
    unit: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        None, description="Stays in one group of the experiment: a user, say."
    )
    time_budget: Annotated[float, Field(gt=0, le=3600)] | None = Field(
        None, description="Seconds of the oracle's search, if fewer than the server's limit."
    )


class DecisionBatch(Strict):
    """Several decisions, made in one call: all of them or none."""

    decisions: Annotated[list[DecisionRequest], Field(min_length=1, max_length=MOST_DECISIONS)]


class OutcomeItem(Strict):
    """The outcome of a chosen arm."""

    decision: DecisionId
    arm: ArmId
    outcome: Outcome = Field(
        None, description="Null if unseen; an object is weighed by the agent.", examples=[4.2]
    )
    correct: bool = Field(False, description="Replace the outcome sent before.")
    accept: bool = Field(False, description="Learn the outcome that was quarantined.")


class Observation(Strict):
    """An outcome of the past that belongs to no decision."""

    features: Features
    outcome: Number = Field(examples=[4.2])


OutcomeItems = Annotated[list[OutcomeItem], Field(min_length=1, max_length=MOST_OUTCOMES)]
Observations = Annotated[list[Observation], Field(min_length=1, max_length=MOST_OUTCOMES)]
