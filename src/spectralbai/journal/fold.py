"""The state of a study as a fold of its log, event by event.

The same code runs when an event happens and when a log is replayed. Pulls of blocks are taken as they were recorded, so
that they match the tickets handed out: a computer that rounds differently might have planned others. What rules said
stands as it was recorded, whatever a later version of a rule would say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralbai.arrays import Indices
from spectralbai.checks import check_arm
from spectralbai.errors import InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.events import (
    BlockClosed,
    BlockOpened,
    Entry,
    OptionsJoined,
    OptionWithdrawn,
    ResultsTold,
    RulesRead,
    Slot,
    defined_by,
)
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.policy import State

STEP = 1000
"""Number of results processed at once."""

OnCheck = Callable[[int, int], object]
"""Called with (results processed, all results) while many results are processed."""


class Queue:
    """Results told, in their order, of which the state may not have all yet."""

    def __init__(self, before: int = 0) -> None:
        """`before` is the number of results that are not here."""
        self.before = before
        self.arms: list[int] = []
        self.outcomes: list[float] = []
        self.blocks: list[int] = []
        """Number of the block of each pull; -1 for results that only inform."""

    @property
    def end(self) -> int:
        """Number of the last result."""
        return self.before + len(self.arms)

    def add(self, arm: int, outcome: float, block: int | None) -> None:
        self.arms.append(arm)
        self.outcomes.append(outcome)
        self.blocks.append(-1 if block is None else block)

    def part(self, after: int, until: int) -> tuple[Indices, list[float], Indices]:
        """Returns arms, outcomes and blocks of the results after number `after`, up to number `until`."""
        here = slice(after - self.before, until - self.before)
        arms, blocks = (np.array(each[here], dtype=np.intp) for each in (self.arms, self.blocks))
        return arms, self.outcomes[here], blocks


class Fold:
    """The state of a study, changed by one event after the other."""

    def __init__(self, definition: Definition, state: State | None = None, queue: Queue | None = None) -> None:
        """`definition` is the present one, with its history. Without a state, the log is folded from the beginning;
        `queue` has the results told since the state."""
        self.definition = definition
        self.closings: list[BlockClosed] = []
        """What was read when blocks closed, as far as no event has said so yet."""
        self._state = state
        self.queue = Queue(0 if state is None else state.samples) if queue is None else queue
        """The results told since the state at the beginning."""
        self._slots: dict[str, tuple[int, int]] = {}  # (block, arm) of each ticket that this fold has seen
        self._told: set[str] = set()
        self._recorded: set[int] = set()  # numbers of the blocks whose opening an event has recorded
        self._open: tuple[State | None, set[tuple[int, int]]] = (None, set())  # a state, and (block, arm) of its slots

    @property
    def state(self) -> State:
        if self._state is None:
            raise InvalidInput('the first event must be "created"')
        return self._state

    def begin(self) -> None:
        """Makes the state before any result."""
        if self._state is not None:
            raise InvalidInput("a study is created once")
        self._state = self.definition.history[0].policy.init()

    def hand_out(self, slots: Iterable[Slot]) -> None:
        """Takes note of tickets."""
        if self._open[0] is not self.state:
            self._open = self.state, {(block.number, arm) for block in self.state.blocks for arm in block.arms.tolist()}
        for slot in slots:
            if slot.id in self._slots:
                raise InvalidInput(f"the ticket {slot.id!r} was handed out already")
            if slot.block not in self._recorded or (slot.block, slot.arm) not in self._open[1]:
                raise InvalidInput(f"the ticket {slot.id!r} is no slot of a block that is open")
            self._slots[slot.id] = slot.block, slot.arm

    def check_tickets(self, ids: Iterable[str]) -> None:
        """Raises InvalidInput if there is no ticket with one of these ids."""
        for id_ in ids:
            if id_ not in self._slots:
                raise InvalidInput(f"there is no ticket {id_!r}")

    def tell(self, told: ResultsTold) -> None:
        """Puts results into the queue."""
        definition = self.definition.of(self.state)
        self.check_tickets((*told.failed, *told.returned))
        for arm, outcome, block, ticket in told.results:
            check_arm("arm", arm, definition.instance.problem.n_arms)
            if ticket is not None:
                self.check_tickets([ticket])
                if self._slots[ticket] != (block, arm) or ticket in self._told:
                    raise InvalidInput(f"a result of the ticket {ticket!r} has another block or arm, or is its second")
                self._told.add(ticket)
            self.queue.add(arm, definition.check_outcome(outcome), block)

    def feed(self, until: int | None = None, on_check: OnCheck | None = None) -> None:
        """Processes the results of the queue up to number `until`, all if it is None."""
        until = self.queue.end if until is None else until
        if not self.state.samples <= until <= self.queue.end:
            raise InvalidInput(f"it cannot have happened after {until} results")
        while self.state.samples < until:
            arms, outcomes, blocks = self.queue.part(self.state.samples, min(until, self.state.samples + STEP))
            definition, before = self.definition.of(self.state), self.state
            self._state, readings = definition.policy.advance(before, arms, definition.rewards(outcomes), blocks)
            self._note(before, readings)
            if on_check is not None:
                on_check(self.state.samples, self.queue.end)

    def open(self, number: int, arms: Sequence[int]) -> None:
        """Opens a block with these pulls; if it is open already, gives it these pulls."""
        if not arms or max(arms) >= self.state.n_arms:
            raise InvalidInput(f"block {number} needs pulls of arms that were there then")
        if self.state.opened < number:
            raise InvalidInput(f"block {number} cannot be the next")
        if self.state.opened == number:
            self.open_ahead()
        self._state = with_pulls(self.state, number, np.array(arms, dtype=np.intp))
        self._recorded.add(number)

    def open_ahead(self) -> None:
        """Opens a block with the pulls that the policy plans now."""
        self._state = self.definition.of(self.state).policy.open(self.state)

    def close(self, event: BlockClosed) -> None:
        """Checks that a block closed, and that the rules said then what the event says."""
        closed = self.closings[0] if self.closings else None
        known = event.block in self._recorded
        if closed is None or (closed.block, closed.results, known) != (event.block, event.results, True):
            raise InvalidInput(f"block {event.block} cannot have closed after {event.results} results")
        self._stands(event, self.closings.pop(0).verdict)

    def withdraw(self, event: OptionWithdrawn) -> None:
        """Takes an arm out, as the event says."""
        check_arm("arm", event.arm, self.state.n_arms)
        if event.arm in self.state.withdrawn:
            raise InvalidInput(f"arm {event.arm} was withdrawn already")
        self.take_out(event.arm)
        self._stands(event, self.verdict)

    def take_out(self, arm: int) -> None:
        """Takes an arm out, with the blocks that have a pull of it."""
        before = self.state
        self._state, readings = self.definition.of(before).policy.after_withdrawal(before, arm)
        self._note(before, readings, {block.number for block in before.blocks if arm in block.arms})

    def join(self, event: OptionsJoined) -> None:
        """Extends the state by the arms that joined, as the event says."""
        if len(self.state.joined) + 1 >= len(self.definition.history):
            raise InvalidInput("more options joined than the definition says")
        self.extend(event.blocks)
        self._stands(event, self.verdict)

    def extend(self, blocks: Collection[int]) -> None:
        """Extends the state by the arms of the next definition; only open blocks with these numbers stay open."""
        before = self.state
        definition = self.definition.history[len(before.joined) + 1]
        self._state, readings = definition.policy.after_join(before, blocks)
        self._note(before, readings, {block.number for block in before.blocks} - set(blocks))

    @property
    def verdict(self) -> Verdict:
        """What the rule says now."""
        return self.definition.of(self.state).policy.verdict(self.state)

    def openings(self, before: State | None = None) -> list[BlockOpened]:
        """Returns the events of the blocks that are open now and were not opened in the state `before`, if there was
        one."""
        first = 0 if before is None else before.opened
        return [
            BlockOpened(block.number, self.state.samples, tuple(block.arms.tolist()))
            for block in self.state.blocks
            if block.number >= first
        ]

    def _note(self, before: State, readings: Sequence[Sequence[Verdict]], cancelled: Iterable[int] = ()) -> None:
        """Keeps what was read when blocks closed, since the state `before` and after some blocks were cancelled."""
        still = {*cancelled, *(block.number for block in self.state.blocks)}
        numbers = [*(block.number for block in before.blocks), *range(before.opened, self.state.opened)]
        closed = [number for number in numbers if number not in still]
        for number, (verdict, *_) in zip(closed, readings, strict=True):
            self.closings.append(BlockClosed(verdict.samples, self.definition.rule, verdict, number))

    def _stands(self, event: RulesRead, verdict: Verdict) -> None:
        """Compares what rules said, as recorded, with what they say now; if another version said it, it stands."""
        said, n_arms = event.verdict, self.state.n_arms
        if max(said.arm, *(said.candidates or (0,))) >= n_arms or len(said.lacking or verdict.lacking or ()) > n_arms:
            raise InvalidInput("the rules spoke of arms that were not there")
        if event.rule == self.definition.rule:
            if not alike(event.verdict, verdict):
                raise InvalidInput(f"after {event.results} results the rules said something else than is written down")
            return
        blocks, opened = self.state.blocks, self.state.opened
        if event.verdict.settled and blocks and blocks[-1].number not in self._recorded:
            # The version of now went on and opened a block: that never happened.
            blocks, opened = blocks[:-1], opened - 1
        self._state = replace(
            self.state, blocks=blocks, opened=opened, verdicts=(event.verdict, *self.state.verdicts[1:])
        )


def fold(log: Iterable[Entry], on_check: OnCheck | None = None) -> Fold:
    """Returns the fold of a whole log, whose results are told but not all processed; raises InvalidInput, with the
    place, if something in it cannot have happened."""
    entries = list(log)
    folded = Fold(defined_by(entries))
    for place, entry in enumerate(entries):
        try:
            entry.event.apply(folded)
        except InvalidInput as error:
            raise InvalidInput(f"$.events[{place}], {entry.event.kind}: {error}") from None
        if on_check is not None and isinstance(entry.event, RulesRead):
            on_check(folded.state.samples, folded.queue.end)
    if folded.closings:
        raise InvalidInput("the log is not complete: a block closed, and the event is missing")
    return folded


def with_pulls(state: State, number: int, arms: Indices) -> State:
    """Returns the state with other pulls in an open block; none of its slots may have a result."""
    block = next((block for block in state.blocks if block.number == number), None)
    if block is None or block.free.size < block.arms.size:
        raise InvalidInput(f"block {number} is not open, or has results already")
    if np.array_equal(block.arms, arms):
        return state
    new = replace(block, arms=arms, outcomes=np.full(arms.size, np.nan))
    return replace(state, blocks=tuple(new if each is block else each for each in state.blocks))


def alike(one: Verdict, other: Verdict) -> bool:
    """Returns whether two verdicts are the same but for rounding."""
    same = replace(one, statistic=0.0, threshold=0.0, lacking=None)
    if same != replace(other, statistic=0.0, threshold=0.0, lacking=None):
        return False
    pairs = [(one.statistic, other.statistic), (one.threshold, other.threshold)]
    if (one.lacking is None) != (other.lacking is None) or len(one.lacking or ()) != len(other.lacking or ()):
        return False
    pairs += zip(one.lacking or (), other.lacking or (), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6) for a, b in pairs)
