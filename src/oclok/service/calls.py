"""The calls of a client, each written once for `Client` and `AsyncClient`."""
# Tested in tests/service/test_client.py: both clients make them.

from __future__ import annotations

import datetime
import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import numpy as np

from oclok.agent.arms import ArmId, Column, as_arms, as_numbers, is_missing
from oclok.agent.decision import AgentDecision
from oclok.agent.explanation import ArmExplanation, Evidence, Explanation
from oclok.agent.feedback import Learned, as_outcome
from oclok.agent.health import Finding
from oclok.agent.schema import for_each
from oclok.errors import ColumnError, FeedbackError, InputError, OutcomeError
from oclok.oracles.base import Oracle

R = TypeVar("R")


@dataclass(frozen=True)
class Call(Generic[R]):
    """A call to make, and how to read its answer."""

    method: str
    path: str  # below that of the agent
    read: Callable[[Any], R]
    body: Any = None
    is_safe: bool = True  # to be made again if it is not known whether it arrived
    key: str | None = None  # the service takes the same key once


@dataclass(frozen=True, eq=False)
class ClientDecision(AgentDecision):
    """A decision of the service; `arms` has mean, std and index of the chosen arms."""

    arms: list[dict[str, Any]] = field(default_factory=list)


class Calls:
    """The calls of an agent."""

    def create(
        self,
        /,
        oracle: Oracle | Mapping[str, Any],
        features: Mapping[str, Any] | None = None,
        outcome_range: tuple[float, float] | None = None,
        deadline: float | None = None,
        default_outcome: float | None = None,
        mode: str = "live",
        **settings: Any,
    ) -> Call[None]:
        """Make the agent if it is not there; `OclokError` if it is there with other settings."""
        body = {
            **settings,
            "oracle": _form(oracle),
            "features": features,
            "outcome_range": outcome_range,
            "deadline": deadline,
            "default_outcome": default_outcome,
            "mode": mode,
        }
        return Call("PUT", "", _nothing, body)

    def decide(
        self,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        oracle: Oracle | Mapping[str, Any] | None = None,
        include: Iterable[ArmId] = (),
        exclude: Iterable[ArmId] = (),
        id: str | None = None,  # noqa: A002  (the name of the thing)
        chosen: Iterable[ArmId] | None = None,
        unit: str | None = None,
    ) -> Call[ClientDecision]:
        """Choose among `arms`, a DataFrame indexed by arm id or `{id: {feature: value}}`."""
        body = {
            "arms": _arms(arms),
            "context": None if context is None else _context(context),
            "oracle": None if oracle is None else _form(oracle),
            "include": list(include),
            "exclude": list(exclude),
            "id": id or secrets.token_hex(12),
            "chosen": None if chosen is None else list(chosen),
            "unit": unit,
        }
        return Call("POST", "/decisions", _decision, body)

    def decide_batch(self, requests: Iterable[Mapping[str, Any]]) -> Call[list[ClientDecision]]:
        """Decide several times in one call; each request has the arguments of `decide`."""
        body = {"decisions": [self.decide(**request).body for request in requests]}
        return Call("POST", "/decisions/batch", _decisions, body)

    def learn(
        self, decision_id: str, outcomes: Mapping[ArmId, Any], correct: bool = False
    ) -> Call[Learned]:
        """Learn `{arm id: outcome}` of a decision; `FeedbackError` for those that are refused."""
        if not isinstance(decision_id, str):
            raise FeedbackError(f"expected the id of a decision, decision.id; got {decision_id!r}")
        items = [
            {"decision": decision_id, "arm": arm, "outcome": _outcome(arm, y), "correct": correct}
            for arm, y in outcomes.items()
        ]
        return Call("POST", "/outcomes", _learned, items)

    def observe(self, arms: Any, outcomes: Iterable[float]) -> Call[None]:
        """Learn from the past: `arms`, as for `decide`, and the outcome of each."""
        items = [
            {"features": arm["features"], "outcome": _outcome(arm["id"], y)}
            for arm, y in zip(_arms(arms), outcomes, strict=True)
        ]
        return Call("POST", "/observations", _nothing, items, key=secrets.token_hex(12))

    def accept(self, decision_id: str, arm_id: ArmId) -> Call[None]:
        """Learn an outcome that was quarantined."""
        item = {"decision": decision_id, "arm": arm_id, "accept": True}
        return Call("POST", "/outcomes", _taken, [item])

    def explain(self, decision_id: str) -> Call[Explanation]:
        """Return what the model expected of every arm, and why it was chosen or not."""
        return Call("GET", f"/decisions/{quote(decision_id, safe='')}", _explanation)

    def health(self) -> Call[list[Finding]]:
        """Return findings for the operator, worst first; empty when all is well."""
        return Call("GET", "", lambda agent: [Finding(**finding) for finding in agent["health"]])

    def describe(self) -> Call[dict[str, Any]]:
        """Return settings, counts, calibration, health and features of the agent."""
        return Call("GET", "", dict)

    def change(self, /, **settings: Any) -> Call[dict[str, Any]]:
        """Change settings, such as `deadline=60.0` or `state="paused"`; return the agent."""
        if "oracle" in settings:
            settings["oracle"] = _form(settings["oracle"])
        return Call("PATCH", "", dict, settings)

    def reset(self) -> Call[None]:
        """Forget everything that was learned."""
        return Call("POST", "/reset", _nothing, {})

    def clone(self, name: str, learned: bool = True) -> Call[None]:
        """Make another agent with the same settings; `client[name]` is its client."""
        return Call("POST", "/clone", _nothing, {"name": name, "learned": learned}, is_safe=False)

    def erase(self, *, arm: ArmId | None = None, decision: str | None = None) -> Call[int]:
        """Erase an arm or a decision from log and model; return how many events had it."""
        body = {"arm": arm} if decision is None else {"decision": decision}
        return Call("POST", "/erase", lambda answer: int(answer["events"]), body)

    def delete(self) -> Call[None]:
        """Delete the agent and everything that is known of it, for good."""
        return Call("DELETE", "", _nothing)


