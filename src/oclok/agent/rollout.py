"""Who decides: the agent, or the baseline, for the control group and where the guard steps in.

The baseline is a rule:

    "chosen"                                given by the caller, as `chosen=`, with each decision
    "uniform"                               at random, all feasible sets alike (see below)
    {"sort": "price"}                       the first that fit, cheapest first
    {"sort": "price", "descending": true}   … most expensive first
    {"score": "rating"}                     the feasible set with the largest sum of a column

Every rule ends in the oracle of the decision, so that its sets are feasible. "uniform" draws
priorities for the arms: sets of `TopK` are then uniform, those of other oracles nearly so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from oclok import policies
from oclok.agent.arms import Arms, as_numbers
from oclok.agent.guard import Guard, Step
from oclok.agent.lift import assign
from oclok.decision import Propensities
from oclok.errors import InputError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies import GPPolicy, Policy
from oclok.typing import FloatArray, IntArray

#: Draws that estimate propensities where sets are random and cannot be counted.
DRAWS = 200
#: What a rule may look like, with the types of its values.
FORMS = ("chosen", "uniform", {"sort": str}, {"sort": str, "descending": bool}, {"score": str})


class Choice(NamedTuple):
    """The set that is played, and why."""

    super_arm: IntArray
    group: str  # "agent" or "baseline", by assignment, whatever the guard did
    propensities: Propensities | None  # None where nothing is random
    step: Step | None = None


class Rollout(Persistent):
    """The share of decisions that the agent makes; arguments as for `Agent`."""

    def __init__(
        self,
        mode: str,
        holdout: float,
        baseline: str | Mapping[str, Any] | None,
        guard: float | None,
    ) -> None:
        if mode not in ("live", "shadow"):
            raise InputError(f'mode must be "live" or "shadow"; got {mode!r}')
        if mode == "shadow" and (holdout or guard is not None):
            raise InputError(
                'holdout= and guard= need mode="live": in shadow another system decides'
            )
        if isinstance(holdout, bool) or not (isinstance(holdout, int | float) and 0 <= holdout < 1):
            raise InputError(f"holdout must be a share of decisions in [0, 1); got {holdout!r}")
        self.holdout = float(holdout)
        self.baseline = None if baseline is None else Baseline(baseline)
        self.guard = None if guard is None else Guard(guard)
        if baseline is None and (self.holdout or guard is not None):
            what = "holdout" if self.holdout else "guard"
            raise InputError(f'{what}= needs baseline=, such as {{"sort": "price"}} or "chosen"')

    @property
    def rule(self) -> str | dict[str, Any] | None:
        """The baseline as it was given; "chosen" if each decision must say what it chooses."""
        return None if self.baseline is None else self.baseline.rule

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the arms that the baseline reads."""
        return () if self.baseline is None else self.baseline.columns

    def choose(
        self,
        policy: Policy,
        proposal: policies.Proposal,
        arms: Arms,
        given: IntArray | None,
        unit: str | None,
        decision: str,
    ) -> Choice:
        """Return the set to play. Changes nothing.

        `given` is the baseline's set where the rule is "chosen". The hash of `unit`, or of the
        decision's id, assigns the group; the id also seeds a random baseline.
        """
        own, oracle = proposal.decision.super_arm, proposal.oracle
        if self.baseline is None:
            return Choice(own, "agent", policy.propensities(proposal))
        old = given
        if old is None:
            rng = np.random.default_rng(int.from_bytes(decision.encode()[-64:], "big"))
            old = self.baseline.choose(oracle, arms, rng)
        is_holdout = assign(unit or decision, self.holdout).is_holdout
        step, played = None, old if is_holdout else own
        if self.guard is not None:
            step = self._considered(policy, proposal, played, old)
            played = old if step.stepped_in else played
        seed = assign(decision, 0.0).bucket
        theirs = self.baseline.propensities(oracle, len(arms), old, played, seed)
        ours = self._agents(policy, proposal, old, played, seed)
        group = "baseline" if is_holdout else "agent"
        return Choice(played, group, ours.mixed(theirs, self.holdout), step)

    def _considered(
        self, policy: Policy, proposal: policies.Proposal, own: IntArray, old: IntArray
    ) -> Step:
        """Return the guard's step on playing `own` in place of `old`."""
        assert self.guard is not None
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
        """Return the propensities of arms, and of the set `played`, in the agent's group."""
        arms, own = len(proposal.contexts), proposal.decision.super_arm
        if self.guard is None and np.array_equal(played, own):
            likely = policy.propensities(proposal)
            if likely is not None:
                return likely
        sets = policy.redraws(proposal)
        if self.guard is not None:
            assert self.baseline is not None
            fallbacks = [old] * len(sets)
            if self.baseline.is_random:
                rng = np.random.default_rng(seed)
                sets = sets if len(sets) > 1 else sets * DRAWS
                fallbacks = [old, *(proposal.oracle(rng.random(arms)) for _ in sets[1:])]
            known = {}
            for n, (ours, theirs) in enumerate(zip(sets, fallbacks, strict=True)):
                key = ours.tobytes(), theirs.tobytes()
                if key not in known:
                    known[key] = self._considered(policy, proposal, ours, theirs).stepped_in
                sets[n] = theirs if known[key] else ours
        counted = Propensities.counted(arms, sets, played)
        return counted if len(sets) > 1 else counted._replace(draws=0)


