"""What is told of agents and decisions, put together from model and log."""
# Tested in tests/service/test_page.py: the page shows them.

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from pydantic_core import from_json

from oclok.errors import FeedbackError
from oclok.posterior import MixturePosterior
from oclok.service.decisions import answer_of
from oclok.service.log import Event
from oclok.service.metrics import Metrics
from oclok.service.problems import NotFoundError
from oclok.service.replica import Replica
from oclok.service.requests import (
    AgentAnswer,
    ArmAnswer,
    DecisionDetails,
    DecisionRow,
)
from oclok.service.service import Service

#: Decisions whose outcomes the history shows.
SHOWN = 300


def agent(replica: Replica) -> AgentAnswer:
    """Return what is known of an agent."""
    regret, weights = _regret(replica), _weights(replica)
    judged = replica.learner.calibration()
    with replica.lock:
        counts = replica.agent.counts()
        schema = replica.agent.schema
        return AgentAnswer(
            name=replica.name,
            settings=replica.settings,
            created=replica.created,
            rounds=replica.agent.policy.round,
            events=replica.seq,
            late=replica.agent.late(time.time()),
            calibration=_plain_value(vars(judged)) | {"verdict": judged.verdict},
            regret=regret,
            health=[vars(finding) for finding in replica.agent.health()],
            weights=weights,
            features=None if schema is None else schema.to_json(),
            **counts,
        )


def decision(service: Service, replica: Replica, decision_id: str) -> DecisionDetails:
    """Return everything about a decision."""
    event = service.log.decision(replica.id, decision_id)
    if event is None:
        raise NotFoundError(f"agent {replica.name!r} made no decision {decision_id!r}")
    replica.catch_up(event.seq)
    body = from_json(event.body)
    told = _told(service, replica, decision_id)
    arms = _explained(replica, event, body) or _plain(body)
    for arm in arms:
        arm.features = body["arms"][_place(body, arm.id)]["features"]
        if arm.chosen:
            arm.status, arm.outcome = told.get(arm.id, ("waiting", None))
    outcomes = [
        {"arm": arm, "status": status, "outcome": outcome}
        for arm, (status, outcome) in told.items()
    ]
    return DecisionDetails(**answer_of(event), time=event.time, outcomes=outcomes, arms=arms)


def decisions(service: Service, replica: Replica, before: int, most: int) -> list[DecisionRow]:
    """Return decisions of rounds below `before`, latest first."""
    rows = []
    for event in service.log.latest_decisions(replica.id, before, most):
        body = from_json(event.body)
        ids = [body["arms"][place]["id"] for place in body["chosen"]]
        told = _told(service, replica, event.decision or "")
        rows.append(
            DecisionRow(
                id=event.decision or "",
                round=event.round or 0,
                time=event.time,
                arms=len(body["arms"]),
                chosen=ids,
                outcomes={str(arm): outcome for arm, (_, outcome) in told.items()},
            )
        )
    return rows


def history(service: Service, replica: Replica, metrics: Metrics) -> dict[str, Any]:
    """Return outcomes of the latest decisions beside what was expected of them."""
    points: dict[str, list[Any]] = {
        name: [] for name in ("time", "round", "decision", "arm", "mean", "std", "outcome")
    }
    for event in reversed(service.log.latest_decisions(replica.id, 2**53, SHOWN)):
        body = from_json(event.body)
        told = _told(service, replica, event.decision or "")
        is_informed = _is_informed(body)
        for place in body["chosen"]:
            arm = body["arms"][place]["id"]
            outcome = told.get(arm, ("waiting", None))[1]
            mean = body["mean"][place] if is_informed else None
            std = body["std"][place] if is_informed else None
            values = (event.time, event.round, event.decision, arm, mean, std, outcome)
            for name, value in zip(points, values, strict=True):
                points[name].append(value)
    with replica.learner.paused() as policy:
        noise = policy.posterior.noise_std
    return {"points": points, "noise_std": noise, "speed": metrics.speed()}


def _is_informed(body: dict[str, Any]) -> bool:
    """Return whether anything was expected: before the first outcomes all arms look alike."""
    return body["mean"] is not None and (len(body["mean"]) == 1 or len(set(body["mean"])) > 1)


def _told(
    service: Service, replica: Replica, decision_id: str
) -> dict[Any, tuple[str, float | None]]:
    """Return status and outcome of each chosen arm; from the log where the model has forgotten."""
    try:
        return replica.agent.outcomes_of(decision_id)
    except FeedbackError:
        told: dict[Any, tuple[str, float | None]] = {}
        for event in service.log.feedback(replica.id, decision_id):
            if event.kind == "outcomes":
                for arm, outcome in from_json(event.body)["outcomes"]:
                    told[arm] = ("told", outcome)
        return told


def _explained(replica: Replica, event: Event, body: dict[str, Any]) -> list[ArmAnswer]:
    try:
        with replica.lock:
            explanation = replica.agent.explain(event.decision or "", replica.restored(event))
    except FeedbackError:
        return []
    return [
        ArmAnswer(
            id=arm.arm,
            mean=_finite(arm.mean),
            std=_finite(arm.std),
            index=_finite(arm.index),
            chosen=arm.chosen,
            reason=arm.reason,
            features={},
            evidence=[vars(evidence) for evidence in arm.evidence],
        )
        for arm in explanation.arms
    ]


def _plain(body: dict[str, Any]) -> list[ArmAnswer]:
    """Return the arms of a decision that the model has forgotten."""
    arms = [
        ArmAnswer(
            id=arm["id"],
            chosen=place in body["chosen"],
            features={},
            mean=None if body["mean"] is None else body["mean"][place],
            std=None if body["std"] is None else body["std"][place],
            index=body["index"][place],
        )
        for place, arm in enumerate(body["arms"])
    ]
    return sorted(arms, key=lambda arm: -(arm.index or 0.0))


def _place(body: dict[str, Any], arm_id: Any) -> int:
    places = body.setdefault("places", {arm["id"]: n for n, arm in enumerate(body["arms"])})
    return int(places[arm_id])


def _regret(replica: Replica) -> dict[str, Any] | None:
    """Return how much was left on the table, as the posterior sees it."""
    if not replica.agent.counts()["learned"]:
        return None
    regret = replica.learner.regret()
    names = ("median", "lower", "upper", "level", "per_round", "rounds")
    return {name: _plain_value(getattr(regret, name)) for name in names}


def _weights(replica: Replica) -> list[dict[str, Any]]:
    """Return kernels and what each of them counts for."""
    with replica.learner.paused() as policy:
        assert isinstance(policy.posterior, MixturePosterior)
        rows = [(w, k, n) for w, k, n in policy.posterior.members if w >= 0.001]
    return [{"weight": w, "kernel": str(k), "noise_variance": n} for w, k, n in rows]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain_value(item) for key, item in value.items()}
    if isinstance(value, float | np.floating):
        return _finite(float(value))
    return value
