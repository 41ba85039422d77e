"""An agent's decision: arm ids, and what the policy believed of every arm offered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oclok.agent.arms import ArmId
from oclok.errors import FeedbackError
from oclok.extras import needs
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from oclok.agent.guard import Step
    from oclok.agent.schema import Schema
    from oclok.policies import Played

#: Most numbers in all contexts together: 32 MB.
MOST_NUMBERS = 4_000_000


@dataclass(frozen=True, eq=False)
class Offer(Persistent):
    """The arms of one decision, as they were seen when it was made; arrays have shape (M,).

    Attributes:
        ids: of all arms offered.
        contexts: their features as numbers, (M, D).
        index, mean, std: of each arm; None where the policy has no such thing.
        chosen, included, excluded: positions, ascending.
        propensity: probability of each arm to be chosen; None where nothing is random, or where
            another system decides.
        noise_std: of outcomes around f, as believed then; NaN where the policy has no such thing.
        super_arm_propensity: probability of the chosen set; NaN where it is not known.
        propensity_draws: number of draws both are estimated from; 0 where they are exact.
    """

    ids: list[ArmId]
    contexts: FloatArray
    index: FloatArray
    mean: FloatArray | None
    std: FloatArray | None
    chosen: IntArray
    included: IntArray
    excluded: IntArray
    propensity: FloatArray | None = None
    noise_std: float = math.nan
    super_arm_propensity: float = math.nan
    propensity_draws: int = 0

    @property
    def is_informed(self) -> bool:
        """Whether arms differ in their mean: before the first outcomes they do not."""
        return self.mean is not None and bool(np.ptp(self.mean))

    def column(self, name: str) -> FloatArray:
        """Return `index`, `mean`, `std` or `propensity`; NaN where there is none."""
        values: FloatArray | None = getattr(self, name)
        return np.full(len(self.ids), np.nan) if values is None else values


@dataclass(frozen=True, eq=False)
class AgentDecision(Persistent):
    """One decision of an agent.

    Attributes:
        id: for `learn` and `explain`.
        round: the policy's round, counted from 1.
        chosen: ids of the arms to play, in the order in which they were offered.
        is_exact: whether the exact posterior provably chooses the same; None if nobody can tell.
        preferred: ids of the arms that the agent would choose, where another system or the
            baseline decides; else the same as `chosen`.
        offer: all arms; None if it is no longer kept.
        group: "agent" or "baseline", the control group.
        stepped_in: whether the guard left the decision to the baseline.
        unit: assigns the group; the decision's id if None.
    """

    id: str
    round: int
    chosen: list[ArmId]
    is_exact: bool | None
    preferred: list[ArmId]
    offer: Offer | None
    group: str = "agent"
    stepped_in: bool = False
    unit: str | None = None

    def table(self) -> pd.DataFrame:
        """Return mean, std, index and chosen of every arm, indexed by arm id, best index first."""
        with needs("agent"):
            import pandas as pd

        offer = self.known_offer
        columns: dict[str, Any] = {n: offer.column(n) for n in ("mean", "std", "index")}
        columns["chosen"] = np.isin(np.arange(len(offer.ids)), offer.chosen)
        if offer.propensity is not None:
            columns["propensity"] = offer.propensity
        frame = pd.DataFrame(columns, index=pd.Index(offer.ids, name="arm"))
        return frame.sort_values("index", ascending=False, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Return id, round, and chosen arms with mean, std, index, propensity as plain values."""
        arms: list[dict[str, Any]] = [{"id": arm} for arm in self.chosen]
        for name in ("mean", "std", "index", "propensity"):
            values = getattr(self.offer, name, None)
            if self.offer is not None and values is not None:
                for entry, place in zip(arms, self.offer.chosen.tolist(), strict=True):
                    entry[name] = float(values[place])
        proof = {} if self.is_exact is None else {"is_exact": self.is_exact}
        return {"id": self.id, "round": self.round, "chosen": arms, **proof}

    @property
    def known_offer(self) -> Offer:
        """The offer; a `FeedbackError` if it is no longer kept."""
        if self.offer is None:
            raise FeedbackError(f"decision {self.id!r} is too long ago: its arms are not kept")
        return self.offer

    def __repr__(self) -> str:
        return f"AgentDecision(id={self.id!r}, chosen={self.chosen!r})"


class Proposal(NamedTuple):
    """A decision that has changed nothing yet, and what `Agent.record` needs to make it happen."""

    decision: AgentDecision
    schema: Schema | None
    played: Played
    step: Step | None = None


class Offers(Persistent):
    """The arms of the latest `most` decisions, or of fewer where that is too much memory."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._kept: dict[str, AgentDecision] = {}
        self._numbers = 0

    def add(self, decision: AgentDecision) -> None:
        """Keep a decision's arms, and drop the oldest if there are too many."""
        self._kept[decision.id] = decision
        self._numbers += decision.known_offer.contexts.size
        while self._kept and (len(self._kept) > self.most or self._numbers > MOST_NUMBERS):
            oldest = self._kept.pop(next(iter(self._kept)))
            self._numbers -= oldest.known_offer.contexts.size

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
