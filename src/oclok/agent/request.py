"""A request to decide, checked, and the decision that comes of it."""
# Tested in tests/agent/test_agent.py: an agent takes every request.

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from oclok import policies
from oclok.agent.arms import Arms
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.schema import Schema
from oclok.oracles.base import Oracle
from oclok.policies import Played
from oclok.typing import FloatArray, IntArray


class Proposal(NamedTuple):
    """A decision that has changed nothing yet.

    Attributes:
        decision: with its offer.
        schema: features of the arms, inferred from them if the agent has none yet.
        played: the round as the policy is to commit it.
    """

    decision: AgentDecision
    schema: Schema
    played: Played


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

    def proposal(
        self,
        name: str | None,
        schema: Schema,
        made: policies.Proposal,
        propensity: FloatArray | None,
        noise_std: float,
    ) -> Proposal:
        """Return what a policy made of this, under the id `name` if there is one."""
        ids, belief, own = self.arms.ids, made.belief, made.decision
        taken = own.super_arm if self.told is None else self.told
        offer = Offer(
            ids,
            made.contexts,
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
        preferred = [ids[place] for place in own.super_arm.tolist()]
        name = own.id if name is None else name
        decision = AgentDecision(name, own.round, chosen, own.is_exact, preferred, offer)
        return Proposal(decision, schema, replace(made, super_arm=taken))
