"""A live study: ask which arms to try, tell what came out, until it says stop. Nothing told is ever lost.

Results are appended in a transaction; that is all most tells do. At the times of the policy's own schedule, one worker
claims the task of bringing the kept state up to date, computes outside of any transaction, and puts the new state in
place if nobody else has: the others go on asking and telling meanwhile. A worker that dies there leaves a claim that
runs out.
"""

from __future__ import annotations

import json
import math
import platform
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sqlalchemy import Connection, Row, Select, exc, func, insert, select, update

from spectralbai.checks import Vector, check_integer, check_number
from spectralbai.errors import InvalidInput
from spectralbai.instance import Instance
from spectralbai.study.definition import Definition, Goal
from spectralbai.study.schema import checks, observations, states, studies, tickets
from spectralbai.study.storage import Storage

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.study.report import Report
    from spectralbai.study.status import Status

LEASE = 3600.0
"""Seconds after which a ticket stops counting as pending, unless told otherwise."""
CLAIM = 10.0
"""Seconds for which a worker may keep others from the same computation. If it takes longer another does it too, to no harm."""
TAIL = 100
"""Results after which the state is brought up to date even if no check is due, so that reading it stays quick."""
MOST_TICKETS = 10_000
"""In one ask."""


@dataclass(frozen=True)
class Ticket:
    """A trial to do: pull the arm, and tell the outcome under this id."""

    id: str
    arm: int
    label: str
    worker: str
    issued: float
    expires: float
    """When it stops counting as pending, in seconds since 1970; its result is welcome even later."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the ticket, JSON-ready, with times as text."""
        return {
            "ticket": self.id,
            "arm": self.arm,
            "label": self.label,
            "worker": self.worker,
            "issued": as_time(self.issued),
            "expires": as_time(self.expires),
        }


@dataclass(frozen=True)
class Summary:
    """A study in a line."""

    name: str
    created: str
    n_arms: int
    goal: Goal
    delta: float
    results: int
    state: str
    """"running", "decided" or "inconsistent", at the last check."""
    best: str
    """Label of the arm recommended then."""

    @classmethod
    def of(cls, row: Row[Any]) -> Summary:
        definition = Definition.from_dict(json.loads(row.definition))
        labels = definition.instance.labels
        return cls(
            row.name, as_time(row.created), len(labels), definition.goal, definition.delta, row.results, row.progress, labels[row.best]
        )


