"""The state of a policy, all it needs to continue: the results seen, the open blocks, and the memories of its rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectralbai import run_lengths
from spectralbai.checks import Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.memory import Memory

FORMAT = "spectralbai-state/2"
FORMAT_3 = "spectralbai-state/3"
"""For states from which arms were withdrawn; version 0.2.0 cannot read it."""
FORMAT_4 = "spectralbai-state/4"
"""For states that arms have joined: open blocks may have fewer arms than the state."""


@dataclass(frozen=True)
class Watch:
    """What one stopping rule says at one risk; a decision or a contradiction of R is final."""

    arm: int = 0
    statistic: float = 0.0
    threshold: float = math.inf
    stopped_at: int | None = None
    consistent: bool = True
    candidates: tuple[int, ...] | None = None
    doubted: bool = False
    lacking: tuple[float, ...] | None = None

    @property
    def settled(self) -> bool:
        return self.stopped_at is not None

    @property
    def decided(self) -> bool:
        return self.settled and self.consistent


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
    watches: tuple[Watch, ...]
    """One per stopping rule and risk."""
    withdrawn: tuple[int, ...] = ()
    """The withdrawn arms, in the order of withdrawal: never pulled again, never the answer."""
    joined: tuple[int, ...] = ()
    """The number of arms before each time that arms joined."""

    @property
    def n_arms(self) -> int:
        return self.data.counts.size

    @property
    def counts(self) -> Vector:
        """Results received per arm."""
        return self.received.counts

    @property
    def samples(self) -> int:
        """Results received."""
        sealed = sum(block.arms.size - block.free.size for block in self.blocks)
        return self.data.samples + self.informing.samples + sealed

    @property
    def received(self) -> Data:
        """All results received, also those that are still sealed: for display and for plans, not for decisions."""
        sealed = [block.results.padded(self.n_arms) for block in self.blocks]
        unseen = [*sealed, self.informing] if self.informing.samples else sealed
        return sum(unseen, start=self.data)

    def as_dict(self) -> dict[str, Any]:
        """Returns the state in JSON-ready form; floats survive the round trip exactly."""
        return {
            "format": FORMAT_4 if self.joined else FORMAT_3 if self.withdrawn else FORMAT,
            **({"joined": list(self.joined)} if self.joined else {}),
            **({"withdrawn": list(self.withdrawn)} if self.withdrawn else {}),
            "data": self.data.as_dict(),
            "origin": self.origin,
            "opened": self.opened,
            "blocks": [block.as_dict() for block in self.blocks],
            "informing": self.informing.as_dict(),
            "next_reading": self.next_reading,
            "best": self.best,
            "sampling": self.sampling.as_dict(),
            "stopping": {name: memory.as_dict() for name, memory in self.stopping.items()},
            "watches": [
                {
                    **vars(w),
                    "statistic": _as_json(w.statistic),
                    "threshold": _as_json(w.threshold),
                    "candidates": None if w.candidates is None else run_lengths.as_json(w.candidates),
                    "lacking": None if w.lacking is None else run_lengths.as_json(w.lacking),
                }
                for w in self.watches
            ],
        }

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> State:
        """Returns the state that `as_dict` wrote."""
        found = d.get("format") if isinstance(d, dict) else d
        if found not in (FORMAT, FORMAT_3, FORMAT_4):
            raise InvalidInput(f"a state must have the format {FORMAT!r}, got {found!r}; write it with State.as_dict")
        try:
            state = cls._from_2(d)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidInput(f"a state must hold what State.as_dict writes, got a broken entry: {error}") from None
        data = (state.data, state.informing, *(block.data for block in state.blocks))
        sizes = {vector.size for each in data for vector in (each.counts, each.sums, each.squares)}
        if not sizes <= {state.n_arms, *state.joined} or state.informing.counts.size != state.n_arms:
            raise InvalidInput(
                f"a state must have vectors of one length, got lengths {sorted(sizes)}; write it with State.as_dict"
            )
        return state

    @classmethod
    def _from_2(cls, d: dict[str, Any]) -> State:
        return cls(
            data=Data.from_dict(d["data"]),
            origin=float(d["origin"]),
            blocks=tuple(Block.from_dict(block) for block in d["blocks"]),
            opened=int(d["opened"]),
            informing=Data.from_dict(d["informing"]),
            next_reading=int(d["next_reading"]),
            best=int(d["best"]),
            sampling=Memory.from_dict(d["sampling"]),
            stopping={name: Memory.from_dict(memory) for name, memory in d["stopping"].items()},
            watches=tuple(map(_watch, d["watches"])),
            withdrawn=tuple(map(int, d.get("withdrawn", ()))),
            joined=tuple(map(int, d.get("joined", ()))),
        )


def _watch(w: dict[str, Any]) -> Watch:
    candidates, lacking = w.get("candidates"), w.get("lacking")
    return Watch(
        arm=w["arm"],
        statistic=float(w["statistic"]),
        threshold=float(w["threshold"]),
        stopped_at=w["stopped_at"],
        consistent=w["consistent"],
        candidates=None if candidates is None else tuple(run_lengths.from_json(candidates)),
        doubted=w.get("doubted", False),
        lacking=None if lacking is None else tuple(run_lengths.from_json(lacking)),
    )


def _as_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
