"""The tickets, results and blocks of a study as tables, written by the events of its log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectralbai.journal.events import BlockOpened, Entry, Slot, Told


@dataclass(frozen=True)
class Observation:
    """The record of a result."""

    number: int
    """1, 2, ... in the order told."""
    arm: int
    outcome: float
    told: float
    ticket: str | None
    origin: str | None
    """Where a result without a ticket comes from."""
    block: int | None = None
    """Number of its block; None for results that only inform."""
    item: int | None = None
    """The item on which the arm was tried; None where trials have none."""


@dataclass(frozen=True)
class TicketRecord:
    """The record of a ticket."""

    id: str
    arm: int
    worker: str
    issued: float
    expires: float
    block: int
    abandoned: float | None = None
    """When it was given back, if it was."""
    failed: str | None = None
    """Why its trial failed, if it did."""
    result: int | None = None
    """Number of its result."""
    item: int | None = None
    """The item on which the arm is to be tried; None where trials have none."""


@dataclass(frozen=True)
class Opening:
    """The record of the opening of a block."""

    number: int
    results: int
    """Number of results in the state when the block was opened."""
    opened: float
    arms: tuple[int, ...]
    """The arm of each slot."""
    items: tuple[int, ...] = ()
    """The item of each slot; empty where trials have none."""


@dataclass(frozen=True)
class Records:
    """All records of a study: results in the order told, tickets and blocks in the order given and opened."""

    observations: tuple[Observation, ...]
    tickets: tuple[TicketRecord, ...]
    openings: tuple[Opening, ...]
    by_hand: tuple[tuple[float, str, str], ...] = ()
    """What somebody did by hand: when, the kind of the event, and who."""

    @classmethod
    def of(cls, log: Iterable[Entry]) -> Records:
        """Returns the records that follow from a log."""
        rows = NewRows()
        by_hand = []
        for entry in log:
            entry.event.enter(rows, entry.time)
            if entry.by is not None:
                by_hand.append((entry.time, entry.event.kind, entry.by))
        return cls(
            tuple(Observation(**row) for row in rows.results),
            tuple(TicketRecord(**row) for row in rows.tickets.values()),
            tuple(rows.openings[number] for number in sorted(rows.openings)),
            tuple(by_hand),
        )


class NewRows:
    """New rows of the tables, and changes of rows that are there already."""

    def __init__(self, results: int = 0) -> None:
        """`results` is the number of results so far."""
        self.tickets: dict[str, dict[str, Any]] = {}
        """New tickets by id."""
        self.changes: dict[str, dict[str, Any]] = {}
        """New values of columns of tickets that are there already, by id."""
        self.results: list[dict[str, Any]] = []
        """New results, in the order told."""
        self.openings: dict[int, Opening] = {}
        """Blocks opened, by number."""
        self.voids: list[tuple[str | None, str | None, float | None, float]] = []
        """Origin, ticket, right outcome and time of results that are wrong, of those that are there already."""
        self.known = 0
        """How many of the new results were known from elsewhere."""
        self._before = results
        self._lost = 0

    @property
    def told(self) -> int:
        """Number of results ever told."""
        return self._before + len(self.results) + self._lost

    def open(self, block: BlockOpened, time: float) -> None:
        first = self.openings.get(block.number)
        opened = time if first is None else first.opened
        self.openings[block.number] = Opening(block.number, block.results, opened, block.arms, block.items)

    def hand_out(self, slot: Slot, worker: str, issued: float, expires: float) -> None:
        row = {"id": slot.id, "arm": slot.arm, "block": slot.block, "item": slot.item, "worker": worker}
        self.tickets[slot.id] = {**row, "issued": issued, "expires": expires}

    def tell(self, result: Told, origin: str | None, time: float) -> None:
        number, (arm, outcome, block, ticket, item) = self.told + 1, result
        row = {"number": number, "arm": arm, "outcome": outcome, "block": block, "ticket": ticket, "item": item}
        self.results.append({**row, "told": time, "origin": origin})
        if ticket is not None:
            self.change(ticket, result=number)

    def void(self, origin: str | None, ticket: str | None, outcome: float | None, time: float) -> None:
        """Takes out the results of an origin or a ticket, which is given back; or corrects the outcome."""
        self.voids.append((origin, ticket, outcome, time))
        for row in self.results:
            if outcome is not None and row["ticket"] == ticket:
                row["outcome"] = outcome
        if outcome is None:
            self._lost += len(self.results)
            key, value = ("origin", origin) if ticket is None else ("ticket", ticket)
            self.results = [row for row in self.results if row[key] != value]
            self._lost -= len(self.results)
            if ticket is not None:
                self.change(ticket, abandoned=time, result=None)

    def abandon(self, ids: Iterable[str], time: float) -> None:
        for id_ in ids:
            self.change(id_, abandoned=time)

    def change(self, id_: str, **columns: Any) -> None:
        row = self.tickets.get(id_)
        (self.changes.setdefault(id_, {}) if row is None else row).update(columns)
