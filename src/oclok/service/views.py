"""What the API answers about agents and decisions, put together from replica and log."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import numpy as np
from pydantic_core import from_json

from oclok.agent.health import Finding as Found
from oclok.errors import FeedbackError
from oclok.policies.calibration import Calibration as Judged
from oclok.service import log
from oclok.service.answers import (
    AgentAnswer,
    AgentRow,
    ArmAnswer,
    Calibration,
    Comparison,
    DecisionDetails,
    DecisionRow,
    Evidence,
    Finding,
    Lift,
    Outcome,
    Regret,
    Status,
    Verdict,
)
from oclok.service.decisions import answer_of, logged
from oclok.service.log import Event
from oclok.service.packing import records
from oclok.service.problems import NotFoundError
from oclok.service.replica import Replica
from oclok.service.service import Service

#: What to do about a finding, in terms of the API.
ACTIONS = {
    "calibration": "Read the bands on this page as too narrow. Check that outcomes are sent for "
    "the right arms, and that `default_outcome` is like other outcomes.",
    "drift": "Check what has changed in the world, or in how outcomes are measured.",
    "quarantine": "Accept those that are right (on the page of the decision, or POST …/outcomes "
    'with "accept": true); set `outcome_range` if such values are possible.',
    "lost": "Check that all outcomes are sent; if silence means something, set `default_outcome`.",
    "late": "Check that outcomes are sent; a `deadline` settles decisions that wait too long.",
    "range": "Check the unit of this feature where POST …/decisions is called.",
    "category": "List all of its values in `features` of the agent.",
    "constant": "Leave it out, or send what varies.",
    "ignored": 'Declare it in `features`, as "category" or as "ignored".',
}


def version(replica: Replica) -> str:
    """Return a text that changes when a view of the agent may, and once a minute."""
    learner, minute = replica.learner, int(time.time() / 60)
    return f"{replica.id}-{replica.seq}-{learner.steps}-{learner.regret_rounds}-{minute}"


def agent(replica: Replica) -> AgentAnswer:
    """Return what is known of an agent."""
    judged = replica.learner.calibration()
    with replica.lock:
        counts, findings = replica.agent.counts(), replica.agent.health()
        schema = replica.agent.schema
    return AgentAnswer(
        name=replica.name,
        settings=replica.settings,  # type: ignore[arg-type]  # checked when it was made
        created=replica.created,
        rounds=replica.agent.policy.round,
        events=replica.seq,
        late=replica.agent.overdue(time.time()),
        verdict=verdict(findings, judged),
        calibration=Calibration(**_plain_value(vars(judged))),
        regret=_regret(replica),
        health=[Finding(**vars(finding)) for finding in findings],
        features=None if schema is None else schema.to_json(),
        **counts,
    )


def row(replica: Replica) -> AgentRow:
    """Return an agent in a list."""
    judged = replica.learner.calibration()
    with replica.lock:
        counts, findings = replica.agent.counts(), replica.agent.health()
    return AgentRow(
        name=replica.name,
        mode=replica.settings.get("mode", "live"),
        created=replica.created,
        rounds=replica.agent.policy.round,
        late=replica.agent.overdue(time.time()),
        verdict=verdict(findings, judged),
        **{name: counts[name] for name in ("waiting", "learned", "never_came")},
    )


def stored(row: log.AgentRow) -> AgentRow:
    """Return an agent in a list whose model is not in memory: as of its latest summary."""
    if row.summary is not None:
        return AgentRow.model_validate_json(row.summary)
    return AgentRow(
        name=row.name,
        mode=json.loads(row.settings).get("mode", "live"),
        created=row.created,
        rounds=row.rounds,
        waiting=0,
        learned=0,
        never_came=0,
        late=0,
        verdict=Verdict(level="grey", summary="Not in memory.", action="Open it.", kind=""),
    )


def verdict(findings: list[Found], judged: Judged) -> Verdict:
    """Return whether an agent is well; `findings` are sorted, worst first."""
    if findings and findings[0].severity != "info":
        worst = findings[0]
        found = worst.message.split(";")[0]  # what follows is for those who program in Python
        return Verdict(
            level="red" if worst.severity == "error" else "amber",
            summary=found[:1].upper() + found[1:] + ".",
            action=ACTIONS.get(worst.kind, ""),
            kind=worst.kind,
        )
    if judged.verdict == "too early":
        return Verdict(
            level="grey",
            summary=f"{str(judged).capitalize()}.",
            action="Send outcomes with POST …/outcomes.",
        )
    return Verdict(level="green", summary="All is well.")


def lift(replica: Replica, level: float) -> Lift:
    """Return what the agent earns beyond the control group."""
    with replica.lock:
        found, guard = replica.agent.lift(level), replica.agent.guard_report()
    values = {name: value for name, value in vars(found).items() if name != "periods"}
    groups = {name: _group(getattr(found, name)) for name in ("agent", "baseline")}
    periods = [
        {**each._asdict(), "agent": _group(each.agent), "baseline": _group(each.baseline)}
        for each in found.periods
    ]
    guarded = None
    if guard is not None:
        guarded = vars(guard) | {"assumptions": [str(each) for each in guard.assumptions]}
    return Lift(
        **(_plain_value(values) | groups),
        summary=str(found),
        periods=periods,  # type: ignore[arg-type]
        guard=guarded,  # type: ignore[arg-type]
    )


def comparison(replica: Replica, level: float) -> Comparison:
    """Return what the agent expects to gain over the system that decides, in shadow mode."""
    with replica.learner.paused() as policy:
        found = replica.agent.comparison(level, policy)
    return Comparison(**_plain_value(vars(found)), summary=str(found))


def _group(group: Any) -> dict[str, Any]:
    return {"decisions": group.decisions, "mean": _plain_value(group.mean)}


def decision(service: Service, replica: Replica, decision_id: str) -> DecisionDetails:
    """Return everything about a decision."""
    event = service.log.decision(replica.id, decision_id)
    if event is None:
        raise NotFoundError(f"agent {replica.name!r} made no decision {decision_id!r}")
    replica.catch_up(event.seq)
    body = logged(event)
    outcomes = _outcomes(service, replica, event, body)
    noise = body.get("noise_std")
    arms = _explained(replica, event) or _plain(body)
    features = {arm["id"]: arm["features"] for arm in records(body)}
    seen = {outcome.arm: outcome for outcome in outcomes}
    for arm in arms:
        arm.features = features[arm.id]
        if arm.std is not None and noise is not None:
            arm.outcome_std = math.hypot(arm.std, noise)
        if arm.id in seen:
            arm.status, arm.outcome = seen[arm.id].status, seen[arm.id].outcome
    return DecisionDetails(
        **answer_of(event), time=event.time, noise_std=noise, outcomes=outcomes, arms=arms
    )


def decisions(
    service: Service,
    replica: Replica,
    before: int,
    most: int,
    status: Status | None = None,
    search: str | None = None,
) -> list[DecisionRow]:
    """Return decisions of rounds below `before`, latest first.

    Args:
        service: has the log.
        replica: of the agent.
        before: a round.
        most: how many decisions to return at most.
        status: only decisions with an outcome of this status, among those that are remembered.
        search: only decisions whose id starts with this.
    """
    if status is None:
        events = service.log.latest_decisions(replica.id, before, most, search or "")
    else:
        ids = replica.agent.with_status(status, before, search or "")[:most]
        events = [e for e in (service.log.decision(replica.id, i) for i in ids) if e is not None]
    return [
        DecisionRow(
            id=event.decision or "",
            round=event.round or 0,
            time=event.time,
            arms=len(body["ids"]),
            outcomes=_outcomes(service, replica, event, body),
        )
        for event, body in ((event, logged(event)) for event in events)
    ]


def _outcomes(
    service: Service, replica: Replica, event: Event, body: dict[str, Any]
) -> list[Outcome]:
    """Return what became of each chosen arm; from the log where the agent has forgotten."""
    decision_id = event.decision or ""
    try:
        known = replica.agent.outcomes_of(decision_id)
    except FeedbackError:
        default = replica.settings.get("default_outcome")
        unseen = ("never_came", None) if default is None else ("defaulted", default)
        known = dict.fromkeys((body["ids"][place] for place in body["chosen"]), unseen)
        for told in service.log.feedback(replica.id, decision_id):
            if told.kind == "outcomes":
                said = from_json(told.body)
                word = "corrected" if said["correct"] else "learned"
                known |= {arm: (word, outcome) for arm, outcome in said["outcomes"]}
    return [
        Outcome(arm=arm, status=status, outcome=outcome)  # type: ignore[arg-type]
        for arm, (status, outcome) in known.items()
    ]


def _explained(replica: Replica, event: Event) -> list[ArmAnswer]:
    try:
        with replica.lock:
            explanation = replica.agent.explain(event.decision or "", *replica.restored(event))
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
            evidence=[Evidence(**vars(evidence)) for evidence in arm.evidence],
        )
        for arm in explanation.arms
    ]


def _plain(body: dict[str, Any]) -> list[ArmAnswer]:
    """Return the arms of a decision that the agent has forgotten."""
    index, mean, std = (body[name] for name in ("index", "mean", "std"))
    arms = [
        ArmAnswer(
            id=arm,
            chosen=place in body["chosen"],
            features={},
            index=float(index[place]),
            mean=None if mean is None else float(mean[place]),
            std=None if std is None else float(std[place]),
        )
        for place, arm in enumerate(body["ids"])
    ]
    return sorted(arms, key=lambda arm: -(arm.index or 0.0))


def _regret(replica: Replica) -> Regret | None:
    """Return what was left on the table, as far as it is known by now."""
    counts = replica.agent.counts()
    if not counts["learned"] + counts["observed"]:
        return None
    regret = replica.learner.latest_regret()
    if regret is None or regret.calibration.is_contradicted:
        return None
    names = ("median", "lower", "upper", "level", "per_round", "rounds")
    return Regret(**{name: _plain_value(getattr(regret, name)) for name in names})


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
