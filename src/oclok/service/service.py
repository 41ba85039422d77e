"""What the service does: decide, learn, observe, tell; without HTTP, for any number of threads."""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic_core import to_json

from oclok.agent.arms import as_arms
from oclok.agent.decision import Proposal
from oclok.errors import DamagedLogError, FeedbackError, InputError, StorageError
from oclok.oracles import oracle_from_json
from oclok.oracles.base import Oracle
from oclok.service.config import Config
from oclok.service.database import Database
from oclok.service.decisions import Result, answer_of, decision_body, tallied
from oclok.service.log import Event, Log, OvertakenError, RepeatedError
from oclok.service.packing import pack
from oclok.service.problems import ConflictError, NotFoundError
from oclok.service.replica import Replica, make_agent, with_defaults
from oclok.service.searches import Searches

#: How often a decision is proposed anew because another process was faster.
ATTEMPTS = 20


class Service:
    """The agents of a database."""

    def __init__(self, database: Database, config: Config | None = None) -> None:
        self.database = database
        self.config = config or Config()
        self.damaged: dict[str, str] = {}
        self.log = Log(database)
        self.work_available = threading.Event()
        self._replicas: dict[str, Replica] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._mark = (-1, 0, 0)  # of the logs when they were last read
        self._searches = Searches(self.config.oracle_searches)

    @property
    def replicas(self) -> list[Replica]:
        """The models that this process has built."""
        return list(self._replicas.values())

    def knows(self, name: str) -> bool:
        """Return whether this process has a replica of an agent."""
        return name in self._replicas

    def replica(self, name: str) -> Replica:
        """Return the model of an agent, built from the log if need be."""
        replica = self._replicas.get(name)
        if replica is None or replica.is_broken:
            with self._locks.setdefault(name, threading.Lock()):  # others do not wait for it
                replica = self._replicas.get(name)
                if replica is None or replica.is_broken:
                    replica = self._built(name)
        replica.used = time.monotonic()
        return replica

    def _built(self, name: str) -> Replica:
        try:
            replica = Replica(self.log.agent(name), self.log)
            replica.build()
        except NotFoundError:
            self.damaged.pop(name, None)
            self._locks.pop(name, None)
            raise
        except DamagedLogError as reason:
            self.damaged[name] = str(reason)
            raise
        self.damaged.pop(name, None)
        replica.work_available = self.work_available
        self._replicas[name] = replica
        return replica

    def active(self, name: str, states: tuple[str, ...] = ("active", "paused")) -> Replica:
        """Return the model of an agent that may be written to; `ConflictError` otherwise."""
        replica = self.replica(name)
        if replica.state not in states:
            raise ConflictError(f"agent {name!r} is {replica.state}")
        return replica

    def read_changes(self, name: str) -> Replica:
        """Return the model of an agent after reading what was just done to it."""
        replica = self.replica(name)
        replica.catch_up()
        return replica

    def refresh(self) -> None:
        """Read what is new in the logs of the models that are in memory."""
        replicas, mark = self.replicas, self.log.mark()
        if mark == self._mark:
            return
        latest = self.log.latest([replica.id for replica in replicas]) if replicas else {}
        for replica in replicas:
            last = latest.get(replica.id)
            if last is None:
                self.drop(replica)  # deleted
            elif replica.seq < last:
                try:
                    replica.catch_up(last)
                except DamagedLogError as reason:
                    self.damaged[replica.name] = str(reason)
                    self.drop(replica)
        self._mark = mark

    def drop(self, replica: Replica) -> None:
        """Keep a model in memory no longer; the next request builds it again."""
        if self._replicas.get(replica.name) is replica:
            del self._replicas[replica.name]

    def save_snapshot(self, replica: Replica) -> None:
        """Keep a model in the database, for the next one who builds it."""
        seq, content = replica.dumped()
        self.log.save_snapshot(replica.id, seq, content)
        replica.snapshot_seq = seq

    def check(self) -> None:
        """Find agents of which events are missing from the log."""
        self.damaged = {name: str(reason) for name, reason in self.log.damaged().items()}
        for name in self.damaged:
            self._replicas.pop(name, None)

    def put_agent(self, name: str, settings: dict[str, Any]) -> bool:
        """Make an agent and return whether it is new; `ConflictError` if there is another one."""
        make_agent(settings)  # raises what is wrong with them
        settings = {**settings, "oracle": oracle_from_json(settings["oracle"]).to_json()}
        is_new = self.log.add_agent(name, json.dumps(settings, sort_keys=True))
        replica = self.replica(name)
        settings = with_defaults(settings)
        if replica.settings != settings:
            differing = sorted(k for k in settings if settings[k] != replica.settings.get(k))
            raise ConflictError(
                f"agent {name!r} is there with other settings: {', '.join(differing)} differ"
            )
        return is_new

    def decide(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """Decide among the arms of a request, commit the decision, and return the answer."""
        [answer] = self.decide_batch(name, [request])
        return answer

    def decide_batch(self, name: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Decide several times with one commit: all decisions are made, or none.

        Decisions of a batch do not know of each other, as those of concurrent requests.
        """
        replica = self.active(name, ("active",))
        names = [request["id"] for request in requests if request["id"] is not None]
        if len(set(names)) < len(names):
            raise InputError("ids of a batch's decisions must be distinct")
        known = any(replica.agent.knows(each) for each in names)
        if len(requests) > 1 and (known or replica.agent.is_new):
            return [self.decide(name, request) for request in requests]
        if known:
            return [self._known(replica, names[0])]
        for _ in range(ATTEMPTS):
            replica.learner.keep_up()
            expected = None
            if replica.agent.is_new:  # the first arms set the schema: nothing may come in between
                with replica.lock:
                    expected = replica.seq if replica.agent.is_new else None
            made = [self._proposed(replica, each, expected is not None) for each in requests]
            try:
                events = self.log.append(replica.id, [event for event, _, _ in made], expected)
            except OvertakenError:
                replica.catch_up()
                continue
            except RepeatedError:
                if len(requests) > 1:
                    return [self.decide(name, request) for request in requests]
                return [self._known(replica, str(made[0][0].decision))]
            for event, (_, proposal, _) in zip(events, made, strict=True):
                replica.committed(event, proposal)
            return [answer_of(event, made[nth][2]) for nth, event in enumerate(events)]
        raise StorageError("other processes were faster each time; try again")

    def _proposed(
        self, replica: Replica, request: dict[str, Any], is_first: bool
    ) -> tuple[Event, Proposal, dict[str, Any]]:
        """Return the event of a decision that is not committed yet, the decision, and its body."""
        by_id = {arm["id"]: arm["features"] for arm in request["arms"]}
        if len(by_id) < len(request["arms"]):
            [(twice, _)] = Counter(arm["id"] for arm in request["arms"]).most_common(1)
            raise InputError(f"arm ids must be distinct; {twice!r} is there more than once")
        arms = as_arms(by_id).joined(request.get("context"))
        oracle, turn = self._oracle(replica, request)
        decision = request["id"] or secrets.token_hex(12)
        kept = {k: request[k] for k in ("oracle", "include", "exclude", "unit") if request.get(k)}
        with turn:
            proposal = replica.agent.propose(
                arms,
                oracle,
                include=request["include"],
                exclude=request["exclude"],
                id=decision,
                chosen=request["chosen"],
                unit=request.get("unit"),
            )
        body = decision_body(kept, arms, proposal, is_first)
        event = Event("decision", pack(body), decision, replica.learner.model_version)
        return event, proposal, body

    def _oracle(
        self, replica: Replica, request: dict[str, Any]
    ) -> tuple[Oracle | None, AbstractContextManager[None]]:
        """Return the oracle of a request, and a context that waits for its turn to search."""
        oracle = replica.agent.oracle
        if request["oracle"] is not None:
            if not replica.settings.get("request_oracles", True):
                raise InputError("this agent takes no oracles in requests: leave `oracle` out")
            oracle = oracle_from_json(request["oracle"])
        if oracle is None or not oracle.is_search:
            return (oracle if request["oracle"] is not None else None), nullcontext()
        seconds = min(self.config.oracle_seconds, request.get("time_budget") or math.inf)
        return oracle.limited(seconds), self._searches.turn(replica.id)

    def learn(self, name: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Learn outcomes, each exactly once, and return what became of them."""
        replica = self.active(name)
        if any(isinstance(item["outcome"], dict) for item in items):
            weights = replica.settings.get("outcome_weights")
            items = [{**item, "outcome": _weighed(item["outcome"], weights)} for item in items]
        known: list[tuple[str | None, Result]] = []
        events = []
        for group in _groups(items):
            result, event = self._checked(replica, group)
            known.append((group[0]["decision"], result))
            if event is not None:
                events.append(event)
        with replica.results() as results:
            for event in self.log.append(replica.id, events) if events else []:
                replica.committed(event)
                known.append((event.decision, results.get(event.seq, Result())))
        return tallied(known)

    def observe(self, name: str, items: list[dict[str, Any]], key: str | None = None) -> int:
        """Learn outcomes of the past that belong to no decision; all of them, or none.

        The same `key` again changes nothing.
        """
        replica = self.active(name)
        features = [item["features"] for item in items]
        outcomes = [item["outcome"] for item in items]
        low, high = replica.outcome_range
        wrong = next((y for y in outcomes if not low <= y <= high), None)
        if wrong is not None:
            raise InputError(f"outcomes must be between {low:g} and {high:g}; got {wrong:g}")
        replica.agent.check(dict(enumerate(features)))
        body = to_json({"features": features, "outcomes": outcomes})
        with replica.results() as results:
            try:
                [event] = self.log.append(replica.id, [Event("observations", body, key)])
            except RepeatedError:
                return len(items)
            replica.committed(event)
            result = results.get(event.seq, Result())
        if result.rejected:
            raise InputError(result.rejected[0][1])
        return len(result.learned)

    def expire(self, replica: Replica, now: float) -> None:
        """Let decisions past their deadline expire, in all processes."""
        expires = replica.state != "archived" and replica.settings["deadline"] is not None
        if expires and replica.agent.overdue(now):
            for event in self.log.append(replica.id, [Event("expire", b"{}")]):
                replica.committed(event)

    def _known(self, replica: Replica, decision: str) -> dict[str, Any]:
        event = self.log.decision(replica.id, decision)
        if event is None:
            raise StorageError("the database is changing; try again")
        return answer_of(event)

    def _checked(
        self, replica: Replica, items: list[dict[str, Any]]
    ) -> tuple[Result, Event | None]:
        """Return what is certain about outcomes of one decision, and an event with the others.

        What is certainly without effect does not go into the log. What looks right here may
        still turn out to be wrong at its place in the log.
        """
        first = items[0]
        decision, correct = first["decision"], first["correct"]
        try:
            known = self._outcomes_of(replica, decision)
        except FeedbackError as reason:
            return Result(rejected=[(item["arm"], str(reason)) for item in items]), None
        if first["accept"]:
            body = to_json({"arm": first["arm"]})
            return Result(), Event("accept", body, decision)
        result = Result()
        outcomes: dict[Any, float] = {}
        for item in items:
            arm, outcome = item["arm"], item["outcome"]
            if outcome is None and arm in known:
                continue
            if arm in outcomes and outcomes[arm] != outcome:
                result.rejected.append((arm, "two outcomes of one arm in one request"))
            elif arm in known and known[arm] == ("learned", outcome):
                result.repeated.append(arm)
            else:
                outcomes[arm] = outcome
        for arm, refusal in replica.agent.refusals(decision, outcomes, correct).items():
            del outcomes[arm]
            result.rejected.append((arm, refusal))
        if not outcomes:
            return result, None
        body = to_json({"outcomes": list(outcomes.items()), "correct": correct})
        return result, Event("outcomes", body, decision)

    def _outcomes_of(self, replica: Replica, decision: str) -> dict[Any, tuple[str, float | None]]:
        try:
            return replica.agent.outcomes_of(decision)
        except FeedbackError:
            replica.catch_up()  # perhaps another process has made it just now
            return replica.agent.outcomes_of(decision)


def _weighed(outcome: Any, weights: dict[str, float] | None) -> float | None:
    """Return an outcome that may be an object of measures as one number."""
    if not isinstance(outcome, dict):
        return None if outcome is None else float(outcome)
    unknown = [measure for measure in outcome if measure not in (weights or {})]
    if weights is None or unknown:
        raise InputError(
            f"the agent has no weight for {unknown[0]!r}: an outcome is a number, or an object of "
            f"{', '.join(map(repr, weights)) if weights else 'measures in `outcome_weights`'}"
        )
    return float(sum(weights[measure] * value for measure, value in outcome.items()))


def _groups(items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the items that one event can hold: of one decision, and of one kind."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for item in items:
        kind = item["decision"], item["correct"], item["accept"] and item["arm"]
        groups.setdefault(kind, []).append(item)
    return list(groups.values())
