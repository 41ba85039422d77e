"""An agent behind HTTP, used like one in process."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

import numpy as np

from oclok.agent.arms import ArmId, as_arms
from oclok.agent.decision import AgentDecision
from oclok.agent.explanation import ArmExplanation, Evidence, Explanation
from oclok.agent.feedback import Learned
from oclok.agent.health import Finding
from oclok.errors import FeedbackError, InputError, OclokError, StorageError
from oclok.extras import needs
from oclok.oracles.base import Oracle

with needs("service"):
    import httpx

#: Seconds until the second, third, … attempt, unless the service says how long to wait.
PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
AGAIN = (502, 503, 504)


@dataclass(frozen=True, eq=False)
class ClientDecision(AgentDecision):
    """A decision of the service; `arms` has mean, std and index of the chosen arms."""

    arms: list[dict[str, Any]] = field(default_factory=list)


class Client:
    """The agents of a service.

    Args:
        url: where it is, such as "http://127.0.0.1:8000".
        key: made by `oclok keys add`, if it has keys.
        agent: the name of the agent that is asked; `client["other"]` asks another one.
        timeout: seconds that an answer may take.

    Decisions and outcomes have ids, so that calls can be repeated without harm: each is, a few
    times, while the service cannot be reached. Observations have none: `observe` is not repeated
    once it may have arrived.
    """

    def __init__(
        self, url: str, key: str | None = None, agent: str = "default", timeout: float = 30.0
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.agent = agent
        self.http = httpx.Client(base_url=url, headers=headers, timeout=timeout)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.http.base_url)!r}, agent={self.agent!r})"

    def __getitem__(self, agent: str) -> Client:
        """Return a client of another agent of the same service."""
        other = Client.__new__(type(self))
        other.agent, other.http = agent, self.http
        return other

    def create(
        self,
        oracle: Oracle | Mapping[str, Any],
        features: Mapping[str, Any] | None = None,
        outcome_range: tuple[float, float] | None = None,
        deadline: float | None = None,
        default_outcome: float | None = None,
        mode: str = "live",
    ) -> Client:
        """Make the agent if it is not there; `OclokError` if it is there with other settings."""
        settings = {
            "oracle": _form(oracle),
            "features": None if features is None else dict(features),
            "outcome_range": None if outcome_range is None else list(outcome_range),
            "deadline": deadline,
            "default_outcome": default_outcome,
            "mode": mode,
        }
        self._call("PUT", "", settings)
        return self

    def decide(
        self,
        arms: Any,
        oracle: Oracle | Mapping[str, Any] | None = None,
        include: Iterable[ArmId] = (),
        exclude: Iterable[ArmId] = (),
        id: str | None = None,  # noqa: A002  (the name of the thing)
        chosen: Iterable[ArmId] | None = None,
    ) -> ClientDecision:
        """Choose among `arms`, a DataFrame indexed by arm id or `{id: {feature: value}}`."""
        body = {
            "arms": _arms(arms),
            "oracle": None if oracle is None else _form(oracle),
            "include": list(include),
            "exclude": list(exclude),
            "id": id or secrets.token_hex(12),
            "chosen": None if chosen is None else list(chosen),
        }
        answer = self._call("POST", "/decisions", body)
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

    def learn(
        self, decision_id: str, outcomes: Mapping[ArmId, float | None], correct: bool = False
    ) -> Learned:
        """Learn `{arm id: outcome}` of a decision; `FeedbackError` for those that are refused."""
        items = [
            {"decision": _as_id(decision_id), "arm": arm, "outcome": _number(y), "correct": correct}
            for arm, y in outcomes.items()
        ]
        answer = self._call("POST", "/outcomes", items)
        if answer["rejected"]:
            raise FeedbackError(answer["rejected"][0]["reason"])
        learned = Learned()
        for told in answer["items"]:
            getattr(learned, told["result"]).append(told["arm"])
        return learned

    def observe(self, arms: Any, outcomes: Iterable[float]) -> None:
        """Learn from the past: `arms`, as for `decide`, and the outcome of each."""
        items = [
            {"features": arm["features"], "outcome": float(y)}
            for arm, y in zip(_arms(arms), outcomes, strict=True)
        ]
        self._call("POST", "/observations", items, is_safe=False)

    def accept(self, decision_id: str, arm_id: ArmId) -> None:
        """Learn an outcome that was quarantined."""
        item = {"decision": decision_id, "arm": arm_id, "accept": True}
        answer = self._call("POST", "/outcomes", [item])
        if answer["rejected"]:
            raise FeedbackError(answer["rejected"][0]["reason"])

    def explain(self, decision_id: str) -> Explanation:
        """Return what was thought of every arm of a decision, and why it was chosen or not."""
        answer = self._call("GET", f"/decisions/{quote(decision_id, safe='')}")
        nan = math.nan
        arms = [
            ArmExplanation(
                arm["id"],
                nan if arm["mean"] is None else arm["mean"],
                nan if arm["std"] is None else arm["std"],
                nan if arm["index"] is None else arm["index"],
                arm["chosen"],
                arm["reason"] or "",
                arm["outcome"],
                [Evidence(**evidence) for evidence in arm["evidence"]],
            )
            for arm in answer["arms"]
        ]
        return Explanation(decision_id, arms)

    def health(self) -> list[Finding]:
        """Return what whoever runs the agent should know, worst first; empty when all is well."""
        return [Finding(**finding) for finding in self.describe()["health"]]

    def describe(self) -> dict[str, Any]:
        """Return settings, counts, calibration, health and model weights of the agent."""
        answer: dict[str, Any] = self._call("GET", "")
        return answer

    def change(self, **settings: Any) -> dict[str, Any]:
        """Change settings, such as `deadline=60.0` or `state="paused"`; return the agent."""
        if "oracle" in settings:
            settings["oracle"] = _form(settings["oracle"])
        answer: dict[str, Any] = self._call("PATCH", "", settings)
        return answer

    def reset(self) -> None:
        """Forget everything that was learned."""
        self._call("POST", "/reset", {})

    def clone(self, name: str, learned: bool = True) -> Client:
        """Make another agent with the same settings, and return its client."""
        self._call("POST", "/clone", {"name": name, "learned": learned}, is_safe=False)
        return self[name]

    def erase(self, *, arm: ArmId | None = None, decision: str | None = None) -> int:
        """Erase an arm or a decision from log and model; return how many events had it."""
        body = {"arm": arm} if decision is None else {"decision": decision}
        return int(self._call("POST", "/erase", body)["events"])

    def delete(self) -> None:
        """Delete the agent and everything that is known of it, for good."""
        self._call("DELETE", "")

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Any = None, is_safe: bool = True) -> Any:
        url = f"/v1/agents/{quote(self.agent, safe='')}{path}"
        for pause in (*PAUSES, None):
            try:
                answer = self.http.request(method, url, json=body)
            except httpx.TransportError as reason:
                if pause is None or not (is_safe or isinstance(reason, httpx.ConnectError)):
                    raise StorageError(f"the service cannot be reached: {reason}") from None
                time.sleep(pause)
                continue
            if is_safe and answer.status_code in AGAIN and pause is not None:
                wait = answer.headers.get("Retry-After", "")
                time.sleep(float(wait) if wait.isdigit() else pause)
                continue
            return _checked(answer)
        raise AssertionError  # the last attempt returns or raises


def _checked(answer: httpx.Response) -> Any:
    """Return the body of an answer, or raise what it says."""
    if answer.status_code == 204:
        return None
    try:
        body = answer.json()
    except ValueError:
        raise StorageError(f"not an answer of the service: status {answer.status_code}") from None
    if answer.is_success:
        return body
    detail = str(body.get("detail", answer.status_code)) if isinstance(body, dict) else str(body)
    if answer.status_code in (400, 413, 415, 422):
        raise InputError(detail)
    raise (StorageError if answer.status_code >= 500 else OclokError)(detail)


def _form(oracle: Oracle | Mapping[str, Any]) -> dict[str, Any]:
    return oracle.to_json() if isinstance(oracle, Oracle) else dict(oracle)


def _arms(arms: Any) -> list[dict[str, Any]]:
    """Return arms as the service takes them."""
    offered = as_arms(arms)
    columns = {name: _plain(offered.column(name)) for name in offered.names}
    return [
        {"id": arm, "features": {name: values[place] for name, values in columns.items()}}
        for place, arm in enumerate(offered.ids)
    ]


def _plain(column: Any) -> list[Any]:
    """Return a column as values that JSON has; times as ISO 8601, missing ones as null."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return [None if np.isnat(time_) else str(time_) for time_ in column]
    return [_value(value) for value in (column.tolist() if hasattr(column, "tolist") else column)]


def _value(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, list | tuple):
        return [float(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _number(outcome: float | None) -> float | None:
    return None if outcome is None or math.isnan(outcome) else float(outcome)


def _as_id(decision: object) -> str:
    if not isinstance(decision, str):
        raise FeedbackError(f"expected the id of a decision, decision.id; got {decision!r}")
    return decision
