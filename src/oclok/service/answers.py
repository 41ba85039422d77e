"""What the service answers: typed, with an example each, for OpenAPI and generated clients."""
# Tested in tests/service/test_openapi.py: answers are checked against the description.

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from oclok.service.forms import FeatureForm
from oclok.service.requests import Settings

Id = str | int
Value = str | bool | int | float | list[float] | None
Status = Literal["waiting", "learned", "quarantined", "defaulted", "never_came", "corrected"]
Level = Literal["red", "amber", "green", "grey"]
Time = Annotated[float, Field(description="Seconds since 1970.", examples=[1760000000.5])]


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class ChosenArm(BaseModel):
    """A chosen arm, and what the model expected of it."""

    id: Id = Field(examples=["courier-7"])
    mean: float | None = Field(default=None, description="Expected outcome.", examples=[3.8])
    std: float | None = Field(default=None, description="Uncertainty of `mean`.", examples=[0.1])
    index: float | None = Field(
        default=None, description="What arms are compared by.", examples=[3.9]
    )


class DecisionAnswer(BaseModel):
    """A decision."""

    model_config = _example(id="order-1", round=1, chosen=[{"id": "a", "mean": 3.8, "std": 0.1}])

    id: str
    round: int
    chosen: list[ChosenArm]
    is_exact: bool | None = Field(
        default=None,
        description="Whether the exact posterior provably chooses the same, where one can tell.",
    )
    group: Literal["agent", "baseline"] = Field(
        default="agent", description="Who decided; the baseline decides for the control group."
    )
    stepped_in: bool = Field(
        default=False, description="Whether the guard left the decision to the baseline."
    )
    propensity: float | None = Field(
        default=None, description="Probability of this set; null where it is not known."
    )


class BatchAnswer(BaseModel):
    """Decisions, in the order of their requests."""

    model_config = _example(decisions=[{"id": "order-1", "round": 1, "chosen": [{"id": "a"}]}])

    decisions: list[DecisionAnswer]


class Outcome(BaseModel):
    """The outcome of a chosen arm, and what became of it."""

    arm: Id = Field(examples=["courier-7"])
    status: Status = Field(examples=["learned"])
    outcome: float | None = Field(default=None, examples=[4.2])


class Evidence(BaseModel):
    """An outcome of the past, near to an arm by its features."""

    decision: str = Field(examples=["order-1"])
    arm: Id = Field(examples=["courier-3"])
    outcome: float = Field(examples=[4.0])
    distance: float = Field(description="Between the encoded features.", examples=[0.3])


class ArmAnswer(ChosenArm):
    """An arm that was offered: what the model expected, and why it was chosen or not."""

    outcome_std: float | None = Field(
        default=None, description="Of a single outcome around `mean`: uncertainty and noise."
    )
    chosen: bool
    reason: str | None = Field(default=None, examples=["Lima already has 2 of 2"])
    outcome: float | None = None
    status: Status | None = None
    features: dict[str, Value] = Field(examples=[{"years": 3.5, "city": "Lima"}])
    evidence: list[Evidence] = []


class DecisionDetails(DecisionAnswer):
    """A decision, its outcomes so far, and why it came out as it did."""

    time: Time
    noise_std: float | None = Field(default=None, description="Noise believed in at that time.")
    outcomes: list[Outcome]
    arms: list[ArmAnswer]


class DecisionRow(BaseModel):
    """A decision in a list."""

    model_config = _example(
        id="order-1",
        round=1,
        time=1760000000.5,
        arms=20,
        outcomes=[{"arm": "courier-7", "status": "learned", "outcome": 4.2}],
    )

    id: str
    round: int
    time: Time
    arms: int = Field(description="How many were offered.")
    outcomes: list[Outcome] = Field(description="One per chosen arm.")


class Rejected(BaseModel):
    """An outcome that was not taken, and why."""

    decision: str
    arm: Id
    reason: str


class Told(BaseModel):
    """An outcome that was taken, and what became of it."""

    decision: str
    arm: Id
    result: str


class OutcomesAnswer(BaseModel):
    """What became of outcomes: how many, those refused, and one by one."""

    model_config = _example(
        learned=1,
        repeated=0,
        corrected=0,
        quarantined=0,
        rejected=[],
        items=[{"decision": "order-1", "arm": "courier-7", "result": "learned"}],
    )

    learned: int = 0
    repeated: int = 0
    corrected: int = 0
    quarantined: int = 0
    rejected: list[Rejected] = []
    items: list[Told] = []


class ObservationsAnswer(BaseModel):
    """How many observations were learned."""

    model_config = _example(learned=250)

    learned: int


class Finding(BaseModel):
    """Something that the operator should know."""

    model_config = _example(
        kind="lost",
        severity="warning",
        message="60% of outcomes did not come before their deadline",
        subject="",
    )

    kind: str
    severity: Literal["error", "warning", "info"]
    message: str
    subject: str = Field(default="", description="The feature that it is about, if any.")