class Baseline(Persistent):
    """A rule, in one of the forms above, that chooses among the feasible sets of a decision."""

    def __init__(self, rule: str | Mapping[str, Any]) -> None:
        self.rule = dict(rule) if isinstance(rule, Mapping) else rule
        form = {key: type(v) for key, v in rule.items()} if isinstance(rule, Mapping) else rule
        if form not in FORMS:
            raise InputError(
                'baseline must be "chosen", "uniform", {"sort": column}, {"sort": column, '
                f'"descending": true}} or {{"score": column}}; got {rule!r}'
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the arms that the rule reads; they need not be features."""
        values = () if isinstance(self.rule, str) else self.rule.values()
        return tuple(value for value in values if isinstance(value, str))

    @property
    def is_random(self) -> bool:
        """Whether the rule chooses at random."""
        return self.rule == "uniform"

    def choose(self, oracle: Oracle, arms: Arms, rng: np.random.Generator) -> IntArray:
        """Return the positions of the set that the rule chooses."""
        return np.asarray(oracle(rng.random(len(arms)) if self.is_random else self._index(arms)))

    def propensities(
        self, oracle: Oracle, arms: int, chosen: IntArray, played: IntArray, seed: int
    ) -> Propensities:
        """Return how likely the rule is to choose each of M = `arms` arms, and the set `played`.

        `chosen` is the rule's set; `seed` is that of the draws where sets cannot be counted.
        """
        if not self.is_random:
            certain = Propensities.certain(arms, chosen)
            return certain._replace(super_arm=float(np.array_equal(chosen, played)))
        exact = oracle.uniform_propensities(arms)
        if exact is not None:
            return exact
        rng = np.random.default_rng(seed)
        drawn = [oracle(rng.random(arms)) for _ in range(DRAWS)]
        return Propensities.counted(arms, [chosen, *drawn], played)

    def _index(self, arms: Arms) -> FloatArray:
        """Return the index (M,) for the oracle; missing values come last."""
        assert isinstance(self.rule, dict)
        x = as_numbers(arms.column(*self.columns))
        if "score" in self.rule:
            return np.where(np.isnan(x), np.nanmin(x, initial=math.inf, where=~np.isnan(x)), x)
        key = np.where(np.isnan(x), math.inf, -x if self.rule.get("descending") else x)
        rank = np.argsort(np.argsort(key, kind="stable"))
        return np.asarray(1.0 - rank / len(x))
