"""Rank and Reward as Azure Personalizer's clients send them: only their endpoint changes.

An endpoint is `http://HOST:8000/v1/agents/AGENT`, whose agent has the oracle `TopK(1)`. The
subscription key is one of `oclok keys add`. Nested features become `outer.inner`, and those of the
context are joined to every action.
"""

from __future__ import annotations

import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from oclok.errors import FeedbackError, InputError
from oclok.service.decisions import logged
from oclok.service.problems import NotFoundError
from oclok.service.requests import MOST_ARMS, AgentName, DecisionId, DecisionRequest, Number
from oclok.service.service import Service

Version = Annotated[str, Path(pattern=r"^v1\.[01](-preview\.\d+)?$")]
Objects = list[dict[str, Any]]


class Action(BaseModel):
    """An arm."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    features: Objects = []


class RankRequest(BaseModel):
    """Actions to choose from."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "contextFeatures": [{"day": "Monday"}],
                    "actions": [{"id": "pasta", "features": [{"taste": "salty"}]}],
                    "eventId": "order-1",
                }
            ]
        }
    )

    actions: Annotated[list[Action], Field(min_length=1, max_length=MOST_ARMS)]
    context_features: Objects = Field([], alias="contextFeatures")
    excluded_actions: list[str] = Field([], alias="excludedActions")
    event_id: DecisionId | None = Field(None, alias="eventId")


class Ranked(BaseModel):
    """An action, and the probability with which it was chosen."""

    id: str
    probability: float


class RankAnswer(BaseModel):
    """Actions, the chosen one first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ranking": [{"id": "pasta", "probability": 1.0}],
                    "eventId": "order-1",
                    "rewardActionId": "pasta",
                }
            ]
        }
    )

    ranking: list[Ranked]
    event_id: str = Field(serialization_alias="eventId")
    reward_action_id: str = Field(serialization_alias="rewardActionId")


class Reward(BaseModel):
    """The outcome of the chosen action."""

    value: Number = Field(examples=[1.0])


def add_routes(
    router: APIRouter, service: Service, needs: Any, problems: dict[int | str, Any]
) -> None:
    """Add Rank, Reward and Activate to the routes of the API."""
    base = "/v1/agents/{agent}/personalizer/{version}"
    more: dict[str, Any] = {"tags": ["personalizer"], "responses": problems}

    @router.post(f"{base}/rank", status_code=201, dependencies=[needs("decide")], **more)
    def post_rank(agent: AgentName, version: Version, request: RankRequest) -> RankAnswer:
        """Choose one action; the same `eventId` again gives the same answer."""
        event_id = request.event_id or secrets.token_hex(12)
        asked = {
            "arms": [{"id": each.id, "features": flat(each.features)} for each in request.actions],
            "context": flat(request.context_features) or None,
            "exclude": request.excluded_actions,
            "id": event_id,
        }
        try:
            checked = DecisionRequest.model_validate(asked)
        except ValidationError as reason:
            first = reason.errors()[0]
            raise InputError(f"{'/'.join(map(str, first['loc']))}: {first['msg']}") from None
        answer = service.decide(agent, checked.model_dump())
        event = service.log.decision(service.replica(agent).id, event_id)
        if event is None or not answer["chosen"]:
            raise NotFoundError(f"event {event_id!r} has no action")
        body = logged(event)
        first = answer["chosen"][0]["id"]
        order = sorted(
            zip(body["ids"], body["index"], body["propensity"], strict=True),
            key=lambda row: (row[0] != first, -row[1]),
        )
        ranking = [Ranked(id=str(arm), probability=float(p)) for arm, _, p in order]
        return RankAnswer(ranking=ranking, event_id=event_id, reward_action_id=str(first))

    @router.post(
        f"{base}/events/{{event}}/reward", status_code=204, dependencies=[needs("learn")], **more
    )
    def post_reward(agent: AgentName, version: Version, event: DecisionId, reward: Reward) -> None:
        """Learn the outcome of the action that was chosen."""
        replica = service.read_changes(agent)
        try:
            arm = next(iter(replica.agent.outcomes_of(event)))
        except (FeedbackError, StopIteration):
            raise NotFoundError(f"there is no event {event!r}") from None
        item = {"decision": event, "arm": arm, "outcome": reward.value}
        answer = service.learn(agent, [item | {"correct": False, "accept": False}])
        if answer["rejected"]:
            raise InputError(answer["rejected"][0]["reason"])

    @router.post(
        f"{base}/events/{{event}}/activate", status_code=204, dependencies=[needs("learn")], **more
    )
    def post_activate(agent: AgentName, version: Version, event: DecisionId) -> None:
        """Do nothing: every decision waits for its outcome."""


def flat(objects: Objects) -> dict[str, Any]:
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
