"""Rank and Reward as Azure Personalizer's clients send them: only their endpoint changes.

An endpoint is `http://HOST:8000/v1/agents/AGENT`, whose agent has the oracle `TopK(1)`. The
subscription key is one of `oclok keys add`. Nested features become `outer.inner`, and those of the
context are joined to every action.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypeAliasType

from oclok.errors import FeedbackError, InputError
from oclok.service import requests
from oclok.service.decisions import logged
from oclok.service.problems import NotFoundError
from oclok.service.requests import AgentName, DecisionId, FeatureName, Value
from oclok.service.router import Router
from oclok.service.service import Service

Version = Annotated[str, Path(pattern=r"^v1\.[01](-preview\.\d+)?$")]
Nested = TypeAliasType(
    "Nested",
    Annotated[
        "Value | dict[FeatureName, Nested]",
        requests.Expected(
            "Expected a text, a number, a boolean, a list of numbers, null, or an object"
        ),
    ],
)
Objects = list[dict[FeatureName, Nested]]
ActionId = Annotated[str, Field(min_length=1, max_length=256, examples=["pasta"])]


class _Model(BaseModel):
    """Fields that are not known are ignored."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class Action(_Model):
    """An arm."""

    id: ActionId
    features: Objects = Field([], examples=[[{"taste": "salty"}]])


class RankRequest(_Model):
    """Actions to choose from."""

    actions: Annotated[list[Action], Field(min_length=1, max_length=requests.MOST_ARMS)]
    context_features: Objects = Field([], alias="contextFeatures", examples=[[{"day": "Monday"}]])
    excluded_actions: list[str] = Field([], alias="excludedActions")
    event_id: DecisionId | None = Field(None, alias="eventId", examples=["order-1"])


class Ranked(_Model):
    """An action, and the probability with which it was chosen."""

    id: ActionId
    probability: float = Field(examples=[1.0])


class RankAnswer(_Model):
    """Actions, the chosen one first."""

    ranking: list[Ranked]
    event_id: DecisionId = Field(serialization_alias="eventId")
    reward_action_id: ActionId = Field(serialization_alias="rewardActionId")


class Reward(_Model):
    """The outcome of the chosen action."""

    value: requests.Number = Field(examples=[1.0])


def add_routes(
    router: Router,
    service: Service,
    decide: Callable[[str, requests.DecisionRequest], dict[str, Any]],
    learn: Callable[[str, list[requests.OutcomeItem]], dict[str, Any]],
) -> None:
    """Add Rank, Reward and Activate to the routes of the API."""
    base, tag = "/v1/agents/{agent}/personalizer/{version}", "personalizer"
    event_path = f"{base}/events/{{event}}"

    @router.call("POST", f"{base}/rank", "decide", tag, status_code=201)
    def post_rank(agent: AgentName, version: Version, request: RankRequest) -> RankAnswer:
        """Choose one action; the same `eventId` again gives the same answer."""
        event_id = request.event_id or secrets.token_hex(12)
        translated = {
            "arms": [{"id": each.id, "features": flat(each.features)} for each in request.actions],
            "context": flat(request.context_features) or None,
            "exclude": request.excluded_actions,
            "id": event_id,
        }
        try:
            checked = requests.DecisionRequest.model_validate(translated)
        except ValidationError as reason:
            first = reason.errors()[0]
            raise InputError(f"{'/'.join(map(str, first['loc']))}: {first['msg']}") from None
        answer = decide(agent, checked)
        event = service.log.decision(service.replica(agent).id, event_id)
        if event is None or not answer["chosen"]:
            raise NotFoundError(f"event {event_id!r} has no action")
        body = logged(event)
        best = answer["chosen"][0]["id"]
        order = sorted(
            zip(body["ids"], body["index"], body["propensity"], strict=True),
            key=lambda row: (row[0] != best, -row[1]),
        )
        ranking = [Ranked(id=str(arm), probability=float(p)) for arm, _, p in order]
        return RankAnswer(ranking=ranking, event_id=event_id, reward_action_id=str(best))

    @router.call("POST", f"{event_path}/reward", "learn", tag, status_code=204)
    def post_reward(agent: AgentName, version: Version, event: DecisionId, reward: Reward) -> None:
        """Learn the outcome of the action that was chosen."""
        replica = service.read_changes(agent)
        try:
            arm = next(iter(replica.agent.outcomes_of(event)))
        except (FeedbackError, StopIteration):
            raise NotFoundError(f"there is no event {event!r}") from None
        item = {"decision": event, "arm": arm, "outcome": reward.value}
        answer = learn(agent, [requests.OutcomeItem.model_validate(item)])
        if answer["rejected"]:
            raise InputError(answer["rejected"][0]["reason"])

    @router.call("POST", f"{event_path}/activate", "learn", tag, status_code=204)
    def post_activate(agent: AgentName, version: Version, event: DecisionId) -> None:
        """Do nothing: every decision waits for its outcome."""


def flat(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return feature objects as one, nested names joined by dots.

    Examples:
        >>> flat([{"user": {"age": 3, "city": "Oslo"}}, {"day": "Monday"}])
        {'user.age': 3, 'user.city': 'Oslo', 'day': 'Monday'}
    """
    result: dict[str, Any] = {}
    for entry in objects:
        for name, value in entry.items():
            if isinstance(value, dict):
                result |= {f"{name}.{inner}": v for inner, v in flat([value]).items()}
            else:
                result[name] = value
    return result
