"""The stored state of a study: how it is read, changed by one write path, and kept up to date.

Every change goes through `Upkeep.write`: it is computed outside any transaction from a stored state, and recorded if
the stored state still has the same revision; otherwise it is computed again. When a block is complete, the worker who
told its last result claims the update of the state, and the others go on asking and telling meanwhile. If it dies, its
claim expires and another one takes over.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from spectralbai.errors import Damaged, StorageError
from spectralbai.journal.definition import Definition
from spectralbai.journal.events import Entry, Event
from spectralbai.journal.fold import Fold, OnCheck
from spectralbai.study.acting import actor
from spectralbai.study.ledger import TO_DO, Damage, Ledger, Standing, StoredState, note_damage, sound
from spectralbai.study.storage import Storage
from spectralbai.threads import ProcessLock, one_thread, within

if TYPE_CHECKING:
    from spectralbai.policy import State

CLAIM = 10.0
"""Seconds that a claim lasts. If the update takes longer, another worker may do it too, which does no harm."""
PAUSE, LONGEST_PAUSE = 0.005, 0.1
"""Seconds between two checks whether another worker is done: at first, and at most later."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Basis:
    """What changes are computed from: the stored state, and the definition that it belongs to."""

    revision: int
    """The revision up to which it is folded."""
    defined: int
    """The revision of the last event that changed the definition."""
    definition: Definition
    state: State | None
    """None if it was not read."""


@dataclass(eq=False)
class Draft:
    """A change that is being recorded, inside a transaction."""

    ledger: Ledger
    standing: Standing
    """How far the study is before the change."""
    now: float
    events: list[Event] = field(default_factory=list)
    """The events to append to the log."""
    stored: StoredState | None = None
    """The state after the change, if it changes the state."""
    definition: Definition | None = None
    """The definition after the change, if it changes the definition."""

    def commit(self) -> Standing:
        """Writes the change; returns how far the study is then."""
        first = self.standing.revision + 1
        by = actor() if any(event.by_hand for event in self.events) else None
        entries = [
            Entry(revision, self.now, event, by if event.by_hand else None)
            for revision, event in enumerate(self.events, first)
        ]
        return self.ledger.append(self.standing, entries, self.stored, self.definition)


Change = tuple[int, Callable[[Draft], T]]
"""The revision of the stored state that a change was computed from, and what puts it into a draft."""


