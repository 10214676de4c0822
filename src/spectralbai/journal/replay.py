"""A log replayed: every event is checked against the state that the events before it led to.

Pulls of blocks are taken as they were recorded, so that they match the tickets handed out: a computer that rounds
differently might have planned others. What rules said stands as it was recorded, whatever a later version of a rule
would say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from spectralbai.checks import check_arm, check_time, check_words, is_line
from spectralbai.errors import InvalidInput
from spectralbai.journal.body import LARGE
from spectralbai.journal.definition import Definition
from spectralbai.journal.events import (
    BlockClosed,
    BlockOpened,
    CountsTold,
    Entry,
    OptionsJoined,
    OptionWithdrawn,
    ResultsTold,
    ResultsVoided,
    RulesRead,
    StudyCreated,
    TicketsGiven,
    defined_by,
)
from spectralbai.journal.fold import Fold, OnCheck
from spectralbai.journal.refold import Corrections, refolded
from spectralbai.verdict import Verdict


class Replay:
    """The fold of a log up to some event, and what later events are compared with."""

    def __init__(self, definition: Definition) -> None:
        self.fold = Fold(definition, definition.history[0].start())
        self._slots: dict[str, tuple[int, int, int | None]] = {}  # (block, arm, item) of each ticket
        self._answered: set[str] = set()  # tickets with a result
        self._recorded: set[int] = set()  # numbers of the blocks whose opening an event has recorded
        self._places: set[tuple[int, int, int | None]] = set()  # those of the slots of the state `_listed`
        self._listed: object = None
        self.log: list[Entry] = []
        """The entries so far."""

    def hand_out(self, event: TicketsGiven) -> None:
        """Takes note of tickets."""
        check_words("worker", event.worker, 100, blank=True)
        check_time("expires", event.expires)
        state = self.fold.state
        if self._listed is not state:
            self._listed = state
            self._places = {place for block in state.blocks for place in block.places}
        for slot in event.tickets:
            if not is_line(slot.id, 16) or not slot.id:
                raise InvalidInput(f"an id must be up to 16 characters, got {slot.id[:40]!r}")
            if slot.id in self._slots:
                raise InvalidInput(f"the ticket {slot.id!r} was handed out already")
            place = slot.block, slot.arm, slot.item
            if slot.block not in self._recorded or place not in self._places:
                raise InvalidInput(f"the ticket {slot.id!r} is no slot of a block that is open")
            self._slots[slot.id] = place

    def check_tickets(self, ids: Iterable[str]) -> None:
        """Raises InvalidInput if there is no ticket with one of these ids."""
        for id_ in ids:
            if id_ not in self._slots:
                raise InvalidInput(f"there is no ticket {id_!r}")

    def tell(self, event: ResultsTold) -> None:
        """Puts results into the queue."""
        fold = self.fold
        definition = fold.definition.of(fold.state)
        n_arms = definition.instance.problem.n_arms
        self.check_tickets((*event.failed, *event.abandoned))
        for reason in event.failed.values():
            check_words("reason", reason, 200)
        if event.origin is not None:
            check_words("origin", event.origin, 200)
        for arm, outcome, block, ticket, item in event.results:
            check_arm("arm", arm, n_arms)
            if (ticket is None) == (event.origin is None):
                raise InvalidInput("results must have tickets, or an origin")
            if ticket is not None:
                self.check_tickets((ticket,))
                if self._slots[ticket] != (block, arm, item) or ticket in self._answered:
                    raise InvalidInput(f"a result of the ticket {ticket!r} is of another trial, or is its second")
                self._answered.add(ticket)
            elif definition.has_items or item is not None:
                raise InvalidInput(
                    "results must have tickets where trials have items, and no item where they have none"
                )
            fold.queue.add(arm, definition.check_outcome(outcome), block, item)

    def count(self, event: CountsTold) -> None:
        """Checks counts; they change nothing."""
        n_arms = self.fold.definition.of(self.fold.state).instance.problem.n_arms
        check_words("origin", event.origin, 200)
        sizes = len(event.trials), len(event.successes), len(event.asked) or n_arms
        if sizes != (n_arms,) * 3 or min(event.asked, default=0.0) < 0:
            raise InvalidInput("counts must have a number for each option, and shares must not be negative")
        if any(hits > n for n, hits in zip(event.trials, event.successes, strict=True)):
            raise InvalidInput("there cannot be more successes than trials")

    def open(self, event: BlockOpened) -> None:
        """Opens a block with these pulls; if it is open already, gives it these pulls."""
        self._feed(event.results)
        fold, number = self.fold, event.number
        if not event.arms or max(event.arms) >= fold.state.n_arms:
            raise InvalidInput(f"block {number} needs pulls of arms that were there then")
        available = self._available
        if len(event.items) != (0 if available is None else len(event.arms)) or max(event.items, default=0) >= (
            available or 1
        ):
            raise InvalidInput(f"block {number} needs an item of the study for each pull, if trials have items")
        if fold.state.opened < number:
            raise InvalidInput(f"block {number} cannot be the next")
        if fold.state.opened == number:
            fold.open_ahead()
        items = np.array(event.items, dtype=np.intp) if event.items else None
        fold.set_pulls(number, np.array(event.arms, dtype=np.intp), items)
        self._recorded.add(number)

    def close(self, event: BlockClosed) -> None:
        """Checks that a block closed, and that the rules said then what the event says."""
        self._feed(event.results)
        closings, block = self.fold.closings, event.block
        if not closings or (closings[0].block, closings[0].results) != (block, event.results):
            raise InvalidInput(f"block {block} cannot have closed after {event.results} results")
        if block not in self._recorded:
            raise InvalidInput(f"block {block} was never opened")
        self._stands(event, closings.pop(0).verdict)

    def withdraw(self, event: OptionWithdrawn) -> None:
        """Takes an arm out."""
        self._feed(event.results)
        check_arm("arm", event.arm, self.fold.state.n_arms)
        if event.arm in self.fold.state.withdrawn:
            raise InvalidInput(f"arm {event.arm} was withdrawn already")
        self.fold.withdraw(event.arm)
        self._stands(event, self.fold.verdict)

    def void(self, event: ResultsVoided) -> None:
        """Folds the log again without results that were wrong."""
        self._feed(event.results)
        if event.results != self.fold.queue.end:
            raise InvalidInput("results were told before that are not processed")
        if (event.origin is None) == (event.ticket is None) or (event.outcome is not None and event.ticket is None):
            raise InvalidInput("it must be about an origin or a ticket, and only a ticket has a right outcome")
        known, found = Corrections.of(self.log), Corrections.of([*self.log, Entry(0, 0.0, event)])
        if known == found:
            raise InvalidInput("there are no such results")
        if event.outcome is not None:
            self.fold.definition.check_outcome(event.outcome)
        self.fold = refolded([*self.log, Entry(0, 0.0, event)], self.fold.definition)
        self._stands(event, self.fold.verdict)

    def join(self, event: OptionsJoined) -> None:
        """Adds the arms that joined."""
        self._feed(event.results)
        self.fold.join(event.blocks)
        self._stands(event, self.fold.verdict)

    @property
    def _available(self) -> int | None:
        """Number of items that can be tried; None if trials have none."""
        items = self.fold.definition.instance.problem.items
        return None if items is None else items.available or LARGE

    def _feed(self, results: int) -> None:
        """Brings the state to this number of results."""
        if not self.fold.state.samples <= results <= self.fold.queue.end:
            raise InvalidInput(f"it cannot have happened after {results} results")
        self.fold.feed(results)

    def _stands(self, event: RulesRead, verdict: Verdict) -> None:
        """Compares what rules said, as recorded, with what they say now; if another version said it, it stands."""
        said, state = event.verdict, self.fold.state
        if max(said.arm, *(said.candidates or (0,))) >= state.n_arms or (
            len(said.lacking or verdict.lacking or ()) > state.n_arms
        ):
            raise InvalidInput("the rules spoke of arms that were not there")
        if event.rule == self.fold.definition.rule:
            if not alike(said, verdict):
                raise InvalidInput(f"after {event.results} results the rules said something else than is written down")
            return
        blocks, opened = state.blocks, state.opened
        if said.settled and blocks and blocks[-1].number not in self._recorded:
            # The version of now went on and opened a block: that never happened.
            blocks, opened = blocks[:-1], opened - 1
        self.fold.state = replace(state, blocks=blocks, opened=opened, verdicts=(said, *state.verdicts[1:]))


def replay(log: Iterable[Entry], on_check: OnCheck | None = None) -> Fold:
    """Returns the fold of a whole log, whose results are told but not all processed; raises InvalidInput, with the
    place, if something in it cannot have happened."""
    entries = list(log)
    for place, entry in enumerate(entries):
        if isinstance(entry.event, StudyCreated) != (place == 0):
            raise InvalidInput(f"$.events[{place}], {entry.event.kind}: a study is created once, by its first event")
    replayed = Replay(defined_by(entries))
    for place, entry in enumerate(entries):
        try:
            entry.event.apply(replayed)
        except InvalidInput as error:
            raise InvalidInput(f"$.events[{place}], {entry.event.kind}: {error}") from None
        replayed.log.append(entry)
        if on_check is not None and isinstance(entry.event, RulesRead):
            on_check(replayed.fold.state.samples, replayed.fold.queue.end)
    fold = replayed.fold
    if fold.closings:
        raise InvalidInput("the log is not complete: a block closed, and the event is missing")
    return fold


def alike(one: Verdict, other: Verdict) -> bool:
    """Returns whether two verdicts are the same but for rounding."""
    same = replace(one, statistic=0.0, threshold=0.0, lacking=None)
    if same != replace(other, statistic=0.0, threshold=0.0, lacking=None):
        return False
    if (one.lacking is None) != (other.lacking is None) or len(one.lacking or ()) != len(other.lacking or ()):
        return False
    pairs = [(one.statistic, other.statistic), (one.threshold, other.threshold)]
    pairs += zip(one.lacking or (), other.lacking or (), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs)
