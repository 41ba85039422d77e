"""Decisions as the log keeps them: the request, what was thought of all arms, what was chosen."""
# Tested in tests/service/test_workers.py: workers read each other's decisions.

from __future__ import annotations

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
        "is_exact": proposal.decision.is_exact,
    }
    if is_first:
        body["schema"] = proposal.schema.to_json()
    return to_json(body)


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
    )
    chosen = [ids[position] for position in body["chosen"]]
    preferred = [ids[position] for position in body["preferred"]]
    assert event.decision is not None
    decision = AgentDecision(
        event.decision, event.round or 0, chosen, body["is_exact"], preferred, offer
    )
    return decision, schema, oracle
