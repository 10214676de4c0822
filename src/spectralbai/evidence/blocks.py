"""Results of pulls: the data that are seen, and the blocks whose results stay sealed until all have arrived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.memory import Memory

ARM_BITS = 31
"""Number of bits of a slot's key that hold its arm; the others hold its item."""


@dataclass(frozen=True, eq=False)
class Data(Memory):
    """Counts, sums and sums of squares of each arm's results, after a common origin is subtracted from them."""

    kind: ClassVar[str] = "data"

    counts: Vector
    sums: Vector
    squares: Vector

    @classmethod
    def none(cls, n_arms: int) -> Self:
        """Returns the data before any result."""
        return cls(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    @cached_property
    def samples(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def means(self) -> Vector:
        """Empirical means, 0 where there are no results."""
        means = np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)
        means.setflags(write=False)
        return means

    def plus(self, arms: Indices, outcomes: Vector) -> Data:
        """Returns the data with further results, added one by one in their order."""
        counts, sums, squares = self.counts.copy(), self.sums.copy(), self.squares.copy()
        np.add.at(counts, arms, 1.0)
        np.add.at(sums, arms, outcomes)
        np.add.at(squares, arms, outcomes**2)
        return Data(counts, sums, squares)

    def after(self, block: Block) -> Data:
        """Returns the data with the results of a block."""
        return self.plus(block.arms, block.outcomes)

    def __add__(self, other: Data) -> Data:
        return Data(self.counts + other.counts, self.sums + other.sums, self.squares + other.squares)

    def less(self, other: Data) -> Data:
        """Returns the data without some of its results."""
        return Data(self.counts - other.counts, self.sums - other.sums, self.squares - other.squares)

    def padded(self, n_arms: int) -> Data:
        """Returns the data for `n_arms` arms: arms without results are added at the end."""
        if n_arms == self.counts.size:
            return self
        return Data(*(extended(each, n_arms, 0.0) for each in (self.counts, self.sums, self.squares)))


@dataclass(frozen=True, eq=False)
class Block(Memory):
    """Pulls that were fixed before the first of them was handed out, and their results so far.

    The results are sealed until every slot has one: until then no bet or decision uses them. Only the pulls of blocks
    that are opened later may depend on them.
    """

    kind: ClassVar[str] = "block"

    arms: Indices
    """The arm of each slot, in the order in which the slots are handed out."""
    outcomes: Vector
    """The outcome of each slot minus the origin; nan where there is none yet."""
    data: Data
    """The data that the bets on this block may depend on: what was seen when the block was opened, plus the results of
    blocks that were opened earlier and have closed since."""
    best: int
    """The arm that these data recommend."""
    number: int = 0
    """How many blocks were opened before this one."""
    items: Indices | None = None
    """The item of each slot; None where every trial stands for itself."""
    draws: Indices | None = None
    """How many items were drawn before that of each slot."""
    drawn: int = 0
    """How many items were drawn before the block was opened; slots with earlier draws catch up."""

    @classmethod
    def opened(cls, arms: Indices, data: Data, best: int, number: int = 0, **items: Any) -> Self:
        """Returns the block of these pulls, without results."""
        return cls(arms, np.full(arms.size, np.nan), data, best, number, **items)

    @cached_property
    def keys(self) -> Indices:
        """What a result must name to fill a slot, as one number: the arm, or the arm and the item."""
        return self.arms if self.items is None else slot_keys(self.arms, self.items)

    @property
    def places(self) -> Iterator[tuple[int, int, int | None]]:
        """The number of the block, the arm and the item of each slot."""
        items = [None] * self.arms.size if self.items is None else self.items.tolist()
        return zip([self.number] * self.arms.size, self.arms.tolist(), items, strict=True)

    def without(self, arm: int) -> Block:
        """Returns the block without the slots of an arm."""
        rest = self.arms != arm
        items, draws = (None if values is None else values[rest] for values in (self.items, self.draws))
        return replace(self, arms=self.arms[rest], outcomes=self.outcomes[rest], items=items, draws=draws)

    @cached_property
    def free(self) -> Indices:
        """The slots without a result."""
        return np.flatnonzero(np.isnan(self.outcomes))

    @cached_property
    def ranks(self) -> Indices:
        """For each slot, the number of earlier slots with the same key."""
        return ranks_of(self.keys)

    @property
    def closed(self) -> bool:
        return not self.free.size

    @property
    def n_arms(self) -> int:
        """The number of arms when the block was opened; more may have joined since."""
        return self.data.counts.size

    @cached_property
    def counts(self) -> Vector:
        """Slots per arm."""
        return np.bincount(self.arms, minlength=self.n_arms).astype(np.float64)

    @property
    def told(self) -> Block:
        """The slots that have a result, as a block."""
        known = ~np.isnan(self.outcomes)
        return replace(self, arms=self.arms[known], outcomes=self.outcomes[known])

    @property
    def results(self) -> Data:
        """The results so far."""
        told = self.told
        return Data.none(self.n_arms).plus(told.arms, told.outcomes)


def fill(
    blocks: tuple[Block, ...], keys: Indices, outcomes: Vector, numbers: Indices | None
) -> tuple[tuple[Block, ...], int, Mask]:
    """Returns (blocks, taken, without_slot) after results told one by one: each fills the oldest free slot of its arm,
    or of its arm and item: `keys` are as in `Block.keys`.

    If `numbers` is given, it names the block of each result: the result can fill a slot of that block only, and with
    number -1 it fills none. The function returns as soon as the first block closes and leaves the later results alone:
    `taken` is the number of results used so far, and `without_slot` marks the used ones that found no slot.
    """
    if blocks and _in_turn(blocks[0], keys, numbers):
        told = blocks[0].outcomes.copy()
        told[blocks[0].free] = outcomes[: blocks[0].free.size]
        taken = blocks[0].free.size
        return (replace(blocks[0], outcomes=told), *blocks[1:]), taken, np.zeros(taken, dtype=bool)
    filled = [block.outcomes.copy() for block in blocks]
    slots: dict[tuple[int, int], list[tuple[int, int]]] = {}  # free slots by block and arm, the oldest one last
    for k in range(len(blocks) - 1, -1, -1):
        free = blocks[k].free[::-1]
        for slot, key in zip(free.tolist(), blocks[k].keys[free].tolist(), strict=True):
            slots.setdefault((0 if numbers is None else blocks[k].number, key), []).append((k, slot))
    missing = blocks[0].free.size if blocks else -1
    without_slot = np.zeros(keys.size, dtype=bool)
    taken = 0
    named = np.zeros(keys.size, dtype=np.intp) if numbers is None else numbers
    for place, outcome in zip(zip(named.tolist(), keys.tolist(), strict=True), outcomes.tolist(), strict=True):
        if slots.get(place):
            k, slot = slots[place].pop()
            filled[k][slot] = outcome
            missing -= k == 0
        else:
            without_slot[taken] = True
        taken += 1
        if missing == 0:
            break
    now = tuple(replace(block, outcomes=results) for block, results in zip(blocks, filled, strict=True))
    return now, taken, without_slot[:taken]


def unclaimed(
    blocks: tuple[Block, ...], taken: Mapping[int, Mapping[int, int]], n: int
) -> list[tuple[int, int, int | None]]:
    """Returns (number of the block, arm, item) for up to n slots that are not handed out yet, in the order of handing
    out; the item is None where trials have none.

    `taken` counts, for each block by number and each key (`Block.keys`), the trials that have a result or are still
    expected to get one.
    """
    free: list[tuple[int, int, int | None]] = []
    for block in blocks:
        claims = taken.get(block.number, {})
        claimed = np.zeros(block.arms.size)
        if claims:
            known = np.array(sorted(claims), dtype=np.intp)
            place = np.searchsorted(known, block.keys) % known.size
            counts = np.array([claims[key] for key in known.tolist()])
            claimed = np.where(known[place] == block.keys, counts[place], 0)
        slots = np.flatnonzero(block.ranks >= claimed)[: n - len(free)]
        items = [None] * slots.size if block.items is None else block.items[slots].tolist()
        free += [(block.number, arm, item) for arm, item in zip(block.arms[slots].tolist(), items, strict=True)]
        if len(free) == n:
            break
    return free


def extended(values: NDArray[Any], n_arms: int, new: float) -> NDArray[Any]:
    """Returns values per arm, in the last axis, with the value `new` added for arms that joined, `n_arms` in all."""
    added = n_arms - values.shape[-1]
    if not added:
        return values
    return np.concatenate([values, np.full((*values.shape[:-1], added), new, dtype=values.dtype)], axis=-1)


def ranks_of(values: Indices) -> Indices:
    """Returns, for each entry, how many earlier entries have the same value."""
    by_value = np.argsort(values, kind="stable")
    ranks = np.empty_like(values)
    ranks[by_value] = np.arange(values.size) - np.searchsorted(values[by_value], values[by_value])
    return ranks


def slot_key(arm: int, item: int) -> int:
    """Returns one number for a pair of arm and item."""
    return (item << ARM_BITS) + arm


def slot_keys(arms: Indices, items: Indices) -> Indices:
    """Returns one number for each pair of arm and item; it does not change when arms join."""
    return (items << ARM_BITS) + arms


def _in_turn(block: Block, keys: Indices, numbers: Indices | None) -> bool:
    """Whether the first results fill all free slots of the block, in the order of the slots: the usual, fast case."""
    n = block.free.size
    return bool(
        keys.size >= n
        and (keys[:n] == block.keys[block.free]).all()
        and (numbers is None or (numbers[:n] == block.number).all())
    )
