"""The database rows of one study, read and written inside a transaction that the caller opens.

All SQL about studies is in this file, with bound parameters only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Dialect,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from spectralbai.errors import Conflict, NotFound, StorageError
from spectralbai.journal.body import LARGE
from spectralbai.journal.definition import Definition, Goal, is_over
from spectralbai.journal.entries import Result, Ticket
from spectralbai.journal.events import KINDS, BlockClosed, CountsTold, Entry, OptionsJoined, ResultsVoided, defined_by
from spectralbai.journal.fold import Fold, Queue
from spectralbai.journal.records import NewRows
from spectralbai.study.checksums import OF_EVENT, OF_RESULT, OF_TICKET, chained, of_columns, of_text
from spectralbai.study.schema import deletions, events, observations, states, studies, tickets
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.policy import State

CHUNK = 500
"""Number of values looked up at once, because databases limit the parameters of a statement."""
PART = 5000
"""Number of rows written at once, because all rows of an import would take much memory."""
TAIL = 200
"""After this many results the stored state is updated even if no block closes, so that it is read fast."""

T = TypeVar("T")


DAMAGES = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""What reading values of wrong kinds may raise."""


class Damage(Exception):
    """A row is not as it was written."""


@contextmanager
def sound(what: str) -> Iterator[None]:
    """Turns what reading wrong values raises into a Damage that says of what."""
    try:
        yield
    except DAMAGES as error:
        raise Damage(f"{what}: {' '.join(str(error).split())[:200] or type(error).__name__}") from None


class Standing(NamedTuple):
    """How far a study is, and what is to be done."""

    revision: int
    """Number of events: it identifies the study as it is."""
    folded: int
    """Revision up to which the stored state is folded: it identifies the state."""
    defined: int
    """Revision of the last event that changed the definition: it identifies the definition."""
    head: str
    """Checksum of the last event."""
    results: int
    known: int
    """Number of results that were known from elsewhere, without a trial."""
    due: int
    """Number of results at which the stored state must be updated, even if no block closes before."""
    oldest: int | None
    """Number of the oldest open block."""
    missing: int | None
    """Results that the oldest open block misses."""
    claimed: float
    """Time until which a worker has promised to update the stored state."""

    @property
    def trials(self) -> int:
        """Number of results of trials: budgets are about these."""
        return self.results - self.known

    @property
    def behind(self) -> bool:
        """Whether the stored state needs an update."""
        return self.results >= self.due or (self.missing is not None and self.missing <= 0)


OF_STANDING: dict[str, tuple[type, ...]] = {
    name: (int, NoneType) if name in ("oldest", "missing") else (int,) for name in Standing._fields
}
OF_STANDING |= {"claimed": (float, int), "head": (str,)}
"""Types of the values of a standing."""


class Mark(NamedTuple):
    """A study in a list, without its options."""

    id: int
    name: str
    created: float
    revision: int
    folded: int
    results: int
    known: int
    options: int
    goal: Goal
    delta: float
    budget: int | None
    until: float | None
    stopped: float | None
    progress: str
    best: str | None
    damage: str | None
    """What is wrong with its records, if somebody noticed."""

    def state(self, now: float) -> str:
        """Returns the state of the study in one word."""
        if self.damage is not None:
            return "damaged"
        over = is_over(self.results - self.known, now, self.budget, self.until, self.stopped)
        return "ended" if self.progress == "running" and over else self.progress


class Deletion(NamedTuple):
    """A study that was deleted."""

    name: str
    created: float
    results: int
    deleted: float
    by: str


OF_MARK: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("id", "revision", "folded", "results", "known", "options"), (int,)),
    **dict.fromkeys(("name", "goal", "progress"), (str,)),
    **dict.fromkeys(("created", "delta"), (float, int)),
    **dict.fromkeys(("until", "stopped"), (float, int, NoneType)),
    "budget": (int, NoneType),
    **dict.fromkeys(("best", "damage"), (str, NoneType)),
}
"""Types of the values of a mark."""
LATEST = 253_402_300_800.0
"""The year 10,000, in seconds since 1970."""
TO_DO = "spectralbai study check says more; restore a backup or an export, or export what can be read"
"""What to do about damage."""
SUBSTITUTES: dict[type, Any] = {int: 0, str: "?", float: 0.0, NoneType: None}


