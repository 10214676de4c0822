"""The kinds of events in the log of a study.

A study is its log: what happened, in order. Every event has a kind, its fields are its JSON form, and it says itself
what it does: to the definition of the study (`define`), to the state of the policy (`apply`), and to the tables of
tickets and results (`enter`). A new kind is a class like these, and a line in `KINDS`.

A block may close, and another open, while results are told. So events that change the state say after how many results
they happened, and results with larger numbers come after them, even if they were told before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from spectralbai.checks import check_time, check_words
from spectralbai.errors import InvalidInput
from spectralbai.journal.body import REMEDY, read_fields, text, whole, write_fields
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.journal.definition import Definition
    from spectralbai.journal.records import NewRows
    from spectralbai.journal.replay import Replay


@dataclass(frozen=True)
class Event:
    """Something that happened to a study."""

    kind: ClassVar[str]
    """What it is called in the log."""
    bulk: ClassVar[tuple[str, ...]] = ()
    """Keys of the body that are long and seldom read; the tables keep them in a column of their own."""
    defines: ClassVar[bool] = False
    """Whether it changes the definition of the study."""
    by_hand: ClassVar[bool] = False
    """Whether somebody decided that it happens: the log says who."""

    def body(self) -> dict[str, Any]:
        """Returns the fields, JSON-ready; those that have their default are left out."""
        return write_fields(self)

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Returns the event with this body; raises InvalidInput if there can be none."""
        return cls(**read_fields(cls, body))

    def define(self, definition: Definition | None, time: float) -> Definition | None:
        """Returns the definition of the study after the event, which happened at that time."""
        return definition

    def apply(self, replay: Replay) -> None:
        """Changes the state as the event says; raises InvalidInput if it cannot have happened then."""

    def enter(self, rows: NewRows, time: float) -> None:
        """Writes what the event says of tickets and results into their tables."""


class Entry(NamedTuple):
    """An event in the log of a study."""

    revision: int
    """1, 2, ... in the order of the log."""
    time: float
    """When it was recorded, in seconds since 1970."""
    event: Event
    by: str | None = None
    """Who did it, if somebody did it by hand."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry, JSON-ready."""
        by = {} if self.by is None else {"by": self.by}
        return {"revision": self.revision, "kind": self.event.kind, "time": self.time, **by, **self.event.body()}


@dataclass(frozen=True)
class StudyCreated(Event):
    """The study was created."""

    kind = "created"
    by_hand = True
    defines = True

    study: dict[str, Any]
    """The definition, in its JSON form."""
    versions: dict[str, str]
    """Versions of the software that created the study."""

    def define(self, definition: Definition | None, time: float) -> Definition:
        from spectralbai.journal.definition import Definition  # it loads numpy, which a client can do without

        return Definition.from_dict(self.study)


@dataclass(frozen=True)
class BlockOpened(Event):
    """A block was opened; if it was open already, its pulls were replaced, because counts came instead of them."""

    kind = "opened"

    number: int
    results: int
    """Number of results before it."""
    arms: tuple[int, ...]
    """The arm of each slot."""
    items: tuple[int, ...] = ()
    """The item of each slot; empty where trials have none."""

    def apply(self, replay: Replay) -> None:
        replay.open(self)

    def enter(self, rows: NewRows, time: float) -> None:
        rows.open(self, time)


class Slot(NamedTuple):
    """A ticket, and the slot that it stands for."""

    id: str
    arm: int
    block: int
    item: int | None


@dataclass(frozen=True)
class TicketsGiven(Event):
    """Tickets were handed out."""

    kind = "asked"

    worker: str
    expires: float
    tickets: tuple[Slot, ...]

    def apply(self, replay: Replay) -> None:
        replay.hand_out(self)

    def enter(self, rows: NewRows, time: float) -> None:
        for slot in self.tickets:
            rows.hand_out(slot, self.worker, time, self.expires)


