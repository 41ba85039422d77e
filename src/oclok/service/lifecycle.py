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

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy.engine import Connection, CursorResult

from oclok.errors import InputError
from oclok.oracles import oracle_from_json
from oclok.service.database import execute, insert
from oclok.service.log import EVENT, AgentRow, Event, Log
from oclok.service.packing import pack, unpack
from oclok.service.problems import ConflictError, NotFoundError
from oclok.service.replica import make_agent, restarts, with_defaults

#: Decisions that retention rewrites in one transaction.
BATCH = 200
#: What a clone that has learned copies, besides the agent itself.
_COPIED = {"events": f"{EVENT}, reduced", "snapshots": "seq, created, content"}


class Lifecycle:
    """Changes to agents; `who` makes them is for the audit trail: the name of a key."""

    def __init__(self, log: Log, who: str) -> None:
        self.log, self.who = log, who
        self.database = log.database

    def change(self, name: str, changes: dict[str, Any]) -> None:
        """Change settings, or the `state`; `InputError` if the result makes no sense."""
        row = self.log.agent(name)
        state = changes.get("state", row.state)
        before = with_defaults(json.loads(row.settings))
        after = {**before, **changes}
        after.pop("state", None)
        make_agent(after)  # raises what is wrong with it
        after["oracle"] = oracle_from_json(after["oracle"]).to_json()
        if after != before:
            detail = {key: after[key] for key in after if after[key] != before.get(key)}
            sql = "UPDATE agents SET settings = :after WHERE id = :agent AND settings = :before"
            text = json.dumps(after, sort_keys=True)
            with self._changing(row, "settings", detail, {"from": before, "to": after}) as do:
                if not do(sql, before=row.settings, after=text).rowcount:
                    raise ConflictError(f"agent {name!r} is being changed by others; try again")
        if state != row.state:
            with self._changing(row, "state", {"state": state}, {"state": state}) as do:
                do("UPDATE agents SET state = :state WHERE id = :agent", state=state)

    def reset(self, name: str) -> None:
        """Forget everything that was learned; the log keeps it."""
        with self._changing(self.log.agent(name), "reset", {}):
            pass

    def clone(self, name: str, other: str, learned: bool = True) -> None:
        """Make another agent with the same settings and, if `learned`, the same log."""
        row = self.log.agent(name)
        history = "created, last, rounds" if learned else ":now, 0, 0"
        with self.database.write() as connection:
            made = execute(
                connection,
                f"""INSERT INTO agents (name, settings, created, last, rounds)
                    SELECT :other, settings, {history} FROM agents WHERE id = :agent
                    ON CONFLICT (name) DO NOTHING RETURNING id""",
                other=other,
                agent=row.id,
                now=time.time(),
            ).scalar()
            if made is None:
                raise ConflictError(f"there is an agent {other!r}")
            if learned:
                for table, columns in _COPIED.items():
                    sql = f"""INSERT INTO {table} (agent, {columns})
                        SELECT :made, {columns} FROM {table} WHERE agent = :agent"""
                    execute(connection, sql, made=made, agent=row.id)
            self._audit(connection, other, "clone", {"from": name, "learned": learned})

    def delete(self, name: str) -> None:
        """Delete an agent, its log and its model; the audit trail stays."""
        row = self.log.agent(name)
        with self.database.write() as connection:
            for sql in (
                "UPDATE agents SET last = last WHERE id = :agent",  # locks it
                "DELETE FROM snapshots WHERE agent = :agent",
                "DELETE FROM events WHERE agent = :agent",
                "DELETE FROM agents WHERE id = :agent",
            ):
                execute(connection, sql, agent=row.id)
            self._audit(connection, name, "delete", {"events": row.last})

    def erase(self, name: str, arm: str | int | None = None, decision: str | None = None) -> int:
        """Erase an arm or a decision from the log and the model; return how many events had it."""
        if (arm is None) == (decision is None):
            raise InputError("give an arm or a decision to erase, one of them")
        row = self.log.agent(name)
        erase = partial(_without_arm, arm) if arm is not None else partial(_without, decision)
        found = list(filter(None, map(erase, self.log.after(row.id, 0, row.last))))
        # The trail says that something was erased, not what.
        detail: dict[str, Any] = {"what": "arm" if decision is None else "decision"}
        late = f"SELECT {EVENT} FROM events WHERE agent = :agent AND seq > :seq"
        with self._changing(row, "erase", detail) as do:
            since = [Event._make(entry) for entry in do(late, seq=row.last)]
            found += filter(None, map(erase, since))
            rewrite = """UPDATE events SET body = :body, decision = :decision
                WHERE agent = :agent AND seq = :seq"""
            if found:
                do(rewrite, [event._asdict() for event in found])
            detail["events"] = len(found)
        return len(found)

    def keep(self, row: AgentRow, since: float) -> int:
        """Reduce decisions before a time to what learning needs: the arms that were chosen.

        Only those that the latest snapshot knows: a model that is built from reduced decisions
        has the same outcomes, but not the same scales of features.
        """
        unreduced = f"""SELECT {EVENT} FROM events WHERE agent = :agent AND kind = 'decision'
            AND reduced = 0 AND time < :since
            AND seq <= (SELECT max(seq) FROM snapshots WHERE agent = :agent)
            ORDER BY seq LIMIT {BATCH}"""
        reduce = "UPDATE events SET body = :body, reduced = 1 WHERE agent = :agent AND seq = :seq"
        done = 0
        while True:
            with self.database.write() as connection:
                entries = execute(connection, unreduced, agent=row.id, since=since).all()
                for event in (Event._make(entry) for entry in entries):
                    body = event.body
                    if event.decision is not None:
                        full = unpack(body)
                        body = pack(reduced(full, full["chosen"]))
                    execute(connection, reduce, agent=row.id, seq=event.seq, body=body)
            done += len(entries)
            if len(entries) < BATCH:
                return done

    def trail(
        self, name: str | None = None, before: int = 2**53, most: int = 100
    ) -> list[dict[str, Any]]:
        """Return the latest entries of the audit trail, of one agent or of all."""
        sql = f"""SELECT id, time, who, agent, action, detail FROM audit WHERE id < :before
            {"" if name is None else "AND agent = :name"} ORDER BY id DESC LIMIT :most"""
        rows = self.database.rows(sql, name=name, before=before, most=most)
        return [{**row._mapping, "detail": json.loads(row.detail)} for row in rows]

    def note(self, agent: str, action: str, detail: dict[str, Any]) -> None:
        """Add an entry to the audit trail."""
        with self.database.write() as connection:
            self._audit(connection, agent, action, detail)

    @contextlib.contextmanager
    def _changing(
        self, row: AgentRow, what: str, detail: dict[str, Any], body: dict[str, Any] | None = None
    ) -> Iterator[Callable[..., CursorResult[Any]]]:
        """Append a change to log and trail; yield what runs statements in its transaction."""
        with self.database.write() as connection:
            do = partial(execute, connection, agent=row.id)
            last = do("UPDATE agents SET last = last + 1 WHERE id = :agent RETURNING last").scalar()
            if last is None:
                raise NotFoundError(f"there is no agent {row.name!r}")
            yield do
            change = {"what": what, **(body or {})}
            entry = {"kind": "change", "time": time.time(), "body": to_json(change)}
            insert(connection, "events", agent=row.id, seq=last, **entry)
            if restarts(change):
                do("DELETE FROM snapshots WHERE agent = :agent")
            self._audit(connection, row.name, what, detail)

    def _audit(self, connection: Connection, agent: str, action: str, detail: Any) -> None:
        entry = {"time": time.time(), "who": self.who, "agent": agent, "action": action}
        insert(connection, "audit", **entry, detail=json.dumps(detail, sort_keys=True))


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


def _without_arm(arm: str | int, event: Event) -> Event | None:
    """Return an event without an arm; None if it has nothing of it."""
    if event.decision is None:
        return None
    if event.kind == "decision":
        body = unpack(event.body)
        places = [place for place, each in enumerate(body["ids"]) if each != arm]
        if len(places) == len(body["ids"]):
            return None
        if not places:
            return event._replace(body=_erased(body), decision=None)
        return event._replace(body=pack(reduced(body, places)))
    body = from_json(event.body)
    if body.get("arm") == arm:
        return event._replace(body=b'{"arm":null}')
    left = [entry for entry in body.get("outcomes", ()) if entry[0] != arm]
    if len(left) == len(body.get("outcomes", ())):
        return None
    return event._replace(body=to_json({**body, "outcomes": left}))


def _without(decision: str | None, event: Event) -> Event | None:
    """Return what stays of an event of a decision; None if it is of another one."""
    if event.decision != decision:
        return None
    body = _erased(unpack(event.body)) if event.kind == "decision" else b"{}"
    return event._replace(body=body, decision=None)
