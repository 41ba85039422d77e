"""Answers about how an agent does: calibration, lift, regret, history, what it has learned.

Answers are read from objects of the same fields; numbers that are not finite become null.
"""
# Tested in tests/service/test_openapi.py: answers are checked against the description.

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


Value = str | bool | int | float | list[float] | None
Time = Annotated[float, Field(description="Seconds since 1970.", examples=[1760000000.5])]
Count = Annotated[int, Field(examples=[12])]
Number = Annotated[float, Field(examples=[3.8])]
#: A number that may not be known.
Maybe = Annotated[Number | None, BeforeValidator(_finite)]
Text = Annotated[str, BeforeValidator(str)]


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
    summary: str = Field("", examples=["better: 2.2 per decision against 2 of the baseline, +0.2"])
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

    summary: str = Field("", examples=["the agent would have chosen otherwise in 80 of 100"])
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