class Told(NamedTuple):
    """A result as it was told."""

    arm: int
    outcome: float
    """In the user's units and sign."""
    block: int | None
    """Number of its block; None for results that only inform."""
    ticket: str | None
    item: int | None


@dataclass(frozen=True)
class ResultsTold(Event):
    """Results were told: of tickets, or of an origin, which are past results or counts."""

    kind = "told"

    results: tuple[Told, ...]
    origin: str | None = None
    """Where results without tickets come from."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why trials failed, by ticket."""
    abandoned: tuple[str, ...] = ()
    """Tickets of failed trials that are to be handed out again."""
    known: bool = False
    """Whether these results were known from elsewhere, so that nothing was tried."""

    def apply(self, replay: Replay) -> None:
        replay.tell(self)

    def enter(self, rows: NewRows, time: float) -> None:
        for each in self.results:
            rows.tell(each, self.origin, time)
        rows.known += len(self.results) if self.known else 0
        for id_, reason in self.failed.items():
            rows.change(id_, failed=reason)
        rows.abandon(self.abandoned, time)


@dataclass(frozen=True)
class CountsTold(Event):
    """Results were told as counts: what came, and how it was to be split."""

    kind = "counted"

    origin: str
    trials: tuple[int, ...]
    """The trials of each arm."""
    successes: tuple[int, ...]
    asked: tuple[float, ...] = ()
    """The shares that were asked for; empty if nothing was, since the study was over."""

    def apply(self, replay: Replay) -> None:
        replay.count(self)


@dataclass(frozen=True)
class TicketsAbandoned(Event):
    """Tickets were given back: their trials will not be done."""

    kind = "abandoned"

    tickets: tuple[str, ...]

    def apply(self, replay: Replay) -> None:
        replay.check_tickets(self.tickets)

    def enter(self, rows: NewRows, time: float) -> None:
        rows.abandon(self.tickets, time)


@dataclass(frozen=True)
class RulesRead(Event):
    """An event after which the rules were read: what they said then stands, whatever later versions would say."""

    results: int
    """Number of results before it."""
    rule: str
    """The stopping rule and its version, such as betting/1."""
    verdict: Verdict
    """What the rule said."""

    bulk: ClassVar[tuple[str, ...]] = ("lacking",)

    def body(self) -> dict[str, Any]:
        body = super().body()
        return {**body, "lacking": body["verdict"].pop("lacking")}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        verdict = body.get("verdict")
        if isinstance(verdict, Mapping):
            body = {**body, "verdict": {**verdict, "lacking": body.get("lacking")}}
        return super().from_body(body)


@dataclass(frozen=True)
class BlockClosed(RulesRead):
    """A block had all its results, and the rules were read."""

    kind = "closed"

    block: int

    def apply(self, replay: Replay) -> None:
        replay.close(self)


@dataclass(frozen=True)
class OptionsChanged(RulesRead):
    """There are other options from then on; tickets of blocks that were cancelled with that are given back."""

    by_hand = True

    abandoned: tuple[str, ...] = field(default=(), kw_only=True)

    def enter(self, rows: NewRows, time: float) -> None:
        rows.abandon(self.abandoned, time)


@dataclass(frozen=True)
class OptionWithdrawn(OptionsChanged):
    """An option was taken out."""

    kind = "withdrawn"

    arm: int

    def apply(self, replay: Replay) -> None:
        replay.withdraw(self)


@dataclass(frozen=True)
class OptionsJoined(OptionsChanged):
    """Options joined."""

    kind = "joined"
    bulk = ("lacking", "instance")
    defines = True

    blocks: tuple[int, ...]
    """Numbers of the blocks that stayed open; no trial of the others was handed out."""
    instance: dict[str, Any] = field(default_factory=dict)
    """All options from then on, in its JSON form; empty where long parts are left out."""

    def define(self, definition: Definition | None, time: float) -> Definition:
        from spectralbai.instance import Instance

        return _created(definition).joined(Instance.from_dict(self.instance))

    def apply(self, replay: Replay) -> None:
        replay.join(self)


