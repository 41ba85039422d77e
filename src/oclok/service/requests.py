"""What the service takes and answers: strict types, and the schema of the OpenAPI page."""
# Tested in tests/service/test_openapi.py: bodies are checked against the description.

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from oclok.service.fields import (
    MOST_ARMS,
    MOST_OUTCOMES,
    ArmId,
    DecisionId,
    FeatureForms,
    Features,
    Number,
    OracleForm,
)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Settings(_Strict):
    """An agent's settings; they never change."""

    oracle: OracleForm = Field(examples=[{"kind": "TopK", "k": 5}])
    features: FeatureForms | None = None
    outcome_range: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    deadline: Annotated[float, Field(gt=0, le=1e9)] | None = None
    default_outcome: Number | None = None
    mode: Literal["live", "shadow"] = "live"


class Arm(_Strict):
    """One thing that can be chosen."""

    id: ArmId
    features: Features


class DecisionRequest(_Strict):
    """Arms to choose from."""

    arms: Annotated[list[Arm], Field(min_length=1, max_length=MOST_ARMS)]
    oracle: OracleForm | None = None
    include: Annotated[list[ArmId], Field(max_length=MOST_ARMS)] = []
    exclude: Annotated[list[ArmId], Field(max_length=MOST_ARMS)] = []
    id: DecisionId | None = None
    chosen: Annotated[list[ArmId], Field(max_length=MOST_ARMS)] | None = Field(
        None, description="In shadow mode: what the deciding system has chosen."
    )


class OutcomeItem(_Strict):
    """What came of a chosen arm."""

    decision: DecisionId
    arm: ArmId
    outcome: Number | None = Field(None, description="Left out where it was not seen.")
    correct: bool = Field(False, description="Replace the outcome told before.")
    accept: bool = Field(False, description="Learn the outcome that was quarantined.")


class Observation(_Strict):
    """An outcome of the past that belongs to no decision."""

    features: Features
    outcome: Number


OutcomeItems = Annotated[list[OutcomeItem], Field(min_length=1, max_length=MOST_OUTCOMES)]
Observations = Annotated[list[Observation], Field(min_length=1, max_length=MOST_OUTCOMES)]


class ChosenArm(BaseModel):
    """A chosen arm, and what was thought of it."""

    id: str | int
    mean: float | None = None
    std: float | None = None
    index: float | None = None


class DecisionAnswer(BaseModel):
    """A decision."""

    id: str
    round: int
    chosen: list[ChosenArm]
    is_exact: bool


class ArmAnswer(ChosenArm):
    """An arm that was offered: what was thought of it, and why it was chosen or not."""

    chosen: bool
    reason: str | None = None
    outcome: float | None = None
    status: str | None = None
    features: dict[str, Any]
    evidence: list[dict[str, Any]] = []


class DecisionDetails(DecisionAnswer):
    """A decision, its outcomes so far, and why it came out as it did."""

    time: float
    outcomes: list[dict[str, Any]]
    arms: list[ArmAnswer]


class DecisionRow(BaseModel):
    """A decision in a list."""

    id: str
    round: int
    time: float
    arms: int
    chosen: list[str | int]
    outcomes: dict[str, float | None]


class Rejected(BaseModel):
    """An outcome that was not taken, and why."""

    decision: str
    arm: str | int
    reason: str


class Told(BaseModel):
    """An outcome that was taken, and what became of it."""

    decision: str
    arm: str | int
    result: str


class OutcomesAnswer(BaseModel):
    """What became of outcomes: how many, those refused, and one by one."""

    learned: int = 0
    repeated: int = 0
    corrected: int = 0
    quarantined: int = 0
    rejected: list[Rejected] = []
    items: list[Told] = []


class ObservationsAnswer(BaseModel):
    """How many observations were learned."""

    learned: int


class AgentAnswer(BaseModel):
    """An agent: its settings, what it has seen, and how it is."""

    name: str
    settings: dict[str, Any]
    created: float
    rounds: int
    events: int
    learned: int
    open_decisions: int
    waiting: int
    late: int
    quarantined: int
    calibration: dict[str, Any]
    regret: dict[str, Any] | None
    health: list[dict[str, Any]]
    weights: list[dict[str, Any]]
    features: dict[str, Any] | None


class Problem(BaseModel):
    """What was wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] = []
