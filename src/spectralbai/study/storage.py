"""Where studies are kept: an SQLite file or a PostgreSQL server, behind one pair of transactions.

Writers of SQLite take the file's lock at once and wait for one another; those of PostgreSQL lock the row of their
study. Transactions are short: allocations are never computed inside.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url

from spectralbai.errors import Busy, InvalidInput, NotFound, StorageError
from spectralbai.study.schema import VERSION, metadata, migrate, schema

DEFAULT = "sqlite:///spectralbai.db"
PATIENCE = 60.0
"""Seconds a writer waits for the others before it gives up."""
SILENCE = 30
"""Seconds after which PostgreSQL ends a transaction whose worker says nothing: it may have been unplugged."""
SCHEMA_LOCK = 7_273_226
"""Key of the lock under which tables are made on PostgreSQL; any number that nobody else uses."""
REMEDY = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"

Clock = Callable[[], float]
"""Returns the time, in seconds since 1970."""


class Storage:
    """A database of studies. Connections are kept until `close`; a forked process opens its own."""

    def __init__(
        self, url: str | None = None, *, create: bool = False, clock: Clock = time.time, connections: int = 5
    ) -> None:
        parsed = _parse(DEFAULT if url is None else url)
        self.clock = clock
        """What says the time that studies go by."""
        self.name = _shown(parsed)
        """The address without password: the only form that is ever shown."""
        self.sqlite = parsed.drivername == "sqlite"
        if self.sqlite and not create and not os.path.isfile(parsed.database or ""):
            raise NotFound(f"there is no database {parsed.database}; create a study first, or give the right storage")
        self._engine = _engine(parsed, connections)
        self._process = os.getpid()
        with self.closed_on_error():
            self._check_schema(create)

    @classmethod
    @contextmanager
    def given(cls, storage: str | Storage | None, *, create: bool = False) -> Iterator[Storage]:
        """Yields a storage that is open already, or opens one, which is closed if what is inside fails."""
        if isinstance(storage, Storage):
            yield storage
            return
        opened = cls(storage, create=create)
        with opened.closed_on_error():
            yield opened

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Closes the storage if what is inside fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes every connection of this process."""
        self._engine.dispose(close=os.getpid() == self._process)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields a connection that sees one instant and keeps nobody waiting."""
        options = {} if self.sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._sentences(), self._connected() as connection:
            connection = connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yields a connection that writes everything or nothing; on SQLite one at a time."""
        with self._sentences(), self._connected() as connection:
            # After the wait for its row a writer must see what the others wrote, whatever the server's default.
            options = {"spectralbai_writes": True} if self.sqlite else {"isolation_level": "READ COMMITTED"}
            connection = connection.execution_options(**options)
            with _begin(connection):
                yield connection

    def _connected(self) -> Connection:
        if os.getpid() != self._process:  # forked: the parent's connections are not ours to use, nor to close
            self._engine.dispose(close=False)
            self._process = os.getpid()
        try:
            return self._engine.connect()
        except ValueError as error:  # of the driver: what it makes of a host name, say
            raise Busy(f"{self.name}: the database cannot be reached ({error}); {REMEDY}") from None

    def _check_schema(self, create: bool) -> None:
        with self.reading() as connection:
            found = _version(connection)
            others = _first_table(connection) if found is None and self.sqlite else None
        if create and others:
            raise InvalidInput(
                f'{self.name} is a database of another program: it has the table "{others}" and no studies; give a '
                "file of its own, such as sqlite:///studies.db"
            )
        if found is None and create:
            self._log_ahead()
            with self._writing_schema() as connection:
                if _version(connection) is None:
                    metadata.create_all(connection)
                    connection.execute(insert(schema).values(version=VERSION))
            found = VERSION
        if found is not None and found < VERSION:
            with self._writing_schema() as connection:
                found = _version(connection)
                if found is not None and found < VERSION:
                    migrate(connection, found)
            found = VERSION
        if found is None:
            raise NotFound(f"{self.name} holds no studies; create one first, or give the right storage")
        if found > VERSION:
            raise InvalidInput(
                f"{self.name} was written by a newer spectralbai (schema {found}, this one reads {VERSION}); upgrade "
                "it here"
            )
        self._log_ahead()

    @contextmanager
    def _writing_schema(self) -> Iterator[Connection]:
        """Yields a connection that may make or change tables; one process at a time."""
        with self.writing() as connection:
            if not self.sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
            yield connection

    def _log_ahead(self) -> None:
        """Puts an SQLite file of ours in WAL mode, where readers and the writer do not wait for one another; it
        stays so."""
        if not self.sqlite:
            return
        deadline = time.monotonic() + PATIENCE
        with self._sentences(), self._connected() as connection:
            raw = connection.connection.cursor()
            statement = "PRAGMA journal_mode"
            while True:
                try:
                    mode = raw.execute(statement).fetchone()[0]
                except Exception as error:
                    # Another process is changing the mode, for which SQLite does not wait by itself.
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise exc.OperationalError("", None, error) from None
                    time.sleep(random.uniform(0.001, 0.02))
                    continue
                if mode == "wal":
                    return
                if statement.endswith("WAL"):
                    raise StorageError(
                        f"{self.name}: this file system cannot serve several processes; choose a local disk"
                    )
                statement = "PRAGMA journal_mode = WAL"

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Says in one sentence what the database could not do, and never a password."""
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise _trouble(self.name, error) from None


def _parse(url: str) -> URL:
    if isinstance(url, str) and url.startswith("sqlite:///") and url.isprintable():
        file = url.removeprefix("sqlite:///")  # as it is: a path may hold %, ? and #
        if not file or file == ":memory:":
            raise InvalidInput(f"a storage must outlive this process, got {url!r}; {REMEDY}")
        return URL.create("sqlite", database=file)
    try:
        parsed = make_url(url)
        backend = parsed.drivername.split("+")[0]
    except (exc.ArgumentError, TypeError, ValueError, AttributeError):
        raise InvalidInput(f"the address of the storage cannot be read; {REMEDY}") from None
    if backend == "sqlite":
        raise InvalidInput(f"the address of the storage cannot be read; {REMEDY}")
    if backend not in ("postgresql", "postgres"):
        raise InvalidInput(f"the storage must be SQLite or PostgreSQL, got {backend}; {REMEDY}")
    if "@" in (parsed.host or ""):
        raise InvalidInput("the address of the storage has two @; write one that belongs to the password as %40")
    return parsed.set(drivername="postgresql+psycopg")


def _shown(url: URL) -> str:
    """Returns the address without password, nor the query, which may hold one."""
    if url.drivername == "sqlite":
        return f"sqlite:///{url.database}"
    where = f"{url.host or ''}" + (f":{url.port}" if url.port else "")
    return f"postgresql://{url.username + '@' if url.username else ''}{where}/{url.database or ''}"


def _engine(url: URL, connections: int) -> Engine:
    if url.drivername == "sqlite":
        engine = create_engine(
            url, connect_args={"timeout": PATIENCE}, pool_size=connections, max_overflow=-1, hide_parameters=True
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _start_sqlite)
        return engine
    alive = {"connect_timeout": 10, "keepalives_idle": SILENCE, "keepalives_interval": 10, "keepalives_count": 3}
    try:
        engine = create_engine(
            url,
            connect_args=alive,
            pool_pre_ping=True,
            pool_size=connections,
            max_overflow=-1,
            hide_parameters=True,
        )
    except ImportError:
        raise StorageError(
            "PostgreSQL needs psycopg, not installed here; run: pip install 'spectralbai[study]'"
        ) from None
    except (exc.SQLAlchemyError, ValueError, TypeError):
        raise InvalidInput(f"the address of the storage has options that cannot be used; {REMEDY}") from None
    event.listen(engine, "connect", _prepare_postgresql)
    return engine


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where `_start_sqlite` says, not where the driver guesses
    connection.execute("PRAGMA synchronous = FULL")  # what is acknowledged survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _start_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(
        "BEGIN IMMEDIATE" if connection.get_execution_options().get("spectralbai_writes") else "BEGIN"
    )


def _prepare_postgresql(connection: Any, _: object) -> None:
    connection.execute(f"SET lock_timeout = '{PATIENCE:g}s'")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{SILENCE}s'")
    connection.commit()


@contextmanager
def _begin(connection: Connection) -> Iterator[None]:
    """A transaction; the wait for the lock of SQLite is repeated where it gives up early, before anything was done."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            transaction = connection.begin()
            break
        except exc.OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))
    with transaction:
        yield


