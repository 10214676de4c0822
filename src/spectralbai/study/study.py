"""A live study: ask which arms to try, tell what came out, until it says stop. Nothing told is ever lost.

Results are appended in a transaction; that is all most tells do. At the times of the policy's own schedule, one worker
claims the task of bringing the kept state up to date, computes outside of any transaction, and puts the new state in
place if nobody else has: the others go on asking and telling meanwhile. A worker that dies there leaves a claim that
runs out.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import Row

from spectralbai.checks import Vector, check_integer, check_number, did_you_mean
from spectralbai.errors import InvalidInput, StorageError
from spectralbai.instance import Instance
from spectralbai.software import software
from spectralbai.study.definition import Definition, Goal
from spectralbai.study.ledger import Ledger, Progress, due, find_studies, insert_study
from spectralbai.study.records import Records, Snapshot, Summary, Ticket, as_time
from spectralbai.study.storage import Storage

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.study.report import Report
    from spectralbai.study.status import Status

LEASE = 3600.0
"""Seconds after which a ticket stops counting as pending, unless told otherwise."""
CLAIM = 10.0
"""Seconds for which a worker may keep others from the same computation.

If it takes longer another does it too, to no harm.
"""
MOST_TICKETS = 10_000
"""In one ask."""

OnCheck = Callable[[int, int], object]
"""Called with (results weighed, all results) where much is to be weighed."""


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
        with _undamaged(row.name):
            self.definition = Definition.from_dict(json.loads(row.definition))
            self.versions: dict[str, str] = json.loads(row.versions)
            """Of the software that created the study."""
        self._known: State | None = None  # the state last read, which is mostly that still kept

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
        """Returns a new study of which arm is best, at risk `delta`; the graph, R and the noise are those of
        `instance`.

        `storage` is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE; spectralbai.db in the working directory
        if not given. `goal` says whether large or small outcomes are good.
        """
        name = check_words("name", name, 100)
        definition = Definition(instance, delta, goal, stopping)
        # What cannot be kept or done is refused before anything is written.
        definition.as_dict()
        definition.policy.init()
        place = Storage(storage, create=True)
        with place.closed_on_error():
            with place.writing() as connection:
                insert_study(connection, name, time.time(), definition, software("SQLAlchemy"))
            return cls.named(name, place)

    @classmethod
    def open(cls, name: str, storage: str | None = None) -> Study:
        """Returns the study of that name."""
        name = check_words("name", name, 100)
        place = Storage(storage)
        with place.closed_on_error():
            return cls.named(name, place)

    @classmethod
    def named(cls, name: str, place: Storage) -> Study:
        """Returns the study of that name in a storage that is open."""
        with place.reading() as connection:
            found = find_studies(connection, name)
            others = [] if found else [row.name for row in find_studies(connection)]
        if not found:
            remedy = did_you_mean(name, others, "spectralbai study list shows those that are there")
            raise InvalidInput(f'{place.name} holds no study "{name}"; {remedy}')
        return cls(place, found[0])

    def close(self) -> None:
        """Closes the connections to the storage."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.name!r} in {self._storage.name}>"

    def ask(self, n: int = 1, worker: str = "", lease: float = LEASE) -> list[Ticket]:
        """Returns n trials to do next, as tickets; none once the study has decided or the data contradict R.

        Tickets that other workers hold are taken into account. One that is not told within `lease` seconds no longer
        is.
        """
        n = check_integer("n", n, 1)
        if n > MOST_TICKETS:
            raise InvalidInput(f"`n` must be at most {MOST_TICKETS}, got {n}; ask again for more")
        worker = check_words("worker", worker, 100, blank=True)
        lease = check_number("lease", lease, "a positive number of seconds", low=0.0, strict=True)
        labels, policy = self.definition.instance.labels, self.definition.policy
        policy.ask(policy.init())  # compiled code is loaded before others have to wait
        self.catch_up()
        with self._writing() as ledger:
            ledger.progress(lock=True)
            now = time.time()
            state, waiting = self._state(ledger)
            arms = policy.ask(state, n, waiting + ledger.pending_per_arm(now, len(labels))).tolist()
            given = [Ticket(secrets.token_hex(8), arm, labels[arm], worker, now, now + lease) for arm in arms]
            ledger.give(given)
        return given

    def tell(self, ticket: Ticket | str, outcome: float) -> bool:
        """Records the outcome of a ticket; returns whether it was new.

        Telling it again with the same outcome changes nothing, so that it is safe to retry; with another one it is
        refused.
        """
        return self.tell_many([(ticket, outcome)]) == 1

    def tell_many(self, results: Iterable[tuple[Ticket | str, float]]) -> int:
        """Records outcomes of tickets, all or none; returns how many were new."""
        try:
            pairs = [(ticket, outcome) for ticket, outcome in results]
        except (TypeError, ValueError):
            raise InvalidInput("`results` must be pairs of a ticket and an outcome") from None
        told = [(_ticket_id(ticket), self.definition.check_outcome(outcome)) for ticket, outcome in pairs]
        with self._writing() as ledger:
            progress = ledger.progress(lock=True)
            known = ledger.outcomes_of([id_ for id_, _ in told])
            new: dict[str, dict[str, Any]] = {}
            for id_, outcome in told:
                if id_ not in known:
                    raise InvalidInput(
                        f'"{id_}" is no ticket of the study "{self.name}"; tell under the id that ask gave'
                    )
                arm, before = known[id_]
                if before is None:
                    known[id_] = (arm, outcome)
                    new[id_] = {"arm": arm, "outcome": outcome, "ticket": id_}
                elif before != outcome:
                    raise InvalidInput(
                        f'the ticket "{id_}" has the outcome {before!r} already, got {outcome!r}; results are never '
                        "changed"
                    )
            claimed = self._append(ledger, progress, list(new.values()))
        if claimed:
            self._advance()
        return len(new)

    def add(
        self, labels: Sequence[str], outcomes: Sequence[float], origin: str, on_check: OnCheck | None = None
    ) -> int:
        """Records results that come without tickets, all or none, under a note of their origin; returns how many were
        new.

        Give all results of that origin in one call, and do not pick them by their outcomes. The same origin again with
        the same results changes nothing; with others it is refused.
        """
        origin = check_words("origin", origin, 200)
        try:
            pairs = list(zip(labels, outcomes, strict=True))
        except (TypeError, ValueError):
            pairs = []
        if not pairs:
            raise InvalidInput("`labels` and `outcomes` must be two lists of one length, at least 1")
        results = [
            (self.definition.check_arm(label), self.definition.check_outcome(outcome)) for label, outcome in pairs
        ]
        with self._writing() as ledger:
            progress = ledger.progress(lock=True)
            known = ledger.results_of(origin)
            if known and known != results:
                raise InvalidInput(
                    f'results of the origin "{origin}" are recorded already, and differ; results are never changed'
                )
            new = [] if known else [{"arm": arm, "outcome": outcome, "origin": origin} for arm, outcome in results]
            claimed = self._append(ledger, progress, new)
        if claimed:
            self._advance(on_check)
        return len(new)

    def abandon(self, ticket: Ticket | str) -> None:
        """Gives a ticket back: it no longer counts as pending. Should a result come after all, it is still accepted."""
        id_ = _ticket_id(ticket)
        with self._writing() as ledger:
            ledger.progress(lock=True)
            found = ledger.outcomes_of([id_])
            if not found:
                raise InvalidInput(f'"{id_}" is no ticket of the study "{self.name}"')
            if found[id_][1] is not None:
                raise InvalidInput(f'the ticket "{id_}" has its result already and cannot be given back')
            ledger.abandon(id_, time.time())

    def status(self) -> Status:
        """Returns where the study stands."""
        from spectralbai.study.status import status_of

        self.catch_up()
        return status_of(self, self.snapshot())

    def report(self) -> Report:
        """Returns the record of the study, for a page or JSON: `.as_html()`, `.as_dict()`."""
        from spectralbai.study.report import Report

        self.catch_up()
        with self._reading() as ledger:
            at, records = self._snapshot(ledger), Records(ledger.observations(), ledger.tickets())
        return Report.of(self, at, records)  # computes, and may have to compile: not inside a transaction

    def snapshot(self) -> Snapshot:
        """Returns everything that a status is made of, as of one instant."""
        with self._reading() as ledger:
            return self._snapshot(ledger)

    def records(self) -> Records:
        """Returns everything ever told and asked, as of one instant."""
        with self._reading() as ledger:
            return Records(ledger.observations(), ledger.tickets())

    def catch_up(self, on_check: OnCheck | None = None) -> None:
        """Brings the kept state up to date, if it is behind and no worker is at it: all that read it do so first."""
        with self._reading() as ledger:
            progress = ledger.progress()
        if not _unclaimed(progress, progress.results):
            return
        with self._writing() as ledger:
            progress = ledger.progress(lock=True)
            claimed = self._append(ledger, progress, [])
        if claimed:
            self._advance(on_check)

    @contextmanager
    def _reading(self) -> Iterator[Ledger]:
        with self._storage.reading() as connection:
            yield Ledger(connection, self._id)

    @contextmanager
    def _writing(self) -> Iterator[Ledger]:
        with self._storage.writing() as connection:
            yield Ledger(connection, self._id)

    def _append(self, ledger: Ledger, progress: Progress, results: list[dict[str, Any]]) -> bool:
        """Appends results, if any; returns whether it now falls to this worker to bring the state up to date, which
        it has claimed."""
        now = time.time()
        ledger.append(progress.results, now, results)
        claimed = _unclaimed(progress, progress.results + len(results))
        if claimed:
            ledger.update(claimed=now + CLAIM)
        return claimed

    def _advance(self, on_check: OnCheck | None = None) -> None:
        """Brings the kept state up to date, one check at a time, until it is; the caller has claimed that."""
        policy = self.definition.policy
        ahead = True
        while ahead:
            with self._reading() as ledger:
                state, before = self._kept(ledger), ledger.progress().word
                arms, outcomes = ledger.results(state.samples, due(state))
            if state.samples + len(arms) < due(state):
                return  # another worker has been here
            new, readings = policy.advance(state, arms, self.definition.rewards(outcomes))
            verdict = policy.verdict(new)
            # A decision stands, but R is tested on: once contradicted it stays so.
            doubted = verdict.decided and (before == "doubted" or policy.estimates(new).consistent is False)
            word = "doubted" if doubted else verdict.progress
            best = (
                verdict.arm if policy.has_estimate(new) and verdict.consistent else None
            )  # none before there is an estimate
            with self._writing() as ledger:
                results = ledger.progress(lock=True).results
                if not ledger.replace_state(state.samples, new):
                    return  # another worker was faster, and goes on with it
                if readings:
                    ledger.add_check(new.samples, new.watches[0])
                ahead = results >= due(new)
                claimed = time.time() + CLAIM if ahead else 0.0
                ledger.update(due=due(new), claimed=claimed, progress=word, best=best)
            self._known = new
            if on_check is not None:
                on_check(new.samples, results)

    def _kept(self, ledger: Ledger) -> State:
        """Returns the state as kept, read only if it has changed."""
        from spectralbai.policy import State

        seen, state = ledger.seen(), self._known  # which other threads may set meanwhile
        if state is None or state.samples != seen:
            with _undamaged(self.name):
                state = State.from_dict(json.loads(ledger.state()))
                if state.samples != seen:
                    raise ValueError(f"a state of {state.samples} results, where {seen} should be")
            self._known = state
        return state

    def _state(self, ledger: Ledger) -> tuple[State, Vector]:
        """Returns the state with all results before its next check, and the number of later ones per arm."""
        policy = self.definition.policy
        state = self._kept(ledger)
        arms, outcomes = ledger.results(state.samples, state.next_reading - 1)
        waiting = ledger.results_per_arm(state.next_reading - 1, policy.problem.n_arms)
        return policy.tell(state, arms, self.definition.rewards(outcomes)), waiting

    def _snapshot(self, ledger: Ledger) -> Snapshot:
        now = time.time()
        state, waiting = self._state(ledger)
        pending = ledger.pending(now, self.definition.instance.labels)
        return Snapshot(now, state, int(waiting.sum()), pending, ledger.checks(), ledger.progress().word == "doubted")


