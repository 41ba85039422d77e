"""The agent: a policy for arms with names, whose feedback comes late, twice, wrong or never.

An agent is a state machine: its state is a function of its settings, the calls of `decide`,
`learn`, `observe`, `accept` and `expire` in their order, and the time of each. Nothing else
changes it, so that a log of these calls rebuilds it.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np

from oclok.agent import files
from oclok.agent.arms import ArmId, Arms, as_arms
from oclok.agent.decision import AgentDecision, Offer, Offers, Proposal
from oclok.agent.decisions import History, Status
from oclok.agent.explanation import Explanation, explained
from oclok.agent.feedback import Feedback, Learned
from oclok.agent.guard import GuardReport, Step
from oclok.agent.health import FeatureWatch, Finding, examine, report
from oclok.agent.lift import Lift
from oclok.agent.rollout import Choice, Rollout
from oclok.agent.schema import Schema
from oclok.agent.shadow import Comparison, Shadow
from oclok.decision import Propensities
from oclok.errors import InputError, OutcomeError
from oclok.oracles.base import Oracle, as_oracle
from oclok.persistence import Persistent
from oclok.policies import UCB, Played, Policy
from oclok.policies.base import MOST_PENDING
from oclok.posterior import MixturePosterior
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_outcomes

#: Health is examined every CHECKED_EVERY decisions.
CHECKED_EVERY = 250

Method = TypeVar("Method", bound=Callable[..., Any])


def _locked(method: Method) -> Method:
    """Hold the agent's lock during a call."""

    @functools.wraps(method)
    def locked(self: Agent, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return cast("Method", locked)


class Agent(Persistent):
    """Choose among arms with names, and learn from outcomes by id.

    Args:
        oracle: what may be chosen together; arguments may be names of columns.
        features: `{name: kind}`, see `oclok.agent.Schema`; by default inferred from the first arms.
        outcome_range: (lowest, highest) possible outcome; others are refused. Without one,
            outcomes that cannot be right given all others are quarantined.
        deadline: seconds after which an outcome is no longer awaited.
        default_outcome: learned in place of an outcome that did not come; nothing if left out.
        policy: how to decide; by default a `UCB`, which learns its model, too.
        mode: "live", or "shadow": another system decides, and the agent watches and learns.
        holdout: share of decisions, in [0, 1), that the baseline makes: the control group of
            `lift`.
        baseline: how it was done before, a rule: "chosen", "uniform", {"sort": column} or
            {"score": column}; see `oclok.agent.rollout`.
        guard: share of the baseline's reward that may be lost at any time; see `guard_report`.
        seed: of the default policy's model; other policies have a seed of their own.
        explainable: number of latest decisions whose arms are kept for `explain`.
        clock: returns the time in seconds.

    Examples:
        >>> from oclok.oracles import TopK
        >>> agent = Agent(oracle=TopK(1))
        >>> decision = agent.decide({"w1": {"skill": 0.2}, "w2": {"skill": 0.9}})
        >>> decision.chosen
        ['w1']
        >>> agent.learn(decision.id, {"w1": 0.3}).learned
        ['w1']
    """

    _transient = ("_clock", "_lock", "_version")

    def __init__(
        self,
        oracle: Oracle | None = None,
        features: Mapping[str, Any] | Schema | None = None,
        outcome_range: tuple[float, float] | None = None,
        deadline: float | None = None,
        default_outcome: float | None = None,
        policy: Policy | None = None,
        mode: Literal["live", "shadow"] = "live",
        holdout: float = 0.0,
        baseline: str | Mapping[str, Any] | None = None,
        guard: float | None = None,
        seed: int | None = None,
        explainable: int = 1_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if policy is not None and not isinstance(policy, Policy):
            raise InputError(f"policy must be an oclok.policies.Policy; got {policy!r}")
        self.oracle = oracle if oracle is None else as_oracle(oracle)
        if policy is None:
            model = None if seed is None else MixturePosterior(seed=as_count(seed, "seed", least=0))
            policy = UCB(posterior=model, outcome_range=outcome_range)
        self.policy = policy
        self.mode: Literal["live", "shadow"] = mode
        self._rollout = Rollout(mode, holdout, baseline, guard)
        self._declared = features if isinstance(features, Schema | None) else Schema(features)
        self._schema: Schema | None = None
        self._feedback = Feedback(self.policy, outcome_range, deadline, default_outcome)
        self._offers = Offers(as_count(explainable, "explainable", least=0))
        self._watch: FeatureWatch | None = None
        self._shadow = Shadow()
        self._reported: list[str] = []
        self._now = -math.inf
        self._version: str | None = None
        self._set_up(clock)

    def decide(
        self,
        arms: Any,
        context: Mapping[str, Any] | None = None,
        oracle: Oracle | None = None,
        include: Iterable[ArmId] = (),
        exclude: Iterable[ArmId] = (),
        id: str | None = None,  # noqa: A002  (the name of the thing)
        chosen: Iterable[ArmId] | None = None,
        unit: str | None = None,
    ) -> AgentDecision:
        """Choose among `arms`, a DataFrame indexed by arm id or `{id: {feature: value}}`.

        Args:
            arms: those available now; they have the same features each time, in any order.
            context: features of this decision, such as the user's, joined to every arm.
            oracle: for this decision only.
            include: ids of arms that must be chosen.
            exclude: ids of arms that must not be chosen.
            id: of the decision; made up if left out. The same id again gives the same decision.
            chosen: ids of the arms that the other system chooses, in shadow mode, or the
                baseline, if that is "chosen".
            unit: keeps a user, say, in the same group; the decision's id if left out.
        """
        if id is not None and not (isinstance(id, str) and id):
            raise InputError(f"id must be a string, and not empty; got {id!r}")
        offered = as_arms(arms).joined(context)
        with self._lock:
            self._tick()
            if id is not None and id in self._feedback.decisions:
                return self._again(id)
            proposal = self.propose(offered, oracle, include, exclude, id, chosen, unit)
            self.record(*proposal)
            return proposal.decision

    def propose(
        self,
        arms: Any,
        oracle: Oracle | None = None,
        include: Iterable[ArmId] = (),
        exclude: Iterable[ArmId] = (),
        id: str | None = None,  # noqa: A002
        chosen: Iterable[ArmId] | None = None,
        unit: str | None = None,
    ) -> Proposal:
        """Return what `decide` would decide, and change nothing; `record` makes it happen.

        For agents that are built from a log: a decision is proposed, written to the log, and
        recorded by all who read it. It takes no lock if the policy says `is_concurrent`.
        """
        if unit is not None and not isinstance(unit, str):
            raise InputError(f"unit must be a string; got {unit!r}")
        if (chosen is not None) != (self.mode == "shadow" or self._rollout.rule == "chosen"):
            raise InputError(
                'chosen= is what another system chooses, for mode="shadow" or baseline="chosen" '
                f"and only there; the mode is {self.mode!r}, chosen is {chosen!r}"
            )
        offered = as_arms(arms)
        theirs = None if chosen is None else np.sort(offered.positions(chosen, "chosen"))
        with nullcontext() if getattr(self.policy, "is_concurrent", False) else self._lock:
            resolved, included, excluded = self._resolved(oracle, offered, include, exclude)
            columns = () if oracle is None else oracle.columns
            also = self._usual_columns.union(columns, self._rollout.columns)
            schema, X = self._encoded(offered, also)
            made = self.policy.propose(X, resolved, self._waiting())
            noise_std = self.policy.noise_std
            name = made.decision.id if id is None else id
            if theirs is not None and self.mode == "shadow":
                choice = Choice(theirs, "baseline", Propensities(np.full(len(X), np.nan), math.nan))
            else:
                choice = self._rollout.choose(self.policy, made, offered, theirs, unit, name)
        likely = choice.propensities
        offer = Offer(
            offered.ids,
            made.contexts,
            made.belief.index,
            made.belief.mean,
            made.belief.std,
            choice.super_arm,
            included,
            excluded,
            None if likely is None else likely.arms,
            noise_std,
            1.0 if likely is None else likely.super_arm,
            0 if likely is None else likely.draws,
        )
        decision = AgentDecision(
            name,
            made.decision.round,
            offered.at(choice.super_arm),
            made.decision.is_exact,
            offered.at(made.decision.super_arm),
            offer,
            choice.group,
            choice.step is not None and choice.step.stepped_in,
            unit,
        )
        return Proposal(decision, schema, replace(made, super_arm=choice.super_arm), choice.step)

    @_locked
    def record(
        self,
        decision: AgentDecision,
        schema: Schema | None,
        played: Played,
        step: Step | None = None,
    ) -> None:
        """Record a decision that was proposed, here or by an agent in another process.

        One whose id is known changes nothing. `schema` is that of the agent's first decision.
        """
        now, offer = self._tick(), decision.known_offer
        if decision.id in self._feedback.decisions:
            return
        self.policy.commit(played)
        if step is not None and self._rollout.guard is not None:
            self._rollout.guard.record(step, played.contexts, played.super_arm)
        self._schema = self._schema or schema
        group = int(decision.group == "agent") if self._rollout.holdout else -1
        self._feedback.decisions.add(decision, now, group)
        self._offers.add(decision)
        if self.mode == "shadow":
            preferred = set(decision.preferred)
            places = [place for place, arm in enumerate(offer.ids) if arm in preferred]
            self._shadow.record(offer.contexts, np.array(places, dtype=np.intp), offer.chosen)
        self._watch = self._watch or FeatureWatch(offer.contexts.shape[1])
        self._watch.record(offer.contexts)
        if self.policy.round % CHECKED_EVERY == 0:
            self.health()

    def encode(self, arms: Any, schema: Schema | None = None) -> FloatArray:
        """Return the features of `arms` as the model sees them, shape (M, D).

        Columns that are no features are skipped. `schema` is used until the agent has its own.
        """
        known = self._schema or schema
        if known is None:
            raise InputError("the agent has no schema yet: it is inferred from the first arms")
        offered = as_arms(arms)
        return known.encode(offered, frozenset(offered.names))

    def offered(
        self,
        arms: Any,
        oracle: Oracle | None = None,
        include: Iterable[ArmId] = (),
        exclude: Iterable[ArmId] = (),
        schema: Schema | None = None,
    ) -> tuple[FloatArray, Oracle]:
        """Return the features of `arms` as `encode` does, and the oracle of a decision on them."""
        known = as_arms(arms)
        return self.encode(known, schema), self._resolved(oracle, known, include, exclude)[0]

    @_locked
    def __repr__(self) -> str:
        waiting, policy = self._feedback.decisions.waiting, type(self.policy).__name__
        return f"<Agent: oracle={self.oracle!r}, {policy}, {waiting} outcomes awaited>"

    @_locked
    def learn(
        self, decision_id: str, outcomes: Mapping[ArmId, float | None], correct: bool = False
    ) -> Learned:
        """Learn `{arm id: outcome}` of a decision's chosen arms: all at once or in pieces.

        The same outcome again is accepted and ignored. Another one is a `FeedbackError`, and
        nothing is learned, unless `correct=True`: then it replaces the one before, also the
        default outcome of a deadline. None and NaN stand for outcomes not seen.
        """
        return self._feedback.learn(decision_id, outcomes, correct, self._tick())

    def observe(self, arms: Any, outcomes: ArrayLike) -> None:
        """Learn from the past: `arms`, as for `decide`, and the outcome of each, in their order.

        Outcomes that cannot be right given the others are refused, and nothing is learned. So is a
        Series that has the arms' ids in another order.
        """
        offered = as_arms(arms)
        _check_order(outcomes, offered.ids)
        y = as_outcomes(outcomes, len(offered))
        with self._lock:
            self._tick()
            schema, X = self._encoded(offered, self._usual_columns)
            self._feedback.observe(X, y, offered.ids)
            self._schema = schema

    @_locked
    def accept(self, decision_id: str, arm_id: ArmId) -> None:
        """Learn an outcome that was quarantined."""
        self._tick()
        self._feedback.accept(decision_id, arm_id)

    @_locked
    def expire(self) -> int:
        """Stop waiting for outcomes past the deadline, and return how many there were.

        Every other call does this first; calling it in the background keeps those short.
        """
        waiting = self._feedback.decisions.waiting
        self._tick()
        return waiting - self._feedback.decisions.waiting

    @_locked
    def explain(
        self,
        decision_id: str,
        decision: AgentDecision | None = None,
        oracle: Oracle | None = None,
    ) -> Explanation:
        """Return mean, std and index of every arm of a decision, and why it was chosen or not.

        `decision` is the decision itself, if its arms are kept elsewhere. An `oracle` made for
        these arms names the constraint that kept an arm out.
        """
        record = self._feedback.decisions.record(decision_id)
        kept = self._offers[decision_id] if decision is None else decision
        return explained(kept, record, self._feedback.decisions, oracle)

    @_locked
    def outcomes_of(self, decision_id: str) -> dict[ArmId, tuple[str, float | None]]:
        """Return the status of each chosen arm's outcome, in a word, and the outcome."""
        record = self._feedback.decisions.record(decision_id)
        known = zip(record.arms, record.status.tolist(), record.outcomes.tolist(), strict=True)
        return {arm: (Status(s).word, None if math.isnan(y) else y) for arm, s, y in known}

    @_locked
    def knows(self, decision_id: str) -> bool:
        """Return whether a decision is open, or was settled recently enough to be remembered."""
        return decision_id in self._feedback.decisions

    @_locked
    def overdue(self, now: float) -> int:
        """Return how many open decisions have waited past the deadline, or unusually long."""
        return len(self._feedback.overdue(now))

    def with_status(self, status: str, before: int, start: str = "") -> list[str]:
        """Return decisions before a round that have an outcome with this status, latest first.

        The status is a word, as in `outcomes_of`; their ids begin with `start`.
        """
        kept = self.history()
        rows = np.unique(kept.row[kept.status == Status[status.upper()]])
        rows = rows[kept.round[rows] < before][::-1]
        return [kept.ids[row] for row in rows.tolist() if kept.ids[row].startswith(start)]

    @_locked
    def counts(self) -> dict[str, int]:
        """Return the number of open decisions, of outcomes by status, and of those observed."""
        decisions = self._feedback.decisions
        tally = {status.word: int(decisions.tally[status]) for status in Status}
        return {"open_decisions": len(decisions), **tally, "observed": self._feedback.observed}

    @_locked
    def mean_outcome(self) -> float:
        """Return the mean of recent outcomes; NaN before there are any."""
        values = self._feedback.outcomes
        return float(values.mean()) if len(values) else math.nan

    @_locked
    def history(self, since: float = -math.inf) -> History:
        """Return decisions made at `since` or later: open ones, and the latest settled ones."""
        return self._feedback.decisions.history(since)

    def check(self, arms: Any) -> None:
        """Raise the error that `observe` would raise for the features of `arms`."""
        self._encoded(as_arms(arms), self._usual_columns)

    @_locked
    def adopt(self, schema: Schema) -> None:
        """Take a schema that was inferred before, unless there is one."""
        self._schema = self._schema or schema

    @_locked
    def change(
        self,
        oracle: Oracle | None,
        deadline: float | None,
        default_outcome: float | None,
        **rollout: Any,
    ) -> None:
        """Change settings from now on; what was learned stays. `rollout`: see `roll_out`."""
        self.roll_out(**rollout)
        self._feedback.set_deadline(deadline, default_outcome)
        self.oracle = oracle

    @_locked
    def refusals(
        self, decision_id: str, outcomes: Mapping[ArmId, float | None], correct: bool = False
    ) -> dict[ArmId, str]:
        """Return which of these outcomes `learn` would refuse, and why; change nothing."""
        return self._feedback.refusals(decision_id, outcomes, correct)

    @property
    def is_new(self) -> bool:
        """Whether there were no arms yet, so that their features are not known for certain."""
        return self._schema is None

    def follow(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on."""
        self._clock = clock

    @_locked
    def health(self) -> list[Finding]:
        """Return findings for the operator, worst first; empty when all is well.

        It is examined every 250 decisions as well; new findings are logged by `oclok.agent`.
        """
        findings = examine(self._feedback, self._schema, self._watch, self._tick())
        self._reported = report(findings, self._reported)
        return findings

    @_locked
    def lift(self, level: float = 0.95) -> Lift:
        """Return what the agent earns per decision beyond the baseline, which has the holdout."""
        self._tick()
        return self._feedback.decisions.lift.lift(level)

    @_locked
    def guard_report(self) -> GuardReport | None:
        """Return how often the guard stepped in, and its assumptions; None without a guard."""
        guard, judged = self._rollout.guard, getattr(self.policy, "calibration", None)
        return None if guard is None else guard.report(None if judged is None else judged())

    @_locked
    def roll_out(
        self,
        mode: Literal["live", "shadow"] = "live",
        holdout: float = 0.0,
        baseline: str | Mapping[str, Any] | None = None,
        guard: float | None = None,
    ) -> None:
        """Change who decides from now on; the arguments are those of the agent.

        The lift begins anew, as groups of different sizes cannot be put together; the guard keeps
        its savings if its share and the baseline are the same.
        """
        new, old = Rollout(mode, holdout, baseline, guard), self._rollout
        self._tick()
        if new.guard and old.guard and (new.rule, guard) == (old.rule, old.guard.share):
            new.guard = old.guard
        if (old.holdout, old.rule) != (new.holdout, new.rule):
            self.restart_lift()
        self.mode, self._rollout = mode, new

    @_locked
    def restart_lift(self) -> None:
        """Begin the lift anew: decisions so far no longer count."""
        self._feedback.decisions.start_over()

    @_locked
    def comparison(self, level: float = 0.95, policy: Policy | None = None) -> Comparison:
        """Return how often the agent would have chosen otherwise in shadow mode, and the gain.

        The posterior of `policy`, the agent's if left out, estimates the gain.
        """
        return self._shadow.comparison(policy or self.policy, level)

    @property
    def schema(self) -> Schema | None:
        """The features of the arms; None until there were any, unless given."""
        return self._schema or self._declared

    @_locked
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one file, atomically.

        A file that another process changed since this agent loaded or saved it is not
        overwritten: a `StorageError` says so.
        """
        self._version = files.save(self, path, self._version)

    @classmethod
    def load(cls, path: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> Self:
        """Read an agent that `save` wrote. Nothing in the file is executed."""
        agent, version = files.load(cls, path)
        agent._set_up(clock)
        agent._version = version
        return agent

    def _set_up(self, clock: Callable[[], float]) -> None:
        """Set the attributes that are not saved."""
        self._clock = clock
        self._lock = threading.RLock()

    def _tick(self) -> float:
        """Read the clock, which never runs backwards here, and let decisions expire."""
        self._now = max(self._now, float(self._clock()))
        self._feedback.expire(self._now)
        return self._now

    @property
    def _usual_columns(self) -> frozenset[str]:
        """Columns that the oracle reads; they need not be features."""
        return frozenset(() if self.oracle is None else self.oracle.columns)

    def _resolved(
        self,
        oracle: Oracle | None,
        arms: Arms,
        include: Iterable[ArmId],
        exclude: Iterable[ArmId],
    ) -> tuple[Oracle, IntArray, IntArray]:
        """Return the oracle of a decision on these arms; positions of those in and excluded."""
        included, excluded = arms.positions(include, "include"), arms.positions(exclude, "exclude")
        both = np.intersect1d(included, excluded)
        if both.size:
            raise InputError(f"arm {arms.ids[both[0]]!r} is in both include and exclude")
        made = as_oracle(oracle, self.oracle)
        if made.columns:
            made = made.resolve(arms.column)
        if included.size or excluded.size:
            made = made.given(include=included, exclude=excluded)
        return made, included, excluded

    def _encoded(self, arms: Arms, also: frozenset[str]) -> tuple[Schema, FloatArray]:
        """Return the schema, inferred from these arms if they are the first, and the contexts."""
        schema, declared = self._schema, self._declared
        if schema is None:
            schema = Schema.infer(arms) if declared is None else declared.fitted(arms, also)
        return schema, schema.encode(arms, also)

    def _waiting(self) -> FloatArray | tuple[()]:
        """Return the contexts (P, D) of arms whose outcomes are outstanding, if they matter."""
        if not self.policy.uses_pending:
            return ()
        with self._lock:
            return self._feedback.decisions.waiting_contexts(MOST_PENDING)

    def _again(self, decision_id: str) -> AgentDecision:
        """Return a decision that was made before."""
        kept = self._offers.get(decision_id)
        if kept is not None:
            return kept
        arms = self._feedback.decisions.record(decision_id).arms
        return AgentDecision(decision_id, 0, arms, False, arms, None)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._set_up(time.time)


def _check_order(outcomes: Any, ids: list[ArmId]) -> None:
    """Raise if `outcomes` is a pandas Series that has ids of the arms in another order."""
    index = getattr(outcomes, "index", None)
    if index is None or callable(index):  # of a list, it is a method
        return
    labels = index.tolist()
    if labels != ids and not set(labels).isdisjoint(ids):
        raise OutcomeError(
            "outcomes must be in the order of arms; the index of this Series is another: reindex "
            "it, or pass outcomes.to_numpy() if only its index is wrong"
        )