def _nothing(answer: Any) -> None:
    """Read an answer that says nothing new."""


def _decision(answer: dict[str, Any]) -> ClientDecision:
    ids = [arm["id"] for arm in answer["chosen"]]
    return ClientDecision(
        answer["id"],
        answer["round"],
        ids,
        answer.get("is_exact"),
        ids,
        None,
        answer["group"],
        answer["stepped_in"],
        arms=answer["chosen"],
    )


def _decisions(answer: dict[str, Any]) -> list[ClientDecision]:
    return [_decision(each) for each in answer["decisions"]]


def _taken(answer: dict[str, Any]) -> None:
    if answer["rejected"]:
        raise FeedbackError(answer["rejected"][0]["reason"])


def _learned(answer: dict[str, Any]) -> Learned:
    _taken(answer)
    learned = Learned()
    for item in answer["items"]:
        getattr(learned, item["result"]).append(item["arm"])
    return learned


def _explanation(answer: dict[str, Any]) -> Explanation:
    def number(value: float | None) -> float:
        return math.nan if value is None else value

    arms = [
        ArmExplanation(
            arm["id"],
            number(arm["mean"]),
            number(arm["std"]),
            number(arm["index"]),
            arm["chosen"],
            arm["reason"] or "",
            arm["outcome"],
            [Evidence(**evidence) for evidence in arm["evidence"]],
        )
        for arm in answer["arms"]
    ]
    return Explanation(answer["id"], arms)


def _form(oracle: Oracle | Mapping[str, Any]) -> dict[str, Any]:
    return oracle.to_json() if isinstance(oracle, Oracle) else dict(oracle)


def _arms(arms: Any) -> list[dict[str, Any]]:
    """Return arms as the service takes them."""
    offered = as_arms(arms)
    columns = for_each(offered.names, offered, lambda name, column: _plain(column))
    return [
        {"id": arm, "features": {name: values[place] for name, values in columns.items()}}
        for place, arm in enumerate(offered.ids)
    ]


def _plain(column: Column) -> list[Any]:
    """Return a column as values that JSON has; times as ISO 8601, missing ones as null."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return [None if np.isnat(time_) else str(time_) for time_ in column]
    values = column.tolist() if isinstance(column, np.ndarray) else column
    return [_value(value, position) for position, value in enumerate(values)]


def _context(context: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in context.items():
        try:
            values[name] = _value(value)
        except ColumnError as reason:
            raise InputError(f"feature {name!r} of the context: {reason}") from None
    return values


def _value(value: Any, position: int | None = None) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_missing(value):
        return None
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    is_list = isinstance(value, list | tuple)
    try:
        x = as_numbers(list(value) if is_list else [value])
    except ColumnError:
        x = np.array([np.nan])
    if np.isnan(x).any():
        raise ColumnError(
            "expected a finite number, a truth value, a text, a time, or a list of numbers; "
            f"got {value!r}",
            position,
        )
    return x.tolist() if is_list else float(x[0])


def _outcome(arm: ArmId, outcome: Any) -> Any:
    if isinstance(outcome, Mapping):
        return {measure: _outcome(arm, value) for measure, value in outcome.items()}
    y = as_outcome(arm, outcome)
    if math.isinf(y):
        raise OutcomeError(f"the outcome of arm {arm!r} must be finite; got {outcome!r}")
    return None if math.isnan(y) else y