def _mark(row: Sequence[Any]) -> Mark:
    """Returns the mark in a row; values that cannot be right are replaced, and the mark says that it is damaged."""
    values = dict(zip(Mark._fields, row, strict=True))
    wrong = [name for name, value in values.items() if type(value) not in OF_MARK[name]]
    if not wrong:
        wrong = [name for name in ("created", "until", "stopped") if not 0 <= (values[name] or 0) < LATEST]
    if wrong:
        values |= {name: SUBSTITUTES[OF_MARK[name][-1]] for name in wrong}
        values["damage"] = values["damage"] or f"the study has a wrong value in the column {wrong[0]}; {TO_DO}"
    return Mark(**values)


@dataclass(frozen=True, eq=False)
class StoredState:
    """A state in the form in which it is stored; made outside of transactions, because that takes long."""

    state: State
    text: str
    columns: Mapping[str, Any]
    """What the row of the study says of it."""

    @classmethod
    def of(cls, fold: Fold) -> StoredState:
        """Returns the state of a fold and what is shown of it in a list of studies."""
        state, definition = fold.state, fold.definition.of(fold.state)
        policy, labels = definition.policy, definition.instance.labels
        verdict = policy.verdict(state)
        recommends = policy.has_estimate(state) and verdict.consistent
        columns = {
            "progress": "doubted" if verdict.doubted else "ended" if state.used_up else verdict.state,
            "best": labels[verdict.arm] if recommends else None,
            "options": len(labels),
            "due": state.samples + TAIL,
            "oldest": state.blocks[0].number if state.blocks else None,
        }
        return cls(state, json.dumps(state.as_dict()), columns)


def insert_study(
    connection: Connection, name: str, log: Sequence[Entry], definition: Definition, stored: StoredState
) -> None:
    """Writes a new study: its log, and what follows from it."""
    settings = ("goal", "delta", "budget", "until", "stopped")
    row = {
        "id": secrets.randbits(31),  # random, so that it is not the id of a deleted study that a worker still has open
        "name": name,
        "created": log[0].time,
        "revision": 0,
        "folded": 0,
        "defined": 0,
        "head": "",
        "results": 0,
        "known": 0,
        "due": 0,
        "claimed": 0.0,
        "options": 0,
        "progress": "running",
        **{each: getattr(definition, each) for each in settings},
    }
    try:
        id_: int = connection.execute(insert(studies).returning(studies.c.id), row).scalar_one()
    except IntegrityError:
        raise Conflict(f'there is a study "{name}" already; choose another name, or go on with it') from None
    connection.execute(insert(states).values(study=id_, revision=0, state="", checksum=0))
    ledger = Ledger(connection, id_)
    ledger.append(ledger.standing(), log, stored, definition)


def find_marks(connection: Connection, name: str | None = None) -> list[Mark]:
    """Returns all studies, oldest first, or only the study with the given name."""
    query = select(*(studies.c[each] for each in Mark._fields)).order_by(studies.c.created, studies.c.id)
    return [_mark(row) for row in connection.execute(query if name is None else query.where(studies.c.name == name))]


def find_deletions(connection: Connection) -> list[Deletion]:
    """Returns the studies that were deleted, the last first."""
    query = select(*(deletions.c[name] for name in Deletion._fields)).order_by(deletions.c.number.desc())
    return [Deletion._make(row) for row in connection.execute(query)]


def note_damage(connection: Connection, id_: int, damage: str | None) -> None:
    """Writes into the row of a study what is wrong with its records; None if nothing is."""
    these = update(studies).where(studies.c.id == id_, studies.c.damage.is_distinct_from(damage))
    connection.execute(these.values(damage=damage))


def find_pending(connection: Connection, now: float) -> dict[int, int]:
    """Returns how many tickets are pending, for each study that has some. It reads no other tickets."""
    pending = (tickets.c.study == studies.c.id) & _pending(now)
    query = select(studies.c.id, func.count()).join_from(studies, tickets, pending).group_by(studies.c.id)
    return {id_: count for id_, count in connection.execute(query)}


def _pending(now: float) -> ColumnElement[bool]:
    """Returns the condition that a ticket is pending."""
    return tickets.c.result.is_(None) & (tickets.c.expires > now) & tickets.c.abandoned.is_(None)


