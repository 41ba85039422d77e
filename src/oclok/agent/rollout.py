"""Who decides: the agent, or the baseline, for the control group and where the guard steps in."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from oclok import policies
from oclok.agent.arms import Arms
from oclok.agent.baseline import DRAWS, Baseline
from oclok.agent.guard import Guard, Step
from oclok.agent.lift import as_holdout, assign
from oclok.decision import Propensities
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies import GPPolicy, Policy
from oclok.typing import IntArray


class Choice(NamedTuple):
    """What is played, and how that came about.

    Attributes:
        super_arm: positions, ascending.
        group: "agent" or "baseline", by assignment, whatever the guard did.
        bucket: of the unit, for the lift.
        propensities: of the arms and the set; None where nothing is random.
        step: of the guard, if there is one.
    """

    super_arm: IntArray
    group: str
    bucket: int
    propensities: Propensities | None
    step: Step | None = None


class Rollout(Persistent):
    """How much of the decisions the agent makes.

    Args:
        holdout: share of decisions that the baseline makes.
        baseline: the rule; see `oclok.agent.baseline`.
        guard: share of the baseline's reward that may be lost at any time; no guard if left out.
    """

    def __init__(
        self, holdout: float, baseline: str | Mapping[str, Any] | None, guard: float | None
    ) -> None:
        self.holdout = as_holdout(holdout)
        self.baseline = None if baseline is None else Baseline(baseline)
        self.guard = None if guard is None else Guard(guard)
        if baseline is None and (self.holdout or guard is not None):
            what = "holdout" if self.holdout else "guard"
            raise InputError(f'{what}= needs baseline=, such as {{"sort": "price"}} or "chosen"')

    @property
    def rule(self) -> str | dict[str, Any] | None:
        """The baseline as it was given."""
        return None if self.baseline is None else self.baseline.rule

    @property
    def promise(self) -> tuple[Any, ...]:
        """What the guard's savings are about."""
        return (self.rule, None if self.guard is None else self.guard.share)

    def group_of(self, group: str) -> int:
        """Return the group of a decision as the lift counts it; -1 if there is no control group."""
        return -1 if not self.holdout else int(group == "agent")

    @property
    def needs_chosen(self) -> bool:
        """Whether each decision must say what the baseline chooses."""
        return self.baseline is not None and self.baseline.rule == "chosen"

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the arms that the baseline reads."""
        return () if self.baseline is None else self.baseline.columns

    def choose(
        self,
        policy: Policy,
        proposal: policies.Proposal,
        arms: Arms,
        told: IntArray | None,
        unit: str,
        decision: str,
    ) -> Choice:
        """Return what is played. Changes nothing.

        Args:
            policy: the agent's.
            proposal: what it would play.
            arms: those offered.
            told: positions of what the caller says the baseline chooses, where the rule asks.
            unit: its hash assigns the group.
            decision: its hash seeds a random baseline.
        """
        own, oracle = proposal.decision.super_arm, proposal.oracle
        group, bucket = assign(unit, self.holdout)
        if self.baseline is None:
            return Choice(own, "agent", bucket, policy.propensities(proposal))
        assert oracle is not None
        seed = assign(decision, 0.0).bucket
        old = told if self.needs_chosen else self._baseline(oracle, arms, decision)
        assert old is not None
        step = None
        played = old if group else own
        if self.guard is not None:
            step = self._considered(policy, proposal, played, old)
            played = old if step.stepped_in else played
        theirs = self.baseline.propensities(oracle, len(arms), old, played, seed)
        likely = self._agents(policy, proposal, old, played, seed)
        likely = likely.mixed(theirs, self.holdout)
        return Choice(played, "baseline" if group else "agent", bucket, likely, step)

    def _baseline(self, oracle: Oracle, arms: Arms, decision: str) -> IntArray:
        assert self.baseline is not None
        seed = int.from_bytes(decision.encode()[-64:], "big")
        rng = np.random.default_rng(seed)
        return np.asarray(self.baseline.choose(oracle, self.baseline.index(arms), len(arms), rng))

    def _considered(
        self, policy: Policy, proposal: policies.Proposal, own: IntArray, old: IntArray
    ) -> Step:
        """Return what the guard says of playing `own` in place of `old`."""
        assert self.guard is not None
        assert proposal.oracle is not None
        paused = getattr(policy, "paused", None)  # a policy that learns in the background
        with nullcontext(policy) if paused is None else paused() as believer:
            if not isinstance(believer, GPPolicy):
                raise InputError(f"guard= needs a policy with a posterior; got {policy!r}")
            return self.guard.consider(
                believer.posterior,
                proposal.contexts,
                proposal.oracle,
                own,
                old,
                believer.calibration(),
            )

    def _agents(
        self,
        policy: Policy,
        proposal: policies.Proposal,
        old: IntArray,
        played: IntArray,
        seed: int,
    ) -> Propensities:
        """Return how likely arms are, and the set `played`, in the agent's group.

        Args:
            policy: the agent's.
            proposal: what it would play.
            old: what the baseline chose.
            played: what is played.
            seed: of draws from a random baseline.
        """
        likely, own = policy.propensities(proposal), proposal.decision.super_arm
        if likely is not None and self.guard is None and np.array_equal(played, own):
            return likely
        sets, arms = policy.redraws(proposal), len(proposal.contexts)
        if self.guard is not None:
            sets = self._guarded(policy, proposal, sets, old, seed)
        counted = Propensities.counted(arms, sets, played)
        return counted if len(sets) > 1 else counted._replace(draws=0)

    def _guarded(
        self,
        policy: Policy,
        proposal: policies.Proposal,
        sets: list[IntArray],
        old: IntArray,
        seed: int,
    ) -> list[IntArray]:
        """Return what is played where the policy chooses one of `sets`, and the rule chooses."""
        assert self.baseline is not None
        assert proposal.oracle is not None
        fallbacks = [old] * len(sets)
        if self.baseline.is_random:
            rng, arms = np.random.default_rng(seed), len(proposal.contexts)
            sets = sets if len(sets) > 1 else sets * DRAWS
            fallbacks = [old, *(proposal.oracle(rng.random(arms)) for _ in sets[1:])]
        played, known = [], {}
        for own, fallback in zip(sets, fallbacks, strict=True):
            key = own.tobytes(), fallback.tobytes()
            if key not in known:
                known[key] = self._considered(policy, proposal, own, fallback).stepped_in
            played.append(fallback if known[key] else own)
        return played
