"""The studies of one storage: created, opened, listed, imported and deleted over one set of connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from spectralbai.closing import Closing
from spectralbai.errors import NotFound
from spectralbai.instance import Instance
from spectralbai.journal.definition import Goal
from spectralbai.journal.entries import Summary
from spectralbai.journal.fold import OnCheck
from spectralbai.study.acting import actor
from spectralbai.study.check import Check, check_studies, readable_part
from spectralbai.study.ledger import Deletion, Ledger, Mark, find_deletions, find_marks, find_pending
from spectralbai.study.storage import PATIENCE, Clock, Storage
from spectralbai.study.study import Study
from spectralbai.study.transfer import FORMAT, import_study
from spectralbai.text.wording import as_time


class Studies(Closing):
    """The studies of a storage, as a context manager: leaving it closes the connections, and its studies with it.

    `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE, spectralbai.db in the working directory if
    not given. One without studies is made ready for some, unless `create` is false: then it is refused. `clock` says
    the time, in seconds since 1970. Up to `connections` are kept open; more are opened when they are needed. Who writes
    waits for other writers for `patience` seconds at most.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> with sb.Studies("sqlite:///lab.db") as studies:
        ...     study = studies.create("doses", sb.Instance(problem, labels=["5 mg", "10 mg"]), delta=0.05)
        ...     [each.name for each in studies.list()]
        ['doses']
    """

    def __init__(
        self,
        storage: str | None = None,
        *,
        create: bool = True,
        clock: Clock = time.time,
        connections: int = 5,
        patience: float = PATIENCE,
    ) -> None:
        self._storage = Storage(storage, create=create, clock=clock, connections=connections, patience=patience)

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
        *,
        budget: int | None = None,
        until: float | None = None,
        failed_as: float | None = None,
        items: Sequence[str] | None = None,
        seed: int | None = None,
        control: str | None = None,
        control_share: float | None = None,
        lapse_as: float | None = None,
        window: float | None = None,
    ) -> Study:
        """Returns a new study; the arguments are explained at `Study.create`."""
        return Study.create(
            name,
            instance,
            delta,
            self._storage,
            goal,
            budget=budget,
            until=until,
            failed_as=failed_as,
            items=items,
            seed=seed,
            control=control,
            control_share=control_share,
            lapse_as=lapse_as,
            window=window,
        )

    def open(self, name: str) -> Study:
        """Returns the study with that name."""
        return Study.open(name, self._storage)

    def list(self) -> list[Summary]:
        """Returns a summary of each study, oldest first."""
        return list_studies(self._storage)

    def marks(self) -> tuple[Mark, ...]:
        """Returns each study in brief, oldest first: quick even where studies have thousands of arms."""
        with self._storage.reading() as connection:
            return tuple(find_marks(connection))

    def try_writing(self) -> None:
        """Writes something of no meaning; raises StorageError if that is not possible."""
        self._storage.try_writing()

    def pending(self) -> dict[int, int]:
        """Returns how many tickets are pending, by the `id` of the study's mark."""
        with self._storage.reading() as connection:
            return find_pending(connection, self.now)

    def import_(self, document: Any, name: str | None = None, on_check: OnCheck | None = None) -> Study:
        """Returns the study of an exported document, under its old name unless `name` gives another."""
        return import_study(document, name, self._storage, on_check)

    def delete(self, name: str) -> None:
        """Deletes a study with all its tickets and results, for good, even if it is damaged. Who did it, and when, is
        kept."""
        with self._storage.writing() as connection:
            marks = find_marks(connection, name)
            if not marks:
                raise NotFound(f'{self.storage} holds no study "{name}"; spectralbai study list shows those there')
            Ledger(connection, marks[0].id).delete(self.now, actor())

    def deletions(self) -> Sequence[Deletion]:
        """Returns the studies that were deleted, the last first."""
        with self._storage.reading() as connection:
            return find_deletions(connection)

    def check(self, name: str) -> Check:
        """Returns what a check of a study finds: its log is folded again, and all that is stored compared with it."""
        return check_studies(self._storage, name)[0]

    def check_all(self) -> Sequence[Check]:
        """Returns the checks of all studies, oldest first."""
        return check_studies(self._storage)

    def export_readable(self, name: str) -> dict[str, Any]:
        """Returns as much of a damaged study as can be read, from its beginning, in the form that `import_` takes."""
        log = readable_part(self._storage, name)
        return {"format": FORMAT, "name": name, "events": [entry.as_dict() for entry in log]}

    def close(self) -> None:
        """Closes the connections."""
        self._storage.close()

    def __repr__(self) -> str:
        return f"<Studies in {self.storage}>"


def list_studies(storage: str | Storage | None = None) -> list[Summary]:
    """Returns a summary of each study in a storage, oldest first.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("list", sb.Instance(problem, labels=["old", "new"]))
        >>> study.close()
        >>> [each.name for each in sb.study.list_studies()]
        ['list']
    """
    with Storage.given(storage) as place:
        with place.reading() as connection:
            marks = find_marks(connection)
        now = place.clock()
        if place is not storage:
            place.close()
    return [_summary(mark, now) for mark in marks]


def _summary(mark: Mark, now: float) -> Summary:
    question = mark.name, as_time(mark.created), mark.options, mark.goal, mark.delta
    return Summary(*question, mark.results, mark.state(now), mark.best, mark.damage)
