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
import math
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from oclok import persistence
from oclok.agent import Agent, Schema
from oclok.agent.decision import Proposal
from oclok.errors import InputError, OclokError, StorageError
from oclok.oracles import oracle_from_json
from oclok.policies import UCB, GPPolicy, ThompsonSampling
from oclok.policies.gp import Discount, Window
from oclok.service.decisions import Result, restored
from oclok.service.learner import TRANSIENT, Learner
from oclok.service.log import AgentRow, Event, Log
from oclok.service.requests import Settings

LOGGER = logging.getLogger("oclok.service")
#: A snapshot is the length of the agent, the steps of its policy, the agent, and the policy.
_HEAD = struct.Struct(">QQ")


#: Settings that decide how the past is learned, and those that change who decides, and when.
POLICY_SETTINGS = ("policy", "exploration", "forgetting")
AGENT_SETTINGS = ("deadline", "default_outcome", "mode", "holdout", "baseline", "guard")


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


def make_policy(settings: dict[str, Any], outcome_range: tuple[float, float] | None) -> Learner:
    """Return the policy of an agent with these settings, all of them."""
    forgetting, forget = settings["forgetting"], None
    if forgetting is not None:
        window, discount = forgetting.get("window"), forgetting.get("discount")
        if (window is None) == (discount is None):
            raise InputError("forgetting must have a window or a discount, one of them")
        forget = Discount(discount) if window is None else Window(window)
    exploration = settings["exploration"]
    if settings["policy"] == "thompson":
        if exploration is not None:
            raise InputError("exploration belongs to the policy ucb; leave it out for thompson")
        return Learner(ThompsonSampling(forget=forget))
    return Learner(UCB(width=exploration, outcome_range=outcome_range, forget=forget))


