"""The database: SQLite in a file, or PostgreSQL by URL; its schema moves forward by itself.

| table     | a row is                                                                          |
|-----------|-----------------------------------------------------------------------------------|
| agents    | an agent: settings, `last` (number of its latest event), `rounds` (decisions)      |
| events    | something that happened to an agent, numbered 1, 2, 3, … without gaps             |
| snapshots | the model of an agent, as it was after event `seq`                                 |
| audit     | who did what to which agent; it stays when the agent is deleted                    |
| keys      | an access key, hashed, with its roles                                              |
| version   | the one row says how many of MIGRATIONS were made                                  |
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from multiprocessing.connection import wait
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, CursorResult, make_url

from oclok.errors import StorageError
from oclok.service.config import without_password

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Steps from an empty database to the present one; only ever appended to.
MIGRATIONS: list[list[str]] = [
    [
        """CREATE TABLE agents (
            id {serial}, name VARCHAR(64) NOT NULL UNIQUE, settings TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL, last BIGINT NOT NULL, rounds BIGINT NOT NULL,
            state VARCHAR(16) NOT NULL DEFAULT 'active', summary TEXT)""",
        """CREATE TABLE events (
            agent BIGINT NOT NULL REFERENCES agents (id), seq BIGINT NOT NULL,
            kind VARCHAR(16) NOT NULL, time DOUBLE PRECISION NOT NULL,
            decision VARCHAR(128), round BIGINT, model_version BIGINT, body {blob} NOT NULL,
            reduced SMALLINT NOT NULL DEFAULT 0, PRIMARY KEY (agent, seq))""",
        "CREATE UNIQUE INDEX decision_ids ON events (agent, decision) WHERE kind = 'decision'",
        "CREATE UNIQUE INDEX once ON events (agent, decision) WHERE kind = 'observations'",
        """CREATE INDEX feedback ON events (agent, decision, seq)
            WHERE decision IS NOT NULL AND kind <> 'decision'""",
        "CREATE INDEX rounds ON events (agent, round) WHERE round IS NOT NULL",
        "CREATE INDEX changes ON events (agent, seq) WHERE kind = 'change'",
        "CREATE INDEX unreduced ON events (agent, time) WHERE kind = 'decision' AND reduced = 0",
        """CREATE TABLE snapshots (
            agent BIGINT NOT NULL PRIMARY KEY REFERENCES agents (id), seq BIGINT NOT NULL,
            created DOUBLE PRECISION NOT NULL, content {blob} NOT NULL)""",
        """CREATE TABLE audit (
            id {serial}, time DOUBLE PRECISION NOT NULL, who VARCHAR(64) NOT NULL,
            agent VARCHAR(64) NOT NULL, action VARCHAR(16) NOT NULL, detail TEXT NOT NULL)""",
        """CREATE TABLE keys (
            id {serial}, name VARCHAR(64) NOT NULL, digest VARCHAR(64) NOT NULL UNIQUE,
            roles VARCHAR(64) NOT NULL, agent VARCHAR(64), created DOUBLE PRECISION NOT NULL)""",
    ],
]

#: Seconds that a writer of SQLite waits for another one.
PATIENCE = 20.0
#: Bytes of a page of a new SQLite file: pages of 4 kB are half empty, as decisions take about that.
PAGE_SIZE = 16_384
#: Only one process migrates PostgreSQL at a time: the number of the lock that it holds.
MIGRATION_LOCK = 0x0C10C


class Database:
    """Connections to the storage at a URL; `write` and `read` are transactions.

    Args:
        url: `sqlite:///file.db`, or `postgresql://user:password@host/name`.
    """

    def __init__(self, url: str) -> None:
        self.name = without_password(url)
        refusal = StorageError(
            f"storage must be sqlite:///FILE or postgresql://…; got {self.name!r}"
        )
        try:
            parsed = make_url(url)
        except (sa.exc.ArgumentError, ValueError):
            raise refusal from None
        self.is_sqlite = parsed.drivername == "sqlite"
        if self.is_sqlite and parsed.database not in (None, "", ":memory:"):
            self._path = str(parsed.database)
            self._inode: tuple[int, int] | None = None
            self._lock = threading.Lock()
            self._lock_file: IO[bytes] | None = None  # stays open
            with contextlib.suppress(OSError):  # SQLite says what is wrong
                os.close(_open_private(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
            self._engine = self._appending = sa.create_engine(
                parsed,
                pool_size=20,
                max_overflow=40,
                pool_reset_on_return=None,  # each transaction is ended where it began
                connect_args={"timeout": PATIENCE, "check_same_thread": False},
            )
            sa.event.listen(self._engine, "connect", _set_up_sqlite)
        elif parsed.drivername in ("postgresql", "postgres"):
            make_engine = partial(
                sa.create_engine,
                parsed.set(drivername="postgresql+psycopg"),
                pool_size=10,
                max_overflow=10,
                pool_timeout=5,
                connect_args={"connect_timeout": 5},
            )
            self._engine, self._appending = make_engine(), make_engine(isolation_level="AUTOCOMMIT")
            for engine in (self._engine, self._appending):
                sa.event.listen(engine, "checkout", _check_connection)
        else:
            raise refusal

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Begin a transaction that only reads."""
        with self._engine.begin() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction that writes; it is committed at the end, or rolled back."""
        with self._one_writer(), self._engine.begin() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def rows(self, sql: str, **values: Any) -> Sequence[Any]:
        """Return the rows of one query."""
        with self.read() as connection:
            return execute(connection, sql, **values).all()

    @contextlib.contextmanager
    def append(self) -> Iterator[Connection]:
        """Begin a transaction that appends: the path of every request.

        On PostgreSQL each statement commits by itself, which saves round trips.
        """
        try:
            with self.write() if self.is_sqlite else self._appending.connect() as connection:
                yield connection
        except sa.exc.OperationalError as reason:
            raise StorageError(f"the database cannot be reached: {reason.orig}") from None

    def probe(self) -> None:
        """Raise a `StorageError` unless the database can be written to."""
        sql = "UPDATE version SET steps = steps"
        if self.is_sqlite:  # which does not write what is the same as before
            sql = f"PRAGMA user_version = {time.time_ns() % 2**31}"
        try:
            with self.write() as connection:
                connection.exec_driver_sql(sql)
        except sa.exc.OperationalError as reason:
            raise StorageError(f"the database cannot be written to: {reason.orig}") from None

    def migrate(self) -> None:
        """Bring the schema up to date; `StorageError` if it is newer than this program."""
        try:
            with self.write() as connection:
                self._migrate(connection)
        except sa.exc.DatabaseError as reason:
            raise StorageError(f"{self.name} cannot be opened: {reason.orig}") from None

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
        self._appending.dispose()

    def _migrate(self, connection: Connection) -> None:
        types = {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "blob": "BLOB"}
        if not self.is_sqlite:
            execute(connection, f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
            types["serial"] = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
            types["blob"] = "BYTEA"
        execute(connection, "CREATE TABLE IF NOT EXISTS version (steps INTEGER)")
        steps = execute(connection, "SELECT steps FROM version").scalar()
        if steps is None:
            execute(connection, "INSERT INTO version VALUES (0)")
            steps = 0
        if steps > len(MIGRATIONS):
            raise StorageError(
                f"the database has schema version {steps}, this oclok knows versions up to "
                f"{len(MIGRATIONS)}; upgrade oclok"
            )
        for step in MIGRATIONS[steps:]:
            for statement in step:
                execute(connection, statement.format(**types))
        if steps < len(MIGRATIONS):
            execute(connection, "UPDATE version SET steps = :steps", steps=len(MIGRATIONS))

    @contextlib.contextmanager
    def _one_writer(self) -> Iterator[None]:
        """Let one writer of this machine in at a time, without delay.

        SQLite itself lets writers try again after pauses that grow to 100 ms.
        """
        if not self.is_sqlite:
            yield
            return
        with self._lock:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # SQLite's own lock does
                    path = f"{self._path}-writer"
                    if self._lock_file is None:
                        self._lock_file = open(path, "ab", opener=_open_private)  # noqa: SIM115
                    fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            try:
                self._check_file()
                yield
            finally:
                if self._lock_file is not None:
                    fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _check_file(self) -> None:
        """Raise a `StorageError` if the SQLite file that is open is not the one at its path."""
        try:
            found = os.stat(self._path)
        except OSError as reason:
            if self._inode is None:
                return  # SQLite says what is wrong
            raise StorageError(
                f"the database file {self._path} is gone ({reason.strerror}): restore it and "
                "restart"
            ) from None
        inode = (found.st_dev, found.st_ino)
        self._inode = self._inode or inode
        if self._inode != inode:
            raise StorageError(f"the database file {self._path} was replaced: restart the service")


def execute(
    connection: Connection, sql: str, rows: Sequence[dict[str, Any]] | None = None, **values: Any
) -> CursorResult[Any]:
    """Run a statement with `:name` for its values, or once with each of `rows`."""
    return connection.execute(
        _text(sql), values if rows is None else [row | values for row in rows]
    )


def insert(connection: Connection, table: str, **values: Any) -> None:
    """Insert a row."""
    columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    execute(connection, f"INSERT INTO {table} ({columns}) VALUES ({marks})", **values)


@cache
def _text(sql: str) -> sa.TextClause:
    return sa.text(sql)


def _open_private(path: str, flags: int) -> int:
    """Open a file that only its owner can read; SQLite's other files follow it."""
    return os.open(path, flags, 0o600)


def _set_up_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # `Database` begins transactions, not the driver
    pragmas = (f"page_size={PAGE_SIZE}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _check_connection(connection: Any, *_: object) -> None:
    """Let the pool replace a connection that its server has closed: there is an end to read."""
    if connection.closed or wait([connection], timeout=0):
        raise sa.exc.DisconnectionError