def list_studies(storage: str | None = None) -> list[Summary]:
    """Returns a line for each study in a storage, oldest first."""
    place = Storage(storage)
    try:
        with place.reading() as connection:
            rows = find_studies(connection)
    finally:
        place.close()
    return [_summary(row) for row in rows]


def check_words(name: str, value: Any, longest: int, *, blank: bool = False) -> str:
    """Returns a user's words if they fit on one line."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable() or not (blank or value.strip()):
        raise InvalidInput(
            f"`{name}` must be one line of 1 to {longest} printable characters, got {str(value)[:120]!r}"
        )
    return value


@contextmanager
def _undamaged(name: str) -> Iterator[None]:
    """Says in one sentence that what is kept of a study cannot be read."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise StorageError(
            f'the study "{name}" cannot be read ({reason}); restore a copy of the storage, or an export'
        ) from None


def _summary(row: Row[Any]) -> Summary:
    with _undamaged(row.name):
        definition = Definition.from_dict(json.loads(row.definition))
    labels = definition.instance.labels
    best = None if row.best is None else labels[row.best]
    return Summary(
        row.name, as_time(row.created), len(labels), definition.goal, definition.delta, row.results, row.progress, best
    )


def _ticket_id(ticket: Any) -> str:
    id_ = ticket.id if isinstance(ticket, Ticket) else ticket
    if not isinstance(id_, str) or len(id_) > 100 or not id_.isprintable():
        raise InvalidInput(f"`ticket` must be a ticket that ask gave, or its id, got {str(ticket)[:120]!r}")
    return id_


def _unclaimed(progress: Progress, results: int) -> bool:
    """Whether the state is to be brought up to date, and no worker is at it.

    A claim from the future is of a wrong clock.
    """
    now = time.time()
    return bool(results >= progress.due and not now < progress.claimed <= now + CLAIM)
