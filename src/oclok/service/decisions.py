"""Decisions as the log keeps them and as answers show them; counts of learned outcomes."""
# Tested in tests/service/test_workers.py: workers read each other's decisions.

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from oclok.agent import Agent, AgentDecision, Schema
from oclok.agent.arms import Arms
from oclok.agent.decision import Offer, Proposal
from oclok.agent.feedback import Learned
from oclok.agent.guard import Step
from oclok.oracles import oracle_from_json
from oclok.policies import Played
from oclok.service.log import Event
from oclok.service.packing import unpack

#: What a policy thinks of arms.
BELIEFS = ("mean", "std", "index")
#: What becomes of an outcome that is not rejected.
RESULTS = tuple(each.name for each in fields(Learned))


def decision_body(
    request: dict[str, Any], arms: Arms, proposal: Proposal, is_first: bool
) -> dict[str, Any]:
    """Return what the log keeps of a decision: the request, every arm's beliefs, the chosen set.

    Beliefs are kept in single precision, and exactly for the chosen arms.
    """
    decision, offer = proposal.decision, proposal.decision.known_offer
    place = {arm: position for position, arm in enumerate(offer.ids)}
    body: dict[str, Any] = {
        **request,
        "ids": arms.ids,
        "columns": {name: arms.column(name) for name in arms.names},
        "chosen": offer.chosen.tolist(),
        "preferred": [place[arm] for arm in decision.preferred],
        "noise_std": _known(offer.noise_std),
        "group": decision.group,
    }
    if decision.is_exact is not None:
        body["is_exact"] = decision.is_exact
    if offer.propensity is not None:
        likely = _known(offer.super_arm_propensity)
        body["propensity"] = None if likely is None else offer.propensity.astype(np.float32)
        body["super_arm_propensity"] = likely
        body["propensity_draws"] = offer.propensity_draws
    if proposal.step is not None:
        body["guard"] = proposal.step._asdict()
    for name in BELIEFS:
        values = getattr(offer, name)
        body[name] = None if values is None else values.astype(np.float32)
        if values is not None:
            body[f"exact_{name}"] = values[offer.chosen]
    if is_first:
        assert proposal.schema is not None
        body["schema"] = proposal.schema.to_json()
    return body


def logged(event: Event) -> dict[str, Any]:
    """Return what the log keeps of a decision, by name; see `decision_body`."""
    body = unpack(event.body)
    for name in BELIEFS:
        if f"exact_{name}" in body:
            body[name] = body[name].astype(np.float64)
            body[name][body["chosen"]] = body.pop(f"exact_{name}")
    if "propensity" not in body:  # nothing was random
        body["propensity"] = np.isin(np.arange(len(body["ids"])), body["chosen"]).astype(float)
        body |= {"super_arm_propensity": 1.0, "propensity_draws": 0}
    return body


def logged_arms(body: dict[str, Any]) -> Arms:
    """Return the arms of a logged decision."""
    return Arms(body["ids"], list(body["columns"]), body["columns"].__getitem__)


def restored(agent: Agent, event: Event) -> Proposal:
    """Return the decision of an event as it was proposed; with a schema if it set one."""
    body = logged(event)
    arms = logged_arms(body)
    schema = Schema(body["schema"]) if "schema" in body else None
    given = oracle_from_json(body["oracle"]) if body.get("oracle") else None
    step = Step(**body["guard"]) if "guard" in body else None
    include, exclude = body.get("include", ()), body.get("exclude", ())
    contexts, oracle = agent.offered(arms, given, include, exclude, schema)
    offer = Offer(
        arms.ids,
        contexts,
        body["index"],
        body["mean"],
        body["std"],
        np.array(body["chosen"], dtype=np.intp),
        np.sort(arms.positions(include, "include")),
        np.sort(arms.positions(exclude, "exclude")),
        body["propensity"],
        _or_nan(body.get("noise_std")),
        _or_nan(body["super_arm_propensity"]),
        body["propensity_draws"],
    )
    assert event.decision is not None
    decision = AgentDecision(
        event.decision,
        event.round or 0,
        [arms.ids[position] for position in body["chosen"]],
        body.get("is_exact"),
        [arms.ids[position] for position in body["preferred"]],
        offer,
        body["group"],
        step is not None and step.stepped_in,
        body.get("unit"),
    )
    return Proposal(decision, schema, Played(contexts, oracle, offer.chosen), step)


@dataclass(frozen=True)
class Result(Learned):
    """The effect of an event with outcomes; `rejected` has ids of arms, and the reasons."""

    rejected: list[tuple[Any, str]] = field(default_factory=list)


def tallied(results: list[tuple[str | None, Result]]) -> dict[str, Any]:
    """Return what became of outcomes, given by decision: how many, those refused, one by one."""
    items = [
        {"decision": decision, "arm": arm, "result": kind}
        for decision, result in results
        for kind in RESULTS
        for arm in getattr(result, kind)
    ]
    rejected = [
        {"decision": decision, "arm": arm, "reason": reason}
        for decision, result in results
        for arm, reason in result.rejected
    ]
    counts = Counter(item["result"] for item in items)
    return {kind: counts[kind] for kind in RESULTS} | {"rejected": rejected, "items": items}


def answer_of(event: Event, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answer to a request for a decision that is in the log, with this body."""
    if body is None:
        body = unpack(event.body)
    exact = {name: body.get(f"exact_{name}") for name in BELIEFS}
    chosen = [
        {"id": body["ids"][place]}
        | {name: None if x is None else float(x[nth]) for name, x in exact.items()}
        for nth, place in enumerate(body["chosen"])
    ]
    return {
        "id": event.decision,
        "round": event.round,
        "chosen": chosen,
        "group": body["group"],
        "stepped_in": body.get("guard", {}).get("stepped_in", False),
        "propensity": body.get("super_arm_propensity", 1.0),
        **({"is_exact": body["is_exact"]} if "is_exact" in body else {}),
    }


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number
