"""The state of a study as its storage keeps it: read, and brought up to date by one worker at a time.

When rules are to be read, one worker claims the task of bringing the kept state up to date, computes outside of any
transaction, and puts the new state in place if nobody else has: the others go on asking and telling meanwhile. A
worker that dies there leaves a claim that runs out.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from spectralbai.checks import Vector
from spectralbai.errors import StorageError
from spectralbai.study.definition import Definition
from spectralbai.study.ledger import HEAD, Ledger, Progress, due, key
from spectralbai.study.replay import advance, summary
from spectralbai.study.storage import Storage

if TYPE_CHECKING:
    from spectralbai.policy import State

CLAIM = 10.0
"""Seconds for which a worker may keep others from the same computation.

If it takes longer another does it too, to no harm.
"""
PAUSE, LONGEST_PAUSE = 0.005, 0.1
"""Seconds between looks at whether another worker is done, at first and later."""

OnCheck = Callable[[int, int], object]
"""Called with (results weighed, all results) where much is to be weighed."""


class Upkeep:
    """The kept state of one study, and the transactions in which its rows are read and written."""

    def __init__(self, storage: Storage, id_: int, name: str, definition: Definition, head: str) -> None:
        """`head` is how the definition begins in the storage."""
        self.storage = storage
        self._id = id_
        self._name = name
        self.definition = definition
        """What the study is about; it changes when options join, also by another process."""
        self._head = head
        self._known: State | None = None  # the state last read, which is mostly that still kept

    @property
    def id(self) -> int:
        """What tells the study from all others, also from one of its name that was deleted."""
        return self._id

    @property
    def now(self) -> float:
        """The time that the storage's clock says."""
        return self.storage.clock()

    @contextmanager
    def reading(self) -> Iterator[Ledger]:
        """Yields the rows of the study as of one instant."""
        with self.storage.reading() as connection:
            yield Ledger(connection, self._id)

    @contextmanager
    def writing(self) -> Iterator[Ledger]:
        """Yields the rows of the study, to write everything or nothing."""
        with self.storage.writing() as connection:
            yield Ledger(connection, self._id)

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Brings the kept state up to date, if it is behind and no worker is at it: all that read it do so first."""
        with self.reading() as ledger:
            progress = ledger.progress()
            self.learn(ledger)
        if not self._unclaimed(progress):
            return
        with self.writing() as ledger:
            progress = ledger.progress(lock=True)
            claimed = self.append(ledger, progress, [])
        if claimed:
            self.advance(on_check)

    def wait(self) -> None:
        """Waits until the kept state is up to date, or nobody is at it: then this worker is."""
        pause = PAUSE
        while True:
            with self.reading() as ledger:
                progress = ledger.progress()
            if not progress.behind:
                return
            if self._unclaimed(progress):
                self.catch_up()
                return
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def append(self, ledger: Ledger, progress: Progress, results: list[dict[str, Any]], filled: int = 0) -> bool:
        """Appends results, if any, `filled` of them of the oldest open block; returns whether it now falls to this
        worker to bring the state up to date, which it has claimed."""
        now = self.now
        claimed = self._unclaimed(ledger.append(progress, now, results, filled))
        if claimed:
            ledger.update(claimed=now + CLAIM)
        return claimed

    def advance(self, on_check: OnCheck | None = None) -> None:
        """Brings the kept state up to date, one check at a time, until it is; the caller has claimed that."""
        behind = True
        while behind:
            with self.reading() as ledger:
                state, progress = self.kept(ledger), ledger.progress()
                told = ledger.results(state.samples, due(state))
            if not progress.behind:
                return  # another worker has been here
            new, seen = advance(self.definition, state, told)
            text = json.dumps(new.as_dict())
            with self.writing() as ledger:
                ledger.progress(lock=True)  # the study's row first, as all writers do
                now = self.now
                replaced = ledger.replace_state(key(state), new, text, now, seen)
                if replaced:
                    ledger.update(**summary(self.definition, new))
                progress = ledger.progress()
                behind = progress.behind
                ledger.update(claimed=now + CLAIM if behind else 0.0)
            if replaced:  # else another worker was faster, or opened a block meanwhile
                self._known = new
            if on_check is not None:
                on_check(new.samples, progress.results)

    def kept(self, ledger: Ledger) -> State:
        """Returns the state as kept, read only if it has changed; `definition` is then not older than it."""
        from spectralbai.policy import State

        self.learn(ledger)
        kept, state = ledger.kept(), self._known  # which other threads may set meanwhile
        if state is None or key(state) != kept:
            with undamaged(self._name):
                state = State.from_dict(json.loads(ledger.state()))
                if key(state) != kept:
                    raise ValueError(
                        f"a state of {state.samples} results and {state.opened} blocks, where {kept.seen} and "
                        f"{kept.opened} should be"
                    )
            self._known = state
        return state

    def replaced(self, state: State, definition: Definition | None = None, text: str = "") -> None:
        """Takes note of the state, and of the definition and its JSON form if it changed, that this worker has just
        put in place."""
        if definition is not None:
            self.definition, self._head = definition, text[:HEAD]
        self._known = state

    def state(self, ledger: Ledger) -> tuple[State, Vector]:
        """Returns the state with all results before rules are read next, and the number of later ones per arm."""
        state = self.kept(ledger)
        until = state.samples if state.opened and ledger.progress().behind else due(state) - 1
        told = ledger.results(state.samples, until)
        waiting = ledger.results_per_arm(until, self.definition.policy.problem.n_arms)
        return advance(self.definition, state, told)[0], waiting

    def refresh(self) -> None:
        """Learns of options that have joined by another process, whose labels may be meant, and of a stop."""
        with self.reading() as ledger:
            self.learn(ledger)

    def learn(self, ledger: Ledger) -> None:
        """Reads the definition again if options have joined or the study was stopped, by another process, say."""
        joined, head = ledger.signs()
        known = len(self.definition.history) - 1  # more than `joined` if another thread has just let options join
        if joined > known or (joined == known and head != self._head):
            with undamaged(self._name):
                self.definition = ledger.definition()
            self._head = head

    def _unclaimed(self, progress: Progress) -> bool:
        """Whether the state is to be brought up to date, and no worker is at it.

        A claim that ends later than a claim made now would was made with another clock, and does not count.
        """
        now = self.now
        return progress.behind and not now < progress.claimed <= now + CLAIM


@contextmanager
def undamaged(name: str) -> Iterator[None]:
    """Says in one sentence that what is kept of a study cannot be read."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise StorageError(
            f'the study "{name}" cannot be read ({reason}); restore a copy of the storage, or an export'
        ) from None
