"""The log: what happened to each agent, numbered in the order in which it was committed.

A writer locks the agent's row in `agents`, which hands out the numbers, until its commit. Numbers
therefore become visible in order and without gaps, on PostgreSQL too, where those of a sequence
would not: a reader of event n has seen all events before it.
"""
# Tested in tests/service/test_durability.py: what it appended is there after a kill.

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import sqlalchemy as sa

from oclok.errors import DamagedLogError
from oclok.service.database import Database
from oclok.service.group_commit import GroupCommit
from oclok.service.problems import NotFoundError

#: Events that are read at once.
BATCH = 500
_COLUMNS = "seq, kind, time, decision, round, model_version, body"


@dataclass(frozen=True)
class Event:
    """Something that happened to an agent.

    Attributes:
        kind: "decision", "outcomes", "observations", "accept", "expire" or "change".
        body: JSON; of a decision: packed, see `packing`.
        decision: id of the decision that it is about.
        model_version: of a decision: steps of learning that its model had taken.
        seq: its number in the agent's log; 0 until it is there.
        time: when it was appended, in seconds.
        round: of a decision: how many decisions there were with it.
    """

    kind: str
    body: bytes
    decision: str | None = None
    model_version: int | None = None
    seq: int = 0
    time: float = 0.0
    round: int | None = None


class AgentRow(NamedTuple):
    """An agent as it stands in the database."""

    id: int
    name: str
    settings: str
    created: float
    last: int
    rounds: int
    state: str = "active"
    summary: str | None = None


class OvertakenError(Exception):
    """Something was appended that the writer did not know of."""


class RepeatedError(Exception):
    """A decision with this id is in the log."""