class Verdict(BaseModel):
    """Whether the agent is well, in one sentence; the worst finding decides."""

    model_config = _example(level="green", summary="All is well.", action="", kind="")

    level: Level = Field(description="grey: too early to say.")
    summary: str
    action: str = Field(default="", description="What to do, in terms of this API.")
    kind: str = Field(default="", description="The kind of the finding behind it.")


class Calibration(BaseModel):
    """How well the model foresaw the outcomes so far."""

    model_config = _example(
        count=812,
        mean=0.02,
        spread=1.01,
        spread_interval=[0.95, 1.08],
        coverage={"0.5": 0.51, "0.8": 0.79, "0.95": 0.95},
        verdict="neither",
        p_value=0.6,
    )

    count: int
    mean: float | None
    spread: float | None = Field(description="Above 1: overconfident.")
    spread_interval: list[float | None]
    coverage: dict[str, float | None] = Field(description="Share of outcomes in each band.")
    verdict: str
    p_value: float | None


class LiftGroup(BaseModel):
    """Decisions of one group that are complete, and what one earned on average."""

    decisions: int
    mean: float | None


class LiftPeriod(BaseModel):
    """Both groups within a period."""

    start: Time
    length: float = Field(description="In seconds.")
    agent: LiftGroup
    baseline: LiftGroup


class Guarded(BaseModel):
    """What the guard did."""

    share: float = Field(description="Of the baseline's reward that may be lost at any time.")
    probability: float = Field(description="That no more is lost, if the assumptions hold.")
    decisions: int
    stepped_in: int
    reserve: float = Field(description="Lower bound of what was saved up.")
    assumptions: list[str]


class Lift(BaseModel):
    """What the agent earns per decision beyond the baseline.

    The intervals hold at all times at once: look as often as you like.
    """

    model_config = _example(
        verdict="better",
        summary="better: 2.2 per decision (4,512) against 2 (488) of the baseline, +0.2",
        agent={"decisions": 4512, "mean": 2.2},
        baseline={"decisions": 488, "mean": 2.0},
        difference=0.2,
        lower=0.1,
        upper=0.3,
        ratio=1.1,
        ratio_lower=1.05,
        ratio_upper=1.15,
        level=0.95,
        periods=[],
        guard=None,
    )

    verdict: Literal["too early", "better", "worse", "undecided"]
    summary: str
    agent: LiftGroup
    baseline: LiftGroup
    difference: float | None
    lower: float | None
    upper: float | None
    ratio: float | None
    ratio_lower: float | None
    ratio_upper: float | None
    level: float
    periods: list[LiftPeriod]
    guard: Guarded | None


class Comparison(BaseModel):
    """In shadow mode: the agent against the system that decides, as the model sees it."""

    model_config = _example(
        summary="the agent would have chosen otherwise in 80 of 100 decisions",
        rounds=100,
        different=80,
        gain=0.4,
        lower=0.1,
        upper=0.7,
        level=0.95,
    )

    summary: str
    rounds: int
    different: int
    gain: float | None = Field(description="Expected change of a decision's sum of outcomes.")
    lower: float | None
    upper: float | None
    level: float


class Regret(BaseModel):
    """Estimate of what better choices would have earned so far, as the model sees it now."""

    model_config = _example(
        median=52.0, lower=44.0, upper=61.0, level=0.95, per_round=0.1, rounds=400
    )

    median: float
    lower: float
    upper: float
    level: float
    per_round: float = Field(description="Expected of one further decision.")
    rounds: int


class AgentAnswer(BaseModel):
    """An agent: its settings, what it has seen, and how it is."""

    model_config = _example(
        name="couriers",
        settings={"oracle": {"kind": "TopK", "k": 5}, "mode": "live"},
        created=1760000000.5,
        rounds=400,
        events=800,
        open_decisions=4,
        waiting=20,
        learned=1900,
        quarantined=0,
        defaulted=0,
        never_came=80,
        corrected=0,
        observed=0,
        late=0,
        verdict={"level": "green", "summary": "All is well.", "action": "", "kind": ""},
        calibration={
            "count": 1900,
            "mean": 0.02,
            "spread": 1.01,
            "spread_interval": [0.95, 1.08],
            "coverage": {"0.5": 0.51, "0.8": 0.79, "0.95": 0.95},
            "verdict": "neither",
            "p_value": 0.6,
        },
        regret=None,
        health=[],
        features={"years": {"kind": "number", "missing": True, "mean": 5.1, "scale": 3.9}},
    )

    name: str
    settings: Settings
    created: Time
    rounds: int = Field(description="Decisions so far.")
    events: int
    open_decisions: int
    waiting: int
    learned: int
    quarantined: int
    defaulted: int
    never_came: int
    corrected: int
    observed: int
    late: int = Field(description="Open decisions that wait for longer than is usual.")
    verdict: Verdict
    calibration: Calibration
    regret: Regret | None
    health: list[Finding]
    features: dict[str, FeatureForm] | None