def make_agent(settings: dict[str, Any]) -> Agent:
    """Return a fresh agent with the settings of a request; `OclokError` if they are wrong."""
    full = with_defaults(settings)
    limits = full["outcome_range"]
    outcome_range = None if limits is None else (limits[0], limits[1])
    return Agent(
        oracle=oracle_from_json(full["oracle"]),
        features=full["features"],
        outcome_range=outcome_range,
        policy=make_policy(full, outcome_range),
        **{name: full[name] for name in AGENT_SETTINGS},
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
        self.created = self.time = row.created
        self.state = row.state
        self.used = time.monotonic()
        self.summary: tuple[int, float] = (-1, 0.0)  # event and time of the latest one
        self.lock = threading.RLock()
        self.work_available = threading.Event()
        self.is_broken = False
        self._awaited: list[dict[int, Result]] = []
        self._own: dict[int, tuple[Event, Proposal | None]] = {}  # made here, not applied yet
        self._proposal: Proposal | None = None  # of the event that is being applied
        self._log = log
        self.seq = self.snapshot_seq = 0
        agent = self._load_snapshot() if use_snapshot else None
        self.epoch = 0
        changes = [(event, from_json(event.body)) for event in log.changes(self.id)]
        latest = max((event.seq for event, change in changes if restarts(change)), default=0)
        if use_snapshot and self.seq < latest:  # it makes the model of what came before
            self.seq, agent = latest - 1, None
        for event, change in reversed(changes):
            if event.seq > self.seq and change["what"] == "settings":
                self.settings = change["from"]  # as they were at event `seq`
            elif event.seq <= self.seq and restarts(change):
                self.epoch = event.seq
                break
        self._start_from(agent or make_agent(self.settings))

    @property
    def learner(self) -> Learner:
        """The agent's policy."""
        policy = self.agent.policy
        assert isinstance(policy, Learner)
        return policy

    @property
    def outcome_range(self) -> tuple[float, float]:
        """Lowest and highest possible outcome."""
        low, high = self.settings["outcome_range"] or (-math.inf, math.inf)
        return low, high

    def catch_up(self, until: int | None = None) -> None:
        """Apply what is new in the log; the policy learns it later."""
        with self.lock:
            for event in self._log.after(self.id, self.seq, until):
                self.apply(event)

    def build(self) -> None:
        """Apply and learn all that is in the log; `DamagedLogError` if some of it is missing."""
        self._log.check(self.id)
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
            self.time = event.time
            _, self._proposal = self._own.pop(event.seq, (None, None))
            try:
                self._apply_one(event)
            except TRANSIENT:
                self.is_broken = True  # it may have changed in part
                raise
            self.seq = event.seq
            self.work_available.set()

    def committed(self, event: Event, proposal: Proposal | None = None) -> None:
        """Apply an event that this process has just appended.

        A decision waits neither for others that come before it nor for the lock: then the next
        thread that applies events applies it, too.
        """
        self._own[event.seq] = (event, proposal)
        if not self.lock.acquire(blocking=proposal is None):
            return
        try:
            while self.seq + 1 in self._own:
                self.apply(self._own[self.seq + 1][0])
            for seq in [seq for seq in list(self._own) if seq <= self.seq]:
                self._own.pop(seq)  # another thread has read it from the log
            if proposal is None and self.seq < event.seq:
                self.catch_up()
        finally:
            self.lock.release()

    @contextlib.contextmanager
    def results(self) -> Iterator[dict[int, Result]]:
        """Yield what comes of events with outcomes that any thread applies meanwhile, by number."""
        results: dict[int, Result] = {}
        with self.lock:
            self._awaited.append(results)
        try:
            yield results
        finally:
            with self.lock:
                self._awaited = [each for each in self._awaited if each is not results]

    def dumped(self) -> tuple[int, bytes]:
        """Return the agent as bytes, and the number of the event that it has read up to."""
        with self.lock:
            seq, given, agent = self.seq, self.learner.given, persistence.dumps(self.agent)
        steps, policy = self.learner.dumped(given)  # nothing waits for this
        return seq, _HEAD.pack(len(agent), steps) + agent + policy

    def _start_from(self, agent: Agent) -> None:
        self.agent = agent
        agent.follow(lambda: self.time)

    def _load_snapshot(self) -> Agent | None:
        found = self._log.snapshot(self.id)
        if found is None:
            return None
        seq, content = found
        try:
            size, steps = _HEAD.unpack_from(content)
            agent = persistence.loads(content[_HEAD.size : _HEAD.size + size])
            policy = persistence.loads(content[_HEAD.size + size :])
        except (StorageError, struct.error) as reason:  # of another version: the log has it all
            LOGGER.warning("agent %s: snapshot not used: %s", self.name, reason)
            return None
        assert isinstance(agent, Agent)
        assert isinstance(agent.policy, Learner)
        assert isinstance(policy, GPPolicy)
        agent.policy.adopt(steps, policy)
        self.seq = self.snapshot_seq = seq
        return agent

    def _apply_one(self, event: Event) -> None:
        try:
            if event.decision is None and event.kind in ("outcomes", "accept"):
                return  # erased
            result = getattr(self, f"_apply_{event.kind}")(event)
            for results in self._awaited:
                results[event.seq] = result
        except TRANSIENT:
            raise
        except Exception:
            # The same in every process: the event is part of the log, and had no effect.
            LOGGER.exception("agent %s: event %d cannot be applied", self.name, event.seq)

    def _apply_decision(self, event: Event) -> None:
        if self._proposal is not None:
            self.agent.record(*self._proposal)
        elif event.decision is None:  # erased
            if "schema" in (body := from_json(event.body)):
                self.agent.adopt(Schema(body["schema"]))
        else:
            self.agent.record(*restored(self.agent, event))

    def _apply_outcomes(self, event: Event) -> Result:
        body, decision = from_json(event.body), event.decision or ""
        outcomes, correct = dict(body["outcomes"]), body["correct"]
        try:
            try:
                return Result(**vars(self.agent.learn(decision, outcomes, correct)))
            except OclokError:  # an outcome is wrong; the others are learned
                refused = self.agent.refusals(decision, outcomes, correct)
                right = {arm: y for arm, y in outcomes.items() if arm not in refused}
                learned = self.agent.learn(decision, right, correct)
                return Result(**vars(learned), rejected=list(refused.items()))
        except OclokError as reason:
            return Result(rejected=[(arm, str(reason)) for arm in outcomes])

    def _apply_accept(self, event: Event) -> Result:
        arm = from_json(event.body)["arm"]
        try:
            self.agent.accept(event.decision or "", arm)
        except OclokError as reason:
            return Result(rejected=[(arm, str(reason))])
        return Result(learned=[arm])

    def _apply_observations(self, event: Event) -> Result:
        body = from_json(event.body)
        try:
            self.agent.observe(dict(enumerate(body["features"])), body["outcomes"])
        except OclokError as reason:
            return Result(rejected=[(None, str(reason))])
        return Result(learned=list(range(len(body["outcomes"]))))

    def _apply_expire(self, event: Event) -> None:
        self.agent.expire()

    def _apply_change(self, event: Event) -> None:
        """Let what was done to the agent happen; see `lifecycle`."""
        change = from_json(event.body)
        what = change["what"]
        self.settings = change.get("to", self.settings)
        if restarts(change):
            self.epoch, self.snapshot_seq = event.seq, 0  # the snapshot is of another model
            self._start_from(make_agent(self.settings))
            if what != "reset":
                self._learn_anew(event.seq)
        elif what == "settings":
            now = with_defaults(self.settings)
            oracle = oracle_from_json(now["oracle"])
            self.agent.change(oracle, **{name: now[name] for name in AGENT_SETTINGS})
        elif what == "state":
            self.state = change["state"]

    def _learn_anew(self, until: int) -> None:
        """Read the log again, from the latest reset to before event `until`."""
        changes = [event for event in self._log.changes(self.id) if event.seq < until]
        resets = [event.seq for event in changes if from_json(event.body)["what"] == "reset"]
        now = self.time
        for event in self._log.after(self.id, max(resets, default=0), until - 1):
            if event.kind != "change":
                self.time = event.time
                self._apply_one(event)
        self.agent.restart_lift()  # groups of several policies or sizes cannot be put together
        self.time = now
