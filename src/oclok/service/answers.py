"""What the service answers; `openapi` adds examples.

Answers are read from objects of the same fields; numbers that are not finite become null.
"""
# Tested in tests/service/test_openapi.py: answers are checked against the description.

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from oclok.service.openapi import FeatureForm
from oclok.service.requests import Settings, SettingsChange


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Value = str | bool | int | float | list[float] | None
Time = Annotated[float, Field(description="Seconds since 1970.", examples=[1760000000.5])]
Count = Annotated[int, Field(examples=[12])]
Number = Annotated[float, Field(examples=[3.8])]
#: A number that may not be known.
Maybe = Annotated[Number | None, BeforeValidator(_finite)]
Text = Annotated[str, BeforeValidator(str)]
Name = Annotated[str, Field(examples=["couriers"])]
DecisionName = Annotated[str, Field(examples=["order-1"])]
Id = Annotated[str | int, Field(examples=["courier-7"])]
Status = Literal["learned", "waiting", "quarantined", "defaulted", "never_came", "corrected"]
Level = Literal["green", "amber", "red", "grey"]


class Answer(BaseModel):
    """Can be read from an object with the same attributes."""

    model_config = ConfigDict(from_attributes=True)


class Counts(Answer):
    """Outcomes by what became of them."""

    waiting: Count
    learned: Count
    quarantined: Count
    defaulted: Count
    never_came: Count
    corrected: Count


class Calibration(Answer):
    """How well the model foresaw the outcomes so far."""

    count: Count
    mean: Maybe = Field(examples=[0.02])
    spread: Maybe = Field(description="Above 1: overconfident.", examples=[1.01])
    spread_interval: list[Maybe] = Field(examples=[[0.95, 1.08]])
    coverage: dict[Text, Maybe] = Field(
        description="Share of outcomes in each band.", examples=[{"0.5": 0.51, "0.95": 0.95}]
    )
    verdict: Literal["neither", "too early", "overconfident", "underconfident"]
    p_value: Maybe = Field(examples=[0.6])


class LiftGroup(Answer):
    """Decisions of one group that are complete, and what one earned on average."""

    decisions: Count
    mean: Maybe


class LiftPeriod(Answer):
    """Both groups within a period."""

    start: Time
    length: float = Field(description="In seconds.", examples=[3600])
    agent: LiftGroup
    baseline: LiftGroup


class Guarded(Answer):
    """What the guard did."""

    share: float = Field(description="Of the baseline's reward that may be lost at any time.")
    probability: float = Field(description="That no more is lost, if the assumptions hold.")
    decisions: Count
    stepped_in: Count
    reserve: float = Field(description="Lower bound of the reward saved up.")
    assumptions: list[Text]


class Lift(Answer):
    """What the agent earns per decision beyond the baseline.

    The intervals hold at all times at once: look as often as you like.
    """

    verdict: Literal["better", "too early", "worse", "undecided"]
    summary: str = Field(examples=["better: 2.2 per decision against 2 of the baseline, +0.2"])
    agent: LiftGroup
    baseline: LiftGroup
    difference: Maybe = Field(examples=[0.2])
    lower: Maybe = Field(examples=[0.1])
    upper: Maybe = Field(examples=[0.3])
    ratio: Maybe = Field(examples=[1.1])
    ratio_lower: Maybe = Field(examples=[1.05])
    ratio_upper: Maybe = Field(examples=[1.15])
    level: float = Field(examples=[0.95])
    periods: list[LiftPeriod]
    guard: Guarded | None = None


class Comparison(Answer):
    """In shadow mode: the agent against the system that decides, as the model sees it."""

    summary: str = Field(examples=["the agent would have chosen otherwise in 80 of 100"])
    rounds: int = Field(examples=[100])
    different: int = Field(examples=[80])
    gain: Maybe = Field(description="Expected change of a decision's sum.", examples=[0.4])
    lower: Maybe = Field(examples=[0.1])
    upper: Maybe = Field(examples=[0.7])
    level: float = Field(examples=[0.95])


class Regret(Answer):
    """Estimate of what better choices would have earned so far, as the model sees it now."""

    median: float = Field(examples=[52.0])
    lower: float = Field(examples=[44.0])
    upper: float = Field(examples=[61.0])
    level: float = Field(examples=[0.95])
    per_round: float = Field(description="Expected of one further decision.", examples=[0.1])
    rounds: int = Field(examples=[400])


class Totals(Counts):
    """Decisions of a time range, and what became of their outcomes."""

    decisions: Count
    per_minute: float
    mean_outcome: Number | None
    mean_error: float | None = Field(description="Standard error of `mean_outcome`.")


class History(Answer):
    """A time range in equal steps; entry n of every list is about decisions of step n.

    `lower` and `upper` hold the mean outcome of a step with 95% probability, as the model
    expected when the decisions were made.
    """

    range: Literal["hour", "day", "week", "all"]
    start: Time
    step: float = Field(description="Seconds.", examples=[60.0])
    decisions: list[Count]
    outcomes: list[Count]
    never_came: list[Count]
    mean: list[Number | None]
    expected: list[Number | None]
    lower: list[float | None] = Field(examples=[[3.5]])
    upper: list[float | None] = Field(examples=[[4.1]])
    total: Totals
    remembered: Count = Field(description="Decisions that this looks at: the latest ones.")


class FeatureCurve(Answer):
    """How the expected outcome depends on one feature, averaged over recently chosen arms."""

    name: str = Field(examples=["distance"])
    relevance: float = Field(description="Share of the expected variation.", examples=[0.6])
    values: list[Value] = Field(examples=[[0.5, 10.0, 19.5]])
    mean: list[float] = Field(examples=[[4.2, 3.4, 2.5]])
    lower: list[float] = Field(examples=[[4.0, 3.2, 2.2]])
    upper: list[float] = Field(examples=[[4.4, 3.6, 2.8]])


class Kernel(Answer):
    """A member of the model, and its weight."""

    weight: float = Field(examples=[0.9])
    noise_std: float = Field(examples=[0.4])
    kernel: str = Field(examples=["RBF(length_scale=1)"])


class Learned(Answer):
    """What the model has learned, by feature, most relevant first."""

    features: list[FeatureCurve]
    kernels: list[Kernel]


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
