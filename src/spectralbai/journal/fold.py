"""The state of a study as a fold of its log: the same code runs when something happens and when a log is replayed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralbai.arrays import Indices
from spectralbai.errors import InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.events import BlockClosed, BlockOpened, Event
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.policy import State

STEP = 1000
"""Number of results processed at once."""

VOID = -2
"""In place of the number of a block: the result was taken out again."""

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
        self.items: list[int | None] = []
        """The item of each pull; None where trials have none."""

    @property
    def end(self) -> int:
        """Number of the last result."""
        return self.before + len(self.arms)

    def add(self, arm: int, outcome: float, block: int | None, item: int | None) -> None:
        self.arms.append(arm)
        self.outcomes.append(outcome)
        self.items.append(item)
        self.blocks.append(-1 if block is None else block)

    def part(self, after: int, until: int) -> tuple[Indices, list[float], Indices, list[int | None]]:
        """Returns arms, outcomes, blocks and items of the results after number `after`, up to number `until`."""
        here = slice(after - self.before, until - self.before)
        arms, blocks = (np.array(each[here], dtype=np.intp) for each in (self.arms, self.blocks))
        return arms, self.outcomes[here], blocks, self.items[here]


class Fold:
    """The state of a study, which one change after the other brings further."""

    def __init__(self, definition: Definition, state: State, queue: Queue | None = None) -> None:
        self.definition = definition
        self.state = state
        self.queue = Queue(state.samples) if queue is None else queue
        """The results told since that state."""
        self.closings: list[BlockClosed] = []
        """What was read when blocks closed, as far as nobody has taken it from here."""
        self._opened = state.opened

    @property
    def verdict(self) -> Verdict:
        """What the rule says now."""
        return self.definition.of(self.state).policy.verdict(self.state)

    def feed(self, until: int | None = None) -> None:
        """Processes the results of the queue up to number `until`, all if it is None."""
        until = self.queue.end if until is None else until
        while self.state.samples < until:
            arms, outcomes, blocks, items = self.queue.part(self.state.samples, min(until, self.state.samples + STEP))
            definition, before = self.definition.of(self.state), self.state
            tried = np.array(items, dtype=np.intp) if definition.has_items else None
            rewards, valid = definition.rewards(outcomes), blocks != VOID
            if not valid.all():
                arms, rewards, blocks = arms[valid], rewards[valid], blocks[valid]
                tried = None if tried is None else tried[valid]
            self.state, readings = definition.policy.advance(before, arms, rewards, blocks, tried)
            self.state = replace(self.state, void=self.state.void + int((~valid).sum()))
            self._note(before, readings)

    def open_ahead(self) -> None:
        """Opens a block with the pulls that the policy plans now."""
        self.state = self.definition.of(self.state).policy.open(self.state)

    def set_pulls(self, number: int, arms: Indices, items: Indices | None = None) -> None:
        """Gives an open block, none of whose slots has a result, other pulls."""
        block = next((block for block in self.state.blocks if block.number == number), None)
        if block is None or block.free.size < block.arms.size:
            raise InvalidInput(f"block {number} is not open, or has results already")
        same = [
            np.array_equal([] if new is None else new, [] if old is None else old)
            for new, old in ((arms, block.arms), (items, block.items))
        ]
        if not all(same):
            # Items are numbered in the order of drawing.
            new = replace(block, arms=arms, outcomes=np.full(arms.size, np.nan), items=items, draws=items)
            blocks = tuple(new if other is block else other for other in self.state.blocks)
            self.state = replace(self.state, blocks=blocks)

    def cancel(self, number: int) -> None:
        """Closes an open block without its results, which only inform."""
        blocks = tuple(block for block in self.state.blocks if block.number != number)
        self.state = self.state.keeping(blocks, self.state.n_arms)

    def withdraw(self, arm: int) -> None:
        """Takes an arm out, with the blocks that have a pull of it or, if trials have items, with its trials."""
        before, definition = self.state, self.definition.of(self.state)
        self.state, readings = definition.policy.after_withdrawal(before, arm)
        cancelled = {block.number for block in before.blocks if arm in block.arms}
        if definition.has_items:
            cancelled -= {block.number for block in before.relieved(arm).blocks}
        self._note(before, readings, cancelled)

    def join(self, blocks: Collection[int]) -> None:
        """Adds the arms of the next definition; only open blocks with these numbers stay open."""
        before = self.state
        definition = self.definition.history[len(before.joined) + 1]
        self.state, readings = definition.policy.after_join(before, blocks)
        self._note(before, readings, {block.number for block in before.blocks} - set(blocks))

    @property
    def events(self) -> list[Event]:
        """The blocks that have closed, and those opened since the state that it began with."""
        return [*self.closings, *self.openings(self._opened)]

    def openings(self, first: int = 0) -> list[BlockOpened]:
        """Returns the events of the blocks that are open now, from number `first` on."""
        return [
            BlockOpened(
                block.number,
                self.state.samples,
                tuple(block.arms.tolist()),
                () if block.items is None else tuple(block.items.tolist()),
            )
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
