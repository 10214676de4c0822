"""How far a study is: the counters that its row keeps, and the key that tells its states apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from spectralbai.journal.entries import Opening

if TYPE_CHECKING:
    from spectralbai.policy import State

TAIL = 200
"""After this many results the stored state is updated even if no rule needs to be read, so that it is read fast."""

HEAD = 400
"""Characters at the beginning of a definition that hold its limits, which change when a study is stopped."""


class Mark(NamedTuple):
    """How far a study is. If two marks are equal, nothing has changed in between, except tickets."""

    id: int
    name: str
    results: int
    progress: str
    opened: int
    withdrawn: int
    joined: int
    head: str
    """The first characters of the definition."""


class Standing(NamedTuple):
    """How far a study is, and whose turn it is to bring its state up to date."""

    results: int
    due: int
    claimed: float
    first_block: int | None
    missing: int | None
    """Results that the oldest open block misses."""
    head: str
    """The first characters of the definition, which change when the study is stopped."""

    @property
    def behind(self) -> bool:
        """Whether the stored state needs an update."""
        return self.results >= self.due or (self.missing is not None and self.missing <= 0)


def due(state: State) -> int:
    """Returns the number of results at which the stored state must be updated, even if no block closes before."""
    late = state.samples + TAIL
    return late if state.opened else min(state.next_reading, late)


class Key(NamedTuple):
    """Identifies a state among those of its study: the numbers of results, blocks opened, arms withdrawn, and joins."""

    seen: int
    opened: int
    withdrawn: int
    joined: int


def key(state: State) -> Key:
    """Returns the key that identifies a state among those of its study."""
    return Key(state.samples, state.opened, len(state.withdrawn), len(state.joined))


def openings_of(state: State, now: float) -> list[Opening]:
    """Returns the open blocks of a state in the form in which they are recorded."""
    return [Opening(block.number, state.samples, now, tuple(block.arms.tolist())) for block in state.blocks]