class AgentRow(BaseModel):
    """An agent in a list."""

    model_config = _example(
        name="couriers",
        mode="live",
        created=1760000000.5,
        rounds=400,
        waiting=20,
        learned=1900,
        never_came=80,
        late=0,
        verdict={"level": "green", "summary": "All is well.", "action": "", "kind": ""},
    )

    name: str
    mode: str
    created: Time
    rounds: int
    waiting: int
    learned: int
    never_came: int
    late: int
    verdict: Verdict


class Totals(BaseModel):
    """Decisions of a time range, and what became of their outcomes."""

    decisions: int
    per_minute: float
    waiting: int
    learned: int
    quarantined: int
    defaulted: int
    never_came: int
    corrected: int
    mean_outcome: float | None
    mean_error: float | None = Field(description="Standard error of `mean_outcome`.")


class History(BaseModel):
    """A time range in equal steps; entry n of every list is about decisions of step n.

    `lower` and `upper` hold the mean outcome of a step with 95% probability, as the model
    expected when the decisions were made.
    """

    model_config = _example(
        range="hour",
        start=1760000000.0,
        step=60.0,
        decisions=[4, 6],
        outcomes=[20, 30],
        never_came=[0, 1],
        mean=[3.7, 3.9],
        expected=[3.8, 3.8],
        lower=[3.5, 3.6],
        upper=[4.1, 4.0],
    )

    range: Literal["hour", "day", "week", "all"]
    start: Time
    step: float = Field(description="Seconds.")
    decisions: list[int]
    outcomes: list[int]
    never_came: list[int]
    mean: list[float | None]
    expected: list[float | None]
    lower: list[float | None]
    upper: list[float | None]
    total: Totals
    remembered: int = Field(description="Decisions that this looks at: the latest ones.")


class FeatureCurve(BaseModel):
    """How the expected outcome depends on one feature, averaged over recently chosen arms."""

    model_config = _example(
        name="distance",
        relevance=0.6,
        values=[0.5, 10.0, 19.5],
        mean=[4.2, 3.4, 2.5],
        lower=[4.0, 3.2, 2.2],
        upper=[4.4, 3.6, 2.8],
    )

    name: str
    relevance: float = Field(description="Share of the variation of what is expected.")
    values: list[Value]
    mean: list[float]
    lower: list[float]
    upper: list[float]


class Kernel(BaseModel):
    """A member of the model, and its weight."""

    weight: float
    noise_std: float
    kernel: str


class Learned(BaseModel):
    """What the model has learned, by feature, most relevant first."""

    model_config = _example(
        features=[
            {
                "name": "distance",
                "relevance": 0.6,
                "values": [0.5, 10.0],
                "mean": [4.2, 3.4],
                "lower": [4.0, 3.2],
                "upper": [4.4, 3.6],
            }
        ],
        kernels=[{"weight": 0.9, "noise_std": 0.4, "kernel": "RBF(length_scale=1)"}],
    )

    features: list[FeatureCurve]
    kernels: list[Kernel]


class CallTimes(BaseModel):
    """How long the latest calls of one kind took, in seconds."""

    call: str = Field(examples=["POST decisions"])
    count: int
    median: float
    p99: float


class Server(BaseModel):
    """The process that answered."""

    model_config = _example(
        version="0.1.0",
        calls=[{"call": "POST decisions", "count": 1000, "median": 0.004, "p99": 0.02}],
    )

    version: str
    calls: list[CallTimes]


class Me(BaseModel):
    """What the key of this request may do."""

    model_config = _example(roles=["read"], agent="couriers")

    roles: list[str]
    agent: str | None = Field(description="The only agent that the key is for; null: all.")


class Erased(BaseModel):
    """How many events of the log had what was erased."""

    model_config = _example(events=12)

    events: int


class AuditEntry(BaseModel):
    """Something that was done to an agent."""

    model_config = _example(
        id=1, time=1760000000.5, who="ci", agent="couriers", action="state", detail={}
    )

    id: int
    time: Time
    who: str = Field(description="The name of the key.")
    agent: str
    action: str
    detail: dict[str, Any]


class Alive(BaseModel):
    """The state of the process."""

    model_config = _example(status="ready")

    status: str


class ProblemAt(BaseModel):
    """One thing that is wrong, and where."""

    at: str = Field(examples=["body/arms/0/id"])
    message: str


class Problem(BaseModel):
    """What was wrong (RFC 9457)."""

    model_config = _example(
        type="about:blank", title="Not found", status=404, detail="there is no agent 'b'"
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[ProblemAt] = []