def _lapsed(now: float) -> ColumnElement[bool]:
    """Returns the condition that a ticket has no result, ran out and was not given back."""
    return tickets.c.result.is_(None) & (tickets.c.expires <= now) & tickets.c.abandoned.is_(None)


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[first : first + CHUNK] for first in range(0, len(values), CHUNK))


def _ticket(row: Row[Any], definition: Definition) -> Ticket:
    _sound_ticket(row)
    label, item = definition.instance.labels[row.arm], definition.item_name(row.item)
    return Ticket(row.id, row.arm, label, row.worker, row.issued, row.expires, row.block, item)


def _sound_ticket(row: Row[Any]) -> Row[Any]:
    with sound(f'the row of the ticket "{row.id}"'):
        if of_columns(row._mapping, OF_TICKET) != row.checksum:
            raise ValueError("it was changed")
    return row


def _sound_result(row: Row[Any]) -> Row[Any]:
    with sound(f"the row of result {row.number}"):
        if of_columns(row._mapping, OF_RESULT) != row.checksum:
            raise ValueError("it was changed")
    return row


def _whole(value: Any) -> int:
    """Returns a value of a column of numbers of arms, blocks or items; raises Damage if it cannot be one."""
    if type(value) is not int or not 0 <= value < LARGE:
        raise Damage("a row of its tickets or results was changed")
    return value


class TicketRow(NamedTuple):
    """What is recorded of a ticket."""

    arm: int
    block: int
    item: int | None
    outcome: float | None
    """None if it was not told."""
    abandoned: bool
    failed: str | None


