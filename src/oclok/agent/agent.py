"""The agent: a policy for arms with names, whose feedback comes late, twice, wrong or never.

An agent is a state machine: its state is a function of its settings, its seed, the calls of
`decide`, `learn`, `observe`, `accept` and `expire` in their order, and what its clock said at
each. Nothing else changes it, so that a log of these calls rebuilds it.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Literal, Self

import numpy as np

from oclok.agent import files
from oclok.agent.arms import ArmId, Arms, as_arms
from oclok.agent.decision import AgentDecision, Offer, Offers
from oclok.agent.decisions import History, Status
from oclok.agent.explanation import Explanation, explained
from oclok.agent.feedback import Feedback, Learned
from oclok.agent.guard import GuardReport, Step
from oclok.agent.health import FeatureWatch, Finding, examine, report
from oclok.agent.lift import Lift, assign
from oclok.agent.request import Proposal, Request
from oclok.agent.rollout import Choice, Rollout
from oclok.agent.schema import Schema
from oclok.agent.shadow import Comparison, Shadow
from oclok.decision import Propensities
from oclok.errors import InputError, OracleError
from oclok.oracles.base import Oracle
from oclok.persistence import Persistent
from oclok.policies import UCB, Played, Policy
from oclok.policies.base import MOST_PENDING
from oclok.typing import ArrayLike, FloatArray, IntArray
from oclok.validation import as_count, as_outcomes

#: Health is looked at every so many decisions.
CHECKED_EVERY = 250


class Agent(Persistent):
    """Choose among arms with names, and learn from outcomes by id.

    Args:
        oracle: what may be chosen together; arguments may be names of columns.
        features: `{name: kind}`, see `oclok.agent.Schema`; by default inferred from the first arms.
        outcome_range: (lowest, highest) outcome that is possible; others are refused. Without
            one, outcomes that cannot be right given all others are quarantined.
        deadline: seconds after which an outcome is no longer waited for.
        default_outcome: learned in place of an outcome that did not come; nothing is if left out.
        policy: how to decide; by default a `UCB` that learns model, noise and how much to explore.
        mode: "live", or "shadow": another system decides, and the agent watches and learns.
        holdout: share of decisions, in [0, 1), that the baseline makes: the control group of
            `lift`.
        baseline: how it was done before, a rule: "chosen", "uniform", {"sort": column} or
            {"score": column}; see `oclok.agent.baseline`.
        guard: share of the baseline's reward that may be lost at any time; see `guard_report`.
        seed: of the agent's own randomness; a random policy has a seed of its own.
        explainable: for how many of the latest decisions `explain` knows all arms.
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
        if oracle is not None and not isinstance(oracle, Oracle):
            raise OracleError(f"oracle must be an oclok.oracles.Oracle; got {oracle!r}")
        if policy is not None and not isinstance(policy, Policy):
            raise InputError(f"policy must be an oclok.policies.Policy; got {policy!r}")
        self.oracle = oracle
        self.policy = UCB(outcome_range=outcome_range) if policy is None else policy
        self.mode: Literal["live", "shadow"] = mode
        self._rollout = _as_rollout(mode, holdout, baseline, guard)
        self._declared = features if isinstance(features, Schema | None) else Schema(features)
        self._schema: Schema | None = None
        self._feedback = Feedback(self.policy, outcome_range, deadline, default_outcome)
        self._offers = Offers(as_count(explainable, "explainable", least=0))
        self._watch: FeatureWatch | None = None
        self._shadow = Shadow()
        self._reported: set[str] = set()
        self._rng = np.random.default_rng(seed)
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
            exclude: ids of arms that must not be.
            id: of the decision; made up if left out. The same id again gives the same decision.
            chosen: ids of the arms that the deciding system has chosen, in shadow mode, or that
                the baseline would choose, if that is "chosen".
            unit: a user, say, who is to stay in the same group; the decision's id if left out.
        """
        if id is not None and not isinstance(id, str):
            raise InputError(f"id must be a string; got {id!r}")
        joined = as_arms(arms).joined(context)
        request = self._request(joined, oracle, include, exclude, chosen, unit)
        with self._lock:
            now = self._tick()
            if id is not None and id in self._feedback.decisions:
                return self._again(id)
            proposal = self._proposed(request, id)
            self._commit(*proposal, now)
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
        recorded by all who read it. Nothing waits for it if the policy says `is_concurrent`.
        """
        request = self._request(arms, oracle, include, exclude, chosen, unit)
        with nullcontext() if getattr(self.policy, "is_concurrent", False) else self._lock:
            return self._proposed(request, id)

    def record(
        self,
        decision: AgentDecision,
        schema: Schema | None = None,
        played: Played | None = None,
        step: Step | None = None,
    ) -> None:
        """Take note of a decision that was proposed, here or by an agent in another process.

        Args:
            decision: with its offer. One whose id is known changes nothing.
            schema: what the first decision of an agent has inferred of its arms.
            played: of the proposal; made of the offer, with no oracle, if left out.
            step: of the guard.
        """
        if decision.offer is None:
            raise InputError(f"decision {decision.id!r} has no offer: it cannot be recorded")
        offer = decision.offer
        with self._lock:
            now = self._tick()
            if decision.id not in self._feedback.decisions:
                known = played or Played(offer.contexts, None, offer.chosen)
                self._commit(decision, self._schema or schema, known, step, now)

    def encode(self, arms: Any, schema: Schema | None = None) -> FloatArray:
        """Return the features of `arms` as the model sees them, shape (M, D).

        Args:
            arms: as for `decide`; columns that are no features are skipped.
            schema: stands in for the agent's own until it has one.
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
        known = self._schema or schema
        if known is None:
            raise InputError("the agent has no schema yet: it is inferred from the first arms")
        offered = as_arms(arms)
        included = offered.positions(include, "include")
        excluded = offered.positions(exclude, "exclude")
        made, _ = self._oracle_for(oracle, offered, included, excluded)
        return known.encode(offered, frozenset(offered.names)), made

    def __repr__(self) -> str:
        with self._lock:
            waiting = self._feedback.decisions.waiting
        policy = type(self.policy).__name__
        return f"<Agent: oracle={self.oracle!r}, {policy}, {waiting} outcomes awaited>"

    def learn(
        self, decision_id: str, outcomes: Mapping[ArmId, float | None], correct: bool = False
    ) -> Learned:
        """Learn `{arm id: outcome}` of a decision's chosen arms: all at once or in pieces.

        The same outcome again is accepted and ignored. Another one is a `FeedbackError`, and
        nothing is learned, unless `correct=True`: then it takes the place of the one before,
        also of the default outcome of a deadline. None and NaN stand for outcomes not seen.
        """
        with self._lock:
            now = self._tick()
            return self._feedback.learn(decision_id, outcomes, correct, now)

    def observe(self, arms: Any, outcomes: ArrayLike) -> None:
        """Learn from the past: `arms`, as for `decide`, and the outcome of each, in their order.

        Outcomes that cannot be right given the others are refused, and nothing is learned.
        """
        offered = as_arms(arms)
        y = as_outcomes(outcomes, len(offered))
        columns = frozenset(() if self.oracle is None else self.oracle.columns)
        encoded = self._encoded(offered, columns)
        with self._lock:
            self._tick()
            schema, X = encoded or self._inferred(offered, columns)
            self._feedback.observe(X, y, offered.ids)
            self._schema = schema

    def accept(self, decision_id: str, arm_id: ArmId) -> None:
        """Learn an outcome that was quarantined."""
        with self._lock:
            self._tick()
            self._feedback.accept(decision_id, arm_id)

    def expire(self) -> int:
        """Stop waiting for outcomes past the deadline, and return how many there were.

        Every other call does this first; calling it in the background keeps those short.
        """
        with self._lock:
            waiting = self._feedback.decisions.waiting
            self._tick()
            return waiting - self._feedback.decisions.waiting

    def explain(
        self,
        decision_id: str,
        decision: AgentDecision | None = None,
        oracle: Oracle | None = None,
    ) -> Explanation:
        """Return what was thought of every arm of a decision, and why it was chosen or not.

        Args:
            decision_id: the id of the decision.
            decision: the decision itself, if somebody else has kept its arms.
            oracle: made for these arms; it names the constraint that kept an arm out.
        """
        with self._lock:
            record = self._feedback.decisions.record(decision_id)
            kept = self._offers[decision_id] if decision is None else decision
            return explained(kept, record, self._feedback.decisions, oracle)

    def outcomes_of(self, decision_id: str) -> dict[ArmId, tuple[str, float | None]]:
        """Return of each chosen arm what became of its outcome, in a word, and the outcome."""
        with self._lock:
            record = self._feedback.decisions.record(decision_id)
            return {
                arm: (Status(status).word, None if math.isnan(y) else y)
                for arm, status, y in zip(
                    record.arms, record.status.tolist(), record.outcomes.tolist(), strict=True
                )
            }

    def knows(self, decision_id: str) -> bool:
        """Return whether a decision is open, or was settled recently enough to be remembered."""
        with self._lock:
            return decision_id in self._feedback.decisions

    def late(self, now: float) -> int:
        """Return how many decisions will expire at the next call if the time is `now`."""
        with self._lock:
            deadline = self._feedback.deadline
            return 0 if deadline is None else len(self._feedback.decisions.due(now - deadline))

    def overdue(self, now: float) -> int:
        """Return how many open decisions have waited past the deadline, or unusually long."""
        with self._lock:
            return len(self._feedback.overdue(now))

    def with_status(self, status: str, before: int, start: str = "") -> list[str]:
        """Return decisions of rounds below `before` that have an outcome of a status.

        Args:
            status: in a word, as in `outcomes_of`.
            before: a round.
            start: what their ids begin with.
        """
        kept = self.history()
        rows = np.unique(kept.row[kept.status == Status[status.upper()]])
        rows = rows[kept.round[rows] < before][::-1]
        return [kept.ids[row] for row in rows.tolist() if kept.ids[row].startswith(start)]

    def counts(self) -> dict[str, int]:
        """Return open decisions, outcomes of decisions by status, and outcomes observed besides."""
        with self._lock:
            decisions = self._feedback.decisions
            tally = {status.word: int(decisions.tally[status]) for status in Status}
            return {
                "open_decisions": len(decisions),
                **tally,
                "observed": self._feedback.observed,
            }

    def mean_outcome(self) -> float:
        """Return the mean of recent outcomes; NaN before there are any."""
        with self._lock:
            values = self._feedback.outcomes.values
            return float(values.mean()) if len(values) else math.nan

    def history(self, since: float = -math.inf) -> History:
        """Return decisions made at `since` or later: open ones, and the latest that are settled."""
        with self._lock:
            return self._feedback.decisions.history(since)

    def check(self, arms: Any) -> None:
        """Raise what `observe` would say of the features of `arms`; change nothing."""
        offered = as_arms(arms)
        columns = frozenset(() if self.oracle is None else self.oracle.columns)
        if self._encoded(offered, columns) is None:
            self._inferred(offered, columns)

    def adopt(self, schema: Schema) -> None:
        """Take a schema that was inferred before, unless there is one."""
        with self._lock:
            self._schema = self._schema or schema

    def change(
        self,
        oracle: Oracle | None,
        deadline: float | None,
        default_outcome: float | None,
        mode: Literal["live", "shadow"],
        holdout: float = 0.0,
        baseline: str | Mapping[str, Any] | None = None,
        guard: float | None = None,
    ) -> None:
        """Change settings from now on; what was learned stays. See `roll_out` for the lift."""
        with self._lock:
            self.roll_out(mode, holdout, baseline, guard)
            feedback = self._feedback
            new = Feedback(self.policy, feedback.outcome_range, deadline, default_outcome)
            feedback.deadline, feedback.default_outcome = new.deadline, new.default_outcome
            self.oracle = oracle

    def refusals(
        self, decision_id: str, outcomes: Mapping[ArmId, float | None], correct: bool = False
    ) -> dict[ArmId, str]:
        """Return which of these outcomes `learn` would refuse, and why; change nothing."""
        with self._lock:
            return self._feedback.refusals(decision_id, outcomes, correct)

    @property
    def is_new(self) -> bool:
        """Whether there were no arms yet, so that their features are not known for certain."""
        return self._schema is None

    def follow(self, clock: Callable[[], float]) -> None:
        """Take the time from another clock from now on."""
        self._clock = clock

    def health(self) -> list[Finding]:
        """Return what whoever runs the agent should know, worst first; empty when all is well.

        It is looked at every 250 decisions as well; what is new is logged by `oclok.agent`.
        """
        with self._lock:
            now = self._tick()
            findings = examine(self._feedback, self._schema, self._watch, now)
            self._reported = report(findings, self._reported)
            return findings

    def lift(self, level: float = 0.95) -> Lift:
        """Return what the agent earns per decision beyond the baseline, which has the holdout."""
        with self._lock:
            self._tick()
            return self._feedback.decisions.lift.lift(level)

    def guard_report(self) -> GuardReport | None:
        """Return how often the guard stepped in, and its assumptions; None without a guard."""
        with self._lock:
            guard, judged = self._rollout.guard, getattr(self.policy, "calibration", None)
            return None if guard is None else guard.report(None if judged is None else judged())

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
        new = _as_rollout(mode, holdout, baseline, guard)
        with self._lock:
            self._tick()
            old = self._rollout
            if old.promise == new.promise:
                new.guard = old.guard
            if (old.holdout, old.rule) != (new.holdout, new.rule):
                self._feedback.decisions.start_over()
            self.mode, self._rollout = mode, new

    def restart_lift(self) -> None:
        """Begin the lift anew: decisions so far no longer count."""
        with self._lock:
            self._feedback.decisions.start_over()

    def comparison(self, level: float = 0.95, policy: Policy | None = None) -> Comparison:
        """Return how often the agent would have chosen otherwise in shadow mode, and the gain.

        Args:
            level: of the interval.
            policy: whose posterior is asked; the agent's if left out.
        """
        with self._lock:
            return self._shadow.comparison(policy or self.policy, level)

    @property
    def schema(self) -> Schema | None:
        """The features of the arms; None until there were any, unless given."""
        return self._schema or self._declared

    @property
    def open_decisions(self) -> int:
        """How many decisions wait for outcomes."""
        return len(self._feedback.decisions)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one file, atomically.

        A file that was changed since this agent loaded or saved it, by another process, say, is
        not overwritten: a `StorageError` says so.
        """
        with self._lock:
            self._version = files.save(self, path, self._version)

    @classmethod
    def load(cls, path: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> Self:
        """Read an agent that `save` wrote. Nothing in the file is executed."""
        agent, version = files.load(cls, path)
        agent._set_up(clock)
        agent._version = version
        return agent

    def _set_up(self, clock: Callable[[], float]) -> None:
        """Make what is not saved."""
        self._clock = clock
        self._lock = threading.RLock()

    def _tick(self) -> float:
        """Read the clock, which never runs backwards here, and let decisions expire."""
        self._now = max(self._now, float(self._clock()))
        self._feedback.expire(self._now)
        return self._now

    def _oracle_for(
        self, oracle: Oracle | None, arms: Arms, included: IntArray, excluded: IntArray
    ) -> tuple[Oracle, frozenset[str]]:
        """Return the oracle made for these arms, and columns that need not be features."""
        asked = self.oracle if oracle is None else oracle
        if asked is None:
            raise OracleError(
                "no oracle: give one to the agent, or to decide(arms, oracle=…) each time"
            )
        if not isinstance(asked, Oracle):
            raise OracleError(f"oracle must be an oclok.oracles.Oracle; got {asked!r}")
        usual = () if self.oracle is None else self.oracle.columns
        columns = frozenset((*usual, *asked.columns, *self._rollout.columns))
        if asked.columns:
            asked = asked.resolve(arms.column)
        if included.size or excluded.size:
            asked = asked.given(include=included, exclude=excluded)
        return asked, columns

    def _encoded(self, arms: Arms, also: frozenset[str]) -> tuple[Schema, FloatArray] | None:
        """Return the features as numbers if they are known: a schema, once there, never changes."""
        schema = self._schema
        return None if schema is None else (schema, schema.encode(arms, also))

    def _inferred(self, arms: Arms, also: frozenset[str]) -> tuple[Schema, FloatArray]:
        """Return what `_encoded` does, with a schema that is taken from these arms if need be."""
        schema = self._schema
        if schema is None:
            declared = self._declared
            schema = Schema.infer(arms) if declared is None else declared.fitted(arms, also)
        return schema, schema.encode(arms, also)

    def _told(self, arms: Arms, chosen: Iterable[ArmId] | None) -> IntArray | None:
        """Return the positions of what another system, or the baseline, chooses."""
        is_needed = self.mode == "shadow" or self._rollout.needs_chosen
        if (chosen is not None) != is_needed:
            raise InputError(
                'chosen= is what another system chooses, for mode="shadow" or baseline="chosen" '
                f"and only there; the mode is {self.mode!r}, chosen is {chosen!r}"
            )
        return None if chosen is None else np.sort(arms.positions(chosen, "chosen"))

    def _request(
        self,
        arms: Any,
        oracle: Oracle | None,
        include: Iterable[ArmId],
        exclude: Iterable[ArmId],
        chosen: Iterable[ArmId] | None,
        unit: str | None,
    ) -> Request:
        """Return what was asked for, checked, with the oracle made for these arms."""
        if unit is not None and not isinstance(unit, str):
            raise InputError(f"unit must be a string; got {unit!r}")
        offered = as_arms(arms)
        included = offered.positions(include, "include")
        excluded = offered.positions(exclude, "exclude")
        told = self._told(offered, chosen)
        asked, columns = self._oracle_for(oracle, offered, included, excluded)
        encoded = self._encoded(offered, columns)
        return Request(offered, asked, columns, included, excluded, told, unit, encoded)

    def _proposed(self, request: Request, name: str | None) -> Proposal:
        """Return what the policy makes of a request."""
        schema, X = request.encoded or self._inferred(request.arms, request.columns)
        made = self.policy.propose(X, request.oracle, self._waiting())
        noise = self.policy.noise_std
        name = made.decision.id if name is None else name
        if self.mode == "shadow":
            assert request.told is not None
            likely = Propensities(np.full(len(X), np.nan), math.nan)
            choice = Choice(request.told, "baseline", 0, likely)
        else:
            unit = name if request.unit is None else request.unit
            choice = self._rollout.choose(self.policy, made, request.arms, request.told, unit, name)
        return request.proposal(name, schema, made, choice, noise)

    def _waiting(self) -> FloatArray | tuple[()]:
        """Return the contexts (P, D) of arms whose outcomes are outstanding, if they matter."""
        if not self.policy.uses_pending:
            return ()
        with self._lock:
            return self._feedback.decisions.waiting_contexts(MOST_PENDING)

    def _commit(
        self,
        decision: AgentDecision,
        schema: Schema | None,
        played: Played,
        step: Step | None,
        now: float,
    ) -> None:
        """Let a proposed decision happen."""
        self.policy.commit(played)
        if step is not None and self._rollout.guard is not None:
            self._rollout.guard.record(step, played.contexts, played.super_arm)
        self._schema = schema
        assert decision.offer is not None
        self._keep(decision, decision.offer, now)

    def _keep(self, decision: AgentDecision, offer: Offer, now: float) -> None:
        """Take note of a decision that was just made."""
        taken = offer.chosen
        self._feedback.decisions.add(
            decision.id,
            now,
            decision.chosen,
            offer.contexts[taken],
            decision.round,
            offer.column("mean")[taken] if offer.is_informed else np.nan,
            offer.column("std")[taken],
            offer.noise_std,
            self._rollout.group_of(decision.group),
            assign(decision.unit or decision.id, 0.0).bucket,
        )
        self._offers.add(decision)
        if self.mode == "shadow":
            preferred = set(decision.preferred)
            places = [place for place, arm in enumerate(offer.ids) if arm in preferred]
            self._shadow.record(offer.contexts, np.array(places, dtype=np.intp), taken)
        self._watch = self._watch or FeatureWatch(offer.contexts.shape[1])
        self._watch.record(offer.contexts)
        if self.policy.round % CHECKED_EVERY == 0:
            self.health()

    def _again(self, decision_id: str) -> AgentDecision:
        """Return a decision that was made before."""
        kept = self._offers.get(decision_id)
        if kept is not None:
            return kept
        arms = self._feedback.decisions.record(decision_id).arms
        return AgentDecision(decision_id, 0, arms, False, arms, None)

    def _state(self) -> dict[str, Any]:
        hidden = ("_clock", "_lock", "_version")
        state = {name: value for name, value in self.__dict__.items() if name not in hidden}
        return {**state, "_reported": sorted(self._reported)}

    def _restore(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reported = set(state["_reported"])
        self._version = None
        self._set_up(time.time)


def _as_rollout(
    mode: str, holdout: float, baseline: str | Mapping[str, Any] | None, guard: float | None
) -> Rollout:
    """Return who decides, checked."""
    if mode not in ("live", "shadow"):
        raise InputError(f'mode must be "live" or "shadow"; got {mode!r}')
    if mode == "shadow" and (holdout or guard is not None):
        raise InputError('holdout= and guard= need mode="live": in shadow another system decides')
    return Rollout(holdout, baseline, guard)
