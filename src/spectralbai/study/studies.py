"""The studies of one storage: created, opened, listed, imported and deleted over one set of connections."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from spectralbai.instance import Instance
from spectralbai.study.definition import Goal
from spectralbai.study.ledger import Mark, find_marks
from spectralbai.study.records import Summary
from spectralbai.study.storage import Clock, Storage
from spectralbai.study.study import Study, list_studies
from spectralbai.study.transfer import import_study
from spectralbai.study.upkeep import OnCheck


class Studies:
    """The studies of a storage. A context: leaving it closes the connections, and no study of it can be used then.

    `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, spectralbai.db in the working directory if
    not given. One without studies is made ready for some, unless `create` is false: then it is refused. `clock` says
    the time, in seconds since 1970. Up to `connections` are kept open; more are opened when they are needed.

    >>> with sb.Studies("sqlite:///lab.db") as studies:
    ...     study = studies.create("doses", instance, delta=0.05)
    ...     [each.name for each in studies.list()]
    ['doses']
    """

    def __init__(
        self, storage: str | None = None, *, create: bool = True, clock: Clock = time.time, connections: int = 5
    ) -> None:
        self._storage = Storage(storage, create=create, clock=clock, connections=connections)

    @property
    def now(self) -> float:
        """The time that the clock says."""
        return self._storage.clock()

    @property
    def storage(self) -> str:
        """The address of the storage, without a password."""
        return self._storage.name

    def create(
        self,
        name: str,
        instance: Instance,
        delta: float = 0.05,
        goal: Goal = "max",
        stopping: str = "betting",
        budget: int | None = None,
        until: float | None = None,
        failed_as: float | None = None,
    ) -> Study:
        """Returns a new study; `Study.create` says what the arguments mean."""
        return Study.create(name, instance, delta, self._storage, goal, stopping, budget, until, failed_as)

    def open(self, name: str) -> Study:
        """Returns the study of that name."""
        return Study.open(name, self._storage)

    def list(self) -> list[Summary]:
        """Returns a line for each study, oldest first."""
        return list_studies(self._storage)

    def marks(self) -> tuple[Mark, ...]:
        """Returns how far each study is, oldest first: quick even where studies have thousands of arms."""
        with self._storage.reading() as connection:
            return tuple(find_marks(connection))

    def import_(self, document: Any, name: str | None = None, on_check: OnCheck | None = None) -> Study:
        """Returns the study of an exported document, under its own name or another."""
        return import_study(document, name, self._storage, on_check)

    def delete(self, name: str) -> None:
        """Removes a study and all that was asked and told, for good."""
        self.open(name).delete()

    def close(self) -> None:
        """Closes the connections."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Studies in {self.storage}>"
