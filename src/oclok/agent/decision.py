"""What an agent decided: arm ids, and what was thought of every arm offered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from oclok.agent.arms import ArmId
from oclok.persistence import Persistent
from oclok.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Offer(Persistent):
    """The arms of one decision, as they were seen when it was made; arrays have shape (M,).

    Attributes:
        ids: of all arms that were offered.
        contexts: their features as numbers, (M, D).
        index, mean, std: what the policy thought of them; None where it has no such thing.
        chosen, included, excluded: positions, ascending.
        propensity: probability of each arm to be chosen; None where the policy is not random.
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

    def column(self, name: str) -> FloatArray:
        """Return `index`, `mean`, `std` or `propensity`; NaN where there is none."""
        values: FloatArray | None = getattr(self, name)
        return np.full(len(self.ids), np.nan) if values is None else values

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True, eq=False)
class AgentDecision:
    """One decision of an agent.

    Attributes:
        id: by which `learn` and `explain` know it.
        round: the policy's round, counted from 1.
        chosen: ids of the arms that are to be played, in the order in which they were offered.
        is_exact: the exact posterior would, provably, have chosen the same.
        preferred: in shadow mode, what the agent would have chosen; else the same as `chosen`.
        offer: everything that was thought of every arm; None if it is no longer kept.
    """

    id: str
    round: int
    chosen: list[ArmId]
    is_exact: bool
    preferred: list[ArmId]
    offer: Offer | None

    def table(self) -> pd.DataFrame:
        """Return mean, std, index and chosen of every arm, indexed by arm id, best index first."""
        import pandas as pd

        offer = self._known_offer()
        is_chosen = np.zeros(len(offer.ids), dtype=bool)
        is_chosen[offer.chosen] = True
        columns: dict[str, Any] = {n: offer.column(n) for n in ("mean", "std", "index")}
        columns["chosen"] = is_chosen
        if offer.propensity is not None:
            columns["propensity"] = offer.propensity
        frame = pd.DataFrame(columns, index=pd.Index(offer.ids, name="arm"))
        return frame.sort_values("index", ascending=False, kind="stable")

    def to_dict(self) -> dict[str, Any]:
        """Return id, round, chosen arms with what was thought of them, as plain values."""
        arms: list[dict[str, Any]] = [{"id": arm} for arm in self.chosen]
        if self.offer is not None:
            for entry, place in zip(arms, self.offer.chosen.tolist(), strict=True):
                for name in ("mean", "std", "index", "propensity"):
                    values = getattr(self.offer, name)
                    if values is not None:
                        entry[name] = float(values[place])
        return {"id": self.id, "round": self.round, "chosen": arms, "is_exact": self.is_exact}

    def _known_offer(self) -> Offer:
        from oclok.errors import FeedbackError

        if self.offer is None:
            raise FeedbackError(f"decision {self.id!r} is too long ago: its arms are not kept")
        return self.offer

    def __repr__(self) -> str:
        return f"AgentDecision(id={self.id!r}, chosen={self.chosen!r})"