class Ledger:
    """The rows of the study `id`."""

    def __init__(self, connection: Connection, id_: int) -> None:
        self._connection = connection
        self._id = id_

    def standing(self, *, lock: bool = False) -> Standing:
        """Returns how far the study is; with `lock`, no other writer can change it before the transaction ends."""
        query = select(*(studies.c[name] for name in Standing._fields)).where(studies.c.id == self._id)
        standing = Standing._make(self._one(query.with_for_update() if lock else query))
        for name, value in zip(Standing._fields, standing, strict=True):
            if type(value) not in OF_STANDING[name]:
                raise Damage(f"the row of the study has a wrong value in the column {name}")
        return standing

    def append(
        self,
        before: Standing,
        entries: Sequence[Entry],
        stored: StoredState | None,
        definition: Definition | None,
    ) -> Standing:
        """Appends entries to the log, writes what they say into the tables and, if they changed, the state and the
        definition after them; returns how far the study is then."""
        rows = NewRows(before.results)
        for entry in entries:
            entry.event.enter(rows, entry.time)
        head, log = before.head, []
        for entry in entries:
            row = _row(entry)
            head = row["checksum"] = chained(head, row)
            log.append(row)
        self._insert(events, log)
        for row in rows.tickets.values():
            row["checksum"] = of_columns(row, OF_TICKET)
        for row in rows.results:
            row["checksum"] = of_columns(row, OF_RESULT)
        self._insert(tickets, rows.tickets.values(), abandoned=None, failed=None, result=None)
        self._insert(observations, rows.results)
        for origin, ticket, outcome, _ in rows.voids:
            self._void(origin, ticket, outcome, before.results)
        self._change_tickets(rows.changes)
        revision = before.revision + len(entries)
        known = before.known + rows.known
        after = before._replace(revision=revision, results=rows.told, known=known, head=head)
        columns: dict[str, Any] = {}
        if definition is not None:
            after = after._replace(defined=revision)
            columns["stopped"] = definition.stopped
        if stored is not None:
            columns |= stored.columns
            new = {name: columns[name] for name in ("due", "oldest")}
            after = after._replace(**new, missing=self._missing(stored.state))
        elif before.missing is not None:
            told = sum(row["block"] == before.oldest for row in rows.results)
            after = after._replace(missing=before.missing - told)
        if stored is not None or definition is not None:
            after = after._replace(folded=revision)
            text = {} if stored is None else {"state": stored.text, "checksum": of_text(stored.text)}
            these = update(states).where(states.c.study == self._id)
            self._connection.execute(these.values(revision=revision, **text))
        columns |= {name: new for name, new, old in zip(Standing._fields, after, before, strict=True) if new != old}
        if columns:
            self.update(**columns)
        return after

    def _void(self, origin: str | None, ticket: str | None, outcome: float | None, last: int) -> None:
        """Removes the results of an origin or a ticket, up to number `last`, or corrects the outcome; the log keeps
        what was told."""
        told = observations.c
        own = (told.study == self._id) & (told.number <= last)
        these = own & (told.origin == origin if ticket is None else told.ticket == ticket)
        if outcome is None:
            self._connection.execute(delete(observations).where(these))
        else:
            for row in self._connection.execute(select(observations).where(these)).all():
                checksum = of_columns({**row._mapping, "outcome": outcome}, OF_RESULT)
                self._connection.execute(update(observations).where(these).values(outcome=outcome, checksum=checksum))

    def _missing(self, state: State) -> int | None:
        """Returns how many results the oldest block of a state misses, with those told since; None if none is open."""
        if not state.blocks:
            return None
        first = state.blocks[0]
        these = (observations.c.study == self._id) & (observations.c.block == first.number)
        query = select(func.count()).select_from(observations).where(these, observations.c.number > state.samples)
        return int(first.free.size) - self._connection.execute(query).scalar_one()

    def update(self, **values: Any) -> None:
        """Changes columns of the row of this study in the table of studies."""
        self._connection.execute(update(studies).where(studies.c.id == self._id).values(values))

    def _change_tickets(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for id_, values in changes.items():
            by_columns.setdefault(tuple(sorted(values)), []).append(
                {"of": id_, **{f"new_{k}": v for k, v in values.items()}}
            )
        for names, rows in by_columns.items():
            this = update(tickets).where(tickets.c.study == self._id, tickets.c.id == bindparam("of"))
            self._connection.execute(this.values({name: bindparam(f"new_{name}") for name in names}), rows)

    def log(self, kinds: Iterable[str] | None = None, most: int | None = None, *, bulk: bool = True) -> list[Entry]:
        """Returns the entries of the log, or those of some kinds; at most `most`, at equal steps. Without `bulk` the
        long parts are left out."""
        if bulk and kinds is None and most is None:
            log, damage = self.readable()
            if damage is not None:
                raise Damage(damage)
            return log
        columns = [events.c[name] for name in OF_EVENT if bulk or name != "bulk"]
        query = select(*columns).where(events.c.study == self._id).order_by(events.c.revision)
        if kinds is not None:
            query = query.where(events.c.kind.in_(list(kinds)))
        rows: Iterable[Row[Any]]
        if most is None:
            rows = self._connection.execute(query)
        else:
            all_ = self._connection.execute(query.with_only_columns(events.c.revision)).scalars().all()
            places = np.linspace(0, len(all_) - 1, min(most, len(all_))).round().astype(int)
            rows = self._with(query, events.c.revision, [all_[at] for at in places])
        return [_entry(row) for row in rows]

    def readable(self) -> tuple[list[Entry], str | None]:
        """Returns the log up to the first event that is not as it was written, and what is wrong with that; None if all
        are as they were."""
        columns = [events.c[name] for name in (*OF_EVENT, "checksum")]
        query = select(*columns).where(events.c.study == self._id).order_by(events.c.revision)
        log: list[Entry] = []
        head = ""
        for row in self._connection.execute(query):
            if row.revision != len(log) + 1:
                return log, f"event {len(log) + 1} is not there"
            head = chained(head, row._mapping)
            if head != row.checksum:
                return log, f"event {row.revision} was changed, or one before it removed"
            try:
                log.append(_entry(row))
            except Damage as damage:
                return log, str(damage)
        try:
            standing = self.standing()
        except Damage as damage:
            return log, str(damage)
        if (standing.revision, standing.head) != (len(log), head):
            return log, f"the log ends after event {len(log)}, and the study has {standing.revision} events"
        return log, None

    def rows(self, of: Literal["results", "tickets"]) -> dict[Any, dict[str, Any]]:
        """Returns the rows of results by number, or of tickets by id; with the checksum that their values have, as
        `wanted`."""
        table, names = (observations, OF_RESULT) if of == "results" else (tickets, OF_TICKET)
        found: dict[Any, dict[str, Any]] = {}
        for row in self._connection.execute(select(table).where(table.c.study == self._id)).mappings():
            with sound(f"a row of {of}"):
                found[row[names[0]]] = {**row, "wanted": of_columns(row, names)}
        return found

    def row(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns these columns of the row of the study."""
        return dict(self._one(select(*(studies.c[name] for name in names)).where(studies.c.id == self._id))._mapping)

    def verdicts(self, most: int | None = None, *, bulk: bool = True) -> list[Verdict]:
        """Returns what the rules said each time that a block closed; at most `most`, at equal steps.

        The accounts, `lacking`, are most of what is stored. Without this bulk it takes a tenth of the time.
        """
        log = self.log([BlockClosed.kind], most, bulk=bulk)
        return [entry.event.verdict for entry in log if isinstance(entry.event, BlockClosed)]

    def joins(self) -> tuple[int, ...]:
        """Returns the number of results each time that options joined."""
        log = self.log([OptionsJoined.kind], bulk=False)
        return tuple(entry.event.results for entry in log if isinstance(entry.event, OptionsJoined))

    def voided(self) -> tuple[ResultsVoided, ...]:
        """Returns the corrections of results."""
        log = self.log([ResultsVoided.kind], bulk=False)
        return tuple(entry.event for entry in log if isinstance(entry.event, ResultsVoided))

    def counted(self) -> tuple[CountsTold, ...]:
        """Returns the counts that were told and not taken out again, in their order."""
        days: dict[str, CountsTold] = {}
        for entry in self.log([CountsTold.kind, ResultsVoided.kind], bulk=False):
            if isinstance(entry.event, CountsTold):
                days[entry.event.origin] = entry.event
            elif isinstance(entry.event, ResultsVoided) and entry.event.origin is not None:
                days.pop(entry.event.origin, None)
        return tuple(days.values())

    def definition(self) -> Definition:
        """Returns the definition of the study, with its earlier definitions if options have joined."""
        log = self.log(kind for kind, event in KINDS.items() if event.defines)
        with sound("the definition"):
            return defined_by(log)

    def state(self, revision: int) -> str:
        """Returns the stored state, folded up to that revision, in its JSON form."""
        query = select(states.c.state, states.c.checksum).where(
            states.c.study == self._id, states.c.revision == revision
        )
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise Damage(f"there is no state of revision {revision}")
        with sound("the stored state"):
            if of_text(row.state) != row.checksum:
                raise ValueError("it was changed")
        text: str = row.state
        return text

    def queue(self, after: int, until: int) -> Queue:
        """Returns the results after number `after`, up to number `until`."""
        query = select(*(observations.c[name] for name in (*OF_RESULT, "checksum")))
        between = (observations.c.number > after) & (observations.c.number <= until)
        query = query.where(observations.c.study == self._id, between).order_by(observations.c.number)
        queue = Queue(after)
        for row in self._connection.execute(query):
            _sound_result(row)
            if row.number != queue.end + 1:
                raise Damage(f"result {queue.end + 1} is not there")
            queue.add(row.arm, row.outcome, row.block, row.item)
        return queue

    def items(self) -> list[int]:
        """Returns the items that some arm has a result on, in the order of drawing."""
        these = (observations.c.study == self._id) & observations.c.item.is_not(None)
        query = select(observations.c.item).where(these).distinct().order_by(observations.c.item)
        return [_whole(item) for item in self._connection.execute(query).scalars()]

    def outcomes(self, items: Sequence[int] | None = None) -> Iterator[tuple[int, int, float]]:
        """Yields (arm, item, outcome) of each result on an item, or on one of these items; those of a pair in the order
        told."""
        columns = observations.c.arm, observations.c.item, observations.c.outcome
        query = select(*columns).where(observations.c.study == self._id).order_by(observations.c.number)
        here = observations.c.item
        for those in [here.is_not(None)] if items is None else map(here.in_, _parts(items)):
            for row in self._connection.execute(query.where(those)):
                yield _whole(row.arm), _whole(row.item), row.outcome

    def results_of(self, origin: str) -> list[tuple[int, float]]:
        """Returns (arm, outcome) of the results of an origin, in the order told."""
        query = select(observations.c.arm, observations.c.outcome).order_by(observations.c.number)
        these = query.where(observations.c.study == self._id, observations.c.origin == origin)
        return [(arm, outcome) for arm, outcome in self._connection.execute(these)]

    def recent(self, most: int, before: int | None, definition: Definition) -> list[Result]:
        """Returns the last results told, perhaps before number `before`, newest first."""
        of_ticket = (tickets.c.study == observations.c.study) & (tickets.c.id == observations.c.ticket)
        query = select(observations, tickets.c.worker).outerjoin(tickets, of_ticket)
        query = query.where(observations.c.study == self._id).order_by(observations.c.number.desc()).limit(most)
        if before is not None:
            query = query.where(observations.c.number < before)
        labels, name = definition.instance.labels, definition.item_name
        return [
            Result(
                row.number, labels[row.arm], row.outcome, row.told, row.ticket, row.worker, row.origin, name(row.item)
            )
            for row in map(_sound_result, self._connection.execute(query))
        ]

    def given(self, ids: Sequence[str], definition: Definition) -> list[Ticket]:
        """Returns those of these tickets that there are, in the order of the ids."""
        query = select(tickets).where(tickets.c.study == self._id)
        there = {row.id: _ticket(row, definition) for row in self._with(query, tickets.c.id, ids)}
        return [there[id_] for id_ in ids if id_ in there]

    def ticket_rows(self, ids: Sequence[str]) -> dict[str, TicketRow]:
        """Returns what is recorded of the tickets with these ids, as far as they exist."""
        of_ticket = (observations.c.study == tickets.c.study) & (observations.c.number == tickets.c.result)
        columns = (
            *(tickets.c[name] for name in (*OF_TICKET, "checksum")),
            observations.c.outcome,
            tickets.c.abandoned,
            tickets.c.failed,
        )
        query = select(*columns).outerjoin(observations, of_ticket).where(tickets.c.study == self._id)
        return {
            row.id: TicketRow(row.arm, row.block, row.item, row.outcome, row.abandoned is not None, row.failed)
            for row in map(_sound_ticket, self._with(query, tickets.c.id, ids))
        }

    def cancelled(self, open_blocks: Sequence[int], withdrawn: Sequence[int]) -> tuple[str, ...]:
        """Returns the tickets without a result, and not given back, of other blocks than those with these numbers, and
        of withdrawn arms."""
        this = (tickets.c.study == self._id) & tickets.c.result.is_(None) & tickets.c.abandoned.is_(None)
        void = tickets.c.block.not_in(open_blocks) | tickets.c.arm.in_(withdrawn)
        query = select(tickets.c.id).where(this, void)
        return tuple(self._connection.execute(query.order_by(tickets.c.issued, tickets.c.id)).scalars())

    def failures(self) -> dict[int, int]:
        """Returns how many trials of an arm failed, for each that has some."""
        these = (tickets.c.study == self._id) & tickets.c.failed.is_not(None)
        query = select(tickets.c.arm, func.count()).where(these).group_by(tickets.c.arm)
        return {_whole(arm): count for arm, count in self._connection.execute(query)}

    def pending(self, now: float, definition: Definition) -> tuple[Ticket, ...]:
        """Returns the pending tickets."""
        these = select(tickets).where(tickets.c.study == self._id, _pending(now))
        rows = self._connection.execute(these.order_by(tickets.c.issued, tickets.c.id))
        return tuple(_ticket(row, definition) for row in rows)

    def lapsed(self, now: float) -> list[tuple[str, int, int, int | None]]:
        """Returns (id, arm, block, item) of the tickets without a result that ran out and were not given back."""
        columns = tickets.c.id, tickets.c.arm, tickets.c.block, tickets.c.item
        query = (
            select(*columns).where(tickets.c.study == self._id, _lapsed(now)).order_by(tickets.c.issued, tickets.c.id)
        )
        return [(row.id, row.arm, row.block, row.item) for row in self._connection.execute(query)]

    def n_lapsed(self, now: float) -> int:
        """Returns how many tickets without a result ran out and were not given back."""
        query = select(func.count()).select_from(tickets).where(tickets.c.study == self._id, _lapsed(now))
        return self._connection.execute(query).scalar_one()

    def n_pending(self, now: float) -> int:
        """Returns how many tickets are pending."""
        query = select(func.count()).select_from(tickets).where(tickets.c.study == self._id, _pending(now))
        return self._connection.execute(query).scalar_one()

    def taken(self, now: float, state: State) -> dict[int, dict[int, int]]:
        """Returns how many trials of each key (`Block.keys`) of each open block have a result or are pending."""
        from spectralbai.evidence.blocks import slot_key  # loaded by whoever has a state, and telling needs none

        if not state.blocks:
            return {}
        first = state.blocks[0].number
        alive = (tickets.c.expires > now) & tickets.c.abandoned.is_(None)
        query = (
            select(tickets.c.block, tickets.c.arm, tickets.c.item, func.count())
            .where(tickets.c.study == self._id, tickets.c.block >= first, tickets.c.result.is_not(None) | alive)
            .group_by(tickets.c.block, tickets.c.arm, tickets.c.item)
        )
        taken: dict[int, dict[int, int]] = {}
        for block, arm, item, count in self._connection.execute(query):
            key = _whole(arm) if item is None else slot_key(_whole(arm), _whole(item))
            taken.setdefault(_whole(block), {})[key] = count
        return taken

    def delete(self, now: float, by: str) -> None:
        """Removes every row of the study; only that it was deleted, when and by whom, stays."""
        query = select(studies.c.name, studies.c.created, studies.c.results).where(studies.c.id == self._id)
        self._insert_deletion(self._one(query), now, by)
        for table in (observations, tickets, states, events):
            self._connection.execute(delete(table).where(table.c.study == self._id))
        self._connection.execute(delete(studies).where(studies.c.id == self._id))

    def _insert_deletion(self, row: Row[Any], now: float, by: str) -> None:
        readable = isinstance(row.created, int | float) and isinstance(row.results, int)
        numbers = {"created": row.created, "results": row.results} if readable else {"created": 0.0, "results": 0}
        self._connection.execute(insert(deletions).values(name=str(row.name)[:100], deleted=now, by=by, **numbers))

    def _one(self, query: Select[Any]) -> Row[Any]:
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise NotFound("the study is no longer there: it was deleted; spectralbai study list shows the others")
        return row

    def _with(self, query: Select[Any], column: ColumnElement[T], values: Sequence[T]) -> Iterator[Row[Any]]:
        """Yields the rows of a query with one of these values in a column."""
        for part in _parts(values):
            yield from self._connection.execute(query.where(column.in_(part)))

    def _insert(self, table: Table, rows: Iterable[Mapping[str, Any]], **defaults: Any) -> None:
        """Adds rows of the study to a table, if there are any."""
        statement, form = _insertion(table, self._connection.dialect)
        left = iter(rows)
        while part := [form({**defaults, **row, "study": self._id}) for row in islice(left, PART)]:
            self._connection.exec_driver_sql(statement, part)


@lru_cache
def _insertion(table: Table, dialect: Dialect) -> tuple[str, Callable[[dict[str, Any]], Any]]:
    """Returns the statement that adds a row to a table, and what brings a row into the form that the database wants.

    The rows are given to the database directly: for the hundred thousands of an import that takes a quarter less time.
    """
    compiled = insert(table).compile(dialect=dialect)
    names = getattr(compiled, "positiontup", None)
    return compiled.string, dict if names is None else itemgetter(*names)


def _row(entry: Entry) -> dict[str, Any]:
    """Returns the row of an entry in the table of events."""
    event = entry.event
    body = event.body()
    bulk = {key: body.pop(key) for key in event.bulk}
    long = json.dumps(bulk) if bulk else None
    said = {"kind": event.kind, "time": float(entry.time), "by": entry.by, "body": json.dumps(body), "bulk": long}
    return {"revision": entry.revision, **said}


def _entry(row: Row[Any]) -> Entry:
    if row.kind not in KINDS:
        raise StorageError(
            f'the log has an event of the kind "{row.kind}", unknown here; upgrade spectralbai, or register it'
        )
    with sound(f"event {row.revision}"):
        long = getattr(row, "bulk", None)
        values = {**json.loads(row.body), **(json.loads(long) if long else {})}
        return Entry(row.revision, row.time, KINDS[row.kind].from_body(values), row.by)
