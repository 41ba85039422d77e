"""Why a decision came out as it did: every arm's index, and the outcomes nearest to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oclok.agent.arms import ArmId
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.decisions import Decisions, Record, Status
from oclok.oracles.base import Oracle

#: Latest outcomes that are searched, and how many of the nearest are shown.
SEARCHED, SHOWN = 20_000, 3


@dataclass(frozen=True)
class Evidence:
    """The outcome of an arm in an earlier decision; `distance` is between encoded features."""

    decision: str
    arm: ArmId
    outcome: float
    distance: float


@dataclass(frozen=True)
class ArmExplanation:
    """Why one arm was chosen or not.

    Attributes:
        arm: its id.
        mean, std, index: NaN where the policy has no such thing.
        chosen: whether it was.
        reason: in words.
        outcome: None while there is none.
        evidence: known outcomes of similar arms, nearest first.
    """

    arm: ArmId
    mean: float
    std: float
    index: float
    chosen: bool
    reason: str
    outcome: float | None
    evidence: list[Evidence]


@dataclass(frozen=True)
class Explanation:
    """Why a decision came out as it did; `arms` are sorted by index, best first."""

    decision: str
    arms: list[ArmExplanation]

    def __str__(self) -> str:
        lines = [f"decision {self.decision}"]
        for arm in self.arms:
            mark = "*" if arm.chosen else " "
            lines.append(
                f"{mark} {arm.arm}: index {arm.index:.4g}, mean {arm.mean:.4g} ± {arm.std:.4g}; "
                + arm.reason
            )
        return "\n".join(lines)


def explained(
    decision: AgentDecision, record: Record, learned: Decisions, oracle: Oracle | None = None
) -> Explanation:
    """Return why `decision` came out as it did, with the outcomes known by now."""
    offer = decision.known_offer
    reasons = _reasons(offer, decision, oracle)
    outcomes = {
        arm: outcome
        for arm, outcome, status in zip(record.arms, record.outcomes, record.status, strict=True)
        if status != Status.WAITING and not np.isnan(outcome)
    }
    evidence = _nearest(offer, learned)
    chosen = set(offer.chosen.tolist())
    mean, std = offer.column("mean"), offer.column("std")
    arms = [
        ArmExplanation(
            offer.ids[place],
            float(mean[place]),
            float(std[place]),
            float(offer.index[place]),
            place in chosen,
            reasons[place],
            outcomes.get(offer.ids[place]),
            evidence[place],
        )
        for place in np.argsort(-offer.index, kind="stable").tolist()
    ]
    return Explanation(decision.id, arms)


def _reasons(offer: Offer, decision: AgentDecision, oracle: Oracle | None) -> list[str]:
    """Return for each arm why it was chosen or not."""
    chosen, included = set(offer.chosen.tolist()), set(offer.included.tolist())
    excluded = set(offer.excluded.tolist())
    preferred = set(decision.preferred)
    free = [offer.index[place] for place in chosen - included]
    lowest = min(free, default=-np.inf)
    reasons = []
    for place, arm in enumerate(offer.ids):
        if place in chosen and decision.preferred is not decision.chosen and arm not in preferred:
            reason = "chosen by the deciding system, not by the agent"
        elif place in included and place in chosen:
            reason = "included by request"
        elif place in chosen:
            reason = "chosen: in the best feasible set by index"
        elif place in excluded:
            reason = "excluded by request"
        elif not chosen:
            reason = "no set of arms was worth choosing"
        elif offer.index[place] <= lowest:
            reason = f"index not above {lowest:.4g}, the lowest of those chosen"
        else:
            conflict = None if oracle is None else oracle.conflict(place, offer.chosen)
            reason = conflict or "does not fit with the arms chosen, which together are better"
        reasons.append(reason)
    return reasons


def _nearest(offer: Offer, learned: Decisions) -> list[list[Evidence]]:
    """Return for each arm the outcomes nearest to it."""
    from scipy.spatial import KDTree

    contexts, outcomes, names = learned.latest_learned(SEARCHED)
    if not names:
        return [[] for _ in offer.ids]
    ranks = list(range(1, min(SHOWN, len(names)) + 1))
    distances, nearest = KDTree(contexts).query(offer.contexts, k=ranks)
    return [
        [
            Evidence(names[p][0], names[p][1], float(outcomes[p]), d)
            for d, p in zip(row, places, strict=True)
        ]
        for row, places in zip(distances.tolist(), nearest.tolist(), strict=True)
    ]