@dataclass(frozen=True)
class ResultsVoided(OptionsChanged):
    """Results turned out to be wrong: those of an origin, such as a day, or of a ticket. They stay in the log, and the
    state is folded again without them or, if the right outcome of a ticket is known, with that."""

    kind = "voided"

    origin: str | None = None
    ticket: str | None = None
    outcome: float | None = None
    """The right outcome of the ticket; None if its result is taken out."""
    reason: str = ""

    def concerns(self, result: Told, origin: str | None) -> bool:
        """Returns whether a result of this origin is one of them."""
        return result.ticket == self.ticket if self.ticket is not None else origin == self.origin

    def apply(self, replay: Replay) -> None:
        replay.void(self)

    def enter(self, rows: NewRows, time: float) -> None:
        super().enter(rows, time)
        rows.void(self.origin, self.ticket, self.outcome, time)


class KnownPair(NamedTuple):
    """The outcome of an arm on an item, known without a trial."""

    arm: int
    item: int
    outcome: float
    """In the user's units and sign."""


@dataclass(frozen=True)
class PairsKnown(Event):
    """Outcomes of pairs are known from elsewhere: when their turn comes, they are recorded without a trial."""

    kind = "known"
    by_hand = True
    bulk = ("pairs",)
    defines = True

    origin: str
    """Where they come from."""
    pairs: tuple[KnownPair, ...] = ()
    """Empty where long parts are left out."""

    def define(self, definition: Definition | None, time: float) -> Definition:
        return _created(definition).with_known(self.pairs, self.origin)


@dataclass(frozen=True)
class StudyStopped(Event):
    """The study was stopped by hand."""

    kind = "stopped"
    by_hand = True
    defines = True

    def define(self, definition: Definition | None, time: float) -> Definition:
        return replace(_created(definition), stopped=time)


KINDS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        StudyCreated,
        BlockOpened,
        TicketsGiven,
        ResultsTold,
        CountsTold,
        TicketsAbandoned,
        BlockClosed,
        OptionWithdrawn,
        OptionsJoined,
        ResultsVoided,
        PairsKnown,
        StudyStopped,
    )
}
"""The kinds of events by name."""


def _created(definition: Definition | None) -> Definition:
    if definition is None:
        raise InvalidInput(f'the first event must be "created"; {REMEDY}')
    return definition


def read_log(events: Sequence[Any]) -> list[Entry]:
    """Returns the log whose entries `Entry.as_dict` wrote, with every value of the right type."""
    log = []
    for place, event in enumerate(events):
        try:
            log.append(_entry(place + 1, event))
        except InvalidInput as error:
            raise InvalidInput(f"$.events[{place}]: {error}; {REMEDY}") from None
    return log


def _entry(revision: int, event: Any) -> Entry:
    if not isinstance(event, Mapping):
        raise InvalidInput("an event must be an object")
    kind = KINDS.get(text("kind", event.get("kind")))
    if kind is None:
        raise InvalidInput(f"`kind` must be one of {', '.join(KINDS)}, got {event['kind'][:40]!r}")
    if whole("revision", event.get("revision")) != revision:
        raise InvalidInput(f"`revision` must be {revision}, got {event['revision']}")
    time = check_time("time", event.get("time"))
    by = None if event.get("by") is None else check_words("by", event["by"], 100)
    return Entry(revision, time, kind.from_body(event), by)


def defined_by(log: Iterable[Entry]) -> Definition:
    """Returns the definition of the study whose log this is; events that do not change it may be left out."""
    definition: Definition | None = None
    for entry in log:
        definition = entry.event.define(definition, entry.time)
    if definition is None:
        raise InvalidInput(f'the log of a study must begin with the event "created"; {REMEDY}')
    return definition
