"""A replica of one agent: a function of its log, read event by event.

A replica changes by `apply` only, which takes the events of the log in their order, and whose clock
is the time of the event. Replicas of the same log are therefore equal in all processes. What
became of each outcome is known at once; its policy, a `Learner`, learns from it in the background.
"""
# Tested in tests/service/test_workers.py: replicas of several workers are compared.

from __future__ import annotations

import contextlib
import json
import logging
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from oclok import persistence
from oclok.agent import Agent, AgentDecision, Schema
from oclok.agent.decision import Proposal
from oclok.errors import InputError, OclokError, StorageError
from oclok.oracles import oracle_from_json
from oclok.oracles.base import Oracle
from oclok.policies import UCB, GPPolicy, Played, ThompsonSampling
from oclok.policies.gp import Discount, Window
from oclok.service.decisions import Result, restored
from oclok.service.learner import TRANSIENT, Learner
from oclok.service.log import AgentRow, Event, Log
from oclok.service.requests import Settings

LOGGER = logging.getLogger("oclok.service")
#: A snapshot is the length of the agent, the steps of its policy, the agent, and the policy.
_HEAD = struct.Struct(">QQ")


@dataclass(eq=False)
class Results:
    """What came of events, by their numbers."""

    by_seq: dict[int, Result] = field(default_factory=dict)

    def of(self, event: Event) -> Result:
        """Return what came of an event; nothing if it could not be applied."""
        return self.by_seq.get(event.seq, Result())


#: Settings that decide how the past is learned.
POLICY_SETTINGS = ("policy", "exploration", "forgetting")


def _body(event: Event) -> dict[str, Any]:
    body: dict[str, Any] = from_json(event.body)
    return body


def restarts(change: dict[str, Any]) -> bool:
    """Return whether a change makes another model, whose steps are counted anew."""
    if change["what"] != "settings":
        return change["what"] in ("reset", "erase")
    before, after = change["from"], change["to"]
    return any(before.get(name) != after.get(name) for name in POLICY_SETTINGS)