def _version(connection: Connection) -> int | None:
    if not inspect(connection).has_table(schema.name):
        return None
    version: int | None = connection.execute(select(schema.c.version)).scalar()
    return version


def _first_table(connection: Connection) -> str | None:
    """Returns the name of some table or view of an SQLite file, if it has any."""
    found: str | None = connection.execute(text("SELECT name FROM sqlite_master")).scalar()
    return found


REASONS = (
    (
        "unable to open database file",
        StorageError,
        "the file cannot be opened; does its directory exist, and may you write there?",
    ),
    (
        "readonly database",
        StorageError,
        "the file, or its directory, cannot be written to; change its permissions, or give another storage",
    ),
    ("file is not a database", StorageError, "this is no database of SQLite; give another storage"),
    ("malformed", StorageError, "the file is damaged; restore a copy, or an export"),
    ("disk is full", StorageError, "the disk is full; make room and do the same again: nothing told before is lost"),
    (
        "database is locked",
        Busy,
        f"another process has kept the file locked for {PATIENCE:g} seconds; end it, and do the same again",
    ),
    ("lock timeout", Busy, f"another worker has kept the study locked for {PATIENCE:g} seconds; do the same again"),
)
"""What a driver says, of what kind that is, and what to say instead."""


def _trouble(name: str, error: exc.SQLAlchemyError) -> StorageError:
    """Returns what to raise for an error of the database called `name`."""
    original = getattr(error, "orig", None)
    reason = " ".join(str(original or error).split())
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        again = "do the same again: a result is counted once, however often it is told"
        return Busy(f"{name}: the connection was lost; {again}")
    for sign, kind, sentence in REASONS:
        if sign in reason:
            return kind(f"{name}: {sentence}")
    of_server = type(original).__module__.startswith("psycopg")
    if of_server and isinstance(error, exc.OperationalError) and getattr(original, "sqlstate", None) is None:
        return Busy(f"{name}: the database cannot be reached ({reason}); once it can, do the same again")
    return StorageError(f"{name}: {reason}")
