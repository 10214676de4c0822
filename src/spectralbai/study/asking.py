"""Tickets for the trials to do next: the slots of open blocks that nobody holds."""

from __future__ import annotations

import hashlib
import math
import secrets
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from spectralbai.evidence.blocks import unclaimed
from spectralbai.journal.entries import Ticket
from spectralbai.journal.events import ResultsTold, Slot, TicketsGiven, Told
from spectralbai.study.ledger import StoredState
from spectralbai.study.upkeep import Change, Draft, Upkeep

if TYPE_CHECKING:
    from spectralbai.journal.definition import Definition
    from spectralbai.policy import State


def give(
    upkeep: Upkeep, n: int, worker: str, lease: float, key: str | None, on_give: Callable[[], object] | None
) -> list[Ticket]:
    """Returns at most n tickets; `Study.ask` says which. `key` is that of the ask, if it has one."""
    ids = _ids(upkeep, n, key)

    def compute() -> Change[list[Ticket] | None]:
        if upkeep.basis.state is None:
            with upkeep.reading() as ledger:
                upkeep.read(ledger)
        basis = upkeep.basis
        state, definition = basis.state, basis.definition
        assert state is not None, "it was just read"
        stopped = definition.of(state).policy.verdict(state).settled

        def fill(draft: Draft) -> list[Ticket] | None:
            """Hands out free slots; returns None if there are none, and a block must close or open first."""
            ledger, now = draft.ledger, draft.now
            if key is not None and (before := ledger.given(ids, definition)):
                return before
            room = math.inf
            if definition.budget is not None:
                room = definition.budget - draft.standing.trials - ledger.n_pending(now)
            if stopped or room <= 0 or definition.over(draft.standing.trials, now):
                return []
            slots = unclaimed(state.blocks, ledger.taken(now, state), int(min(n, room)))
            if not slots:
                return None
            if definition.known and any(_pair(slot) in definition.known for slot in slots):
                _tell_known(draft, state, definition)
                return None
            pulls = tuple(Slot(id_, arm, block, item) for id_, (block, arm, item) in zip(ids, slots, strict=False))
            if on_give is not None:
                on_give()
            draft.events.append(TicketsGiven(worker, now + lease, pulls))
            labels, name = definition.instance.labels, definition.item_name
            return [
                Ticket(id_, arm, labels[arm], worker, now, now + lease, block, name(item))
                for id_, arm, block, item in pulls
            ]

        return basis.revision, fill

    upkeep.catch_up()
    while (given := upkeep.write(compute)) is None:
        opened = upkeep.write(lambda: _open_ahead(upkeep))
        if opened is None:
            return []
        if not opened:
            upkeep.wait()
    return given


def _pair(slot: tuple[int, int, int | None]) -> tuple[int, int | None]:
    """Returns the arm and the item of a slot."""
    return slot[1:]


def _tell_known(draft: Draft, state: State, definition: Definition) -> None:
    """Hands out every free slot whose outcome is known to the worker that is called like its origin, and tells it."""
    known, by_origin = definition.known, dict[str, list[tuple[Slot, float]]]()
    for block, arm, item in unclaimed(state.blocks, draft.ledger.taken(draft.now, state), sys.maxsize):
        if item is not None and (arm, item) in known:
            outcome, origin = known[arm, item]
            by_origin.setdefault(origin, []).append((Slot(secrets.token_hex(8), arm, block, item), outcome))
    for origin, results in by_origin.items():
        told = tuple(Told(slot.arm, outcome, slot.block, slot.id, slot.item) for slot, outcome in results)
        draft.events += [
            TicketsGiven(origin, draft.now, tuple(slot for slot, _ in results)),
            ResultsTold(told, known=True),
        ]


def _ids(upkeep: Upkeep, n: int, key: str | None) -> list[str]:
    """Returns ids for n tickets: random ones, or those that follow from the key of an ask."""
    if key is None:
        return [secrets.token_hex(8) for _ in range(n)]
    return [hashlib.sha256(f"{upkeep.id}\n{key}\n{i}".encode()).hexdigest()[:16] for i in range(n)]


def _open_ahead(upkeep: Upkeep) -> Change[bool | None]:
    """Returns the change that opens one more block if every slot is taken, planned with the results told since the
    stored state; it returns False, and opens none, if a block is about to close, and None if every item is out."""
    with upkeep.reading() as ledger:
        standing, fold = upkeep.resume(ledger)
        free = unclaimed(fold.state.blocks, ledger.taken(upkeep.now, fold.state), 1)
    if standing.behind or free:
        return standing.folded, lambda draft: not standing.behind
    fold.feed()
    opened = fold.state.opened
    fold.open_ahead()
    if fold.state.opened == opened and not fold.verdict.settled:
        return standing.folded, lambda draft: None
    stored, events = StoredState.of(fold), fold.events

    def fill(draft: Draft) -> bool:
        draft.events += events
        draft.stored = stored
        return True

    return standing.folded, fill
