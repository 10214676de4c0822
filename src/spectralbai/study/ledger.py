"""The rows of one study, read and written inside a transaction of the caller.

All SQL of studies is here, with bound parameters only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Row, Select, bindparam, exc, func, insert, select, update

from spectralbai.checks import Vector
from spectralbai.errors import InvalidInput
from spectralbai.study.definition import Definition
from spectralbai.study.records import Check, Observation, Ticket, TicketRecord, finite
from spectralbai.study.schema import checks, observations, states, studies, tickets

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.policy.state import Watch

TAIL = 200
"""Results after which the state is brought up to date even if no check is due, so that reading it stays quick."""

CHUNK = 500
"""Tickets looked up at once: databases limit the parameters of a statement."""


def due(state: State) -> int:
    """Returns the number of results at which the kept state is to be brought up to date."""
    return min(state.next_reading, state.samples + TAIL)


def insert_study(
    connection: Connection, name: str, created: float, definition: Definition, versions: dict[str, str]
) -> int:
    """Writes a new study without results; returns its id."""
    state = definition.policy.init()
    row = {
        "name": name,
        "created": created,
        "definition": json.dumps(definition.as_dict()),
        "versions": json.dumps(versions),
        "results": 0,
        "progress": "running",
        "best": None,
        "due": due(state),
        "claimed": 0.0,
    }
    try:
        id_: int = connection.execute(insert(studies).returning(studies.c.id), row).scalar_one()
    except exc.IntegrityError:
        raise InvalidInput(f'there is a study "{name}" already; choose another name, or go on with it') from None
    connection.execute(insert(states).values(study=id_, seen=0, state=json.dumps(state.as_dict())))
    return id_


def find_studies(connection: Connection, name: str | None = None) -> Sequence[Row[Any]]:
    """Returns the rows of all studies, oldest first, or of that of a name."""
    query = select(studies).order_by(studies.c.id)
    return connection.execute(query if name is None else query.where(studies.c.name == name)).all()


class Progress(NamedTuple):
    """How far a study is, and whose turn it is to bring its state up to date."""

    results: int
    due: int
    claimed: float
    word: str
    """"running", "inconsistent", "decided"; or "doubted", once results told after a decision contradict R."""


class Ledger:
    """The rows of the study `id`."""

    def __init__(self, connection: Connection, id_: int) -> None:
        self._connection = connection
        self._id = id_

    def progress(self, *, lock: bool = False) -> Progress:
        """Returns how far the study is; locked, no other writer can change it before the transaction ends."""
        query = select(studies.c.results, studies.c.due, studies.c.claimed, studies.c.progress).where(
            studies.c.id == self._id
        )
        return Progress(*self._connection.execute(query.with_for_update() if lock else query).one())

    def update(self, **values: Any) -> None:
        """Changes columns of the study's own row."""
        self._connection.execute(update(studies).where(studies.c.id == self._id).values(values))

    def append(self, after: int, told: float, results: Sequence[dict[str, Any]]) -> None:
        """Appends results (arm and outcome, ticket or origin) to the `after` that are there."""
        if not results:
            return
        common = {"study": self._id, "told": told, "ticket": None, "origin": None}
        rows = [{**common, **result, "number": number} for number, result in enumerate(results, after + 1)]
        self._connection.execute(insert(observations), rows)
        told_for = [{"told_id": row["ticket"], "told_as": row["number"]} for row in rows if row["ticket"] is not None]
        if told_for:
            this = update(tickets).where(tickets.c.study == self._id, tickets.c.id == bindparam("told_id"))
            self._connection.execute(this.values(result=bindparam("told_as")), told_for)
        self.update(results=after + len(results))

    def restore(self, asked: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> None:
        """Writes the tickets and the results, in their order, of a study that has none."""
        number_of = {each["ticket"]: number for number, each in enumerate(told, 1)}
        if asked:
            rows = [{**each, "study": self._id, "result": number_of.get(each["id"])} for each in asked]
            self._connection.execute(insert(tickets), rows)
        if told:
            self._connection.execute(
                insert(observations), [{**each, "study": self._id, "number": n} for n, each in enumerate(told, 1)]
            )
            self.update(results=len(told))

    def results(self, after: int, until: int) -> tuple[list[int], list[float]]:
        """Returns (arms, outcomes) told after result number `after`, up to number `until`, in their order."""
        between = (
            (observations.c.study == self._id) & (observations.c.number > after) & (observations.c.number <= until)
        )
        query = select(observations.c.arm, observations.c.outcome).where(between).order_by(observations.c.number)
        rows = self._connection.execute(query).all()
        return [row.arm for row in rows], [row.outcome for row in rows]

    def results_per_arm(self, after: int, n_arms: int) -> Vector:
        """Returns how many results of each arm were told after result number `after`."""
        late = (observations.c.study == self._id) & (observations.c.number > after)
        return self._count(select(observations.c.arm, func.count()).where(late).group_by(observations.c.arm), n_arms)

    def results_of(self, origin: str) -> list[tuple[int, float]]:
        """Returns (arm, outcome) of the results of an origin, in their order."""
        query = select(observations.c.arm, observations.c.outcome)
        query = query.where(observations.c.study == self._id, observations.c.origin == origin).order_by(
            observations.c.number
        )
        return [(row.arm, row.outcome) for row in self._connection.execute(query)]

    def observations(self) -> tuple[Observation, ...]:
        """Returns everything told, in its order."""
        rows = self._connection.execute(
            select(observations).where(observations.c.study == self._id).order_by(observations.c.number)
        )
        return tuple(Observation(row.arm, row.outcome, row.told, row.ticket, row.origin) for row in rows)

    def give(self, given: Sequence[Ticket]) -> None:
        """Writes new tickets."""
        names = ("id", "arm", "worker", "issued", "expires")
        if given:
            rows = [{"study": self._id, **{name: getattr(each, name) for name in names}} for each in given]
            self._connection.execute(insert(tickets), rows)

    def outcomes_of(self, ids: Sequence[str]) -> dict[str, tuple[int, float | None]]:
        """Returns (arm, outcome) of those of these tickets that there are, the outcome None where it was not told."""
        of_ticket = (observations.c.study == tickets.c.study) & (observations.c.number == tickets.c.result)
        query = select(tickets.c.id, tickets.c.arm, observations.c.outcome).outerjoin(observations, of_ticket)
        found: dict[str, tuple[int, float | None]] = {}
        for first in range(0, len(ids), CHUNK):
            here = query.where(tickets.c.study == self._id, tickets.c.id.in_(ids[first : first + CHUNK]))
            found |= {row.id: (row.arm, row.outcome) for row in self._connection.execute(here)}
        return found

    def abandon(self, id_: str, now: float) -> None:
        """Marks a ticket as given back; the first time counts."""
        this = (tickets.c.study == self._id) & (tickets.c.id == id_)
        self._connection.execute(update(tickets).where(this, tickets.c.abandoned.is_(None)).values(abandoned=now))

    def tickets(self) -> tuple[TicketRecord, ...]:
        """Returns every ticket, in the order given."""
        rows = self._connection.execute(
            select(tickets).where(tickets.c.study == self._id).order_by(tickets.c.issued, tickets.c.id)
        )
        return tuple(TicketRecord(row.id, row.arm, row.worker, row.issued, row.expires, row.abandoned) for row in rows)

    def pending(self, now: float, labels: Sequence[str]) -> tuple[Ticket, ...]:
        """Returns the tickets that count as pending."""
        rows = self._connection.execute(
            select(tickets).where(*self._open(now)).order_by(tickets.c.issued, tickets.c.id)
        )
        return tuple(Ticket(row.id, row.arm, labels[row.arm], row.worker, row.issued, row.expires) for row in rows)

    def pending_per_arm(self, now: float, n_arms: int) -> Vector:
        """Returns how many tickets of each arm count as pending."""
        return self._count(select(tickets.c.arm, func.count()).where(*self._open(now)).group_by(tickets.c.arm), n_arms)

    def seen(self) -> int:
        """Returns the number of results that the kept state holds."""
        seen: int = self._connection.execute(select(states.c.seen).where(states.c.study == self._id)).scalar_one()
        return seen

    def state(self) -> str:
        """Returns the kept state in its JSON form."""
        text: str = self._connection.execute(select(states.c.state).where(states.c.study == self._id)).scalar_one()
        return text

    def replace_state(self, seen: int, new: State) -> bool:
        """Puts a new state in the place of one that holds `seen` results; false if that is no longer there."""
        values = {"seen": new.samples, "state": json.dumps(new.as_dict())}
        changed = self._connection.execute(
            update(states).where(states.c.study == self._id, states.c.seen == seen).values(values)
        )
        return bool(changed.rowcount)

    def add_check(self, samples: int, watch: Watch) -> None:
        """Writes down what the stopping rule saw."""
        numbers = {"statistic": finite(watch.statistic), "threshold": finite(watch.threshold)}
        self._connection.execute(insert(checks).values(study=self._id, samples=samples, arm=watch.arm, **numbers))

    def checks(self) -> tuple[Check, ...]:
        """Returns what the stopping rule saw at every check."""
        rows = self._connection.execute(select(checks).where(checks.c.study == self._id).order_by(checks.c.samples))
        return tuple(Check(row.samples, row.arm, row.statistic, row.threshold) for row in rows)

    def _count(self, query: Select[Any, int], n_arms: int) -> Vector:
        counts = np.zeros(n_arms)
        for arm, count in self._connection.execute(query):
            counts[arm] = count
        return counts

    def _open(self, now: float) -> tuple[Any, ...]:
        return (
            tickets.c.study == self._id,
            tickets.c.result.is_(None),
            tickets.c.expires > now,
            tickets.c.abandoned.is_(None),
        )
