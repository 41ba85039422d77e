"""What can be done to an agent: change, pause, archive, reset, clone, erase, delete.

Each is one transaction that appends an event of kind "change" to the log, so that all processes
and `replay` know when it happened, and a row to the audit trail.

| what     | body of the event            | a replica that reads it                              |
|----------|------------------------------|------------------------------------------------------|
| settings | from, to                     | changes; learns the past anew if its policy does      |
| state    | state                        | is active, paused (no decisions) or archived          |
| reset    |                              | starts over, with the same settings                   |
| erase    | arm or decision              | learns the past anew, without what was erased         |

Retention and erasure rewrite the bodies of decisions; events keep their numbers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json
from sqlalchemy.engine import Connection

from oclok.errors import InputError
from oclok.oracles import oracle_from_json
from oclok.service.log import AgentRow, Event, Log, event_of
from oclok.service.packing import pack, unpack
from oclok.service.problems import ConflictError, NotFoundError
from oclok.service.replica import make_agent, with_defaults

STATES = ("active", "paused", "archived")
#: Settings that cannot change: what was learned depends on them.
FIXED = ("features", "outcome_range")
#: Decisions that retention rewrites in one transaction.
BATCH = 200

Rewrites = list[tuple[int, bytes, str | None]]


class Lifecycle:
    """Changes to agents.

    Args:
        log: the logs of all agents.
        who: the name of the key, for the audit trail.
    """

    def __init__(self, log: Log, who: str) -> None:
        self.log, self.who = log, who
        self.database = log.database

    def change(self, name: str, changes: dict[str, Any]) -> None:
        """Change settings, or the `state`; `InputError` if the result makes no sense."""
        row = self._row(name)
        changes = dict(changes)
        state = changes.pop("state", None)
        fixed = [key for key in FIXED if key in changes]
        if fixed:
            raise InputError(f"{fixed[0]} cannot change; make another agent, or clone this one")
        before = with_defaults(json.loads(row.settings))
        after = {**before, **changes}
        make_agent(after)  # raises what is wrong with it
        after["oracle"] = oracle_from_json(after["oracle"]).to_json()
        if after != before:
            text = json.dumps(after, sort_keys=True)
            body = {"what": "settings", "from": before, "to": after}
            detail = {key: after[key] for key in after if after[key] != before.get(key)}

            def store(connection: Connection) -> None:
                values = {"agent": row.id, "before": row.settings, "after": text}
                if not connection.execute(_SET_SETTINGS, values).rowcount:
                    raise ConflictError(f"agent {name!r} is being changed by others; try again")

            self._append(row, body, "settings", detail, store)
        if state is not None and state != row.state:
            if state not in STATES:
                raise InputError(f"state must be one of {', '.join(STATES)}; got {state!r}")
            values = {"agent": row.id, "state": state}
            self._append(
                row,
                {"what": "state", "state": state},
                "state",
                {"state": state},
                lambda connection: connection.execute(_SET_STATE, values),
            )

    def reset(self, name: str) -> None:
        """Forget everything that was learned; the log keeps it."""
        self._append(self._row(name), {"what": "reset"}, "reset", {})

    def clone(self, name: str, other: str, learned: bool = True) -> None:
        """Make another agent with the same settings and, if `learned`, the same log."""
        row = self._row(name)
        values = {"other": other, "agent": row.id, "now": time.time(), "settings": row.settings}
        with self.database.write() as connection:
            made = connection.execute(_CLONE if learned else _CLONE_EMPTY, values).first()
            if made is None:
                raise ConflictError(f"there is an agent {other!r}")
            if learned:
                for statement in (_CLONE_EVENTS, _CLONE_SNAPSHOT):
                    connection.execute(statement, {**values, "new": made[0]})
            self._audit(connection, other, "clone", {"from": name, "learned": learned})

    def delete(self, name: str) -> None:
        """Delete an agent, its log and its model; the audit trail stays."""
        row = self._row(name)
        with self.database.write() as connection:
            connection.execute(_LOCK, {"agent": row.id})
            for statement in _DELETE:
                connection.execute(statement, {"agent": row.id})
            self._audit(connection, name, "delete", {"events": row.last})

    def erase(self, name: str, arm: str | int | None = None, decision: str | None = None) -> int:
        """Erase an arm or a decision from the log and the model; return how many events had it."""
        if (arm is None) == (decision is None):
            raise InputError("give an arm or a decision to erase, one of them")
        row = self._row(name)
        erase = _without_arm(arm) if decision is None else _without_decision(decision)
        events = self.log.after(row.id, 0, row.last)
        found: Rewrites = [rewrite for event in events for rewrite in erase(event)]
        scanned = row.last

        def rewrite(connection: Connection) -> None:
            values = {"agent": row.id, "seq": scanned}
            late = [event_of(entry) for entry in connection.execute(_SINCE, values)]
            for seq, body, kept in found + [new for event in late for new in erase(event)]:
                values = {"agent": row.id, "seq": seq, "body": body, "decision": kept}
                connection.execute(_REWRITE, values)
            connection.execute(_DROP_SNAPSHOT, {"agent": row.id})

        # The trail says that something was erased, not what.
        what = "arm" if decision is None else "decision"
        self._append(row, {"what": "erase"}, "erase", {"what": what, "events": len(found)}, rewrite)
        return len({seq for seq, _, _ in found})

    def keep(self, row: AgentRow, since: float) -> int:
        """Reduce decisions before a time to what learning needs: the arms that were chosen.

        Only those that the latest snapshot knows: a model that is built from reduced decisions
        has the same outcomes, but not the same scales of features.
        """
        done = 0
        while True:
            values = {"agent": row.id, "since": since, "most": BATCH}
            with self.database.write() as connection:
                events = [event_of(entry) for entry in connection.execute(_UNREDUCED, values)]
                for event in events:
                    body = event.body
                    if event.decision is not None:
                        full = unpack(body)
                        body = pack(reduced(full, full["chosen"]))
                    entry = {"agent": row.id, "seq": event.seq, "body": body}
                    connection.execute(_REDUCE, entry)
            done += len(events)
            if len(events) < BATCH:
                return done

    def trail(self, name: str | None = None, before: int = 2**53, most: int = 100) -> list[Any]:
        """Return the latest entries of the audit trail, of one agent or of all."""
        values = {"name": name or "", "before": before, "most": most}
        with self.database.read() as connection:
            rows = connection.execute(_TRAIL if name is None else _TRAIL_OF, values).all()
        names = ("id", "time", "who", "agent", "action", "detail")
        return [
            dict(zip(names, row, strict=True)) | {"detail": json.loads(row[-1])} for row in rows
        ]

    def note(self, agent: str, action: str, detail: dict[str, Any]) -> None:
        """Add an entry to the audit trail."""
        with self.database.write() as connection:
            self._audit(connection, agent, action, detail)

    def _row(self, name: str) -> AgentRow:
        row = self.log.agent(name)
        if row is None:
            raise NotFoundError(f"there is no agent {name!r}")
        return row

    def _append(
        self,
        row: AgentRow,
        body: dict[str, Any],
        action: str,
        detail: dict[str, Any],
        also: Callable[[Connection], Any] = lambda connection: None,
    ) -> None:
        """Append a change to the log, with what belongs to it, in one transaction."""
        with self.database.write() as connection:
            last = connection.execute(_NEXT, {"agent": row.id}).scalar()
            if last is None:
                raise NotFoundError(f"there is no agent {row.name!r}")
            also(connection)
            values = {"agent": row.id, "seq": last, "now": time.time(), "body": to_json(body)}
            connection.execute(_APPEND, values)
            self._audit(connection, row.name, action, detail)

    def _audit(self, connection: Connection, agent: str, action: str, detail: Any) -> None:
        values = {"now": time.time(), "who": self.who, "agent": agent, "action": action}
        connection.execute(_AUDIT, {**values, "detail": json.dumps(detail, sort_keys=True)})


def reduced(body: dict[str, Any], places: list[int]) -> dict[str, Any]:
    """Return the body of a decision with the arms at some positions only."""
    new = {old: position for position, old in enumerate(places)}
    ids = [body["ids"][place] for place in places]
    result = {**body, "ids": ids, "reduced": True}
    result["columns"] = {
        name: [values[place] for place in places] for name, values in body["columns"].items()
    }
    for name in ("index", "mean", "std", "propensity"):
        if body.get(name) is not None:
            result[name] = body[name][places]
    kept = [place in new for place in body["chosen"]]
    for name in ("exact_index", "exact_mean", "exact_std"):
        if body.get(name) is not None:
            result[name] = body[name][kept]
    for name in ("chosen", "preferred"):
        result[name] = [new[place] for place in body[name] if place in new]
    for name in ("include", "exclude"):
        if name in body:
            result[name] = [arm for arm in body[name] if arm in ids]
    # The oracle may have described all arms.
    result["oracle"] = {"kind": "TopK", "k": max(1, len(result["chosen"]))}
    return result


def _erased(body: dict[str, Any]) -> bytes:
    """Return what stays of a decision: the features of the agent, if this one set them."""
    return to_json({"schema": body["schema"]} if "schema" in body else {})


def _without_arm(arm: str | int | None) -> Callable[[Event], Iterator[tuple[int, bytes, Any]]]:
    def rewritten(event: Event) -> Iterator[tuple[int, bytes, Any]]:
        if event.decision is None:
            return
        if event.kind == "decision":
            body = unpack(event.body)
            if arm in body["ids"]:
                places = [place for place, each in enumerate(body["ids"]) if each != arm]
                new = pack(reduced(body, places)) if places else _erased(body)
                yield event.seq, new, event.decision if places else None
        else:
            body = from_json(event.body)
            if body.get("arm") == arm:
                yield event.seq, b'{"arm":null}', event.decision
            elif any(each == arm for each, _ in body.get("outcomes", ())):
                left = [entry for entry in body["outcomes"] if entry[0] != arm]
                yield event.seq, to_json({**body, "outcomes": left}), event.decision

    return rewritten


def _without_decision(name: str) -> Callable[[Event], Iterator[tuple[int, bytes, Any]]]:
    def rewritten(event: Event) -> Iterator[tuple[int, bytes, Any]]:
        if event.decision == name:
            is_decision = event.kind == "decision"
            yield event.seq, _erased(unpack(event.body)) if is_decision else b"{}", None

    return rewritten


_COLUMNS = "seq, kind, time, decision, round, model_version, body"
_NEXT = sa.text("UPDATE agents SET last = last + 1 WHERE id = :agent RETURNING last")
_LOCK = sa.text("UPDATE agents SET last = last WHERE id = :agent")
_APPEND = sa.text(
    "INSERT INTO events (agent, seq, kind, time, body) VALUES (:agent, :seq, 'change', :now, :body)"
)
_SET_SETTINGS = sa.text(
    "UPDATE agents SET settings = :after WHERE id = :agent AND settings = :before"
)
_SET_STATE = sa.text("UPDATE agents SET state = :state WHERE id = :agent")
_SINCE = sa.text(f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND seq > :seq")
_REWRITE = sa.text(
    "UPDATE events SET body = :body, decision = :decision WHERE agent = :agent AND seq = :seq"
)
_DROP_SNAPSHOT = sa.text("DELETE FROM snapshots WHERE agent = :agent")
_DELETE = [
    sa.text("DELETE FROM snapshots WHERE agent = :agent"),
    sa.text("DELETE FROM events WHERE agent = :agent"),
    sa.text("DELETE FROM agents WHERE id = :agent"),
]
_CLONE = sa.text(
    "INSERT INTO agents (name, settings, created, last, rounds, state) SELECT :other, settings, "
    "created, last, rounds, 'active' FROM agents WHERE id = :agent "
    "ON CONFLICT (name) DO NOTHING RETURNING id"
)
_CLONE_EMPTY = sa.text(
    "INSERT INTO agents (name, settings, created, last, rounds) "
    "VALUES (:other, :settings, :now, 0, 0) ON CONFLICT (name) DO NOTHING RETURNING id"
)
_CLONE_EVENTS = sa.text(
    f"INSERT INTO events (agent, {_COLUMNS}, reduced) "
    f"SELECT :new, {_COLUMNS}, reduced FROM events WHERE agent = :agent"
)
_CLONE_SNAPSHOT = sa.text(
    "INSERT INTO snapshots (agent, seq, created, content) "
    "SELECT :new, seq, created, content FROM snapshots WHERE agent = :agent"
)
_UNREDUCED = sa.text(
    f"SELECT {_COLUMNS} FROM events WHERE agent = :agent AND kind = 'decision' AND reduced = 0 "
    "AND time < :since AND seq <= (SELECT max(seq) FROM snapshots WHERE agent = :agent) "
    "ORDER BY seq LIMIT :most"
)
_REDUCE = sa.text("UPDATE events SET body = :body, reduced = 1 WHERE agent = :agent AND seq = :seq")
_AUDIT = sa.text(
    "INSERT INTO audit (time, who, agent, action, detail) "
    "VALUES (:now, :who, :agent, :action, :detail)"
)
_TRAIL = sa.text(
    "SELECT id, time, who, agent, action, detail FROM audit WHERE id < :before "
    "ORDER BY id DESC LIMIT :most"
)
_TRAIL_OF = sa.text(
    "SELECT id, time, who, agent, action, detail FROM audit WHERE id < :before AND agent = :name "
    "ORDER BY id DESC LIMIT :most"
)
