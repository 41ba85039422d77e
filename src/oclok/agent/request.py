"""A request to decide, checked, and the decision that comes of it."""
# Tested in tests/agent/test_agent.py: an agent takes every request.

from __future__ import annotations

from typing import NamedTuple

from oclok.agent.arms import Arms
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.schema import Schema
from oclok.decision import Decision
from oclok.oracles.base import Oracle
from oclok.policies.base import Belief
from oclok.posterior.prediction import Asked
from oclok.typing import FloatArray, IntArray


class Proposal(NamedTuple):
    """A decision that changed nothing yet, the schema of its arms, what was predicted, and how."""

    decision: AgentDecision
    schema: Schema
    prediction: Asked
    oracle: Oracle


class Request(NamedTuple):
    """What was asked for.

    Attributes:
        arms: those offered.
        oracle: made for these arms.
        columns: that the oracle reads; they need not be features.
        included, excluded: positions of arms that must, and must not, be chosen.
        told: positions of what another system has chosen, in shadow mode.
        encoded: the schema and the arms' features as numbers, if the schema is known.
    """

    arms: Arms
    oracle: Oracle
    columns: frozenset[str]
    included: IntArray
    excluded: IntArray
    told: IntArray | None
    encoded: tuple[Schema, FloatArray] | None

    def decision(
        self,
        name: str | None,
        made: Decision,
        belief: Belief,
        contexts: FloatArray,
        propensity: FloatArray | None,
        noise_std: float,
    ) -> tuple[AgentDecision, Offer]:
        """Return the decision that a policy made of this, under the id `name` if there is one."""
        ids = self.arms.ids
        taken = made.super_arm if self.told is None else self.told
        offer = Offer(
            ids,
            contexts,
            belief.index,
            belief.mean,
            belief.std,
            taken,
            self.included,
            self.excluded,
            propensity,
            noise_std,
        )
        chosen = [ids[place] for place in taken.tolist()]
        preferred = [ids[place] for place in made.super_arm.tolist()]
        name = made.id if name is None else name
        return AgentDecision(name, made.round, chosen, made.is_exact, preferred, offer), offer
