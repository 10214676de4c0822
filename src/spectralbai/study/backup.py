"""Copies of a whole storage, made and restored while it is in use; one kind of file for both kinds of database.

A backup is an SQLite storage. All its rows are read in one transaction: it is the storage as of one instant, and what
was acknowledged before is in it. Nobody waits for it. Every study in it is checked before the backup has its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, insert, select

from spectralbai.errors import Conflict, InvalidInput, NotFound, StorageError
from spectralbai.study.check import Check, check_studies
from spectralbai.study.schema import metadata, schema, studies
from spectralbai.study.storage import Storage

PART = 2000
"""Rows that are copied at once."""
TABLES = tuple(table for table in metadata.sorted_tables if table is not schema)

OnRows = Callable[[int], object]
"""Called with the number of rows copied so far."""


def backup(storage: str | None, file: str | os.PathLike[str], on_rows: OnRows | None = None) -> list[Check]:
    """Copies a storage to a new file while it is in use; returns the checks of the studies in the copy.

    A study that is damaged is copied as it is. If something fails, there is no file.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> sb.Study.create("kept", sb.Instance(problem, labels=["old", "new"]), storage="sqlite:///used.db").close()
        >>> [check.sound for check in sb.study.backup("sqlite:///used.db", "kept.db")]
        [True]
    """
    file = Path(file)
    if file.exists():
        raise Conflict(f"there is a file {file} already; choose another name, or move it away")
    if not file.parent.is_dir():
        raise NotFound(f"there is no folder {file.parent}; make it, or name another file")
    part = file.with_name(f"{file.name}.part-{os.getpid()}")
    source = Storage(storage)
    try:
        copy = Storage(f"sqlite:///{part}", create=True)
        try:
            with source.reading() as here, copy.writing() as there:
                _copy(here, there, on_rows)
            checks = check_studies(copy)
            copy.finish()
        finally:
            copy.close()
        os.replace(part, file)
        return checks
    finally:
        source.close()
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{part}{ending}").unlink(missing_ok=True)


def restore(file: str | os.PathLike[str], storage: str | None, on_rows: OnRows | None = None) -> list[Check]:
    """Copies a backup into a storage without studies, all or nothing; returns the checks of the studies there.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> sb.Study.create("lost", sb.Instance(problem, labels=["old", "new"]), storage="sqlite:///before.db").close()
        >>> checks = sb.study.backup("sqlite:///before.db", "copy.db")
        >>> [check.name for check in sb.study.restore("copy.db", "sqlite:///after.db")]
        ['lost']
    """
    if not Path(file).is_file():
        raise NotFound(f"there is no file {file}; give the backup that spectralbai backup made")
    source = Storage(f"sqlite:///{file}")
    try:
        target = Storage(storage, create=True)
        try:
            with source.reading() as here, target.writing() as there:
                there.execute(select(schema).with_for_update())
                if there.execute(select(func.count()).select_from(studies)).scalar_one():
                    raise InvalidInput(f"{target.name} has studies already; restore a backup to an empty storage")
                _copy(here, there, on_rows)
            return check_studies(target)
        finally:
            target.close()
    finally:
        source.close()


def _copy(here: Connection, there: Connection, on_rows: OnRows | None) -> None:
    """Copies the rows of all tables, and counts them again."""
    done = 0
    for table in TABLES:
        rows = 0
        for part in here.execution_options(yield_per=PART).execute(select(table)).mappings().partitions():
            values: list[dict[str, Any]] = [dict(row) for row in part]
            there.execute(insert(table), values)
            rows += len(values)
            if on_rows is not None:
                on_rows(done + rows)
        done += rows
        if there.execute(select(func.count()).select_from(table)).scalar_one() != rows:
            raise StorageError(f"{table.name} was not copied completely; try again")
