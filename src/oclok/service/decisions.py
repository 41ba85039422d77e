"""Decisions as the log keeps them and as answers show them; counts of learned outcomes."""
# Tested in tests/service/test_workers.py: workers read each other's decisions.

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic_core import from_json, to_json

from oclok.agent import Agent, AgentDecision, Schema
from oclok.agent.decision import Offer
from oclok.agent.request import Proposal
from oclok.oracles import oracle_from_json
from oclok.oracles.base import Oracle
from oclok.service.log import Event


def decision_body(request: dict[str, Any], proposal: Proposal, is_first: bool) -> bytes:
    """Return what the log keeps of a decision: the request, and what was thought and chosen."""
    offer = proposal.decision.offer
    assert offer is not None
    place = {arm: position for position, arm in enumerate(offer.ids)}
    body = {
        **request,
        "chosen": offer.chosen.tolist(),
        "preferred": [place[arm] for arm in proposal.decision.preferred],
        "index": offer.index.tolist(),
        "mean": None if offer.mean is None else offer.mean.tolist(),
        "std": None if offer.std is None else offer.std.tolist(),
        "noise_std": None if math.isnan(offer.noise_std) else offer.noise_std,
        "is_exact": proposal.decision.is_exact,
    }
    if is_first:
        body["schema"] = proposal.schema.to_json()
    return to_json(body)


def logged(event: Event) -> dict[str, Any]:
    """Return what the log keeps of a decision, by name; see `decision_body`."""
    body: dict[str, Any] = from_json(event.body)
    body["ids"] = [arm["id"] for arm in body["arms"]]
    return body


def records(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arms of a logged decision: id and features of each."""
    arms: list[dict[str, Any]] = body["arms"]
    return arms


def restored(agent: Agent, event: Event) -> tuple[AgentDecision, Schema | None, Oracle]:
    """Return the decision of an event, the schema if it set one, and the oracle for its arms."""
    body = from_json(event.body)
    arms = {arm["id"]: arm["features"] for arm in body["arms"]}
    ids = list(arms)
    place = {arm: position for position, arm in enumerate(ids)}
    schema = Schema(body["schema"]) if "schema" in body else None
    given = oracle_from_json(body["oracle"]) if body.get("oracle") else None
    include, exclude = body.get("include", ()), body.get("exclude", ())
    contexts, oracle = agent.offered(arms, given, include, exclude, schema)
    offer = Offer(
        ids,
        contexts,
        np.array(body["index"]),
        None if body["mean"] is None else np.array(body["mean"]),
        None if body["std"] is None else np.array(body["std"]),
        np.array(body["chosen"], dtype=np.intp),
        np.array(sorted(place[arm] for arm in include), dtype=np.intp),
        np.array(sorted(place[arm] for arm in exclude), dtype=np.intp),
        noise_std=math.nan if (noise := body.get("noise_std")) is None else noise,
    )
    chosen = [ids[position] for position in body["chosen"]]
    preferred = [ids[position] for position in body["preferred"]]
    assert event.decision is not None
    decision = AgentDecision(
        event.decision, event.round or 0, chosen, body["is_exact"], preferred, offer
    )
    return decision, schema, oracle


@dataclass
class Result:
    """What came of applying an event with outcomes: ids of arms, and reasons of those rejected."""

    learned: list[Any] = field(default_factory=list)
    repeated: list[Any] = field(default_factory=list)
    corrected: list[Any] = field(default_factory=list)
    quarantined: list[Any] = field(default_factory=list)
    rejected: list[tuple[Any, str]] = field(default_factory=list)


class OutcomesTally:
    """Counts what became of outcomes."""

    def __init__(self) -> None:
        kinds = ("learned", "repeated", "corrected", "quarantined")
        self.told: dict[str, Any] = dict.fromkeys(kinds, 0) | {"rejected": [], "items": []}

    def add(self, decision: str | None, result: Result) -> None:
        """Count what became of outcomes of one decision."""
        for kind in ("learned", "repeated", "corrected", "quarantined"):
            arms = getattr(result, kind)
            self.told[kind] += len(arms)
            self.told["items"] += [
                {"decision": decision, "arm": arm, "result": kind} for arm in arms
            ]
        self.told["rejected"] += [
            {"decision": decision, "arm": arm, "reason": reason} for arm, reason in result.rejected
        ]


def answer_of(event: Event) -> dict[str, Any]:
    """Return the answer to a request for a decision that is in the log."""
    body = from_json(event.body)
    return _answered(event, body, [arm["id"] for arm in body["arms"]], body["chosen"])


def answer_to(event: Event, proposal: Proposal) -> dict[str, Any]:
    """Return the answer to a request for a decision that was just made."""
    offer = proposal.decision.offer
    assert offer is not None
    body = {"mean": offer.mean, "std": offer.std, "index": offer.index}
    body["is_exact"] = proposal.decision.is_exact  # type: ignore[assignment]
    return _answered(event, body, offer.ids, offer.chosen.tolist())


def _answered(
    event: Event, body: dict[str, Any], ids: list[Any], chosen: list[int]
) -> dict[str, Any]:
    entries = []
    for place in chosen:
        entry: dict[str, Any] = {"id": ids[place]}
        for name in ("mean", "std", "index"):
            entry[name] = None if body[name] is None else float(body[name][place])
        entries.append(entry)
    return {
        "id": event.decision,
        "round": event.round,
        "chosen": entries,
        "is_exact": bool(body["is_exact"]),
    }
