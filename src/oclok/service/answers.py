"""What the service answers about agents, decisions and itself; `openapi` adds examples."""
# Tested in tests/service/test_openapi.py: answers are checked against the description.

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from oclok.service.openapi import FeatureForm
from oclok.service.reports import (
    Answer,
    Calibration,
    Count,
    Counts,
    Maybe,
    Number,
    Regret,
    Time,
    Value,
)
from oclok.service.requests import Settings, SettingsChange

Name = Annotated[str, Field(examples=["couriers"])]
DecisionName = Annotated[str, Field(examples=["order-1"])]
Id = Annotated[str | int, Field(examples=["courier-7"])]
Status = Literal["learned", "waiting", "quarantined", "defaulted", "never_came", "corrected"]
Level = Literal["green", "amber", "red", "grey"]


class ChosenArm(Answer):
    """A chosen arm, and what the model expected of it."""

    id: Id
    mean: Maybe = Field(None, description="Expected outcome.", examples=[3.8])
    std: Maybe = Field(None, description="Uncertainty of `mean`.", examples=[0.1])
    index: Maybe = Field(None, description="What arms are compared by.", examples=[3.9])


class DecisionAnswer(Answer):
    """A decision."""

    id: DecisionName
    round: Count
    chosen: list[ChosenArm]
    is_exact: bool | None = Field(None, description="True: provably the exact posterior's choice.")
    group: Literal["agent", "baseline"] = Field("agent", description="Who decided.")
    stepped_in: bool = Field(False, description="Whether the guard let the baseline decide.")
    propensity: float | None = Field(None, description="Probability of this set.", examples=[1.0])


class BatchAnswer(Answer):
    """Decisions, in the order of their requests."""

    decisions: list[DecisionAnswer]


class Outcome(Answer):
    """The outcome of a chosen arm, and what became of it."""

    arm: Id
    status: Status
    outcome: float | None = Field(None, examples=[4.2])


class Evidence(Answer):
    """An outcome of the past, near to an arm by its features."""

    decision: DecisionName
    arm: Id
    outcome: Number
    distance: float = Field(description="Between the encoded features.", examples=[0.3])


class ArmAnswer(ChosenArm):
    """An arm that was offered: what the model expected, and why it was chosen or not."""

    outcome_std: float | None = Field(
        None, description="Of an outcome around `mean`: uncertainty and noise.", examples=[0.4]
    )
    chosen: bool
    reason: str | None = Field(None, examples=["Lima already has 2 of 2"])
    outcome: float | None = None
    status: Status | None = None
    features: dict[str, Value] = Field({}, examples=[{"years": 3.5, "city": "Lima"}])
    evidence: list[Evidence] = Field([])


class DecisionDetails(DecisionAnswer):
    """A decision, its outcomes so far, and why it came out as it did."""

    time: Time
    noise_std: float | None = Field(None, description="Noise believed in then.", examples=[0.4])
    outcome_range: list[float] | None = Field(description="Of the agent.", examples=[[0, 5]])
    outcomes: list[Outcome]
    arms: list[ArmAnswer]


class DecisionRow(Answer):
    """A decision in a list."""

    id: DecisionName
    round: Count
    time: Time
    arms: Count = Field(description="How many were offered.")
    outcomes: list[Outcome] = Field(description="One per chosen arm.")


class Rejected(Answer):
    """An outcome that was not taken, and why."""

    decision: DecisionName
    arm: Id
    reason: str = Field(examples=["arm 'courier-7' was not chosen"])


class Taken(Answer):
    """An outcome that was taken, and what became of it."""

    decision: DecisionName
    arm: Id
    result: Literal["learned", "repeated", "corrected", "quarantined"]


class OutcomesAnswer(Answer):
    """What became of outcomes: how many, those refused, and one by one."""

    learned: Count
    repeated: Count
    corrected: Count
    quarantined: Count
    rejected: list[Rejected]
    items: list[Taken]


class ObservationsAnswer(Answer):
    """How many observations were learned."""

    learned: Count


class Finding(Answer):
    """Something that the operator should know."""

    kind: str = Field(examples=["lost"])
    severity: Literal["error", "warning", "info"] = Field(examples=["warning"])
    message: str = Field(examples=["60% of outcomes did not come before their deadline"])
    advice: str = Field("", description="What to do about it, in terms of this API.")
    subject: str = Field("", description="The feature that it is about, if any.")


class Verdict(Answer):
    """Whether the agent is well, in one sentence; the worst finding decides."""

    level: Level = Field(description="grey: too early to say.")
    summary: str = Field(examples=["All is well."])
    action: str = Field(default="", description="What to do, in terms of this API.")
    kind: str = Field(default="", description="The kind of the finding behind it.")


class AgentAnswer(Counts):
    """An agent: its settings, what it has seen, and how it is."""

    name: Name
    settings: Settings
    created: Time
    rounds: Count = Field(description="Decisions so far.")
    events: Count
    open_decisions: Count
    observed: Count
    late: Count = Field(description="Open decisions that wait for longer than is usual.")
    verdict: Verdict
    calibration: Calibration
    regret: Regret | None
    health: list[Finding]
    features: dict[str, FeatureForm] | None = Field(
        examples=[{"years": {"kind": "number", "missing": True, "mean": 5.1, "scale": 3.9}}]
    )


class AgentRow(Answer):
    """An agent in a list."""

    name: Name
    mode: str = Field(examples=["live"])
    created: Time
    rounds: Count
    waiting: Count
    learned: Count
    never_came: Count
    late: Count
    verdict: Verdict


class CallTimes(Answer):
    """How long the latest calls of one kind took, in seconds."""

    call: str = Field(examples=["POST decisions"])
    count: Count
    median: float = Field(examples=[0.004])
    p99: float = Field(examples=[0.02])


class Server(Answer):
    """The process that answered."""

    version: str = Field(examples=["0.1.0"])
    calls: list[CallTimes]


class Me(Answer):
    """What the key of this request may do."""

    roles: list[str] = Field(examples=[["read"]])
    agent: Name | None = Field(description="The only agent that the key is for; null: all.")


class Erased(Answer):
    """How many events of the log were changed."""

    events: Count


class AuditDetail(SettingsChange):
    """The changed settings, the source of a clone, or the kind of thing erased."""

    source: Name | None = Field(None, alias="from")
    learned: bool | None = None
    what: Literal["arm", "decision"] | None = None
    events: int | None = None


class AuditEntry(Answer):
    """Something that was done to an agent."""

    id: Count
    time: Time
    who: str = Field(description="The name of the key.", examples=["ci"])
    agent: Name
    action: str = Field(examples=["state"])
    detail: AuditDetail = Field(examples=[{"state": "paused"}])


class Alive(Answer):
    """The state of the process."""

    status: str = Field(examples=["ready"])


class ProblemAt(Answer):
    """One thing that is wrong, and where."""

    at: str = Field(examples=["body/arms/0/id"])
    message: str = Field(examples=["Field required"])


class Problem(Answer):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no agent 'b'"])
    errors: list[ProblemAt] = Field([])
