"""The database of studies, an SQLite file or a PostgreSQL server: one kind of transaction reads, and one writes.

With SQLite, a writer locks the whole file at the start of its transaction, and other writers wait. With PostgreSQL, it
locks the row of its study. Transactions are short: nothing that takes long is computed inside.
"""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, exc, insert, inspect, select, text, update
from sqlalchemy.engine import URL, make_url

from spectralbai.errors import Busy, InvalidInput, NotFound, StorageError
from spectralbai.study.schema import FIRST, STEPS, metadata, schema, version

DEFAULT = "sqlite:///spectralbai.db"
PATIENCE = 60.0
"""Seconds that a writer waits for other writers before it gives up."""
SILENCE = 30
"""Seconds after which PostgreSQL ends a transaction whose worker is silent; its machine may be gone."""
TRIAL = 64 * 1024
"""Bytes that are written to try whether a storage can be written to."""
SCHEMA_LOCK = 7_273_226
"""Key of the lock for creating tables on PostgreSQL; an arbitrary number that no other program should use."""
REMEDY = "give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"

Clock = Callable[[], float]
"""Returns the time, in seconds since 1970."""
T = TypeVar("T")


class Storage:
    """A database of studies. Connections stay open until `close`; a forked process opens new ones."""

    def __init__(
        self,
        url: str | None = None,
        *,
        create: bool = False,
        clock: Clock = time.time,
        connections: int = 5,
        patience: float = PATIENCE,
    ) -> None:
        """`patience` is the number of seconds that a writer waits for other writers before it gives up."""
        self._patience = patience
        parsed = _parse(DEFAULT if url is None else url)
        self.clock = clock
        """The clock that studies use."""
        self.name = _shown(parsed)
        """The address without the password; only this form is ever shown."""
        self.sqlite = parsed.drivername == "sqlite"
        if self.sqlite and not create and not os.path.isfile(parsed.database or ""):
            raise NotFound(f"there is no database {parsed.database}; create a study first, or give the right storage")
        if self.sqlite and create:
            _create_private(parsed.database or "")
        self._engine = self.engine(parsed, connections)
        self._process = os.getpid()
        with self.closed_on_error():
            self._check_schema(create)

    def engine(self, url: URL, connections: int) -> Engine:
        """Returns what connects to the database and keeps up to so many connections open; a storage of another kind
        returns its own."""
        if self.sqlite:
            options: dict[str, Any] = {"connect_args": {"timeout": self._patience}}
        else:
            alive = {"keepalives_idle": SILENCE, "keepalives_interval": 10, "keepalives_count": 3}
            options = {"connect_args": {"connect_timeout": 10, **alive}, "pool_pre_ping": True}
        try:
            engine = create_engine(url, pool_size=connections, max_overflow=-1, hide_parameters=True, **options)
        except ImportError:
            raise StorageError(
                "PostgreSQL needs psycopg, not installed here; run: pip install 'spectralbai[study]'"
            ) from None
        except (exc.SQLAlchemyError, ValueError, TypeError):
            raise InvalidInput(f"the address of the storage has options that cannot be used; {REMEDY}") from None
        event.listen(engine, "connect", _prepare_sqlite if self.sqlite else self._prepare_postgresql)
        if self.sqlite:
            event.listen(engine, "begin", _start_sqlite)
        return engine

    @classmethod
    @contextmanager
    def given(cls, storage: str | Storage | None, *, create: bool = False) -> Iterator[Storage]:
        """Yields the given storage if it is open already; otherwise opens one, which is closed if the block fails."""
        if isinstance(storage, Storage):
            yield storage
            return
        opened = cls(storage, create=create)
        with opened.closed_on_error():
            yield opened

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Closes the storage if the code inside the `with` block fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes every connection of this process."""
        self._engine.dispose(close=os.getpid() == self._process)

    def reading(self) -> AbstractContextManager[Connection]:
        """Returns a connection to read with: all reads see the database at one instant, and nobody has to wait."""
        of_server = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        return self._transaction({} if self.sqlite else of_server)

    def writing(self) -> AbstractContextManager[Connection]:
        """Returns a connection whose writes are all made or none; with SQLite, one writer at a time."""
        # After waiting for the lock on its row, a writer must see what others wrote; the server's default isolation
        # level may not allow that.
        return self._transaction({"spectralbai_writes": True} if self.sqlite else {"isolation_level": "READ COMMITTED"})

    @contextmanager
    def _transaction(self, options: dict[str, Any]) -> Iterator[Connection]:
        with self._sentences(), self._connected() as connection:
            connection = connection.execution_options(**options)
            with self._patiently(connection.begin):
                yield connection

    def _connected(self) -> Connection:
        if os.getpid() != self._process:  # in a forked process the parent's connections must not be used or closed
            self._engine.dispose(close=False)
            self._process = os.getpid()
        try:
            return self._engine.connect()
        except ValueError as error:  # raised by the driver, for example for a wrong host name
            raise Busy(f"{self.name}: the database cannot be reached ({error}); {REMEDY}") from None

    def _prepare_postgresql(self, connection: Any, _: object) -> None:
        connection.execute(f"SET lock_timeout = '{self._patience:g}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{SILENCE}s'")
        connection.commit()

    def _patiently(self, action: Callable[[], T]) -> T:
        """Returns what an action of SQLite returns. SQLite may not wait for a lock, or not long enough; the action is
        then repeated, which is safe since nothing was done yet."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except (exc.OperationalError, sqlite3.OperationalError) as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(0.001, 0.02))

    def try_writing(self) -> None:
        """Writes something of no meaning; raises StorageError if that is not possible.

        It is more than what most changes write: on a disk that is almost full, small ones may succeed for a while.
        """
        with self.writing() as connection:
            connection.execute(update(schema).values(tried=secrets.token_hex(TRIAL // 2)))

    def finish(self) -> None:
        """Makes an SQLite file complete without those beside it, as for a copy; nobody else may use it then."""
        with self._sentences(), self._connected() as connection:
            raw = connection.connection.cursor()
            raw.execute("PRAGMA journal_mode = DELETE")
            found = raw.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise StorageError(f"{self.name}: {found}")

    def _check_schema(self, create: bool) -> None:
        with self.reading() as connection:
            found = _version(connection)
            others = (
                connection.scalar(text("SELECT name FROM sqlite_master")) if found is None and self.sqlite else None
            )
        if create and others:
            raise InvalidInput(
                f'{self.name} is a database of another program: it has the table "{others}" and no studies; give '
                "another file, such as sqlite:///studies.db"
            )
        if create and found is None:
            self._log_ahead()
            with self.writing() as connection:
                self._lock_schema(connection)
                found = _version(connection)  # another process may have created them
                if found is None:
                    metadata.create_all(connection)
                    connection.execute(insert(schema).values(version=version()))
                    found = version()
        if found is None:
            raise NotFound(f"{self.name} holds no studies; create one first, or give the right storage")
        if found != version():
            raise InvalidInput(
                f"{self.name} has tables of version {found}, and {version()} is needed; {_remedy(found)}"
            )
        self._log_ahead()

    def _lock_schema(self, connection: Connection) -> None:
        """Lets one process at a time create or change tables; SQLite sees to that itself."""
        if not self.sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})

    @classmethod
    def upgrade(cls, url: str | None = None, *, backed_up: bool = False) -> tuple[int, str | None]:
        """Converts the tables of an earlier version to those of now, all or none; returns the version that they had,
        and the name of the backup.

        A file is copied first. Make a backup of a server yourself, and say so with `backed_up`.
        """
        parsed = _parse(DEFAULT if url is None else url)
        if parsed.drivername == "sqlite" and not os.path.isfile(parsed.database or ""):
            raise NotFound(f"there is no database {parsed.database}; give the right storage")
        place = cls._unchecked(parsed)
        try:
            with place.reading() as connection:
                found = _version(connection)
            if found is None or not FIRST <= found <= version():
                raise InvalidInput(f"{place.name} has no tables that can be converted; {_remedy(found or 0)}")
            if found == version():
                return found, None
            backup = place._backup(found) if place.sqlite else None
            if backup is None and not backed_up:
                raise InvalidInput(f"make a backup of {place.name} first, such as with pg_dump, and add --backed-up")
            with place.writing() as connection:
                place._lock_schema(connection)
                for step in STEPS[(_version(connection) or FIRST) - FIRST :]:
                    step(connection)
                connection.execute(update(schema).values(version=version()))
            return found, backup
        finally:
            place.close()

    @classmethod
    def _unchecked(cls, parsed: URL) -> Storage:
        """Returns a storage whose version was not looked at."""
        place = cls.__new__(cls)
        place._patience = PATIENCE
        place.clock, place.name, place.sqlite = time.time, _shown(parsed), parsed.drivername == "sqlite"
        place._engine, place._process = place.engine(parsed, 1), os.getpid()
        return place

    def _backup(self, found: int) -> str:
        """Returns the name of a copy of the file, made now; a copy that is there already is never replaced."""
        name = f"{self._engine.url.database}.version-{found}"
        if os.path.exists(name):
            raise InvalidInput(f"there is a backup {name} already; move it away first")
        with self._sentences(), self._connected() as connection, sqlite3.connect(name) as copy:
            connection.connection.driver_connection.backup(copy)  # type: ignore[union-attr]  # sqlite3's own method
        copy.close()
        return name

    def _log_ahead(self) -> None:
        """Sets an SQLite file to WAL mode, for good: readers and the writer do not wait for each other then."""
        if not self.sqlite:
            return
        with self._sentences(), self._connected() as connection:
            raw = connection.connection.cursor()

            def mode(statement: str) -> str:
                found: str = self._patiently(lambda: raw.execute(statement).fetchone()[0])
                return found

            if mode("PRAGMA journal_mode") != "wal" and mode("PRAGMA journal_mode = WAL") != "wal":
                raise StorageError(f"{self.name}: this file system cannot serve several processes; choose a local disk")

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turns errors of the database into a StorageError with one sentence, which never contains a password."""
        try:
            yield
        except (exc.SQLAlchemyError, sqlite3.Error) as error:
            raise _trouble(self.name, error, self._patience) from None


def _parse(url: str) -> URL:
    if isinstance(url, str) and url.startswith("sqlite:///") and url.isprintable():
        file = url.removeprefix("sqlite:///")  # not parsed as an address, because a path may contain %, ? and #
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
    """Returns the address without the password and without the query, which may contain one too."""
    if url.drivername == "sqlite":
        return f"sqlite:///{url.database}"
    where = (url.host or "") + (f":{url.port}" if url.port else "")
    return f"postgresql://{url.username + '@' if url.username else ''}{where}/{url.database or ''}"


def _create_private(file: str) -> None:
    """Creates a file that only its owner may read or write, if there is none; SQLite gives those beside it the same
    permissions, and says what is wrong where none can be created."""
    with suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _prepare_sqlite(connection: Any, _: object) -> None:
    # Text that is not valid is read as it is: its checksum then says that it was changed.
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    connection.isolation_level = None  # `_start_sqlite` begins transactions, not the driver
    connection.execute("PRAGMA synchronous = FULL")  # committed data survive a power cut
    connection.execute("PRAGMA foreign_keys = ON")


def _start_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(
        "BEGIN IMMEDIATE" if connection.get_execution_options().get("spectralbai_writes") else "BEGIN"
    )


def _version(connection: Connection) -> int | None:
    return connection.scalar(select(schema.c.version)) if inspect(connection).has_table(schema.name) else None


def _remedy(found: int) -> str:
    """Returns what to do about tables of another version."""
    if found > version():
        return "a newer spectralbai wrote them: upgrade it here"
    if found >= FIRST:
        return "spectralbai study upgrade converts them"
    return "a version that was never released wrote them: create the studies again"


BROKEN = {
    "unable to open database file": "the file cannot be opened; does its directory exist, and may you write there?",
    "readonly database": "the file, or its directory, cannot be written to; change its permissions, or give another "
    "storage",
    "file is not a database": "this is not an SQLite database; give another storage",
    "malformed": "the file is damaged; restore a copy, or an export",
    "disk is full": "the disk is full; make room and try again: nothing told before is lost",
    "disk I/O error": "the disk cannot be written to or read; is it full, or its connection lost? Nothing told before "
    "is lost",
}
LOCKED = {
    "database is locked": "another process has kept the file locked for {} seconds; end it, and try again",
    "lock timeout": "another worker has kept the study locked for {} seconds; try again",
}
"""Parts of messages of the drivers, and the message to give instead, of a StorageError and of Busy."""


def _trouble(name: str, error: exc.SQLAlchemyError | sqlite3.Error, patience: float) -> StorageError:
    """Returns the exception to raise for an error of the database called `name`, which was waited for so long."""
    original = getattr(error, "orig", None)
    reason = " ".join(str(original or error).split())
    if isinstance(error, exc.DBAPIError) and error.connection_invalidated:
        return Busy(f"{name}: the connection was lost; try again: a result is counted once, however often it is told")
    for kind, sentences in ((StorageError, BROKEN), (Busy, LOCKED)):
        for sign, sentence in sentences.items():
            if sign in reason:
                return kind(f"{name}: {sentence.format(f'{patience:g}')}")
    of_server = type(original).__module__.startswith("psycopg")
    if of_server and isinstance(error, exc.OperationalError) and getattr(original, "sqlstate", None) is None:
        return Busy(f"{name}: the database cannot be reached ({reason}); try again later")
    return StorageError(f"{name}: {reason}")
