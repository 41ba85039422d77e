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
import importlib
import os
import select
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, make_url

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
            created DOUBLE PRECISION NOT NULL, last BIGINT NOT NULL, rounds BIGINT NOT NULL)""",
        """CREATE TABLE events (
            agent BIGINT NOT NULL REFERENCES agents (id), seq BIGINT NOT NULL,
            kind VARCHAR(16) NOT NULL, time DOUBLE PRECISION NOT NULL,
            decision VARCHAR(128), round BIGINT, basis BIGINT, body {blob} NOT NULL,
            PRIMARY KEY (agent, seq))""",
        """CREATE UNIQUE INDEX decision_ids ON events (agent, decision)
            WHERE kind = 'decision'""",
        """CREATE INDEX feedback ON events (agent, decision, seq)
            WHERE decision IS NOT NULL AND kind <> 'decision'""",
        "CREATE INDEX rounds ON events (agent, round) WHERE round IS NOT NULL",
        """CREATE TABLE snapshots (
            agent BIGINT NOT NULL PRIMARY KEY REFERENCES agents (id), seq BIGINT NOT NULL,
            created DOUBLE PRECISION NOT NULL, content {blob} NOT NULL)""",
        """CREATE TABLE keys (
            id {serial}, name VARCHAR(64) NOT NULL, digest VARCHAR(64) NOT NULL UNIQUE,
            roles VARCHAR(64) NOT NULL, agent VARCHAR(64), created DOUBLE PRECISION NOT NULL)""",
    ],
    ["ALTER TABLE events RENAME COLUMN basis TO model_version"],
    [
        "ALTER TABLE agents ADD COLUMN state VARCHAR(16) NOT NULL DEFAULT 'active'",
        "ALTER TABLE agents ADD COLUMN summary TEXT",
        "CREATE INDEX changes ON events (agent, seq) WHERE kind = 'change'",
        """CREATE TABLE audit (
            id {serial}, time DOUBLE PRECISION NOT NULL, who VARCHAR(64) NOT NULL,
            agent VARCHAR(64) NOT NULL, action VARCHAR(16) NOT NULL, detail TEXT NOT NULL)""",
    ],
    [
        "ALTER TABLE events ADD COLUMN reduced SMALLINT NOT NULL DEFAULT 0",
        "CREATE INDEX unreduced ON events (agent, time) WHERE kind = 'decision' AND reduced = 0",
    ],
    ["CREATE UNIQUE INDEX once ON events (agent, decision) WHERE kind = 'observations'"],
]

#: Seconds that a writer of SQLite waits for another one.
PATIENCE = 20.0
#: Bytes of a page of SQLite.
PAGE_SIZE = 16_384
#: Only one process migrates PostgreSQL at a time: the number of the lock that it holds.
MIGRATION_LOCK = 0x0C10C


class Database:
    """Connections to the storage at a URL; `write` and `read` are transactions.

    Args:
        url: `sqlite:///file.db`, or `postgresql://user:password@host/name`.
    """

    _one_writer: contextlib.AbstractContextManager[Any]

    def __init__(self, url: str) -> None:
        self.name = without_password(url)
        self._appenders: list[Any] = []
        self._inode: tuple[int, int] | None = None
        try:
            parsed = make_url(url)
        except (sa.exc.ArgumentError, ValueError):
            raise StorageError(
                f"storage must be sqlite:///FILE or postgresql://…; got {self.name!r}"
            ) from None
        if parsed.drivername == "sqlite" and parsed.database not in (None, "", ":memory:"):
            self.is_sqlite = True
            _make_private(str(parsed.database))
            self._path = str(parsed.database)
            self._one_writer = _OneWriter(f"{parsed.database}-writer")
            self._writer = _sqlite(parsed, "BEGIN IMMEDIATE")
            self._reader = _sqlite(parsed, "BEGIN")
            self.driver = _driver("sqlite3")
        elif parsed.drivername in ("postgresql", "postgres"):
            self.is_sqlite = False
            self.driver = _driver("psycopg")
            self._one_writer = contextlib.nullcontext()
            self._writer = self._reader = sa.create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                pool_size=10,
                max_overflow=10,
                pool_timeout=5,
                connect_args={"connect_timeout": 5},
            )
        else:
            raise StorageError(
                "storage must be sqlite:///FILE or postgresql://…; got "
                f"{parsed.render_as_string(hide_password=True)!r}"
            )

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction that writes; it is committed at the end, or rolled back."""
        with self._one_writer, self._writer.begin() as connection:
            self._check_file()
            yield connection

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """Yield a cursor of the driver for a transaction that appends: the path of every request.

        The connection stays open for the next one. On PostgreSQL each statement commits by itself.
        """
        with self._one_writer:
            self._check_file()
            connection = self._appender()
            try:
                if self.is_sqlite:
                    connection.execute("BEGIN IMMEDIATE")
                with contextlib.closing(connection.cursor()) as cursor:
                    yield cursor
                if self.is_sqlite:
                    connection.execute("COMMIT")
            except BaseException as reason:
                is_alive = self._undone(connection)
                if not is_alive or isinstance(reason, self.driver.OperationalError):
                    connection.close()
                else:
                    self._appenders.append(connection)
                if isinstance(reason, self.driver.OperationalError):
                    raise StorageError(f"the database cannot be reached: {reason}") from None
                raise
            self._appenders.append(connection)

    def _appender(self) -> Any:
        """Return an idle connection of the driver that is still open, or a new one."""
        while self._appenders:
            connection: Any = self._appenders.pop()
            if self.is_sqlite or not _is_hung_up(connection):
                return connection
            connection.close()
        try:
            pooled = self._writer.raw_connection()
        except (sa.exc.OperationalError, self.driver.OperationalError) as reason:
            raise StorageError(f"the database cannot be reached: {reason}") from None
        connection = pooled.driver_connection
        pooled.detach()
        if not self.is_sqlite:
            connection.autocommit = True
        return connection

    def _undone(self, connection: Any) -> bool:
        """Roll a transaction back, and return whether the connection can be used again."""
        try:
            connection.rollback()
        except self.driver.Error:
            return False
        return True

    def probe(self) -> None:
        """Raise a `StorageError` unless the database can be written to."""
        try:
            with self.write() as connection:
                if self.is_sqlite:  # which does not write what is the same as before
                    connection.exec_driver_sql(f"PRAGMA user_version = {time.time_ns() % 2**31}")
                else:
                    connection.execute(sa.text("UPDATE version SET steps = steps"))
        except sa.exc.OperationalError as reason:
            raise StorageError(f"the database cannot be written to: {reason.orig}") from None

    def _check_file(self) -> None:
        """Raise a `StorageError` if the SQLite file that is open is not the one at its path."""
        if not self.is_sqlite:
            return
        try:
            found = os.stat(self._path)
        except OSError as reason:
            raise StorageError(
                f"the database file {self._path} is gone ({reason.strerror}): restore it and "
                "restart"
            ) from None
        inode = (found.st_dev, found.st_ino)
        if self._inode is None:
            self._inode = inode
        elif self._inode != inode:
            raise StorageError(f"the database file {self._path} was replaced: restart the service")

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Begin a transaction that only reads."""
        with self._reader.begin() as connection:
            yield connection

    def migrate(self) -> None:
        """Bring the schema up to date; `StorageError` if it is newer than this program."""
        try:
            with self.write() as connection:
                self._migrate(connection)
        except sa.exc.DatabaseError as reason:
            raise StorageError(f"{self.name} cannot be opened: {reason.orig}") from None

    def close(self) -> None:
        """Close all connections."""
        while self._appenders:
            self._appenders.pop().close()
        self._writer.dispose()
        self._reader.dispose()

    def _migrate(self, connection: Connection) -> None:
        if not self.is_sqlite:
            connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS version (steps INTEGER)"))
        done = connection.execute(sa.text("SELECT steps FROM version")).scalar()
        if done is None:
            connection.execute(sa.text("INSERT INTO version VALUES (0)"))
        steps = int(done or 0)
        if steps > len(MIGRATIONS):
            raise StorageError(
                f"the database has schema version {steps}, this oclok knows versions up to "
                f"{len(MIGRATIONS)}; upgrade oclok"
            )
        for step in MIGRATIONS[steps:]:
            for statement in step:
                connection.execute(sa.text(statement.format(**self._types())))
        if steps < len(MIGRATIONS):
            connection.execute(
                sa.text("UPDATE version SET steps = :steps"), {"steps": len(MIGRATIONS)}
            )

    def _types(self) -> dict[str, str]:
        if self.is_sqlite:
            return {"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "blob": "BLOB"}
        return {
            "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            "blob": "BYTEA",
        }


def _driver(name: str) -> Any:
    """Return the module of a driver: its errors are what `cursor` can raise."""
    return importlib.import_module(name)


def _is_hung_up(connection: Any) -> bool:
    """Return whether the server of an idle connection has closed it: there is an end to read."""
    return bool(connection.closed or select.select([connection.fileno()], [], [], 0)[0])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _make_private(path: str) -> None:
    """Create a database file that only its owner can read; SQLite's other files follow it."""
    with contextlib.suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


class _OneWriter:
    """Lets one writer of this machine in at a time, without delay.

    SQLite itself lets writers try again after pauses that grow to 100 ms.

    Args:
        path: of a file that is locked, and stays empty.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        if fcntl is not None:
            try:
                self._file = self._file or open(self._path, "ab", opener=_private)
                fcntl.flock(self._file, fcntl.LOCK_EX)
            except OSError:
                pass  # SQLite's own lock does

    def __exit__(self, *_: object) -> None:
        if fcntl is not None and self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._lock.release()


def _sqlite(url: sa.URL, begin: str) -> Engine:
    engine = sa.create_engine(
        url,
        pool_size=20,
        max_overflow=40,
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
    )

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        # Of a new database: pages of 4 kB are half empty, as decisions take about as much.
        connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def do_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
