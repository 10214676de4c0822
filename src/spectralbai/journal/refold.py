"""A log folded again without results that were wrong, as if their trials had not been made.

Blocks keep the pulls that were recorded, without the slots of these results. Bets, eliminations and decisions are
computed anew, so those that rested on the wrong results are gone (theory, section 21).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from spectralbai.journal.definition import Definition
from spectralbai.journal.events import (
    BlockOpened,
    Entry,
    OptionsJoined,
    OptionWithdrawn,
    ResultsTold,
    ResultsVoided,
    Told,
)
from spectralbai.journal.fold import VOID, Fold


@dataclass(frozen=True)
class Corrections:
    """Which results of a log are wrong, and what is right where that is known."""

    numbers: frozenset[int] = frozenset()
    """Numbers of the results that are taken out."""
    outcomes: dict[int, float] = field(default_factory=dict)
    """The right outcomes of others, by the number of the result."""

    @classmethod
    def of(cls, log: Iterable[Entry]) -> Corrections:
        """Returns the corrections that a log has."""
        told: dict[int, tuple[Told, str | None]] = {}
        out: set[int] = set()
        right: dict[int, float] = {}
        for entry in log:
            event = entry.event
            if isinstance(event, ResultsTold):
                first = len(told) + 1
                told |= {number: (each, event.origin) for number, each in enumerate(event.results, first)}
            elif isinstance(event, ResultsVoided):
                these = {number for number, each in told.items() if event.concerns(*each) and number not in out}
                if event.outcome is None:
                    out |= these
                else:
                    right |= dict.fromkeys(these, event.outcome)
        return cls(frozenset(out), {number: outcome for number, outcome in right.items() if number not in out})


def results_of(log: Iterable[Entry]) -> Iterator[Told]:
    """Yields the results of a log, in the order told."""
    for entry in log:
        if isinstance(entry.event, ResultsTold):
            yield from entry.event.results


def refolded(log: Sequence[Entry], definition: Definition) -> Fold:
    """Returns the fold of a log, with all results processed, after the corrections that it has; `definition` is the one
    at its end."""
    found, lost = Corrections.of(log), Counter[tuple[int, int]]()
    for number, each in enumerate(results_of(log), 1):
        if number in found.numbers and each.block is not None:
            lost[each.block, each.arm] += 1
    fold, told = Fold(definition, definition.history[0].start()), 0
    for entry in log:
        event = entry.event
        if isinstance(event, ResultsTold):
            for each in event.results:
                told += 1
                block = VOID if told in found.numbers else each.block
                fold.queue.add(each.arm, found.outcomes.get(told, each.outcome), block, each.item)
        elif isinstance(event, BlockOpened):
            fold.feed(event.results)
            _open(fold, event, lost)
        elif isinstance(event, OptionWithdrawn):
            fold.feed(event.results)
            fold.withdraw(event.arm)
        elif isinstance(event, OptionsJoined):
            fold.feed(event.results)
            fold.join(event.blocks)
    fold.feed()
    if not fold.state.blocks:
        fold.open_ahead()
    fold.closings.clear()
    return fold


def _open(fold: Fold, event: BlockOpened, lost: Counter[tuple[int, int]]) -> None:
    """Opens a block with the pulls that were recorded, without the slots of results that are taken out."""
    number = event.number
    while fold.state.opened <= number:
        before = fold.state.opened
        fold.open_ahead()
        if fold.state.opened == before:
            return  # decided without these results: nothing is opened any more, and later results only inform
    left, arms = Counter({arm: lost[number, arm] for arm in set(event.arms)}), list[int]()
    items = list[int]()
    for slot, arm in enumerate(event.arms):
        if left[arm]:
            left[arm] -= 1
        else:
            arms.append(arm)
            items += event.items[slot : slot + 1]
    block = next((block for block in fold.state.blocks if block.number == number), None)
    if block is None or block.free.size < block.arms.size:
        return  # cancelled by a withdrawal, or closed
    if arms:
        fold.set_pulls(number, np.array(arms, dtype=np.intp), np.array(items, dtype=np.intp) if items else None)
    else:
        fold.cancel(number)
