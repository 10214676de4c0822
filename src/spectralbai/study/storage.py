"""Where studies are kept: an SQLite file or a PostgreSQL server, behind one pair of transactions.

Writers of SQLite take the file's lock at once and wait for one another; those of PostgreSQL lock the row of their study. A
transaction lasts milliseconds: no mathematics happens inside.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, insert, inspect, select, text
from sqlalchemy.engine import URL, make_url

from spectralbai.errors import InvalidInput, StorageError
from spectralbai.study.schema import VERSION, metadata, schema

DEFAULT = "sqlite:///spectralbai.db"
PATIENCE = 60.0
"""Seconds a writer waits for the others before it gives up."""

SCHEMA_LOCK = 7_273_226
"""Key of the lock under which tables are made on PostgreSQL; any number that nobody else uses."""


class Storage:
    """A database of studies. Connections are kept until `close`; a forked process opens its own."""

    def __init__(self, url: str | None = None, *, create: bool = False) -> None:
        parsed = _parse(DEFAULT if url is None else url)
        self.name = _shown(parsed)
        """The address without password: the only form that is ever shown."""
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if self.sqlite and not create and not Path(parsed.database or "").is_file():
            raise InvalidInput(f"there is no database {parsed.database}; create a study first, or give the right storage")
        self._engine = _engine(parsed)
        self._process = os.getpid()
        with self.closed_on_error():
            self._check_schema(create)

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Closes the storage if what is inside fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes every connection."""
        self._engine.dispose()

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
        return self._engine.connect()

    def _check_schema(self, create: bool) -> None:
        with self.reading() as connection:
            found = _version(connection)
        if found is None and create:
            with self.writing() as connection:
                if not self.sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
                if _version(connection) is None:
                    metadata.create_all(connection)
                    connection.execute(insert(schema).values(version=VERSION))
            found = VERSION
        if found is None:
            raise InvalidInput(f"{self.name} holds no studies; create one first, or give the right storage")
        if found != VERSION:
            raise InvalidInput(
                f"{self.name} was written by a newer spectralbai (schema {found}, this one reads {VERSION}); upgrade it here"
            )

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Says in one sentence what the database could not do, and never a password."""
        try:
            yield
        except exc.SQLAlchemyError as error:
            raise StorageError(f"{self.name}: {_reason(error)}") from None


def _parse(url: str) -> URL:
    remedy = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, TypeError, ValueError):
        raise InvalidInput(f"the address of the storage cannot be read; {remedy}") from None
    backend = parsed.drivername.split("+")[0]
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput(f"a storage must outlive this process, got {parsed.drivername}:// without a file; {remedy}")
        return parsed.set(drivername="sqlite")
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    raise InvalidInput(f"the storage must be SQLite or PostgreSQL, got {parsed.drivername}; {remedy}")


def _shown(url: URL) -> str:
    """Returns the address without password, nor the query, which may hold one."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{url.database}"
    where = f"{url.host or ''}" + (f":{url.port}" if url.port else "")
    return f"postgresql://{url.username + '@' if url.username else ''}{where}/{url.database or ''}"


def _engine(url: URL) -> Engine:
    try:
        if url.get_backend_name() == "postgresql":
            return create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": 10}, hide_parameters=True)
    except ModuleNotFoundError:
        raise StorageError("PostgreSQL needs psycopg, not installed here; run: pip install 'spectralbai[study]'") from None
    engine = create_engine(url, connect_args={"timeout": PATIENCE}, hide_parameters=True)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _start)
    return engine


def _prepare(connection: Any, _: object) -> None:
    """Sets a new SQLite connection up."""
    connection.isolation_level = None  # transactions begin where `_start` says, not where the driver guesses
    deadline = time.monotonic() + PATIENCE
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # readers and the writer do not wait for one another
        except connection.OperationalError as error:
            # Another process is changing the mode, for which SQLite does not wait by itself.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))
    connection.execute("PRAGMA synchronous = FULL")  # what is acknowledged survives a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _start(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("spectralbai_writes") else "BEGIN")


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


def _reason(error: exc.SQLAlchemyError) -> str:
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        return "the connection was lost; do the same again: a result is counted once, however often it is told"
    for sign, sentence in (
        ("unable to open database file", "the file cannot be opened; does its directory exist, and may you write there?"),
        ("readonly database", "the file, or its directory, cannot be written to; change its permissions, or give another storage"),
        ("file is not a database", "this is no database of SQLite; give another storage"),
        ("malformed", "the file is damaged; restore a copy, or an export"),
        ("disk is full", "the disk is full; make room and do the same again: nothing told before is lost"),
        ("database is locked", f"another process has kept the file locked for {PATIENCE:g} seconds; end it, and do the same again"),
    ):
        if sign in reason:
            return sentence
    if isinstance(error, exc.OperationalError):
        return f"the database cannot be reached ({reason}); once it can, do the same again"
    return reason
