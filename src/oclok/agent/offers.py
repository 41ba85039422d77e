"""The latest decisions with all of their arms, to be explained; bounded in number and in size."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from oclok.agent.decision import AgentDecision
from oclok.errors import FeedbackError
from oclok.persistence import Persistent

#: Numbers in the features of all arms that are kept: 32 MB.
MOST_NUMBERS = 4_000_000


class Offers(Persistent):
    """The arms of the latest decisions; fewer where they are many.

    Args:
        most: how many decisions are kept.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: OrderedDict[str, AgentDecision] = OrderedDict()
        self._numbers = 0

    def add(self, decision: AgentDecision) -> None:
        """Keep a decision's arms, and drop the oldest if there are too many."""
        self._kept[decision.id] = decision
        self._numbers += _size(decision)
        while self._kept and (len(self._kept) > self.most or self._numbers > MOST_NUMBERS):
            self._numbers -= _size(self._kept.popitem(last=False)[1])

    def get(self, decision: str) -> AgentDecision | None:
        """Return a decision with its arms; None if they are not kept."""
        return self._kept.get(decision)

    def __getitem__(self, decision: str) -> AgentDecision:
        kept = self._kept.get(decision)
        if kept is None:
            raise FeedbackError(
                f"decision {decision!r} cannot be explained: arms are kept for at most the latest "
                f"{self.most:,} decisions, and now for {len(self._kept):,}"
            )
        return kept

    def _state(self) -> dict[str, Any]:
        return {"most": self.most, "kept": [vars(decision) for decision in self._kept.values()]}

    def _restore(self, state: dict[str, Any]) -> None:
        self.most = state["most"]
        self._kept = OrderedDict((kept["id"], AgentDecision(**kept)) for kept in state["kept"])
        self._numbers = sum(map(_size, self._kept.values()))


def _size(decision: AgentDecision) -> int:
    return 0 if decision.offer is None else decision.offer.contexts.size
