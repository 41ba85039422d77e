"""Answers to requests for decisions, and to those that tell outcomes."""
# Tested in tests/service/test_routes.py: they are asked for over HTTP.

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from oclok.agent.request import Proposal
from oclok.service.log import Event
from oclok.service.model import Result


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
