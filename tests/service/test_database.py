"""Databases: migrations, and numbers without gaps."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from oclok.errors import StorageError
from oclok.service.database import MIGRATIONS, Database
from oclok.service.log import Event, Log, OvertakenError, RepeatedError

BOTH = pytest.mark.parametrize("storage", ["sqlite", "postgresql"], indirect=True)


@BOTH
def test_migrations_are_made_once_and_a_newer_schema_is_refused(storage):
    database = Database(storage)
    database.migrate()
    database.migrate()
    assert Log(database).agents() == []
    with database.write() as connection:
        connection.execute(sa.text("UPDATE version SET steps = steps + 1"))
    with pytest.raises(StorageError, match=f"version {len(MIGRATIONS) + 1}"):
        database.migrate()
    database.close()


@BOTH
def test_a_database_of_an_older_version_is_migrated_with_all_it_holds(storage, monkeypatch):
    database = Database(storage)
    database.migrate()
    log = Log(database)
    log.add_agent("a", "{}")
    log.append(log.agent("a").id, [Event("decision", b"1", "d")])
    step = ["CREATE TABLE more (id {serial}, what {blob})", "INSERT INTO more (id) VALUES (7)"]
    monkeypatch.setattr("oclok.service.database.MIGRATIONS", [*MIGRATIONS, step])
    threads = [threading.Thread(target=Database(storage).migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as connection:
        assert connection.execute(sa.text("SELECT id FROM more")).scalars().all() == [7]
    assert [event.body for event in log.after(log.agent("a").id, 0)] == [b"1"]
    monkeypatch.undo()
    with pytest.raises(StorageError, match="upgrade oclok"):
        database.migrate()
    database.close()


@pytest.mark.parametrize("url", ["sqlite:////nowhere/x.db", "postgresql://u:secret@127.0.0.1:1/x"])
def test_a_database_that_cannot_be_opened_is_said_so_without_its_password(url):
    with pytest.raises(StorageError, match="cannot be opened") as told:
        Database(url).migrate()
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "nonsense"])
def test_other_storage_is_refused(url):
    with pytest.raises(StorageError, match="storage must be"):
        Database(url)


@BOTH
def test_a_reader_sees_every_event_once_and_in_order_while_many_write(storage):
    database = Database(storage)
    database.migrate()
    log = Log(database)
    log.add_agent("a", "{}")
    agent = log.agent("a").id
    writers, each = 6, 15
    seen: list[int] = []

    def write(number: int) -> None:
        for n in range(each):
            kind = "decision" if n % 2 else "outcomes"
            events = [Event(kind, b"{}", f"{number}-{n}-{m}") for m in range(1 + n % 3)]
            log.append(agent, events)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    total = writers * sum(1 + n % 3 for n in range(each))
    while len(seen) < total:
        seen += [event.seq for event in log.after(agent, len(seen))]
    for thread in threads:
        thread.join()
    assert seen == list(range(1, total + 1))
    rounds = [e.round for e in log.after(agent, 0) if e.kind == "decision"]
    assert rounds == list(range(1, len(rounds) + 1))
    database.close()


@BOTH
def test_a_decision_is_there_once_and_conditions_hold(storage):
    database = Database(storage)
    database.migrate()
    log = Log(database)
    assert log.add_agent("a", "{}")
    assert not log.add_agent("a", "{}")
    agent = log.agent("a").id
    log.append(agent, [Event("decision", b"1", "d")])
    with pytest.raises(RepeatedError):
        log.append(agent, [Event("outcomes", b"{}", "d"), Event("decision", b"2", "d")])
    with pytest.raises(OvertakenError):
        log.append(agent, [Event("decision", b"3", "e")], expected=0)
    log.append(agent, [Event("decision", b"3", "e")], expected=1)
    assert [(e.seq, e.body) for e in log.after(agent, 0)] == [(1, b"1"), (2, b"3")]
    log.save_snapshot(agent, 2, b"two")
    log.save_snapshot(agent, 1, b"one")
    assert log.snapshot(agent) == (2, b"two")
    database.close()
