"""What the API answers about agents and decisions, put together from replica and log."""

from __future__ import annotations

import json
import math
import time
from typing import Any

from pydantic_core import from_json

from oclok.agent import health
from oclok.errors import FeedbackError
from oclok.policies import calibration
from oclok.service import answers, log
from oclok.service.decisions import BELIEFS, answer_of, logged, restored
from oclok.service.log import Event
from oclok.service.packing import records
from oclok.service.problems import NotFoundError
from oclok.service.replica import Replica
from oclok.service.service import Service

#: What to do about a finding, in terms of the API.
ADVICE = {
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


def agent(replica: Replica) -> answers.AgentAnswer:
    """Return settings, counts, calibration, regret and findings of an agent."""
    schema, judged = replica.agent.schema, replica.learner.calibration()
    findings, summary = _summary(replica, judged)
    is_judged = summary["learned"] + summary["observed"] and not judged.is_contradicted
    regret = replica.learner.latest_regret() if is_judged else None
    if regret is not None and regret.calibration.is_contradicted:
        regret = None
    details: dict[str, Any] = {
        "settings": replica.settings,
        "events": replica.seq,
        "calibration": judged,
        "regret": regret,
        "health": [_finding(found) for found in findings],
        "features": None if schema is None else schema.to_json(),
    }
    return answers.AgentAnswer(**details, **summary)


def row(replica: Replica) -> answers.AgentRow:
    """Return an agent in a list."""
    _, summary = _summary(replica, replica.learner.calibration())
    return answers.AgentRow(mode=replica.settings.get("mode", "live"), **summary)


def _summary(
    replica: Replica, judged: calibration.Calibration
) -> tuple[list[health.Finding], dict[str, Any]]:
    """Return findings, and what both of the above have in common."""
    with replica.lock:
        counts, findings = replica.agent.counts(), replica.agent.health()
    return findings, {
        "name": replica.name,
        "created": replica.created,
        "rounds": replica.agent.policy.round,
        "late": replica.agent.overdue(time.time()),
        "verdict": verdict(findings, judged),
        **counts,
    }


def stored(row: log.AgentRow) -> answers.AgentRow:
    """Return an agent in a list whose model is not in memory: as of its latest summary."""
    if row.summary is not None:
        return answers.AgentRow.model_validate_json(row.summary)
    return answers.AgentRow(
        name=row.name,
        mode=json.loads(row.settings).get("mode", "live"),
        created=row.created,
        rounds=row.rounds,
        waiting=0,
        learned=0,
        never_came=0,
        late=0,
        verdict=answers.Verdict(level="grey", summary="Not in memory.", action="Open it."),
    )


def verdict(findings: list[health.Finding], judged: calibration.Calibration) -> answers.Verdict:
    """Return whether an agent is well; `findings` are sorted, worst first."""
    if findings and findings[0].severity != "info":
        worst = _finding(findings[0])
        return answers.Verdict(
            level="red" if worst.severity == "error" else "amber",
            summary=worst.message[:1].upper() + worst.message[1:] + ".",
            action=worst.advice,
            kind=worst.kind,
        )
    if judged.verdict == "too early":
        return answers.Verdict(
            level="grey",
            summary=f"{str(judged).capitalize()} were foreseen.",
            action="Send outcomes with POST …/outcomes; the first ones only teach the model.",
        )
    return answers.Verdict(level="green", summary="All is well.")


def _finding(found: health.Finding) -> answers.Finding:
    return answers.Finding(**vars(found) | {"advice": ADVICE.get(found.kind, "")})


def lift(replica: Replica, level: float) -> answers.Lift:
    """Return what the agent earns beyond the control group."""
    with replica.lock:
        found, guard = replica.agent.lift(level), replica.agent.guard_report()
    return answers.Lift.model_validate({**vars(found), "summary": str(found), "guard": guard})


def comparison(replica: Replica, level: float) -> answers.Comparison:
    """Return what the agent expects to gain over the system that decides, in shadow mode."""
    with replica.learner.paused() as policy:
        found = replica.agent.comparison(level, policy)
    return answers.Comparison.model_validate({**vars(found), "summary": str(found)})


def decision(service: Service, replica: Replica, decision_id: str) -> answers.DecisionDetails:
    """Return everything about a decision."""
    event = service.log.decision(replica.id, decision_id)
    if event is None:
        raise NotFoundError(f"agent {replica.name!r} made no decision {decision_id!r}")
    replica.catch_up(event.seq)
    body = logged(event)
    outcomes = _outcomes(service, replica, event, body)
    seen = {each.arm: {"status": each.status, "outcome": each.outcome} for each in outcomes}
    explained, noise = _explained(replica, event), body.get("noise_std")
    arms = []
    for place, arm in enumerate(records(body)):
        known = {n: float(body[n][place]) for n in BELIEFS if body[n] is not None}
        if "std" in known and noise is not None:
            known["outcome_std"] = math.hypot(known["std"], noise)
        fields = known | arm | explained.get(arm["id"], {}) | seen.get(arm["id"], {})
        arms.append(answers.ArmAnswer(**fields, chosen=place in body["chosen"]))
    return answers.DecisionDetails(
        **answer_of(event),
        time=event.time,
        noise_std=noise,
        outcome_range=replica.settings.get("outcome_range"),
        outcomes=outcomes,
        arms=sorted(arms, key=lambda arm: -(arm.index or 0.0)),
    )


def _explained(replica: Replica, event: Event) -> dict[Any, dict[str, Any]]:
    """Return reason and evidence of each arm; nothing if the agent has forgotten the decision."""
    if not replica.settings.get("explain", True):
        return {}
    try:
        with replica.lock:
            decision, _, played, _ = restored(replica.agent, event)
            explanation = replica.agent.explain(decision.id, decision, played.oracle)
    except FeedbackError:
        return {}
    return {
        arm.arm: {
            "reason": arm.reason,
            "evidence": arm.evidence,
        }
        for arm in explanation.arms
    }


def decisions(
    service: Service,
    replica: Replica,
    before: int,
    most: int,
    status: answers.Status | None = None,
    search: str | None = None,
) -> list[answers.DecisionRow]:
    """Return up to `most` decisions of rounds below `before`, latest first.

    With a `status` only those with such an outcome, among those that are remembered; with a
    `search` only those whose id starts with it.
    """
    if status is None:
        events = service.log.latest_decisions(replica.id, before, most, search or "")
    else:
        ids = replica.agent.with_status(status, before, search or "")[:most]
        events = [e for e in (service.log.decision(replica.id, i) for i in ids) if e is not None]
    return [
        answers.DecisionRow(
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
) -> list[answers.Outcome]:
    """Return what became of each chosen arm; from the log where the agent has forgotten."""
    decision_id = event.decision or ""
    try:
        known = replica.agent.outcomes_of(decision_id)
    except FeedbackError:
        default = replica.settings.get("default_outcome")
        unseen = ("never_came", None) if default is None else ("defaulted", default)
        known = dict.fromkeys((body["ids"][place] for place in body["chosen"]), unseen)
        for sent in service.log.feedback(replica.id, decision_id):
            if sent.kind == "outcomes":
                content = from_json(sent.body)
                word = "corrected" if content["correct"] else "learned"
                known |= {arm: (word, outcome) for arm, outcome in content["outcomes"]}
    return [
        answers.Outcome(arm=arm, status=status, outcome=outcome)  # type: ignore[arg-type]
        for arm, (status, outcome) in known.items()
    ]