class Log:
    """Appends to, and reads from, the logs of all agents."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._commits: dict[int, GroupCommit[Event]] = {}
        self._guard = threading.Lock()

    def agents(self, after: str = "", most: int = 2**53) -> list[AgentRow]:
        """Return up to `most` agents whose names come after `after`, by name."""
        with self.database.read() as connection:
            rows = connection.execute(_AGENTS, {"after": after, "most": most}).all()
        return [AgentRow(*row) for row in rows]

    def latest(self, agents: Sequence[int]) -> dict[int, int]:
        """Return the number of the latest event of agents, by their numbers, if they exist."""
        with self.database.read() as connection:
            rows = connection.execute(_LAST, {"agents": list(agents) or [0]}).all()
        return {row[0]: row[1] for row in rows}

    def damaged(self) -> list[str]:
        """Return the names of agents of which events are missing."""
        with self.database.read() as connection:
            return [row[0] for row in connection.execute(_DAMAGED).all()]

    def check(self, row: AgentRow) -> None:
        """Raise a `DamagedLogError` unless all events of an agent are there."""
        values = {"agent": row.id, "last": row.last}
        with self.database.read() as connection:
            if connection.execute(_COUNT, values).scalar() == row.last:
                return
            first = connection.execute(_FIRST_GAP, values).scalar()
        raise _missing(row.name, int(first or 0) + 1)

    def summarise(self, agent: int, summary: str) -> None:
        """Keep what a list of agents shows of one."""
        with self.database.write() as connection:
            connection.execute(_SUMMARISE, {"agent": agent, "summary": summary})

    def agent(self, name: str) -> AgentRow | None:
        """Return the agent with a name."""
        with self.database.read() as connection:
            row = connection.execute(_AGENT, {"name": name}).first()
        return None if row is None else AgentRow(*row)

    def add_agent(self, name: str, settings: str) -> bool:
        """Make an agent, and return whether it is new."""
        values = {"name": name, "settings": settings, "now": time.time()}
        with self.database.write() as connection:
            return bool(connection.execute(_ADD_AGENT, values).rowcount)

    def append(
        self, agent: int, events: Sequence[Event], expected: int | None = None
    ) -> list[Event]:
        """Commit events and return them with their numbers.

        Args:
            agent: the number of the agent.
            events: in their order; either all are committed or none is.
            expected: number of the event that must be the latest; `OvertakenError` otherwise.
        """
        if expected is not None:
            return self._write(agent, events, expected)
        with self._guard:
            commits = self._commits.get(agent)
            if commits is None:
                commits = GroupCommit(partial(self._write, agent), divisive=RepeatedError)
                self._commits[agent] = commits
        return commits.commit(events)

    def after(self, agent: int, seq: int, until: int | None = None) -> Iterator[Event]:
        """Yield the events of an agent after event `seq`, in their order."""
        while True:
            values = {"agent": agent, "seq": seq, "most": BATCH}
            with self.database.read() as connection:
                rows = connection.execute(_AFTER, values).all()
            for row in rows:
                event = event_of(row)
                if until is not None and event.seq > until:
                    return
                if event.seq != seq + 1:
                    raise _missing(f"number {agent}", seq + 1)
                seq = event.seq
                yield event
            if len(rows) < BATCH:
                if until is not None and seq < until:
                    raise _missing(f"number {agent}", seq + 1)
                return

    def is_reduced(self, agent: int) -> bool:
        """Return whether retention has reduced decisions of an agent."""
        with self.database.read() as connection:
            return connection.execute(_REDUCED, {"agent": agent}).first() is not None

    def has_before(self, agent: int, when: float) -> bool:
        """Return whether there are decisions before a time that retention has not reduced."""
        with self.database.read() as connection:
            values = {"agent": agent, "when": when}
            return connection.execute(_BEFORE, values).first() is not None

    def changes(self, agent: int, seq: int = 0) -> list[Event]:
        """Return what was done to an agent after event `seq`: settings, resets, erasures."""
        with self.database.read() as connection:
            rows = connection.execute(_CHANGES, {"agent": agent, "seq": seq}).all()
        return [event_of(row) for row in rows]

    def decision(self, agent: int, decision: str) -> Event | None:
        """Return the event of a decision."""
        with self.database.read() as connection:
            row = connection.execute(_DECISION, {"agent": agent, "decision": decision}).first()
        return None if row is None else event_of(row)

    def feedback(self, agent: int, decision: str) -> list[Event]:
        """Return the feedback on a decision, in order."""
        with self.database.read() as connection:
            rows = connection.execute(_FEEDBACK, {"agent": agent, "decision": decision}).all()
        return [event_of(row) for row in rows]

    def latest_decisions(self, agent: int, before: int, most: int, start: str = "") -> list[Event]:
        """Return up to `most` decisions of rounds below `before` whose ids begin with `start`."""
        start = start.replace("_", "\\_")  # the only wildcard that an id may have
        values = {"agent": agent, "before": before, "most": most, "start": f"{start}%"}
        with self.database.read() as connection:
            rows = connection.execute(_LATEST_LIKE if start else _LATEST, values).all()
        return [event_of(row) for row in rows]

    def snapshot(self, agent: int) -> tuple[int, bytes] | None:
        """Return the number of the event that a snapshot was made after, and the snapshot."""
        with self.database.read() as connection:
            row = connection.execute(_SNAPSHOT, {"agent": agent}).first()
        return None if row is None else (int(row[0]), bytes(row[1]))

    def snapshot_seq(self, agent: int) -> int:
        """Return the number of the event that the snapshot was made after; 0 without one."""
        with self.database.read() as connection:
            return int(connection.execute(_SNAPSHOT_SEQ, {"agent": agent}).scalar() or 0)

    def save_snapshot(self, agent: int, seq: int, content: bytes) -> None:
        """Keep a snapshot, unless there is a later one."""
        values = {"agent": agent, "seq": seq, "now": time.time(), "content": content}
        with self.database.write() as connection:
            connection.detach()  # closed at the end: SQLite would keep a copy for the next time
            connection.execute(_SAVE_SNAPSHOT, values)

    def _write(
        self, agent: int, events: Sequence[Event], expected: int | None = None
    ) -> list[Event]:
        now = time.time()
        decisions = list(accumulate(int(event.kind == "decision") for event in events))
        append = _append_sqlite if self.database.is_sqlite else _append_postgres
        try:
            with self.database.cursor() as cursor:
                first, round_ = append(cursor, agent, events, decisions, expected, now)
        except self.database.driver.IntegrityError:
            raise RepeatedError from None
        return [
            replace(
                event,
                seq=first + place,
                time=now,
                round=round_ + decisions[place] if event.kind == "decision" else None,
            )
            for place, event in enumerate(events)
        ]


def _append_sqlite(
    cursor: Any,
    agent: int,
    events: Sequence[Event],
    decisions: list[int],
    expected: int | None,
    now: float,
) -> tuple[int, int]:
    """Write events; return the number of the first one, and how many rounds came before."""
    cursor.execute(
        "UPDATE agents SET last = last + ?, rounds = rounds + ? WHERE id = ? "
        "RETURNING last, rounds",
        (len(events), decisions[-1], agent),
    )
    rows = cursor.fetchall()
    if not rows:
        raise NotFoundError("the agent has been deleted")
    [(last, rounds)] = rows
    first, before = last - len(events) + 1, rounds - decisions[-1]
    if expected is not None and first != expected + 1:
        raise OvertakenError
    entries = [
        (
            agent,
            first + place,
            event.kind,
            now,
            event.decision,
            before + decisions[place] if event.kind == "decision" else None,
            event.model_version,
            event.body,
        )
        for place, event in enumerate(events)
    ]
    cursor.executemany(
        f"INSERT INTO events (agent, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entries
    )
    return first, before


#: Numbers and rows in one statement: one round trip, which commits by itself.
_APPEND_POSTGRES = f"""
    WITH numbers AS (
        UPDATE agents SET last = last + %(events)s::bigint, rounds = rounds + %(decisions)s::bigint
        WHERE id = %(agent)s AND (%(expected)s::bigint IS NULL OR last = %(expected)s)
        RETURNING last - %(events)s::bigint AS seq, rounds - %(decisions)s::bigint AS round)
    INSERT INTO events (agent, {_COLUMNS})
    SELECT %(agent)s, numbers.seq + place, kind, %(now)s, decision,
        CASE WHEN kind = 'decision' THEN numbers.round + nth END, model_version, body
    FROM numbers, unnest(
        %(kinds)b::varchar[], %(ids)b::varchar[], %(nths)b::bigint[], %(versions)b::bigint[],
        %(bodies)b::bytea[]
    ) WITH ORDINALITY AS new (kind, decision, nth, model_version, body, place)
    RETURNING seq, (SELECT round FROM numbers)"""


def _append_postgres(
    cursor: Any,
    agent: int,
    events: Sequence[Event],
    decisions: list[int],
    expected: int | None,
    now: float,
) -> tuple[int, int]:
    """Write events; return the number of the first one, and how many rounds came before."""
    values = {
        "agent": agent,
        "expected": expected,
        "events": len(events),
        "decisions": decisions[-1],
        "now": now,
        "kinds": [event.kind for event in events],
        "ids": [event.decision for event in events],
        "nths": decisions,
        "versions": [event.model_version for event in events],
        "bodies": [event.body for event in events],
    }
    cursor.execute(_APPEND_POSTGRES, values)
    rows = cursor.fetchall()
    if not rows and expected is None:
        raise NotFoundError("the agent has been deleted")
    if not rows:
        raise OvertakenError
    return int(min(row[0] for row in rows)), int(rows[0][1])


def event_of(row: Any) -> Event:
    """Return the event of a row with `_COLUMNS`."""
    seq, kind, when, decision, round_, model_version, body = row
    return Event(kind, bytes(body), decision, model_version, seq, when, round_)


def _missing(agent: str, seq: int) -> DamagedLogError:
    return DamagedLogError(
        f"event {seq} of agent {agent} is missing from the log; restore the database from a backup"
    )


_ROW = "id, name, settings, created, last, rounds, state, summary"
_AGENTS = sa.text(f"SELECT {_ROW} FROM agents WHERE name > :after ORDER BY name LIMIT :most")
_AGENT = sa.text(f"SELECT {_ROW} FROM agents WHERE name = :name")
_LAST = sa.text("SELECT id, last FROM agents WHERE id IN :agents").bindparams(
    sa.bindparam("agents", expanding=True)
)
_COUNT = sa.text("SELECT count(*) FROM events WHERE agent = :agent AND seq <= :last")
_FIRST_GAP = sa.text(
    "SELECT min(seq) FROM (SELECT 0 AS seq UNION ALL SELECT seq FROM events WHERE agent = :agent) "
    "AS present WHERE seq < :last AND NOT EXISTS (SELECT 1 FROM events AS later "
    "WHERE later.agent = :agent AND later.seq = present.seq + 1)"
)
_DAMAGED = sa.text(
    "SELECT name FROM agents LEFT JOIN (SELECT agent, count(*) AS events FROM events "
    "GROUP BY agent) AS counted ON counted.agent = agents.id WHERE coalesce(events, 0) < last"
)
_SUMMARISE = sa.text("UPDATE agents SET summary = :summary WHERE id = :agent")
_ADD_AGENT = sa.text(
    "INSERT INTO agents (name, settings, created, last, rounds) "
    "VALUES (:name, :settings, :now, 0, 0) ON CONFLICT (name) DO NOTHING"
)
_AFTER = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND seq > :seq ORDER BY seq LIMIT :most"
)
_DECISION = sa.text(
    f"SELECT {_COLUMNS} FROM events "
    "WHERE agent = :agent AND decision = :decision AND kind = 'decision'"
)
_FEEDBACK = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND decision = :decision "
    "AND decision IS NOT NULL AND kind <> 'decision' ORDER BY seq"
)
_LATEST = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND round IS NOT NULL "
    "AND decision IS NOT NULL AND round < :before ORDER BY round DESC LIMIT :most"
)
_LATEST_LIKE = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND round IS NOT NULL "
    "AND round < :before AND decision LIKE :start ESCAPE '\\' ORDER BY round DESC LIMIT :most"
)
_CHANGES = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND kind = 'change' AND seq > :seq "
    "ORDER BY seq"
)
_REDUCED = sa.text("SELECT 1 FROM events WHERE agent = :agent AND reduced = 1 LIMIT 1")
_BEFORE = sa.text(
    "SELECT 1 FROM events WHERE agent = :agent AND kind = 'decision' AND reduced = 0 "
    "AND time < :when LIMIT 1"
)
_SNAPSHOT = sa.text("SELECT seq, content FROM snapshots WHERE agent = :agent")
_SNAPSHOT_SEQ = sa.text("SELECT seq FROM snapshots WHERE agent = :agent")
_SAVE_SNAPSHOT = sa.text(
    # A model from before a change must not come back, nor that of an agent that was deleted.
    "INSERT INTO snapshots (agent, seq, created, content) SELECT id, :seq, :now, :content "
    "FROM agents WHERE id = :agent AND NOT EXISTS (SELECT 1 FROM events "
    "WHERE events.agent = :agent AND kind = 'change' AND events.seq > :seq) "
    "ON CONFLICT (agent) DO UPDATE SET seq = excluded.seq, created = excluded.created, "
    "content = excluded.content WHERE snapshots.seq < excluded.seq"
)
