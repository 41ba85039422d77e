"""Rebuilding a model from its log, and checking that every decision comes out again.

A decision was made by a model that had taken `model_version` steps of learning, which may be fewer
than the events committed before it ask for. So the log is read once, and after each step of
learning the decisions of that version are made again.
"""
# Tested in tests/service/test_client.py: logs that clients filled are replayed.

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from oclok.errors import InputError
from oclok.oracles import oracle_from_json
from oclok.service.database import Database
from oclok.service.decisions import logged, logged_arms
from oclok.service.log import Event, Log
from oclok.service.replica import Replica

#: Numbers of a decision may differ by this, relative to the largest, from those recorded.
TOLERANCE = 1e-6
#: Events that can be committed before a decision that does not know of them.
LOOKAHEAD = 2_000
#: Events between two reports of progress.
REPORTED_EVERY = 500
#: Longest search of an oracle, per decision.
SEARCH_SECONDS = 1.0


@dataclass
class Replayed:
    """What came of making decisions again."""

    agent: str
    events: int = 0
    decisions: int = 0
    differing: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = f"{self.agent}: {self.events:,} events, {self.decisions:,} decisions"
        if not self.differing:
            return f"{told}, all as recorded"
        return f"{told}, {len(self.differing):,} differ, such as {self.differing[0]}"


def replay(
    database: Database, name: str, progress: Callable[[str, float], object] = lambda *_: None
) -> Replayed:
    """Rebuild the model of an agent from its log, and make every decision again.

    `progress` is called now and then with the agent's name and the share of the log replayed.
    """
    log = Log(database)
    row = log.agent(name)
    if row is None:
        raise InputError(f"there is no agent {name!r}")
    log.check(row)
    replica = Replica(row, log, use_snapshot=False)
    result = Replayed(name)
    waiting: list[tuple[int, int, Event]] = []
    events = _with_lookahead(log, row.id, row.last)
    learner = replica.learner
    for event, later in events:
        for decision in later:
            heapq.heappush(waiting, (decision.model_version or 0, decision.seq, decision))
        replica.apply(event)
        while waiting and waiting[0][0] <= learner.steps + learner.waiting:
            learner.catch_up(waiting[0][0])
            _again(replica, heapq.heappop(waiting)[2], result)
        learner.catch_up()
        result.events += 1
        if result.events % REPORTED_EVERY == 0:
            progress(name, result.events / row.last)
    return result


def _with_lookahead(log: Log, agent: int, last: int) -> Iterator[tuple[Event, list[Event]]]:
    """Yield each event with the decisions that were not yet seen and may be based before it.

    A decision is committed soon after its model version: the next LOOKAHEAD events hold it.
    """
    known: list[Event] = []
    fresh: list[Event] = []
    for event in log.after(agent, 0, last):
        known.append(event)
        if event.kind == "decision":
            fresh.append(event)
        if len(known) > LOOKAHEAD:
            yield known.pop(0), fresh
            fresh = []
    for event in known:
        yield event, fresh
        fresh = []


def _again(replica: Replica, event: Event, result: Replayed) -> None:
    body = logged(event)
    result.decisions += 1
    chosen = None
    if replica.settings.get("mode") == "shadow":
        chosen = [body["ids"][place] for place in body["chosen"]]
    oracle = oracle_from_json(body["oracle"]) if body.get("oracle") else replica.agent.oracle
    assert oracle is not None
    proposal = replica.agent.propose(
        logged_arms(body),
        oracle.limited(SEARCH_SECONDS),
        include=body.get("include", ()),
        exclude=body.get("exclude", ()),
        id=event.decision,
        chosen=chosen,
    )
    offer = proposal.decision.offer
    assert offer is not None
    recorded = body["index"]
    scale = max(1.0, float(np.abs(recorded).max()))
    is_same = np.allclose(offer.index, recorded, rtol=0, atol=TOLERANCE * scale)
    place = {arm: position for position, arm in enumerate(offer.ids)}
    again = [place[arm] for arm in proposal.decision.preferred]
    # Equal numbers may be rounded to either side of a tie.
    # A search may have been cut short, then or now.
    if again != body["preferred"] and not oracle.is_search:
        before, after = recorded[body["preferred"]].sum(), recorded[again].sum()
        is_same &= abs(before - after) <= len(recorded) * TOLERANCE * scale
    if not is_same:
        result.differing.append(str(event.decision))
