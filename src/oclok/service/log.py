"""The log: what happened to each agent, numbered in the order in which it was committed.

A writer locks the agent's row in `agents`, which hands out the numbers, until its commit. Numbers
therefore become visible in order and without gaps, on PostgreSQL too, where those of a sequence
would not: a reader of event n has seen all events before it.
"""
# Tested in tests/service/test_durability.py: what it appended is there after a kill.

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import sqlalchemy as sa

from oclok.errors import DamagedLogError
from oclok.service.database import Database, execute
from oclok.service.group_commit import GroupCommit
from oclok.service.problems import NotFoundError

#: Events that are read at once.
BATCH = 500


class Event(NamedTuple):
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


#: Columns of an event, and of an agent.
EVENT, AGENT = ", ".join(Event._fields), ", ".join(AgentRow._fields)


class OvertakenError(Exception):
    """Something was appended that the writer did not know of."""


class RepeatedError(Exception):
    """A decision with this id is in the log."""


class Log:
    """Appends to, and reads from, the logs of all agents."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._commits: dict[int, GroupCommit[Event]] = {}

    def agents(self, after: str = "", most: int = 2**53) -> list[AgentRow]:
        """Return up to `most` agents whose names come after `after`, by name."""
        sql = f"SELECT {AGENT} FROM agents WHERE name > :after ORDER BY name LIMIT :most"
        return [AgentRow._make(row) for row in self.database.rows(sql, after=after, most=most)]

    def agent(self, name: str) -> AgentRow:
        """Return the agent with a name; `NotFoundError` if there is none."""
        rows = self.database.rows(f"SELECT {AGENT} FROM agents WHERE name = :name", name=name)
        if not rows:
            raise NotFoundError(f"there is no agent {name!r}")
        return AgentRow._make(rows[0])

    def add_agent(self, name: str, settings: str) -> bool:
        """Make an agent, and return whether it is new."""
        sql = """INSERT INTO agents (name, settings, created, last, rounds)
            VALUES (:name, :settings, :now, 0, 0) ON CONFLICT (name) DO NOTHING"""
        with self.database.write() as connection:
            made = execute(connection, sql, name=name, settings=settings, now=time.time())
            return bool(made.rowcount)

    def summarise(self, agent: int, summary: str) -> None:
        """Keep what a list of agents shows of one."""
        sql = "UPDATE agents SET summary = :summary WHERE id = :agent"
        with self.database.write() as connection:
            execute(connection, sql, agent=agent, summary=summary)

    def latest(self, agents: Sequence[int]) -> dict[int, int]:
        """Return the number of the latest event of agents, by their numbers, if they exist."""
        numbers = ", ".join(map(str, agents))
        with self.database.read() as connection:
            sql = f"SELECT id, last FROM agents WHERE id IN ({numbers or 0})"
            return {row[0]: row[1] for row in connection.exec_driver_sql(sql).all()}

    def mark(self) -> tuple[int, int, int]:
        """Return what changes whenever anything is appended, or an agent is made or deleted."""
        # Numbers of agents are not used again: the same count and highest number, the same agents.
        sql = "SELECT count(*), coalesce(max(id), 0), coalesce(sum(last), 0) FROM agents"
        return tuple(map(int, self.database.rows(sql)[0]))  # type: ignore[return-value]

    def damaged(self, agent: int | None = None) -> dict[str, DamagedLogError]:
        """Return which event is missing, by agent, of one agent or of all."""
        short = f"""SELECT id, name, last FROM agents
            WHERE {"" if agent is None else "id = :agent AND"} last >
            (SELECT count(*) FROM events WHERE events.agent = agents.id AND seq <= last)"""
        gap = """SELECT min(seq) FROM
            (SELECT 0 AS seq UNION ALL SELECT seq FROM events WHERE agent = :agent) AS present
            WHERE seq < :last AND NOT EXISTS (SELECT 1 FROM events AS later
                WHERE later.agent = :agent AND later.seq = present.seq + 1)"""
        with self.database.read() as connection:
            found = {}
            for row in execute(connection, short, agent=agent).all():
                before = execute(connection, gap, agent=row.id, last=row.last).scalar_one()
                found[row.name] = _missing(row.name, before + 1)
            return found

    def check(self, agent: int) -> None:
        """Raise a `DamagedLogError` unless all events of an agent are there."""
        for reason in self.damaged(agent).values():
            raise reason

    def append(
        self, agent: int, events: Sequence[Event], expected: int | None = None
    ) -> list[Event]:
        """Commit events, all or none, and return them with their numbers.

        `OvertakenError` unless the latest event has the number `expected`, if given.
        """
        if expected is not None:
            return self._write(agent, events, expected)
        if agent not in self._commits:
            commits = GroupCommit(partial(self._write, agent), divisive=RepeatedError)
            self._commits.setdefault(agent, commits)  # another thread may have made one
        return self._commits[agent].commit(events)

    def after(self, agent: int, seq: int, until: int | None = None) -> Iterator[Event]:
        """Yield the events of an agent after event `seq`, in their order."""
        where = f"seq > :seq AND seq <= :until ORDER BY seq LIMIT {BATCH}"
        while True:
            events = self._events(where, agent, seq=seq, until=2**62 if until is None else until)
            for event in events:
                if event.seq != seq + 1:
                    raise _missing(f"number {agent}", seq + 1)
                seq = event.seq
                yield event
            if len(events) < BATCH:
                break
        if until is not None and seq < until:
            raise _missing(f"number {agent}", seq + 1)

    def changes(self, agent: int) -> list[Event]:
        """Return what was done to an agent: settings, resets, erasures."""
        return self._events("kind = 'change' ORDER BY seq", agent)

    def decision(self, agent: int, decision: str) -> Event | None:
        """Return the event of a decision."""
        found = self._events("decision = :id AND kind = 'decision'", agent, id=decision)
        return found[0] if found else None

    def feedback(self, agent: int, decision: str) -> list[Event]:
        """Return the feedback on a decision, in order."""
        is_feedback = "decision IS NOT NULL AND kind <> 'decision'"  # as its index says
        return self._events(f"decision = :id AND {is_feedback} ORDER BY seq", agent, id=decision)

    def latest_decisions(self, agent: int, before: int, most: int, start: str = "") -> list[Event]:
        """Return up to `most` decisions of rounds below `before` whose ids begin with `start`."""
        where = "round IS NOT NULL AND decision IS NOT NULL AND round < :before"
        values: dict[str, Any] = {"before": before, "most": most}
        if start:  # of the wildcards, an id may have the underscore only
            where += " AND decision LIKE :start ESCAPE '\\'"
            values["start"] = start.replace("_", "\\_") + "%"
        return self._events(f"{where} ORDER BY round DESC LIMIT :most", agent, **values)

    def has_reduced(self, agent: int) -> bool:
        """Return whether retention has reduced decisions of an agent."""
        return self._has("reduced = 1", agent)

    def has_before(self, agent: int, when: float) -> bool:
        """Return whether there are decisions before a time that retention has not reduced."""
        return self._has("kind = 'decision' AND reduced = 0 AND time < :when", agent, when=when)

    def snapshot(self, agent: int) -> tuple[int, bytes] | None:
        """Return the number of the event that a snapshot was made after, and the snapshot."""
        sql = "SELECT seq, content FROM snapshots WHERE agent = :agent"
        rows = self.database.rows(sql, agent=agent)
        return (rows[0][0], rows[0][1]) if rows else None

    def snapshot_seq(self, agent: int) -> int:
        """Return the number of the event that the snapshot was made after; 0 without one."""
        rows = self.database.rows("SELECT seq FROM snapshots WHERE agent = :agent", agent=agent)
        return rows[0][0] if rows else 0

    def save_snapshot(self, agent: int, seq: int, content: bytes) -> None:
        """Keep a snapshot, unless there is a later one."""
        # A model from before a change must not come back, nor that of an agent that was deleted.
        sql = """INSERT INTO snapshots (agent, seq, created, content)
            SELECT id, :seq, :now, :content FROM agents WHERE id = :agent AND NOT EXISTS
                (SELECT 1 FROM events
                WHERE events.agent = :agent AND kind = 'change' AND events.seq > :seq)
            ON CONFLICT (agent) DO UPDATE SET seq = excluded.seq, created = excluded.created,
            content = excluded.content WHERE snapshots.seq < excluded.seq"""
        with self.database.write() as connection:
            connection.detach()  # closed at the end: SQLite would keep a copy for the next time
            execute(connection, sql, agent=agent, seq=seq, now=time.time(), content=content)

    def _has(self, where: str, agent: int, **values: Any) -> bool:
        sql = f"SELECT 1 FROM events WHERE agent = :agent AND {where} LIMIT 1"
        return bool(self.database.rows(sql, agent=agent, **values))

    def _events(self, where: str, agent: int, **values: Any) -> list[Event]:
        sql = f"SELECT {EVENT} FROM events WHERE agent = :agent AND {where}"
        return [Event._make(row) for row in self.database.rows(sql, agent=agent, **values)]

    def _write(
        self, agent: int, events: Sequence[Event], expected: int | None = None
    ) -> list[Event]:
        is_sqlite, now = self.database.is_sqlite, time.time()
        nth = list(accumulate(int(event.kind == "decision") for event in events))
        values = {
            "agent": agent,
            "expected": expected,
            "events": len(events),
            "decisions": nth[-1],
            "now": now,
            "kinds": [event.kind for event in events],
            "ids": [event.decision for event in events],
            "nths": nth,
            "versions": [event.model_version for event in events],
            "bodies": [event.body for event in events],
        }
        try:
            with self.database.append() as connection:
                append = _NUMBERS_SQLITE if is_sqlite else _APPEND_POSTGRES
                before = connection.exec_driver_sql(append, values).all()
                if not before and (expected is None or is_sqlite):  # PostgreSQL cannot tell
                    raise NotFoundError("the agent has been deleted")
                if not before or expected not in (None, before[0][0]):
                    raise OvertakenError
                last, rounds = before[0]
                written = [
                    event._replace(
                        seq=last + place,
                        time=now,
                        round=rounds + nth[place - 1] if event.kind == "decision" else None,
                    )
                    for place, event in enumerate(events, 1)
                ]
                if is_sqlite:
                    connection.exec_driver_sql(_APPEND_SQLITE, [(agent, *e) for e in written])
                return written
        except sa.exc.IntegrityError:
            raise RepeatedError from None


#: Take numbers for new events, and return the last event and round before them.
_NUMBERS_SQLITE = """
    UPDATE agents SET last = last + :events, rounds = rounds + :decisions WHERE id = :agent
    RETURNING last - :events, rounds - :decisions"""
_APPEND_SQLITE = f"""
    INSERT INTO events (agent, {EVENT}) VALUES ({", ".join("?" * (1 + len(Event._fields)))})"""
#: Numbers and rows in one statement: one round trip, which commits by itself.
_APPEND_POSTGRES = """
    WITH numbers AS (
        UPDATE agents SET last = last + %(events)s::bigint, rounds = rounds + %(decisions)s::bigint
        WHERE id = %(agent)s AND (%(expected)s::bigint IS NULL OR last = %(expected)s)
        RETURNING last - %(events)s::bigint AS last, rounds - %(decisions)s::bigint AS rounds)
    INSERT INTO events (agent, seq, kind, time, decision, round, model_version, body)
    SELECT %(agent)s, numbers.last + place, kind, %(now)s, decision,
        CASE WHEN kind = 'decision' THEN numbers.rounds + nth END, model_version, body
    FROM numbers, unnest(
        %(kinds)b::varchar[], %(ids)b::varchar[], %(nths)b::bigint[], %(versions)b::bigint[],
        %(bodies)b::bytea[]
    ) WITH ORDINALITY AS new (kind, decision, nth, model_version, body, place)
    RETURNING (SELECT last FROM numbers), (SELECT rounds FROM numbers)"""


def _missing(agent: str, seq: int) -> DamagedLogError:
    return DamagedLogError(
        f"event {seq} of agent {agent} is missing from the log; restore the database from a backup"
    )