def with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those that an older version did not have."""
    fields = Settings.model_fields.items()
    return {name: field.default for name, field in fields if name != "oracle"} | settings


def make_policy(
    settings: dict[str, Any], outcome_range: tuple[float, float] | None = None
) -> Learner:
    """Return the policy of an agent with these settings."""
    forgetting, forget = settings.get("forgetting"), None
    if forgetting is not None:
        window, discount = forgetting.get("window"), forgetting.get("discount")
        if (window is None) == (discount is None):
            raise InputError("forgetting must have a window or a discount, one of them")
        forget = Discount(discount) if window is None else Window(window)
    exploration = settings.get("exploration")
    if settings.get("policy") == "thompson":
        if exploration is not None:
            raise InputError("exploration belongs to the policy ucb; leave it out for thompson")
        return Learner(ThompsonSampling(forget=forget))
    return Learner(UCB(width=exploration, outcome_range=outcome_range, forget=forget))


def make_agent(settings: dict[str, Any]) -> Agent:
    """Return a fresh agent with the settings of a request; `OclokError` if they are wrong."""
    limits = settings.get("outcome_range")
    outcome_range = None if limits is None else (limits[0], limits[1])
    return Agent(
        oracle=oracle_from_json(settings["oracle"]),
        features=settings.get("features"),
        outcome_range=outcome_range,
        deadline=settings.get("deadline"),
        default_outcome=settings.get("default_outcome"),
        policy=make_policy(settings, outcome_range),
        mode=settings.get("mode", "live"),
        holdout=settings.get("holdout", 0.0),
        baseline=settings.get("baseline"),
        guard=settings.get("guard"),
        seed=0,
        explainable=0,  # all arms of all decisions are in the log
    )


class Replica:
    """An agent, and how far in its log it has read.

    Attributes:
        agent: the agent as of event `seq`.
        epoch: number of the event that made the present model; its steps are counted from there.
        lock: to be held while `agent` and `seq` must fit together.
        is_broken: an event was applied in part, for want of memory, say: build another one.
        work_available: is set when there is something to learn.
    """

    def __init__(self, row: AgentRow, log: Log, use_snapshot: bool = True) -> None:
        self.id, self.name = row.id, row.name
        self.settings: dict[str, Any] = with_defaults(json.loads(row.settings))
        self.created = row.created
        self.state = row.state
        self.used = time.monotonic()
        self.summary: tuple[int, float] = (-1, 0.0)  # event and time of the latest one
        self.lock = threading.RLock()
        self.work_available = threading.Event()
        self._awaited: list[Results] = []
        self.is_broken = False
        self._own: dict[int, tuple[Event, Proposal | None]] = {}  # made here, not applied yet
        self._proposal: Proposal | None = None  # of the event that is being applied
        self._log, self._row = log, row
        self._time = row.created
        self.seq = self.snapshot_seq = 0
        agent = self._load_snapshot() if use_snapshot else None
        self.epoch = 0
        for event in reversed(log.changes(self.id)):
            change = _body(event)
            if event.seq > self.seq and change["what"] == "settings":
                self.settings = change["from"]  # as they were at event `seq`
            elif event.seq <= self.seq and restarts(change):
                self.epoch = event.seq
                break
        self._start_from(agent or make_agent(self.settings))

    @property
    def time(self) -> float:
        """The time of the latest event."""
        return self._time

    @property
    def learner(self) -> Learner:
        """The agent's policy."""
        policy = self.agent.policy
        assert isinstance(policy, Learner)
        return policy

    def catch_up(self, until: int | None = None) -> None:
        """Apply what is new in the log; the policy learns it later."""
        with self.lock:
            for event in self._log.after(self.id, self.seq, until):
                self.apply(event)

    def build(self) -> None:
        """Apply and learn all that is in the log; `DamagedLogError` if some of it is missing."""
        self._log.check(self._row)
        with self.lock:
            for event in self._log.after(self.id, self.seq):
                self.apply(event)
                self.learner.catch_up()

    def apply(self, event: Event) -> None:
        """Let an event, the next one in the log, happen to the agent."""
        with self.lock:
            assert event.seq == self.seq + 1, "events are applied in their order"
            if self.is_broken:
                raise StorageError(f"agent {self.name!r} is built again; try again")
            self._time = event.time
            _, self._proposal = self._own.pop(event.seq, (None, None))
            try:
                self._apply_one(event)
            except TRANSIENT:
                self.is_broken = True  # it may have changed in part
                raise
            self.seq = event.seq
            self.work_available.set()

    def _apply_one(self, event: Event) -> None:
        try:
            _APPLY[event.kind](self, event)
        except TRANSIENT:
            raise
        except Exception:
            # The same in every process: the event is part of the log, and had no effect.
            LOGGER.exception("agent %s: event %d cannot be applied", self.name, event.seq)

    def committed(self, event: Event, proposal: Proposal | None = None) -> None:
        """Apply an event that this process has just appended.

        If others come before it, a decision is left to the next reader of the log: reading them
        one by one, in each request, would cost more.
        """
        with self.lock:
            if self.seq < event.seq:
                self._own[event.seq] = (event, proposal)
            while self.seq + 1 in self._own:
                self.apply(self._own[self.seq + 1][0])
            if proposal is None and self.seq < event.seq:
                self.catch_up()

    @contextlib.contextmanager
    def results(self) -> Iterator[Results]:
        """Yield what comes of events with outcomes that are applied meanwhile, by any thread."""
        results = Results()
        with self.lock:
            self._awaited.append(results)
        try:
            yield results
        finally:
            with self.lock:
                self._awaited.remove(results)

    def restored(self, event: Event) -> tuple[AgentDecision, Oracle]:
        """Return the decision of an event, with all of its arms, and the oracle for these."""
        decision, _, oracle, _ = restored(self.agent, event)
        return decision, oracle

    def dumped(self) -> tuple[int, bytes]:
        """Return the agent as bytes, and the number of the event that it has read up to."""
        with self.lock:
            seq, given, agent = self.seq, self.learner.given, persistence.dumps(self.agent)
        steps, policy = self.learner.dumped(given)  # nothing waits for this
        return seq, _HEAD.pack(len(agent), steps) + agent + policy

    def _start_from(self, agent: Agent) -> None:
        self.agent = agent
        agent.follow(lambda: self._time)

    def _load_snapshot(self) -> Agent | None:
        found = self._log.snapshot(self.id)
        if found is None:
            return None
        try:
            size, steps = _HEAD.unpack_from(found[1])
            agent = persistence.loads(found[1][_HEAD.size : _HEAD.size + size])
            policy = persistence.loads(found[1][_HEAD.size + size :])
        except (StorageError, struct.error) as reason:  # of another version: the log has it all
            LOGGER.warning("agent %s: snapshot not used: %s", self.name, reason)
            return None
        if isinstance(agent, Agent) and isinstance(agent.policy, Learner):
            assert isinstance(policy, GPPolicy)
            agent.policy.adopt(steps, policy)
            self.seq = self.snapshot_seq = found[0]
            return agent
        return None

    def _apply_decision(self, event: Event) -> None:
        if self._proposal is not None:
            self.agent.record(*self._proposal)
            return
        if event.decision is None:  # erased
            if "schema" in (body := _body(event)):
                self.agent.adopt(Schema(body["schema"]))
            return
        decision, schema, oracle, step = restored(self.agent, event)
        assert decision.offer is not None
        played = Played(decision.offer.contexts, oracle, decision.offer.chosen)
        self.agent.record(decision, schema, played, step)

    def _apply_outcomes(self, event: Event) -> None:
        if event.decision is None:
            return  # erased
        body = from_json(event.body)
        outcomes = dict(body["outcomes"])
        result = Result()
        try:
            refused = self.agent.refusals(event.decision, outcomes, body["correct"])
            right = {arm: y for arm, y in outcomes.items() if arm not in refused}
            result.rejected += refused.items()
            self._learn(event.decision, right, body["correct"], result)
        except OclokError as reason:
            result.rejected = [(arm, str(reason)) for arm in outcomes]
        self._keep(event.seq, result)

    def _learn(self, decision: str, outcomes: Any, correct: bool, result: Result) -> None:
        learned = self.agent.learn(decision, outcomes, correct)
        result.learned += learned.learned
        result.repeated += learned.repeated
        result.corrected += learned.corrected
        result.quarantined += learned.quarantined

    def _apply_accept(self, event: Event) -> None:
        if event.decision is None:
            return  # erased
        arm = from_json(event.body)["arm"]
        result = Result()
        try:
            self.agent.accept(event.decision, arm)
            result.learned.append(arm)
        except OclokError as reason:
            result.rejected.append((arm, str(reason)))
        self._keep(event.seq, result)

    def _apply_observations(self, event: Event) -> None:
        body = from_json(event.body)
        result = Result()
        try:
            self.agent.observe(dict(enumerate(body["features"])), body["outcomes"])
            result.learned += range(len(body["outcomes"]))
        except OclokError as reason:
            result.rejected.append((None, str(reason)))
        self._keep(event.seq, result)

    def _apply_expire(self, event: Event) -> None:
        self.agent.expire()

    def _apply_change(self, event: Event) -> None:
        """Let what was done to the agent happen; see `lifecycle`."""
        change = _body(event)
        what = change["what"]
        if restarts(change):
            self.epoch = event.seq
        if what == "settings":
            self.settings = change["to"]
            if restarts(change):
                self._learn_anew(event.seq)
            else:
                timing = ("deadline", "default_outcome", "mode")
                changeable = (*timing, "holdout", "baseline", "guard")
                oracle = oracle_from_json(self.settings["oracle"])
                now: dict[str, Any] = with_defaults(self.settings)
                self.agent.change(oracle, **{name: now[name] for name in changeable})
        elif what == "state":
            self.state = change["state"]
        elif what == "reset":
            self._start_from(make_agent(self.settings))
        elif what == "erase":
            self._learn_anew(event.seq)

    def _learn_anew(self, until: int) -> None:
        """Read the log again, from the latest reset to before event `until`."""
        changes = [event for event in self._log.changes(self.id) if event.seq < until]
        resets = [event.seq for event in changes if _body(event)["what"] == "reset"]
        self._start_from(make_agent(self.settings))
        now = self._time
        for event in self._log.after(self.id, max(resets, default=0), until - 1):
            if event.kind != "change":
                self._time = event.time
                self._apply_one(event)
        self.agent.restart_lift()  # groups of several policies or sizes cannot be put together
        self._time = now

    def _keep(self, seq: int, result: Result) -> None:
        for results in self._awaited:
            results.by_seq[seq] = result


_APPLY = {
    "decision": Replica._apply_decision,
    "outcomes": Replica._apply_outcomes,
    "accept": Replica._apply_accept,
    "observations": Replica._apply_observations,
    "expire": Replica._apply_expire,
    "change": Replica._apply_change,
}