class Upkeep:
    """The stored state of one study, and the transactions in which its rows are read and written."""

    def __init__(self, storage: Storage, id_: int, name: str) -> None:
        self.storage = storage
        self.id = id_
        """Identifies the study, even if another one had its name before and was deleted."""
        self.name = name
        with self.reading() as ledger:
            standing = ledger.standing()
            definition = ledger.definition()
        self._basis = Basis(standing.folded, standing.defined, definition, None)
        self._updating = ProcessLock()  # held by the thread of this process that updates the state

    @property
    def now(self) -> float:
        """The present time, by the clock of the storage."""
        return float(self.storage.clock())

    @property
    def definition(self) -> Definition:
        """The definition as it was last read; it changes when options join or the study is stopped."""
        return self._basis.definition

    @property
    def basis(self) -> Basis:
        """The stored state and the definition as they were last read."""
        return self._basis

    @contextmanager
    def reading(self) -> Iterator[Ledger]:
        """Yields the rows of the study as of one instant."""
        with self._noted(), self.storage.reading() as connection:
            yield Ledger(connection, self.id)

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """Yields the rows of the study for writing; all changes are made or none."""
        with self._noted(), self.storage.writing() as connection:
            yield Ledger(connection, self.id)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Turns a Damage into a Damaged, with a sentence, which is noted in the row of the study for lists."""
        try:
            yield
        except Damage as damage:
            refusal = Damaged(f'the study "{self.name}" cannot be read ({damage}); {TO_DO}')
        else:
            return
        with suppress(StorageError), self.storage.writing() as connection:
            note_damage(connection, self.id, str(refusal))
        raise refusal

    def write(
        self,
        compute: Callable[[], Change[T]],
        on_recorded: Callable[[T], object] | None = None,
        on_check: OnCheck | None = None,
    ) -> T:
        """Returns what a change returns when it is recorded.

        `compute` is called outside any transaction, and again if the stored state is not the same any more when the
        change is to be recorded. `on_recorded` is called once everything is written. If the change completed a block,
        this worker then updates the state; `on_check` is called meanwhile.
        """
        answer, after, claimed = self._commit(compute)
        if on_recorded is not None:
            on_recorded(answer)
        # The thread that was updating the state when this change was recorded may have ended just before.
        if claimed or self._unclaimed(after):
            self._update(on_check, claimed)
        return answer

    def _commit(self, compute: Callable[[], Change[T]], own: bool = False) -> tuple[T, Standing, bool]:
        """Returns what a change returns when it is recorded, how far the study is then, and whether this worker has
        claimed the update of the state that is due then: if nobody had. `own` says that it is updating the state."""
        while True:
            revision, fill = compute()
            with self.writing() as ledger:
                before = ledger.standing(lock=True)
                self._forget(before)
                if before.folded == revision:
                    draft = Draft(ledger, before, self.now)
                    answer = fill(draft)
                    after = draft.commit()
                    claimed = after.behind if own else self._unclaimed(after)
                    if claimed or own:
                        ledger.update(claimed=self.now + CLAIM if claimed else 0.0)
                    break
            self.refresh()
        if draft.stored is not None:
            last = self._basis  # which other threads may set meanwhile
            if draft.definition is not None or last.defined == after.defined:
                definition = draft.definition or last.definition
                self._remember(Basis(after.folded, after.defined, definition, draft.stored.state))
        return answer, after, claimed

    def refresh(self) -> None:
        """Reads the definition again if it has changed in the storage."""
        with self.reading() as ledger:
            self.read(ledger, with_state=False)

    def read(self, ledger: Ledger, with_state: bool = True) -> tuple[Standing, Basis]:
        """Returns how far the study is, and the stored state with its definition; they are read only if changed."""
        standing, last = ledger.standing(), self._basis  # which other threads may set meanwhile
        if last.revision == standing.folded and (last.state is not None or not with_state):
            return standing, last
        definition = last.definition if last.defined == standing.defined else ledger.definition()
        state = last.state if last.revision == standing.folded else None
        if with_state and state is None:
            from spectralbai.policy import State  # it loads compiled code, which telling does not need

            text = ledger.state(standing.folded)
            with sound("the stored state"):
                state = State.from_dict(json.loads(text))
        new = Basis(standing.folded, standing.defined, definition, state)
        self._remember(new)
        return standing, new

    def _remember(self, basis: Basis) -> None:
        """Keeps a stored state for later calls, unless another thread has a newer one."""
        if basis.revision >= self._basis.revision:
            self._basis = basis

    def _forget(self, standing: Standing) -> None:
        """Forgets a state that is newer than the storage, which was restored from a backup."""
        if self._basis.revision > standing.revision:
            self._basis = Basis(0, 0, self._basis.definition, None)

    def resume(self, ledger: Ledger, closing: bool = False) -> tuple[Standing, Fold]:
        """Returns how far the study is, and a fold that goes on from the stored state with the results told since: as
        far as no block closes or, if `closing`, those that are due."""
        standing, basis = self.read(ledger)
        assert basis.state is not None, "it was just read"
        before = basis.state.samples
        until = standing.due if closing else before if standing.behind else standing.results
        return standing, Fold(basis.definition, basis.state, ledger.queue(before, until))

    def up_to_date(self) -> tuple[int, Fold]:
        """Returns the revision of the stored state, and a fold from it of all results told since, at a time when no
        block is about to close."""
        while True:
            self.catch_up()
            with self.reading() as ledger:
                standing, fold = self.resume(ledger)
            if not standing.behind:
                fold.feed()
                return standing.folded, fold
            self.wait()  # another worker is about to close a block, which may bring the decision

    def catch_up(self, on_check: OnCheck | None = None, patience: float | None = None) -> None:
        """Updates the stored state if results are not yet processed and no other worker is doing it.

        If `patience` is given, it returns after so many seconds even if the update is not done, which then goes on.
        """
        if patience is None:
            self._update(on_check)
        elif self._due():
            within(patience, self._update)

    def wait(self) -> None:
        """Waits until the stored state is up to date; if no worker is updating it, does so."""
        pause = PAUSE
        while True:
            with self.reading() as ledger:
                standing = ledger.standing()
            if not standing.behind:
                return
            if self._unclaimed(standing):
                self.catch_up()
                return
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _due(self) -> bool:
        """Whether the stored state needs an update and no worker is doing it."""
        with self.reading() as ledger:
            standing, _ = self.read(ledger, with_state=False)
        return self._unclaimed(standing)

    def _update(self, on_check: OnCheck | None = None, claimed: bool = False) -> None:
        """Updates the stored state, step by step, until it is up to date or another worker does it; `claimed` says
        whether this worker has claimed it already."""
        # At the end it looks again: a thread that told the last result of a block meanwhile left it to this one.
        while claimed or (self._due() and self._claim()):
            with self._updating.lock, one_thread():
                samples, standing = self._advance()
            if samples is not None and on_check is not None:
                on_check(samples, standing.results)
            claimed = standing.behind

    def _claim(self) -> bool:
        """Claims the update of the stored state; returns False if it is not due any more, or another worker did."""
        _, _, claimed = self._commit(lambda: (self._basis.revision, lambda draft: None))
        return claimed

    def _advance(self) -> tuple[int | None, Standing]:
        """Processes the results told since the stored state, at most as many as are due; returns how many there are in
        the new one, None if another worker has done it, and how far the study is."""

        def compute() -> Change[int | None]:
            with self.reading() as ledger:
                standing, fold = self.resume(ledger, closing=True)
            if not standing.behind:
                return standing.folded, lambda draft: None
            fold.feed()
            stored, events = StoredState.of(fold), fold.events

            def fill(draft: Draft) -> int:
                draft.stored = stored
                draft.events += events
                return stored.state.samples

            return standing.folded, fill

        samples, standing, _ = self._commit(compute, own=True)
        return samples, standing

    def _unclaimed(self, standing: Standing) -> bool:
        """Whether the stored state needs an update and no worker is doing it.

        A claim that ends later than one made now would end comes from a machine whose clock is ahead; it is ignored.
        The update of thousands of connected arms may take longer than a claim lasts, and threads of this process need
        no claim to know of it.
        """
        now = self.now
        return standing.behind and not self._updating.lock.locked() and not now < standing.claimed <= now + CLAIM
