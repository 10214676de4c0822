"""The state of a policy, all it needs to continue: the results seen, the open blocks, and the memories of its rules."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.memory import Memory
from spectralbai.verdict import Verdict

FORMAT = "spectralbai-state/7"


@dataclass(frozen=True, eq=False)
class State:
    """All that a policy knows at some time; replaying the same openings of blocks and results gives the same state."""

    data: Data
    """The results seen: those of closed blocks or, if pulls do not come in blocks, all received."""
    origin: float
    """The first outcome received. It is subtracted from all, so that adding a constant to them changes nothing."""
    blocks: tuple[Block, ...]
    """The open blocks, oldest first."""
    opened: int
    """Number of blocks opened so far."""
    informing: Data
    """Results received without a slot: they become seen when the next block is opened, and no bet is made on them."""
    next_reading: int
    """If pulls do not come in blocks, the number of results at which rules are read next."""
    best: int
    """The leader."""
    sampling: Memory
    """The memory of the sampling rule."""
    stopping: Mapping[str, Memory]
    """The memories of the stopping rules, by name."""
    verdicts: tuple[Verdict, ...]
    """What the rules said when they were last read: one per stopping rule and risk."""
    seed: int = 0
    """What the order of the slots of each block is drawn with."""
    order: Indices | None = None
    """The items of a list in the order of drawing; None without a list."""
    withdrawn: tuple[int, ...] = ()
    """The withdrawn arms, in the order of withdrawal: never pulled again, never the answer."""
    joined: tuple[int, ...] = ()
    """The number of arms before each time that arms joined."""
    void: int = 0
    """Number of results received that turned out to be wrong and were taken out again: they count as received only."""

    @property
    def n_arms(self) -> int:
        return self.data.counts.size

    @property
    def used_up(self) -> bool:
        """Whether nothing is left to try though nothing is decided: there are no items any more."""
        return not (self.settled or self.blocks)

    @property
    def settled(self) -> bool:
        """Whether all rules have stopped, so that no more pulls are planned."""
        return all(verdict.settled for verdict in self.verdicts)

    @property
    def counts(self) -> Vector:
        """Results received per arm."""
        return self.received.counts

    @property
    def samples(self) -> int:
        """Results received."""
        sealed = sum(block.arms.size - block.free.size for block in self.blocks)
        return self.data.samples + self.informing.samples + sealed + self.void

    @property
    def received(self) -> Data:
        """All results received, also those that are still sealed: for display and for plans, not for decisions."""
        sealed = [block.results.padded(self.n_arms) for block in self.blocks]
        unseen = [*sealed, self.informing] if self.informing.samples else sealed
        return sum(unseen, start=self.data)

    @property
    def drawn(self) -> int:
        """Number of items drawn, also for open blocks."""
        draws = [int(block.draws.max()) + 1 for block in self.blocks if block.draws is not None]
        return max((self.data.drawn, *draws)) if isinstance(self.data, ItemData) else 0

    def relieved(self, arm: int) -> State:
        """Returns the state without the slots of an arm in open blocks with items; its results there only inform.

        Bets on these blocks are then computed as if the arm had not been tried. A block that has no slot left is
        cancelled; if it drew items of a list, so are later ones: the arms that stay must have been tried on every item
        drawn.
        """
        informing, blocks, gap = self.informing, [], False
        for block in self.blocks:
            rest, lost = block.without(arm), block.results.padded(self.n_arms)
            if rest.arms.size and not gap:
                blocks.append(rest)
                lost = lost.less(rest.results.padded(self.n_arms))
            elif self.order is not None and block.draws is not None:
                gap = gap or bool((block.draws >= block.drawn).any())
            informing = informing + lost
        return replace(self, informing=informing, blocks=tuple(blocks))

    def keeping(self, blocks: tuple[Block, ...], n_arms: int) -> State:
        """Returns the state in which only these open blocks stay open; the results of the others only inform.

        `n_arms` is the number of arms from now on.
        """
        informing = self.informing.padded(n_arms)
        for block in self.blocks:
            if block not in blocks:
                informing = informing + block.results.padded(n_arms)
        return replace(self, informing=informing, blocks=blocks)

    def as_dict(self) -> dict[str, Any]:
        """Returns the state in JSON-ready form; floats survive the round trip exactly."""
        return {
            "format": FORMAT,
            "joined": list(self.joined),
            "withdrawn": list(self.withdrawn),
            "data": self.data.as_dict(),
            "origin": self.origin,
            "opened": self.opened,
            "blocks": [self._block_as_dict(block) for block in self.blocks],
            "informing": self.informing.as_dict(),
            "next_reading": self.next_reading,
            "best": self.best,
            "seed": self.seed,
            "order": None if self.order is None else _short(self.order),
            "sampling": self.sampling.as_dict(),
            "stopping": {name: memory.as_dict() for name, memory in self.stopping.items()},
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            **({"void": self.void} if self.void else {}),
        }

    def _block_as_dict(self, block: Block) -> dict[str, Any]:
        """Returns an open block in JSON-ready form; its data are not written again where they are those of the state,
        as they are unless some results only inform."""
        if block.data is not self.data:
            return block.as_dict()
        return replace(block, data=Data.none(0)).as_dict() | {"data": None}

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> State:
        """Returns the state that `as_dict` wrote."""
        given = d.get("format") if isinstance(d, dict) else d
        if given != FORMAT:
            raise InvalidInput(f"a state must have the format {FORMAT!r}, got {given!r}; write it with State.as_dict")
        try:
            data = Data.from_dict(d["data"])
            state = cls(
                data=data,
                origin=float(d["origin"]),
                blocks=tuple(_block(written, data) for written in d["blocks"]),
                opened=int(d["opened"]),
                informing=Data.from_dict(d["informing"]),
                next_reading=int(d["next_reading"]),
                best=int(d["best"]),
                seed=int(d["seed"]),
                order=None if d["order"] is None else _long(d["order"]),
                sampling=Memory.from_dict(d["sampling"]),
                stopping={name: Memory.from_dict(memory) for name, memory in d["stopping"].items()},
                verdicts=tuple(map(Verdict.from_dict, d["verdicts"])),
                withdrawn=tuple(map(int, d["withdrawn"])),
                joined=tuple(map(int, d["joined"])),
                void=int(d.get("void", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
            raise InvalidInput(f"a state must hold what State.as_dict writes, got a broken entry: {error}") from None
        parts = (state.data, state.informing, *(block.data for block in state.blocks))
        sizes = {vector.size for part in parts for vector in (part.counts, part.sums, part.squares)}
        if not sizes <= {state.n_arms, *state.joined} or state.informing.counts.size != state.n_arms:
            raise InvalidInput(
                f"a state must have vectors of one length, got lengths {sorted(sizes)}; write it with State.as_dict"
            )
        return state


def _block(d: dict[str, Any], data: Data) -> Block:
    """Returns an open block as `State.as_dict` wrote it, `data` being those of the state."""
    if d["data"] is not None:
        return Block.from_dict(d)
    return replace(Block.from_dict(d | {"data": Data.none(0).as_dict()}), data=data)


def _short(order: Indices) -> int | list[int]:
    """Returns an order JSON-ready: only its length if it is that of the numbers."""
    return order.size if np.array_equal(order, np.arange(order.size)) else order.tolist()


def _long(order: int | list[int]) -> Indices:
    """Returns the order that `_short` wrote."""
    return np.arange(order) if isinstance(order, int) else np.array(order, dtype=np.intp)
