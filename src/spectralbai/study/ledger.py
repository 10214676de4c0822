"""The database rows of one study, read and written inside a transaction that the caller opens.

All SQL about studies is in this file, with bound parameters only.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sqlalchemy import ColumnElement, Connection, Row, Select, Table, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from spectralbai.arrays import Vector
from spectralbai.errors import Conflict, NotFound
from spectralbai.instance import Instance
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import (
    Check,
    Exported,
    Join,
    Observation,
    Opening,
    Records,
    Ticket,
    TicketRecord,
    Told,
    Withdrawal,
)
from spectralbai.study.replay import summary
from spectralbai.study.schema import blocks, checks, joins, observations, states, studies, tickets, withdrawals
from spectralbai.study.standing import HEAD, Key, Mark, Standing, due, key, openings_of

if TYPE_CHECKING:
    from spectralbai.policy import State

CHUNK = 500
"""Number of values looked up at once, because databases limit the parameters of a statement."""

OF_TICKET = (tickets.c.study == observations.c.study) & (tickets.c.id == observations.c.ticket)
"""Joins a result and its ticket."""

T = TypeVar("T")
Entry = TypeVar("Entry", Check, Join, Observation, Opening, TicketRecord, Withdrawal)

TABLES: dict[type[Any], Table] = {
    Check: checks,
    Join: joins,
    Observation: observations,
    Opening: blocks,
    TicketRecord: tickets,
    Withdrawal: withdrawals,
}
"""Where entries of each kind are kept; columns have the names of the fields."""


def insert_study(connection: Connection, new: Exported, state: State, seen: Sequence[Check]) -> None:
    """Writes a new study, the state that follows from its records, and the checks on the way."""
    row = {
        "id": secrets.randbits(31),  # random, so that it is not the id of a deleted study that a worker still has open
        "name": new.name,
        "created": new.created,
        "definition": json.dumps(new.definition.as_dict()),
        "versions": json.dumps(new.versions),
        "results": len(new.records.observations),
        "due": due(state),
        "claimed": 0.0,
        "first_block": state.blocks[0].number if state.blocks else None,
        "missing": state.blocks[0].free.size if state.blocks else None,
        **summary(new.definition, state),
    }
    try:
        id_: int = connection.execute(insert(studies).returning(studies.c.id), row).scalar_one()
    except IntegrityError:
        raise Conflict(f'there is a study "{new.name}" already; choose another name, or go on with it') from None
    text = json.dumps(state.as_dict())
    connection.execute(insert(states).values({"study": id_, **key(state)._asdict(), "state": text}))
    Ledger(connection, id_).restore(new.records, seen)


def find_studies(connection: Connection, name: str | None = None) -> Sequence[Row[Any]]:
    """Returns the rows of all studies, oldest first, or only the row of the study with the given name."""
    query = select(studies).order_by(studies.c.created, studies.c.id)
    return connection.execute(query if name is None else query.where(studies.c.name == name)).all()


def find_marks(connection: Connection) -> list[Mark]:
    """Returns how far each study is, oldest first, without reading what it is about."""
    columns = (studies.c.id, studies.c.name, studies.c.results, studies.c.progress)
    head = func.substr(studies.c.definition, 1, HEAD)
    query = select(*columns, states.c.opened, states.c.withdrawn, states.c.joined, head).join_from(states, studies)
    rows = connection.execute(query.order_by(studies.c.created, studies.c.id))
    return [Mark._make(row) for row in rows]


def find_pending(connection: Connection, now: float) -> dict[int, tuple[int, float]]:
    """Returns, for each study with pending tickets, how many there are and when the last one was handed out. It reads
    no other tickets."""
    pending = (tickets.c.study == studies.c.id) & _pending(now)
    query = select(studies.c.id, func.count(), func.max(tickets.c.issued)).join_from(studies, tickets, pending)
    return {id_: (count, last) for id_, count, last in connection.execute(query.group_by(studies.c.id))}


def _pending(now: float) -> ColumnElement[bool]:
    """Returns the condition that a ticket is pending."""
    return tickets.c.result.is_(None) & (tickets.c.expires > now) & tickets.c.abandoned.is_(None)


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[first : first + CHUNK] for first in range(0, len(values), CHUNK))


def _ticket(row: Row[Any], labels: Sequence[str]) -> Ticket:
    return Ticket(row.id, row.arm, labels[row.arm], row.worker, row.issued, row.expires, row.block)


def _columns(kind: type[Entry]) -> list[ColumnElement[Any]]:
    """Returns the columns that the fields of an entry are kept in."""
    return [TABLES[kind].c[field.name] for field in fields(kind)]


class Ledger:
    """The rows of the study `id`."""

    def __init__(self, connection: Connection, id_: int) -> None:
        self._connection = connection
        self._id = id_

    def standing(self, *, lock: bool = False) -> Standing:
        """Returns how far the study is; with `lock`, no other writer can change it before the transaction ends."""
        counters = [studies.c[name] for name in Standing._fields[:-1]]
        query = select(*counters, func.substr(studies.c.definition, 1, HEAD)).where(studies.c.id == self._id)
        return Standing._make(self._one(query.with_for_update() if lock else query))

    def update(self, **values: Any) -> None:
        """Changes columns of the row of this study in the table of studies."""
        self._connection.execute(update(studies).where(studies.c.id == self._id).values(values))

    def append(self, standing: Standing, told: float, results: Sequence[dict[str, Any]], filled: int) -> Standing:
        """Appends results (arm and outcome, ticket or origin, perhaps block) and returns how far the study is then.

        `filled` says how many of them belong to the oldest open block.
        """
        if not results:
            return standing
        after = standing.results
        common = {"told": told, "ticket": None, "origin": None, "block": None}
        rows = [{**common, **result, "number": number} for number, result in enumerate(results, after + 1)]
        self._insert(observations, rows)
        self._set("result", {row["ticket"]: row["number"] for row in rows if row["ticket"] is not None})
        missing = None if standing.missing is None else standing.missing - filled
        self.update(results=after + len(results), missing=missing)
        return standing._replace(results=after + len(results), missing=missing)

    def restore(self, records: Records, seen: Sequence[Check]) -> None:
        """Writes blocks, tickets and results, in their order, and the checks, of a study that has none yet."""
        self.add(records.openings)
        self.add(records.withdrawals)
        for number, join in enumerate(records.joins):
            self.add([join], number=number)
        self.add(seen)
        number_of = {each.ticket: number for number, each in enumerate(records.observations, 1)}
        self._insert(tickets, ({**vars(each), "result": number_of.get(each.id)} for each in records.tickets))
        self._insert(observations, ({**vars(each), "number": n} for n, each in enumerate(records.observations, 1)))

    def records(self) -> Records:
        """Returns results in the order told, tickets and blocks in the order given and opened, and all changes."""
        return Records(
            self._all(Observation, "number"),
            self._all(TicketRecord, "issued", "id"),
            self._all(Opening, "number"),
            self._all(Withdrawal, "results", "withdrawn"),
            self.joins(),
        )

    def results(self, after: int, until: int) -> Told:
        """Returns the results after number `after`, up to number `until`, in the order told."""
        block = func.coalesce(tickets.c.block, observations.c.block, -1)
        query = select(observations.c.arm, observations.c.outcome, block).outerjoin(tickets, OF_TICKET)
        between = (observations.c.number > after) & (observations.c.number <= until)
        query = query.where(observations.c.study == self._id, between).order_by(observations.c.number)
        rows = self._connection.execute(query).all()
        return Told(*([row[place] for row in rows] for place in range(3)))

    def results_per_arm(self, after: int, n_arms: int) -> Vector:
        """Returns how many results of each arm were told after result number `after`."""
        return self._per_arm(observations, observations.c.number > after, n_arms)

    def results_of(self, origin: str) -> list[tuple[int, float]]:
        """Returns (arm, outcome) of the results of an origin, in the order told."""
        query = select(observations.c.arm, observations.c.outcome).order_by(observations.c.number)
        these = query.where(observations.c.study == self._id, observations.c.origin == origin)
        return [(arm, outcome) for arm, outcome in self._connection.execute(these)]

    def give(self, given: Sequence[Ticket]) -> None:
        """Writes new tickets."""
        names = ("id", "arm", "worker", "issued", "expires", "block")
        self._insert(tickets, ({name: getattr(each, name) for name in names} for each in given))

    def given(self, ids: Sequence[str], labels: Sequence[str]) -> list[Ticket]:
        """Returns those of these tickets that there are, in the order of the ids."""
        query = select(tickets).where(tickets.c.study == self._id)
        found = {row.id: _ticket(row, labels) for row in self._with(query, tickets.c.id, ids)}
        return [found[id_] for id_ in ids if id_ in found]

    def recent(self, most: int, before: int | None) -> list[tuple[int, Observation, str | None]]:
        """Returns (number, result, worker) of the last results told, perhaps before number `before`, newest first."""
        columns = observations.c.number, *_columns(Observation), tickets.c.worker
        query = select(*columns).outerjoin(tickets, OF_TICKET)
        query = query.where(observations.c.study == self._id).order_by(observations.c.number.desc()).limit(most)
        if before is not None:
            query = query.where(observations.c.number < before)
        rows = self._connection.execute(query)
        return [(number, Observation(*cells), worker) for number, *cells, worker in rows]

    def outcomes_of(self, ids: Sequence[str]) -> dict[str, tuple[int, float | None, int | None]]:
        """Returns (arm, outcome, block) by id of the tickets that exist; the outcome is None if it was not told."""
        of_ticket = (observations.c.study == tickets.c.study) & (observations.c.number == tickets.c.result)
        query = select(tickets.c.id, tickets.c.arm, observations.c.outcome, tickets.c.block)
        query = query.outerjoin(observations, of_ticket).where(tickets.c.study == self._id)
        return {row.id: (row.arm, row.outcome, row.block) for row in self._with(query, tickets.c.id, ids)}

    def abandon(self, ids: Sequence[str], now: float) -> None:
        """Marks tickets as given back; if this happens again, the first time stays recorded."""
        for part in _parts(ids):
            these = (tickets.c.study == self._id) & tickets.c.id.in_(part)
            self._connection.execute(update(tickets).where(these, tickets.c.abandoned.is_(None)).values(abandoned=now))

    def delete(self) -> None:
        """Removes every row of the study."""
        for table in (checks, observations, tickets, blocks, withdrawals, joins, states):
            self._connection.execute(delete(table).where(table.c.study == self._id))
        self._connection.execute(delete(studies).where(studies.c.id == self._id))

    def fail(self, reasons: Mapping[str, str]) -> None:
        """Records why the trials of tickets failed; a new reason replaces an earlier one."""
        self._set("failed", reasons)

    def _set(self, column: str, values: Mapping[str, Any]) -> None:
        """Changes a column of tickets; `values` has the new value by the id of the ticket."""
        this = update(tickets).where(tickets.c.study == self._id, tickets.c.id == bindparam("of"))
        rows = [{"of": id_, "new": value} for id_, value in values.items()]
        if rows:
            self._connection.execute(this.values({column: bindparam("new")}), rows)

    def failures_per_arm(self, n_arms: int) -> Vector:
        """Returns how many trials of each arm failed."""
        return self._per_arm(tickets, tickets.c.failed.is_not(None), n_arms)

    def pending(self, now: float, labels: Sequence[str]) -> tuple[Ticket, ...]:
        """Returns the pending tickets."""
        these = select(tickets).where(tickets.c.study == self._id, _pending(now))
        rows = self._connection.execute(these.order_by(tickets.c.issued, tickets.c.id))
        return tuple(_ticket(row, labels) for row in rows)

    def pending_per_arm(self, now: float, n_arms: int) -> Vector:
        """Returns how many tickets of each arm are pending."""
        return self._per_arm(tickets, _pending(now), n_arms)

    def taken(self, now: float, state: State) -> dict[tuple[int, int], int]:
        """Returns how many tickets of each (block, arm) of open blocks have a result or are pending."""
        if not state.blocks:
            return {}
        first = state.blocks[0].number
        alive = (tickets.c.expires > now) & tickets.c.abandoned.is_(None)
        query = (
            select(tickets.c.block, tickets.c.arm, func.count())
            .where(tickets.c.study == self._id, tickets.c.block >= first, tickets.c.result.is_not(None) | alive)
            .group_by(tickets.c.block, tickets.c.arm)
        )
        return {(block, arm): count for block, arm, count in self._connection.execute(query)}

    def signs(self) -> tuple[Key, str]:
        """Returns the `key` of the stored state and the beginning of the definition: one of them changes whenever the
        state or the definition does."""
        columns = [states.c[name] for name in Key._fields]
        query = select(*columns, func.substr(studies.c.definition, 1, HEAD)).join_from(states, studies)
        found = self._one(query.where(states.c.study == self._id))
        return Key._make(found[:-1]), found[-1]

    def kept(self) -> Key:
        """Returns the `key` of the stored state."""
        return self.signs()[0]

    def state(self) -> str:
        """Returns the stored state in its JSON form."""
        text: str = self._connection.execute(select(states.c.state).where(states.c.study == self._id)).scalar_one()
        return text

    def replace_state(
        self, kept: Key, new: State, text: str, now: float, seen: Sequence[Check] = (), **columns: Any
    ) -> bool:
        """Replaces the stored state with the key `kept` by a new one, whose JSON form is `text`, unless another worker
        did; returns whether it was replaced.

        If so, the blocks opened since and the checks `seen` are recorded, and other `columns` of the study's row.
        """
        of_kept = [states.c[name] == value for name, value in kept._asdict().items()]
        this = update(states).where(states.c.study == self._id, *of_kept)
        if not self._connection.execute(this.values({**key(new)._asdict(), "state": text})).rowcount:
            return False
        self.add([each for each in openings_of(new, now) if each.number >= kept.opened])
        if seen:  # of several checks after one result only the last is kept
            of_last = (checks.c.study == self._id) & (checks.c.samples == seen[0].samples)
            self._connection.execute(delete(checks).where(of_last))
        self.add(seen)
        first = new.blocks[0] if new.blocks else None
        missing = None if first is None else first.free.size - self._told_since(new.samples, first.number)
        number = None if first is None else first.number
        self.update(due=due(new), first_block=number, missing=missing, **columns)
        return True

    def _told_since(self, after: int, block: int) -> int:
        """Returns how many results of a block were told after result number `after`."""
        late = (observations.c.study == self._id) & (observations.c.number > after) & (tickets.c.block == block)
        query = select(func.count()).select_from(observations.join(tickets, OF_TICKET)).where(late)
        return self._connection.execute(query).scalar_one()

    def add(self, entries: Sequence[Entry], **others: Any) -> None:
        """Records entries of one kind; `others` are values of columns that are not among their fields."""
        if entries:
            self._insert(TABLES[type(entries[0])], ({**vars(each), **others} for each in entries))

    def joins(self) -> tuple[Join, ...]:
        """Returns every time that arms joined, in order."""
        return self._all(Join, "number")

    def definition(self) -> Definition:
        """Returns the definition of the study, with its earlier definitions if options have joined."""
        text = self._one(select(studies.c.definition).where(studies.c.id == self._id)).definition
        return Definition.from_dict(json.loads(text)).since(Instance.from_dict(each.before) for each in self.joins())

    def void(self, open_blocks: Sequence[int], now: float) -> None:
        """Marks tickets without a result as given back, except those of the open blocks with these numbers."""
        this = (tickets.c.study == self._id) & tickets.c.result.is_(None) & tickets.c.abandoned.is_(None)
        this &= tickets.c.block.not_in(open_blocks)
        self._connection.execute(update(tickets).where(this).values(abandoned=now))

    def change_opening(self, number: int, arms: Sequence[int]) -> None:
        """Replaces the recorded pulls of a block; none of them may have been handed out."""
        this = (blocks.c.study == self._id) & (blocks.c.number == number)
        self._connection.execute(update(blocks).where(this).values(arms=arms))

    def checks(self, most: int | None = None, *, accounts: bool = True) -> tuple[Check, ...]:
        """Returns the checks: what the stopping rule said each time it was read; at most `most`, at equal steps.

        The accounts, `lacking`, are most of what is stored. Without them this takes a tenth of the time.
        """
        columns = [column for column in _columns(Check) if accounts or column is not checks.c.lacking]
        query = select(*columns).where(checks.c.study == self._id).order_by(checks.c.samples)
        if most is not None:
            times = self._connection.execute(query.with_only_columns(checks.c.samples)).scalars().all()
            if len(times) > most:
                places = np.linspace(0, len(times) - 1, most).round().astype(int).tolist()
                some: Iterable[Sequence[Any]] = self._with(query, checks.c.samples, [times[at] for at in places])
                return tuple(Check(*row) for row in some)
        return tuple(Check(*row) for row in self._connection.execute(query))

    def _one(self, query: Select[Any]) -> Row[Any]:
        row = self._connection.execute(query).one_or_none()
        if row is None:
            raise NotFound("the study is no longer there: it was deleted; spectralbai study list shows the others")
        return row

    def _with(self, query: Select[Any], column: ColumnElement[T], values: Sequence[T]) -> Iterator[Row[Any]]:
        """Yields the rows of a query with one of these values in a column."""
        for part in _parts(values):
            yield from self._connection.execute(query.where(column.in_(part)))

    def _all(self, kind: type[Entry], *order: str) -> tuple[Entry, ...]:
        """Returns all entries of a kind, ordered by these columns."""
        table = TABLES[kind]
        query = select(*_columns(kind)).where(table.c.study == self._id).order_by(*(table.c[name] for name in order))
        return tuple(kind(*row) for row in self._connection.execute(query))

    def _insert(self, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows of the study to a table, if there are any."""
        own = [{**row, "study": self._id} for row in rows]
        if own:
            self._connection.execute(insert(table), own)

    def _per_arm(self, table: Table, these: ColumnElement[bool], n_arms: int) -> Vector:
        """Returns how many of these rows of the study each arm has."""
        query = select(table.c.arm, func.count()).where(table.c.study == self._id, these).group_by(table.c.arm)
        counts = np.zeros(n_arms)
        for arm, count in self._connection.execute(query):
            counts[arm] = count
        return counts
