"""Decisions as the log keeps them and as answers show them; counts of learned outcomes."""
# Tested in tests/service/test_workers.py: workers read each other's decisions.

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oclok.agent import Agent, AgentDecision, Schema
from oclok.agent.arms import Arms
from oclok.agent.decision import Offer, Proposal
from oclok.agent.guard import Step
from oclok.oracles import oracle_from_json
from oclok.oracles.base import Oracle
from oclok.service.log import Event
from oclok.service.packing import pack, unpack

#: What a policy thinks of arms.
BELIEFS = ("mean", "std", "index")
#: What becomes of an outcome that is not rejected.
RESULTS = ("learned", "repeated", "corrected", "quarantined")


def decision_body(request: dict[str, Any], arms: Arms, proposal: Proposal, is_first: bool) -> bytes:
    """Return what the log keeps of a decision: the request, every arm's beliefs, the chosen set.

    Beliefs are kept in single precision, and exactly for the chosen arms.
    """
    decision, offer = proposal.decision, proposal.decision.offer
    assert offer is not None
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
    width = _width(offer)
    if width is not None:
        body["index"], body["width"] = None, width
    if is_first:
        body["schema"] = proposal.schema.to_json()
    return pack(body)


def logged(event: Event) -> dict[str, Any]:
    """Return what the log keeps of a decision, by name; see `decision_body`."""
    body = unpack(event.body)
    if "width" in body:
        body["index"] = body["mean"] + body.pop("width") * body["std"]
    for name in BELIEFS:
        if f"exact_{name}" in body:
            body[name] = body[name].astype(np.float64)
            body[name][body["chosen"]] = body.pop(f"exact_{name}")
    if "propensity" not in body:  # nothing was random
        body["propensity"] = np.isin(np.arange(len(body["ids"])), body["chosen"]).astype(float)
        body |= {"super_arm_propensity": 1.0, "propensity_draws": 0}
    return body


def _width(offer: Offer) -> float | None:
    """Return w if every index is mean + w · std, as far as single precision can tell."""
    if offer.mean is None or offer.std is None or not offer.std.any():
        return None
    bonus = offer.index - offer.mean
    width = float(bonus @ offer.std / (offer.std @ offer.std))
    scale = np.abs(offer.index).max()
    return width if np.abs(bonus - width * offer.std).max() <= 1e-8 * scale else None


def logged_arms(body: dict[str, Any]) -> Arms:
    """Return the arms of a logged decision."""
    return Arms(body["ids"], list(body["columns"]), body["columns"].__getitem__)


def restored(
    agent: Agent, event: Event
) -> tuple[AgentDecision, Schema | None, Oracle, Step | None]:
    """Return the decision of an event, the schema if it set one, its oracle and guard's step."""
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
    return decision, schema, oracle, step


@dataclass
class Result:
    """The effect of an event with outcomes: ids of arms, and reasons of those rejected."""

    learned: list[Any] = field(default_factory=list)
    repeated: list[Any] = field(default_factory=list)
    corrected: list[Any] = field(default_factory=list)
    quarantined: list[Any] = field(default_factory=list)
    rejected: list[tuple[Any, str]] = field(default_factory=list)


class OutcomesTally:
    """Counts what became of outcomes."""

    def __init__(self) -> None:
        self.totals: dict[str, Any] = dict.fromkeys(RESULTS, 0) | {"rejected": [], "items": []}

    def add(self, decision: str | None, result: Result) -> None:
        """Count what became of outcomes of one decision."""
        for kind in RESULTS:
            arms = getattr(result, kind)
            self.totals[kind] += len(arms)
            self.totals["items"] += [
                {"decision": decision, "arm": arm, "result": kind} for arm in arms
            ]
        self.totals["rejected"] += [
            {"decision": decision, "arm": arm, "reason": reason} for arm, reason in result.rejected
        ]


def answer_of(event: Event) -> dict[str, Any]:
    """Return the answer to a request for a decision that is in the log."""
    body = logged(event)
    stepped_in = body.get("guard", {}).get("stepped_in", False)
    propensity = body["super_arm_propensity"]
    return _answer(event, body, body.get("is_exact"), body["group"], stepped_in, propensity)


def answer_to(event: Event, proposal: Proposal) -> dict[str, Any]:
    """Return the answer to a request for a decision that was just made."""
    made = proposal.decision
    assert made.offer is not None
    propensity = _known(made.offer.super_arm_propensity)
    return _answer(event, vars(made.offer), made.is_exact, made.group, made.stepped_in, propensity)


def _answer(
    event: Event,
    offer: dict[str, Any],
    is_exact: bool | None,
    group: str,
    stepped_in: bool,
    propensity: float | None,
) -> dict[str, Any]:
    chosen = [
        {"id": offer["ids"][place]}
        | {n: None if offer[n] is None else float(offer[n][place]) for n in BELIEFS}
        for place in offer["chosen"]
    ]
    answer = {"id": event.decision, "round": event.round, "chosen": chosen}
    proof = {} if is_exact is None else {"is_exact": is_exact}
    return {**answer, "group": group, "stepped_in": stepped_in, "propensity": propensity, **proof}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number
