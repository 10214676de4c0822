"""The stored state of a study: how it is read, and updated by one worker at a time.

When enough results have come, one worker claims the update. It computes the new state outside any transaction, and
stores it if no other worker has done so; the others go on asking and telling meanwhile. If the worker dies, its claim
expires and another one takes over.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from spectralbai.arrays import Vector
from spectralbai.errors import StorageError
from spectralbai.journal.definition import Definition
from spectralbai.study.ledger import Ledger
from spectralbai.study.replay import advance, summary
from spectralbai.study.standing import HEAD, Key, Standing, due, key
from spectralbai.study.storage import Storage
from spectralbai.threads import one_thread

if TYPE_CHECKING:
    from spectralbai.policy import State

CLAIM = 10.0
"""Seconds that a claim lasts. If the update takes longer, another worker may do it too, which does no harm."""
PAUSE, LONGEST_PAUSE = 0.005, 0.1
"""Seconds between two checks whether another worker is done: at first, and at most later."""

OnCheck = Callable[[int, int], object]
"""Called with (results processed, all results) while many results are processed."""


class Upkeep:
    """The kept state of one study, and the transactions in which its rows are read and written."""

    def __init__(self, storage: Storage, id_: int, name: str, definition: Definition, head: str) -> None:
        """`head` is how the definition begins in the storage."""
        self.storage = storage
        self.id = id_
        """Identifies the study, even if another one had its name before and was deleted."""
        self.name = name
        self.definition = definition
        """What the study is about; it changes when options join, even if another process adds them."""
        self._head = head
        self._known: State | None = None  # the state last read, which is mostly that still kept
        self._updating = Lock()  # held by the thread of this process that updates the state

    @property
    def now(self) -> float:
        """The present time, by the clock of the storage."""
        return self.storage.clock()

    @contextmanager
    def reading(self) -> Iterator[Ledger]:
        """Yields the rows of the study as of one instant."""
        with self.storage.reading() as connection:
            yield Ledger(connection, self.id)

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """Yields the rows of the study for writing; all changes are made or none."""
        with self.storage.writing() as connection:
            yield Ledger(connection, self.id)

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Updates the stored state if results are not yet processed and no other worker is doing it."""
        if not self._needs_update():
            return
        with self.writing() as ledger:
            claimed = self.append(ledger, ledger.standing(lock=True), [])
        if claimed:
            self.advance(on_check)

    def catch_up_within(self, seconds: float) -> None:
        """Does what `catch_up` does, but returns after so many seconds even if the update is not done; it goes on."""
        if self._needs_update():
            thread = Thread(target=self.catch_up)
            thread.start()
            thread.join(seconds)

    def _needs_update(self) -> bool:
        """Whether the stored state needs an update and no worker is doing it; learns of a new definition on the way."""
        with self.reading() as ledger:
            standing = ledger.standing()
            self.learn(ledger)
        return self._unclaimed(standing)

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

    def append(self, ledger: Ledger, standing: Standing, results: list[dict[str, Any]], filled: int = 0) -> bool:
        """Appends results, if any, and returns whether this worker must now update the stored state.

        `filled` says how many of the results belong to the oldest open block. If this returns True, the update is
        claimed, so that other workers do not start it.
        """
        now = self.now
        claimed = self._unclaimed(ledger.append(standing, now, results, filled))
        if claimed:
            ledger.update(claimed=now + CLAIM)
        return claimed

    def advance(self, on_check: OnCheck | None = None) -> None:
        """Updates the stored state, step by step, until it is up to date; the caller must have claimed this."""
        with self._updating, one_thread():
            self._advance(on_check)
        self.catch_up(on_check)  # a thread that told the last result of a block meanwhile left it to this one

    def _advance(self, on_check: OnCheck | None) -> None:
        behind = True
        while behind:
            with self.reading() as ledger:
                state, standing = self.kept(ledger), ledger.standing()
                told = ledger.results(state.samples, due(state))
            if not standing.behind:
                return  # another worker has done it
            new, seen = advance(self.definition, state, told)
            text, columns = json.dumps(new.as_dict()), summary(self.definition, new)
            with self.writing() as ledger:
                ledger.standing(lock=True)  # all writers lock the study's row first
                now = self.now
                replaced = ledger.replace_state(key(state), new, text, now, seen, **columns)
                standing = ledger.standing()
                behind = standing.behind
                ledger.update(claimed=now + CLAIM if behind else 0.0)
            if replaced:  # if not, another worker was faster, or opened a block meanwhile
                self._known = new
            if on_check is not None:
                on_check(new.samples, standing.results)

    def kept(self, ledger: Ledger) -> State:
        """Returns the stored state, which is read only if it has changed, as is the definition."""
        from spectralbai.policy import State

        kept, state = self.learn(ledger), self._known  # which other threads may set meanwhile
        if state is None or key(state) != kept:
            with undamaged(self.name):
                state = State.from_dict(json.loads(ledger.state()))
                if key(state) != kept:
                    raise ValueError(
                        f"a state of {state.samples} results and {state.opened} blocks, where {kept.seen} and "
                        f"{kept.opened} should be"
                    )
            self._known = state
        return state

    def replaced(self, state: State, definition: Definition | None = None, text: str = "") -> None:
        """Takes note of the state, and perhaps the definition and its JSON form, that this worker put in place."""
        if definition is not None:
            self.definition, self._head = definition, text[:HEAD]
        self._known = state

    def state(self, ledger: Ledger) -> tuple[State, Vector]:
        """Returns the state with all results before the next reading of rules, and the number of later ones per arm."""
        state = self.kept(ledger)
        until = state.samples if state.opened and ledger.standing().behind else due(state) - 1
        told = ledger.results(state.samples, until)
        waiting = ledger.results_per_arm(until, self.definition.policy.problem.n_arms)
        return advance(self.definition, state, told)[0], waiting

    def refresh(self) -> None:
        """Reads the definition again if another process has added options or stopped the study."""
        with self.reading() as ledger:
            self.learn(ledger)

    def learn(self, ledger: Ledger) -> Key:
        """Returns the key of the stored state; reads the definition again first if it has changed in the storage."""
        kept, head = ledger.signs()
        known = len(self.definition.history) - 1  # more than `kept.joined` if another thread has just let options join
        if kept.joined > known or (kept.joined == known and head != self._head):
            with undamaged(self.name):
                self.definition = ledger.definition()
            self._head = head
        return kept

    def _unclaimed(self, standing: Standing) -> bool:
        """Whether the stored state needs an update and no worker is doing it.

        A claim that ends later than one made now would end comes from a machine whose clock is ahead; it is ignored.
        The update of thousands of connected arms may take longer than a claim lasts, and threads of this process need
        no claim to know of it.
        """
        now = self.now
        return standing.behind and not self._updating.locked() and not now < standing.claimed <= now + CLAIM


@contextmanager
def undamaged(name: str) -> Iterator[None]:
    """Turns errors from damaged data of a study into a StorageError with one clear sentence."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise StorageError(
            f'the study "{name}" cannot be read ({reason}); restore a copy of the storage, or an export'
        ) from None
