"""Whether logs are complete and can be read, and whether every decision comes out again.

A decision was made by a model that had taken `model_version` steps of learning, which may be fewer
than the events committed before it ask for. So decisions are read some way ahead of what happens
to the model, and made again after the step of learning that they are based on.
"""

from __future__ import annotations

import heapq
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from pydantic_core import from_json

from oclok.errors import DamagedLogError
from oclok.oracles import oracle_from_json
from oclok.service.database import Database
from oclok.service.decisions import logged, logged_arms
from oclok.service.log import AgentRow, Event, Log
from oclok.service.packing import unpack
from oclok.service.replica import Replica, restarts

#: Numbers of a decision may differ by this, relative to the largest, from those recorded.
TOLERANCE = 1e-6
#: Events that can be committed before a decision that does not know of them.
LOOKAHEAD = 2_000
#: Epoch and version of a decision's model, its number, the decision, and the settings then.
Logged: TypeAlias = tuple[int, int, int, Event, dict[str, Any]]
#: Events between two reports of progress.
REPORTED_EVERY = 500
#: Longest search of an oracle, per decision.
SEARCH_SECONDS = 1.0


def check(database: Database) -> dict[str, str]:
    """Return what is wrong with the log or snapshot of each agent, by name; "" if nothing is."""
    log = Log(database)
    return {row.name: _damage(log, row) for row in log.agents()}


def _damage(log: Log, row: AgentRow) -> str:
    seq = 0
    try:
        log.check(row.id)
        for event in log.after(row.id, 0, row.last):
            seq = event.seq
            (unpack if event.kind == "decision" and event.decision else from_json)(event.body)
    except DamagedLogError as reason:
        return str(reason)
    except (ValueError, KeyError, TypeError, zlib.error) as reason:
        return f"event {seq} cannot be read: {reason}"
    seq = log.snapshot_seq(row.id)
    if seq > row.last:
        return f"the snapshot is of event {seq}, but the log ends at {row.last}"
    if seq != Replica(row, log).snapshot_seq:
        return "the snapshot cannot be read; the log is complete"
    return ""


@dataclass
class Replayed:
    """What came of making decisions again."""

    agent: str
    events: int = 0
    decisions: int = 0
    differing: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        summary = f"{self.agent}: {self.events:,} events, {self.decisions:,} decisions"
        if not self.differing:
            return f"{summary}, all as recorded"
        return f"{summary}, {len(self.differing):,} differ, such as {self.differing[0]}"


def replay(
    database: Database, name: str, progress: Callable[[str, float], object] = lambda *_: None
) -> Replayed:
    """Rebuild the model of an agent from its log, and make every decision again.

    Where retention has reduced decisions, from the snapshot on. Decisions before an erasure are
    based on what is no longer there, and are left out. `progress` is called now and then with the
    agent's name and the share of the log replayed.
    """
    log = Log(database)
    row = log.agent(name)
    log.check(row.id)
    replica = Replica(row, log, use_snapshot=log.has_reduced(row.id))
    result = Replayed(name)
    erased = [e.seq for e in log.changes(row.id) if from_json(e.body)["what"] == "erase"]
    known = replica.epoch, replica.learner.steps  # what is based on less cannot be made again
    ahead = _decisions(log, replica, row.last)
    latest = next(ahead, None)
    waiting: list[Logged] = []
    for event in log.after(row.id, replica.seq, row.last):
        while latest is not None and latest[2] <= event.seq + LOOKAHEAD:
            if latest[2] > max(erased, default=0) and latest[:2] >= known:
                heapq.heappush(waiting, latest)
            latest = next(ahead, None)
        replica.apply(event)
        learner = replica.learner
        while waiting and waiting[0][:2] <= (replica.epoch, learner.steps + learner.waiting):
            epoch, version, _, decision, settings = heapq.heappop(waiting)
            if epoch == replica.epoch:
                learner.catch_up(version)
                _again(replica, decision, settings, result)
        learner.catch_up()
        result.events += 1
        if result.events % REPORTED_EVERY == 0:
            progress(name, result.events / row.last)
    return result


def _decisions(log: Log, replica: Replica, last: int) -> Iterator[Logged]:
    """Yield the decisions after those that a replica knows."""
    epoch, settings = replica.epoch, replica.settings
    for event in log.after(replica.id, replica.seq, last):
        if event.kind == "change":
            change = from_json(event.body)
            settings = change.get("to", settings)
            epoch = event.seq if restarts(change) else epoch
        elif event.kind == "decision" and event.decision is not None:
            yield epoch, event.model_version or 0, event.seq, event, settings


def _again(replica: Replica, event: Event, settings: dict[str, Any], result: Replayed) -> None:
    body = logged(event)
    if body.get("reduced"):
        return  # not all arms are known any more
    result.decisions += 1
    chosen = None
    if replica.agent.mode == "shadow":
        chosen = [body["ids"][place] for place in body["chosen"]]
    oracle = oracle_from_json(body.get("oracle") or settings["oracle"])
    proposal = replica.agent.propose(
        logged_arms(body),
        oracle.limited(SEARCH_SECONDS),
        include=body.get("include", ()),
        exclude=body.get("exclude", ()),
        id=event.decision,
        chosen=chosen,
    )
    offer = proposal.decision.known_offer
    is_random = settings.get("policy") == "thompson"
    recorded = body["mean" if is_random else "index"]
    scale = max(1.0, float(np.abs(recorded).max()))
    expected = offer.mean if is_random and offer.mean is not None else offer.index
    is_same = np.allclose(expected, recorded, rtol=0, atol=TOLERANCE * scale)
    place = {arm: position for position, arm in enumerate(offer.ids)}
    again = [place[arm] for arm in proposal.decision.preferred]
    # Equal numbers may be rounded to either side of a tie.
    # A search may have been cut short, then or now.
    if again != body["preferred"] and not (oracle.is_search or is_random):
        before, after = recorded[body["preferred"]].sum(), recorded[again].sum()
        is_same &= abs(before - after) <= len(recorded) * TOLERANCE * scale
    if not is_same:
        result.differing.append(str(event.decision))
