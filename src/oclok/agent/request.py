"""A request to decide, checked, and the decision that comes of it."""
# Tested in tests/agent/test_agent.py: an agent takes every request.

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from oclok import policies
from oclok.agent.arms import Arms
from oclok.agent.decision import AgentDecision, Offer
from oclok.agent.guard import Step
from oclok.agent.rollout import Choice
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
        step: of the guard, if there is one.
    """

    decision: AgentDecision
    schema: Schema
    played: Played
    step: Step | None = None


class Request(NamedTuple):
    """What was asked for.

    Attributes:
        arms: those offered.
        oracle: made for these arms.
        columns: that the oracle reads; they need not be features.
        included, excluded: positions of arms that must, and must not, be chosen.
        told: positions of what the caller says another system, or the baseline, chooses.
        unit: that assigns the group; the decision itself if None.
        encoded: the schema and the arms' features as numbers, if the schema is known.
    """

    arms: Arms
    oracle: Oracle
    columns: frozenset[str]
    included: IntArray
    excluded: IntArray
    told: IntArray | None
    unit: str | None
    encoded: tuple[Schema, FloatArray] | None

    def proposal(
        self,
        name: str,
        schema: Schema,
        made: policies.Proposal,
        choice: Choice,
        noise_std: float,
    ) -> Proposal:
        """Return the decision that comes of what a policy made of this, under the id `name`."""
        ids, belief, own = self.arms.ids, made.belief, made.decision
        taken, likely = choice.super_arm, choice.propensities
        offer = Offer(
            ids,
            made.contexts,
            belief.index,
            belief.mean,
            belief.std,
            taken,
            self.included,
            self.excluded,
            None if likely is None else likely.arms,
            noise_std,
            1.0 if likely is None else likely.super_arm,
            0 if likely is None else likely.draws,
        )
        chosen = [ids[place] for place in taken.tolist()]
        preferred = [ids[place] for place in own.super_arm.tolist()]
        decision = AgentDecision(
            name,
            own.round,
            chosen,
            own.is_exact,
            preferred,
            offer,
            choice.group,
            choice.step is not None and choice.step.stepped_in,
            self.unit,
        )
        return Proposal(decision, schema, replace(made, super_arm=taken), choice.step)
