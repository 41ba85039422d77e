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
from oclok.service.answers import answer_of
from oclok.service.log import Event
from oclok.service.metrics import Metrics
from oclok.service.model import Model
from oclok.service.problems import NotFoundError
from oclok.service.requests import (
    AgentAnswer,
    ArmAnswer,
    DecisionDetails,
    DecisionRow,
)
from oclok.service.service import Service

#: Decisions whose outcomes the history shows.
SHOWN = 300


def agent(model: Model) -> AgentAnswer:
    """Return what is known of an agent."""
    regret, weights = _regret(model), _weights(model)
    judged = model.learner.calibration()
    with model.lock:
        counts = model.agent.counts()
        schema = model.agent.schema
        return AgentAnswer(
            name=model.name,
            settings=model.settings,
            created=model.created,
            rounds=model.agent.policy.round,
            events=model.seq,
            late=model.agent.late(time.time()),
            calibration=_plain_value(vars(judged)) | {"verdict": judged.verdict},
            regret=regret,
            health=[vars(finding) for finding in model.agent.health()],
            weights=weights,
            features=None if schema is None else schema.to_json(),
            **counts,
        )


def decision(service: Service, model: Model, decision_id: str) -> DecisionDetails:
    """Return everything about a decision."""
    event = service.log.decision(model.id, decision_id)
    if event is None:
        raise NotFoundError(f"agent {model.name!r} made no decision {decision_id!r}")
    model.catch_up(event.seq)
    body = from_json(event.body)
    told = _told(service, model, decision_id)
    arms = _explained(model, event, body) or _plain(body)
    for arm in arms:
        arm.features = body["arms"][_place(body, arm.id)]["features"]
        if arm.chosen:
            arm.status, arm.outcome = told.get(arm.id, ("waiting", None))
    outcomes = [
        {"arm": arm, "status": status, "outcome": outcome}
        for arm, (status, outcome) in told.items()
    ]
    return DecisionDetails(**answer_of(event), time=event.time, outcomes=outcomes, arms=arms)


def decisions(service: Service, model: Model, before: int, most: int) -> list[DecisionRow]:
    """Return decisions of rounds below `before`, latest first."""
    rows = []
    for event in service.log.latest_decisions(model.id, before, most):
        body = from_json(event.body)
        ids = [body["arms"][place]["id"] for place in body["chosen"]]
        told = _told(service, model, event.decision or "")
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


def history(service: Service, model: Model, metrics: Metrics) -> dict[str, Any]:
    """Return outcomes of the latest decisions beside what was expected of them."""
    points: dict[str, list[Any]] = {
        name: [] for name in ("time", "round", "decision", "arm", "mean", "std", "outcome")
    }
    for event in reversed(service.log.latest_decisions(model.id, 2**53, SHOWN)):
        body = from_json(event.body)
        told = _told(service, model, event.decision or "")
        is_informed = _is_informed(body)
        for place in body["chosen"]:
            arm = body["arms"][place]["id"]
            outcome = told.get(arm, ("waiting", None))[1]
            mean = body["mean"][place] if is_informed else None
            std = body["std"][place] if is_informed else None
            values = (event.time, event.round, event.decision, arm, mean, std, outcome)
            for name, value in zip(points, values, strict=True):
                points[name].append(value)
    with model.learner.paused() as policy:
        noise = policy.posterior.noise_std
    return {"points": points, "noise_std": noise, "speed": metrics.speed()}


def _is_informed(body: dict[str, Any]) -> bool:
    """Return whether anything was expected: before the first outcomes all arms look alike."""
    return body["mean"] is not None and (len(body["mean"]) == 1 or len(set(body["mean"])) > 1)


def _told(service: Service, model: Model, decision_id: str) -> dict[Any, tuple[str, float | None]]:
    """Return status and outcome of each chosen arm; from the log where the model has forgotten."""
    try:
        return model.agent.outcomes_of(decision_id)
    except FeedbackError:
        told: dict[Any, tuple[str, float | None]] = {}
        for event in service.log.feedback(model.id, decision_id):
            if event.kind == "outcomes":
                for arm, outcome in from_json(event.body)["outcomes"]:
                    told[arm] = ("told", outcome)
        return told


def _explained(model: Model, event: Event, body: dict[str, Any]) -> list[ArmAnswer]:
    try:
        with model.lock:
            explanation = model.agent.explain(event.decision or "", model.restored(event))
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


def _regret(model: Model) -> dict[str, Any] | None:
    """Return how much was left on the table, as the posterior sees it."""
    if not model.agent.counts()["learned"]:
        return None
    regret = model.learner.regret()
    names = ("median", "lower", "upper", "level", "per_round", "rounds")
    return {name: _plain_value(getattr(regret, name)) for name in names}


def _weights(model: Model) -> list[dict[str, Any]]:
    """Return kernels and what each of them counts for."""
    with model.learner.paused() as policy:
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