class Study:
    """A study in a storage. A context: leaving it closes the connections.

    >>> study = sb.Study.create("doses", instance, delta=0.05)    # or sb.Study.open("doses")
    >>> while tickets := study.ask(2, worker="lab 3"):            # none once it has decided
    ...     for ticket in tickets:
    ...         study.tell(ticket, outcome_of(ticket.label))
    """

    def __init__(self, storage: Storage, row: Row[Any]) -> None:
        """Use `Study.create` or `Study.open`."""
        self._storage = storage
        self._id: int = row.id
        self.name: str = row.name
        self.created: float = row.created
        self.definition = Definition.from_dict(json.loads(row.definition))
        self.versions: dict[str, str] = json.loads(row.versions)
        """Of the software that created the study."""
        self._known: tuple[int, State] | None = None  # results in a state read before, and that state

    @classmethod
    def create(
        cls,
        name: str,
        instance: Instance,
        delta: float = 0.05,
        storage: str | None = None,
        goal: Goal = "max",
        stopping: str = "mixture",
    ) -> Study:
        """Returns a new study of which arm is best, at risk `delta`; the graph, R and the noise are those of `instance`.

        `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; spectralbai.db in the working directory
        if not given. `goal` says whether large or small outcomes are good.
        """
        name = check_words("name", name, 100)
        definition = Definition(instance, delta, goal, stopping)
        definition.policy.init()  # refuses what the policy cannot do, before anything is written
        place = Storage(storage, create=True)
        try:
            with place.writing() as connection:
                insert_study(connection, name, time.time(), definition, software())
        except BaseException:
            place.close()
            raise
        return cls._named(name, place)

    @classmethod
    def open(cls, name: str, storage: str | None = None) -> Study:
        """Returns the study of that name."""
        return cls._named(check_words("name", name, 100), Storage(storage))

    @classmethod
    def _named(cls, name: str, place: Storage) -> Study:
        try:
            with place.reading() as connection:
                row = connection.execute(select(studies).where(studies.c.name == name)).one_or_none()
                known = list(connection.execute(select(studies.c.name).order_by(studies.c.id.desc()).limit(20)).scalars())
            if row is None:
                import difflib

                near = difflib.get_close_matches(name, known, n=1)
                remedy = f'did you mean "{near[0]}"?' if near else "spectralbai study list shows those that are there"
                raise InvalidInput(f'{place.name} holds no study "{name}"; {remedy}')
            return cls(place, row)
        except BaseException:
            place.close()
            raise

    def close(self) -> None:
        """Closes the connections to the storage."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._storage.name}>"

    def ask(self, n: int = 1, worker: str = "", lease: float = LEASE) -> list[Ticket]:
        """Returns n trials to do next, as tickets; none once the study has decided or the data contradict R.

        Tickets that other workers hold are taken into account. One that is not told within `lease` seconds no longer is.
        """
        n = check_integer("n", n, 1)
        if n > MOST_TICKETS:
            raise InvalidInput(f"`n` must be at most {MOST_TICKETS}, got {n}; ask again for more")
        worker = check_words("worker", worker, 100, blank=True)
        lease = check_number("lease", lease, "a positive number of seconds", low=0.0, strict=True)
        while True:
            with self._storage.writing() as connection:
                row = self._lock(connection)
                if not _unclaimed(row, row.results):
                    return self._give(connection, n, worker, lease)
                self._claim(connection)
            self._advance()

    def _give(self, connection: Connection, n: int, worker: str, lease: float) -> list[Ticket]:
        now = time.time()
        state, waiting = self._state(connection)
        arms = self.definition.policy.ask(state, n, waiting + self._pending(connection, now)).tolist()
        labels = self.definition.instance.labels
        given = [Ticket(secrets.token_hex(8), arm, labels[arm], worker, now, now + lease) for arm in arms]
        if given:
            names = ("id", "arm", "worker", "issued", "expires")
            connection.execute(insert(tickets), [{"study": self._id, **{name: getattr(each, name) for name in names}} for each in given])
        return given

    def tell(self, ticket: Ticket | str, outcome: float) -> bool:
        """Records the outcome of a ticket; returns whether it was new.

        Telling it again with the same outcome changes nothing, so that it is safe to retry; with another one it is refused.
        """
        return self.tell_many([(ticket, outcome)]) == 1

    def tell_many(self, results: Iterable[tuple[Ticket | str, float]]) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        told = [(_ticket_id(ticket), self.definition.check_outcome(outcome)) for ticket, outcome in results]
        if not told:
            return 0
        with self._storage.writing() as connection:
            row = self._lock(connection)
            new: dict[str, dict[str, Any]] = {}
            for id_, outcome in told:
                found = connection.execute(
                    select(tickets.c.arm, observations.c.outcome)
                    .outerjoin(observations, (observations.c.study == tickets.c.study) & (observations.c.number == tickets.c.result))
                    .where(tickets.c.study == self._id, tickets.c.id == id_)
                ).one_or_none()
                if found is None:
                    raise InvalidInput(f'"{id_}" is no ticket of the study "{self.name}"; tell under the id that ask gave')
                known = new[id_]["outcome"] if id_ in new else found.outcome
                if known is None:
                    new[id_] = {"arm": found.arm, "outcome": outcome, "ticket": id_}
                elif known != outcome:
                    raise InvalidInput(f'the ticket "{id_}" has the outcome {known!r} already, got {outcome!r}; results are never changed')
            claimed = self._append(connection, row, list(new.values()))
            for number, id_ in enumerate(new, row.results + 1):
                connection.execute(update(tickets).where(tickets.c.study == self._id, tickets.c.id == id_).values(result=number))
        if claimed:
            self._advance()
        return len(new)

    def add(
        self, labels: Sequence[str], outcomes: Sequence[float], origin: str, on_check: Callable[[int, int], object] | None = None
    ) -> int:
        """Records results that come without tickets, all or none, under a note of their origin; returns how many were new.

        Give all results of that origin in one call, and do not pick them by their outcomes. The same origin again with the
        same results changes nothing; with others it is refused. `on_check` is called with (results weighed, all results).
        """
        origin = check_words("origin", origin, 200)
        if len(labels) != len(outcomes) or not len(labels):
            raise InvalidInput(
                f"`labels` and `outcomes` must be two lists of one length, at least 1, got lengths {len(labels)} and {len(outcomes)}"
            )
        arms = [self.definition.check_arm(label) for label in labels]
        values = [self.definition.check_outcome(outcome) for outcome in outcomes]
        with self._storage.writing() as connection:
            row = self._lock(connection)
            found = connection.execute(
                select(observations.c.arm, observations.c.outcome)
                .where(observations.c.study == self._id, observations.c.origin == origin)
                .order_by(observations.c.number)
            ).all()
            if found:
                if [tuple(each) for each in found] == list(zip(arms, values, strict=True)):
                    return 0
                raise InvalidInput(f'results of the origin "{origin}" are recorded already, and differ; results are never changed')
            rows = [{"arm": arm, "outcome": value, "origin": origin} for arm, value in zip(arms, values, strict=True)]
            claimed = self._append(connection, row, rows)
        if claimed:
            self._advance(on_check)
        return len(rows)

    def abandon(self, ticket: Ticket | str) -> None:
        """Gives a ticket back: it no longer counts as pending. Should a result come after all, it is still accepted."""
        id_ = _ticket_id(ticket)
        with self._storage.writing() as connection:
            self._lock(connection)
            this = (tickets.c.study == self._id) & (tickets.c.id == id_)
            found = connection.execute(select(tickets.c.result).where(this)).one_or_none()
            if found is None:
                raise InvalidInput(f'"{id_}" is no ticket of the study "{self.name}"')
            if found.result is not None:
                raise InvalidInput(f'the ticket "{id_}" has its result already and cannot be given back')
            connection.execute(update(tickets).where(this, tickets.c.abandoned.is_(None)).values(abandoned=time.time()))

    def status(self) -> Status:
        """Returns where the study stands."""
        from spectralbai.study.status import status_of

        return status_of(self)

    def report(self) -> Report:
        """Returns the record of the study, for a page or JSON: `.as_html()`, `.as_dict()`."""
        from spectralbai.study.report import Report

        return Report.of(self)

    def catch_up(self, on_check: Callable[[int, int], object] | None = None) -> None:
        """Brings the kept state up to date, if it is behind and no worker is at it; called by all that read it."""
        with self._storage.reading() as connection:
            row = connection.execute(self._progress()).one()
        if _unclaimed(row, row.results):
            with self._storage.writing() as connection:
                row = self._lock(connection)
                claimed = _unclaimed(row, row.results)
                if claimed:
                    self._claim(connection)
            if claimed:
                self._advance(on_check)

    def snapshot(self) -> Snapshot:
        """Returns everything that a status or a report is made of, as of one instant."""
        now = time.time()
        with self._storage.reading() as connection:
            state, waiting = self._state(connection)
            held = connection.execute(
                select(tickets).where(tickets.c.study == self._id, *_open(now)).order_by(tickets.c.issued, tickets.c.id)
            ).all()
            seen = connection.execute(select(checks).where(checks.c.study == self._id).order_by(checks.c.samples)).all()
        labels = self.definition.instance.labels
        pending = tuple(Ticket(each.id, each.arm, labels[each.arm], each.worker, each.issued, each.expires) for each in held)
        history = tuple(Check(each.samples, each.arm, each.statistic, each.threshold) for each in seen)
        return Snapshot(now, state, int(waiting.sum()), pending, history)

    def records(self) -> Records:
        """Returns everything ever told and asked, as of one instant."""
        with self._storage.reading() as connection:
            told = connection.execute(select(observations).where(observations.c.study == self._id).order_by(observations.c.number)).all()
            asked = connection.execute(select(tickets).where(tickets.c.study == self._id).order_by(tickets.c.issued, tickets.c.id)).all()
        return Records(
            tuple(Observation(each.arm, each.outcome, each.told, each.ticket, each.origin) for each in told),
            tuple(TicketRecord(each.id, each.arm, each.worker, each.issued, each.expires, each.abandoned) for each in asked),
        )

    def _lock(self, connection: Connection) -> Row[Any]:
        """Returns the row of the study, which no other writer can change before the transaction ends."""
        return connection.execute(self._progress().with_for_update()).one()

    def _progress(self) -> Select[Any]:
        return select(studies.c.results, studies.c.due, studies.c.claimed).where(studies.c.id == self._id)

    def _append(self, connection: Connection, row: Row[Any], results: list[dict[str, Any]]) -> bool:
        """Appends results; returns whether it falls to this worker to bring the state up to date."""
        if not results:
            return False
        now = time.time()
        common = {"study": self._id, "told": now, "ticket": None, "origin": None}
        connection.execute(
            insert(observations), [{**common, **result, "number": number} for number, result in enumerate(results, row.results + 1)]
        )
        total = row.results + len(results)
        connection.execute(update(studies).where(studies.c.id == self._id).values(results=total))
        claimed = _unclaimed(row, total)
        if claimed:
            self._claim(connection)
        return claimed

    def _claim(self, connection: Connection) -> None:
        connection.execute(update(studies).where(studies.c.id == self._id).values(claimed=time.time() + CLAIM))

    def _advance(self, on_check: Callable[[int, int], object] | None = None) -> None:
        """Brings the kept state up to date, one check at a time, until it is; the caller has claimed that."""
        policy = self.definition.policy
        ahead = True
        while ahead:
            with self._storage.reading() as connection:
                state = self._kept(connection)
                seen, due = state.samples, _due(state)
                arms, outcomes = self._results(connection, seen, due)
            if seen + len(arms) < due:
                return  # another worker has been here
            new = policy.tell(state, arms, self.definition.rewards(outcomes))
            with self._storage.writing() as connection:
                row = self._lock(connection)
                values = {"seen": new.samples, "state": json.dumps(new.as_dict())}
                done = connection.execute(update(states).where(states.c.study == self._id, states.c.seen == seen).values(values))
                if done.rowcount == 0:
                    return  # another worker was faster, and goes on with it
                if new.next_check != state.next_check:
                    watch = new.watches[0]
                    numbers = {"statistic": finite(watch.statistic), "threshold": finite(watch.threshold)}
                    connection.execute(insert(checks).values(study=self._id, samples=new.samples, arm=watch.arm, **numbers))
                ahead = row.results >= _due(new)
                claim = time.time() + CLAIM if ahead else 0.0
                verdict = policy.verdict(new)
                now = {"due": _due(new), "claimed": claim, "progress": verdict.progress, "best": verdict.arm}
                connection.execute(update(studies).where(studies.c.id == self._id).values(now))
            self._known = (new.samples, new)
            if on_check is not None:
                on_check(new.samples, row.results)

    def _kept(self, connection: Connection) -> State:
        """Returns the state as kept, parsed only if it has changed."""
        from spectralbai.policy import State

        seen = connection.execute(select(states.c.seen).where(states.c.study == self._id)).scalar_one()
        if self._known is None or self._known[0] != seen:
            text = connection.execute(select(states.c.state).where(states.c.study == self._id)).scalar_one()
            state = State.from_dict(json.loads(text))
            self._known = (state.samples, state)
        return self._known[1]

    def _state(self, connection: Connection) -> tuple[State, Vector]:
        """Returns the state with all results before its next check, and the number of later ones per arm."""
        policy = self.definition.policy
        state = self._kept(connection)
        arms, outcomes = self._results(connection, state.samples)
        ready = min(len(arms), state.next_check - state.samples - 1)
        waiting = np.bincount(np.array(arms[ready:], dtype=np.intp), minlength=policy.problem.n_arms).astype(float)
        return policy.tell(state, arms[:ready], self.definition.rewards(outcomes[:ready])), waiting

    def _results(self, connection: Connection, after: int, until: int | None = None) -> tuple[list[int], list[float]]:
        """Returns (arms, outcomes) told after result number `after`, in their order."""
        query = select(observations.c.arm, observations.c.outcome).where(observations.c.study == self._id, observations.c.number > after)
        if until is not None:
            query = query.where(observations.c.number <= until)
        rows = connection.execute(query.order_by(observations.c.number)).all()
        return [row.arm for row in rows], [row.outcome for row in rows]

    def _pending(self, connection: Connection, now: float) -> Vector:
        """Returns how many tickets are out per arm."""
        held = connection.execute(
            select(tickets.c.arm, func.count()).where(tickets.c.study == self._id, *_open(now)).group_by(tickets.c.arm)
        ).all()
        counts = np.zeros(self.definition.instance.problem.n_arms)
        for arm, count in held:
            counts[arm] = count
        return counts


@dataclass(frozen=True)
class Check:
    """What the stopping rule saw at one time."""

    samples: int
    arm: int
    statistic: float | None
    """None if no challenger can win."""
    threshold: float | None
    """None before the rule has one."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study at one instant."""

    time: float
    state: State
    unweighed: int
    """Results told that wait for a worker to bring the state up to date."""
    pending: tuple[Ticket, ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Observation:
    """A result, as told."""

    arm: int
    outcome: float
    told: float
    ticket: str | None
    origin: str | None
    """Where a result without a ticket comes from."""


@dataclass(frozen=True)
class TicketRecord:
    """A ticket, as given."""

    id: str
    arm: int
    worker: str
    issued: float
    expires: float
    abandoned: float | None


@dataclass(frozen=True)
class Records:
    """Everything ever told, in its order, and asked."""

    observations: tuple[Observation, ...]
    tickets: tuple[TicketRecord, ...]


def list_studies(storage: str | None = None) -> list[Summary]:
    """Returns a line for each study in a storage, oldest first."""
    place = Storage(storage)
    try:
        with place.reading() as connection:
            rows = connection.execute(select(studies).order_by(studies.c.id)).all()
    finally:
        place.close()
    return [Summary.of(row) for row in rows]


def insert_study(connection: Connection, name: str, created: float, definition: Definition, versions: dict[str, str]) -> int:
    """Writes a new study without results; returns its id."""
    state = definition.policy.init()
    row = {
        "name": name,
        "created": created,
        "definition": json.dumps(definition.as_dict()),
        "versions": json.dumps(versions),
        "results": 0,
        "progress": "running",
        "best": 0,
        "due": _due(state),
        "claimed": 0.0,
    }
    try:
        id_: int = connection.execute(insert(studies).returning(studies.c.id), row).scalar_one()
    except exc.IntegrityError:
        raise InvalidInput(f'there is a study "{name}" already; choose another name, or go on with it') from None
    connection.execute(insert(states).values(study=id_, seen=0, state=json.dumps(state.as_dict())))
    return id_


def software() -> dict[str, str]:
    """Returns the versions of everything that a result may depend on."""
    packages = {name: version(name) for name in ("spectralbai", "numpy", "scipy", "numba", "SQLAlchemy")}
    return {"python": platform.python_version(), **packages, "machine": platform.machine()}


def check_words(name: str, value: Any, longest: int, *, blank: bool = False) -> str:
    """Returns a user's words if they fit on one line."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable() or not (blank or value.strip()):
        raise InvalidInput(f"`{name}` must be one line of 1 to {longest} printable characters, got {str(value)[:120]!r}")
    return value


def finite(value: float) -> float | None:
    """Returns a number, or None for one that JSON and tables cannot hold."""
    return float(value) if math.isfinite(value) else None


def as_time(seconds: float) -> str:
    """Returns a time as text, in UTC."""
    return datetime.fromtimestamp(min(seconds, 253402300799.0), UTC).isoformat(timespec="seconds")


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(id_, str) or len(id_) > 100 or not id_.isprintable():
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_


def _unclaimed(row: Row[Any], results: int) -> bool:
    """Whether the state is to be brought up to date, and no worker is at it. A claim from the future is of a wrong clock."""
    now = time.time()
    return bool(results >= row.due and not now < row.claimed <= now + CLAIM)


def _due(state: State) -> int:
    return min(state.next_check, state.samples + TAIL)


def _open(now: float) -> tuple[Any, ...]:
    """The conditions of tickets that count as pending."""
    return tickets.c.result.is_(None), tickets.c.expires > now, tickets.c.abandoned.is_(None)
