"""The kinds of events in the log of a study.

A study is its log: what happened, in order. Every event has a kind, its fields are its JSON form, and it says itself
what it does: to the definition of the study (`define`), to the state of the policy (`apply`), and to the tables of
tickets and results (`enter`). A new kind is a class like these, and a line in `KINDS`.

A block may close, and another open, while results are told. So events that change the state say after how many results
they happened, and results with larger numbers come after them, even if they were told before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from spectralbai.checks import check_integer, check_number, check_words, is_line
from spectralbai.documents import plain
from spectralbai.errors import InvalidInput
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.journal.definition import Definition
    from spectralbai.journal.fold import Fold
    from spectralbai.journal.records import Recorder

REMEDY = "export the study again"
FAR = 1e18
"""No time is later, in seconds since 1970."""
LARGE = 2**31
"""Whole numbers in a log are below this, as in the columns of a database."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a study."""

    kind: ClassVar[str]
    """What it is called in the log."""
    bulk: ClassVar[tuple[str, ...]] = ()
    """Keys of the body that are long and seldom read; the tables keep them in a column of their own."""
    defines: ClassVar[bool] = False
    """Whether it changes the definition of the study."""

    def body(self) -> dict[str, Any]:
        """Returns the fields, JSON-ready."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_body(cls, body: Body) -> Self:
        """Returns the event that `body` describes; raises InvalidInput if it cannot be one."""
        return cls(**{each.name: body.value(each.name) for each in fields(cls)})

    def define(self, definition: Definition | None, time: float) -> Definition | None:
        """Returns the definition of the study after the event, which happened at that time."""
        return definition

    def apply(self, fold: Fold) -> None:
        """Changes the state as the event says; raises InvalidInput if it cannot have happened then."""

    def enter(self, recorder: Recorder, time: float) -> None:
        """Writes what the event says of tickets and results into their tables."""


class Entry(NamedTuple):
    """An event in the log of a study."""

    revision: int
    """1, 2, ... in the order of the log."""
    time: float
    """When it was recorded, in seconds since 1970."""
    event: Event

    def as_dict(self) -> dict[str, Any]:
        """Returns the entry, JSON-ready."""
        return {"revision": self.revision, "kind": self.event.kind, "time": self.time, **self.event.body()}


class Body:
    """The body of an event in a document; each method returns a value, or says what is wrong where.

    There may be hundreds of thousands: what is right is let through before a sentence about it is put together.
    """

    __slots__ = ("_values", "place")

    def __init__(self, place: int, values: Mapping[str, Any]) -> None:
        """`place` is the number of the event in the list of all events."""
        self.place = place
        self._values = values

    @property
    def path(self) -> str:
        return f"$.events[{self.place}]"

    def value(self, name: str, *default: Any) -> Any:
        if name not in self._values and not default:
            raise InvalidInput(f"{self.path} lacks {name}; {REMEDY}")
        return self._values.get(name, *default)

    def integer(self, name: str) -> int:
        return self.whole(name, self.value(name))

    def whole(self, name: str, value: Any) -> int:
        if type(value) is int and 0 <= value < LARGE:
            return value
        return check_integer(f"{self.path}.{name}", value, 0, LARGE - 1)

    def number(self, name: str) -> float:
        found = self.value(name)
        if type(found) is float and 0 <= found < FAR:
            return found
        return check_number(f"{self.path}.{name}", found, "a time", low=0.0, strict=False)

    def words(self, name: str, most: int, *, blank: bool = False) -> str:
        return check_words(f"{self.path}.{name}", self.value(name), most, blank=blank)

    def object(self, name: str, *default: Any) -> dict[str, Any]:
        found = self.value(name, *default)
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise InvalidInput(f"{self.path}.{name} must be an object; {REMEDY}")
        return found

    def list(self, name: str, *default: Any) -> list[Any]:
        found = self.value(name, *default)
        if not isinstance(found, list):
            raise InvalidInput(f"{self.path}.{name} must be a list; {REMEDY}")
        return found

    def integers(self, name: str) -> tuple[int, ...]:
        return tuple(self.whole(name, each) for each in self.list(name))

    def ids(self, name: str) -> tuple[str, ...]:
        return tuple(self.id(name, each) for each in self.list(name))

    def id(self, name: str, value: Any) -> str:
        if not is_line(value, 16) or not value:
            raise InvalidInput(
                f"{self.path}.{name}: an id must be up to 16 characters, got {str(value)[:40]!r}; {REMEDY}"
            )
        return str(value)

    def texts(self, name: str, *default: Any) -> dict[str, str]:
        found = self.object(name, *default)
        if not all(is_line(text, 200) for text in found.values()):
            raise InvalidInput(f"{self.path}.{name} must be an object of strings; {REMEDY}")
        return found

    def verdict(self) -> Verdict:
        found = {**self.object("verdict"), "lacking": self._values.get("lacking")}
        try:
            verdict = Verdict.from_dict(found)
            whole = (verdict.arm, verdict.samples, verdict.stopped_at or 0, *(verdict.candidates or ()))
            numbers = (verdict.statistic, verdict.threshold, *(verdict.lacking or ()))
            words = (verdict.consistent, verdict.proved, verdict.doubted)
            right = [
                all(type(number) is int and 0 <= number < LARGE for number in whole),
                all(type(number) in (int, float) and not math.isnan(number) for number in numbers),
                all(type(word) is bool for word in words),
            ]
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            right = [False]
        if not all(right):
            raise InvalidInput(f"{self.path}.verdict is no verdict; {REMEDY}")
        return verdict


@dataclass(frozen=True)
class StudyCreated(Event):
    """The study was created."""

    kind = "created"
    defines = True

    study: dict[str, Any]
    """The definition, in its JSON form."""
    versions: dict[str, str]
    """Versions of the software that created the study."""

    @classmethod
    def from_body(cls, body: Body) -> StudyCreated:
        return cls(body.object("study"), body.texts("versions"))

    def define(self, definition: Definition | None, time: float) -> Definition:
        from spectralbai.journal.definition import Definition  # it loads numpy, which a client can do without

        return Definition.from_dict(self.study)

    def apply(self, fold: Fold) -> None:
        fold.begin()


@dataclass(frozen=True)
class BlockOpened(Event):
    """A block was opened; if it was open already, its pulls were replaced, because counts came instead of them."""

    kind = "opened"

    number: int
    results: int
    """Number of results before it."""
    arms: tuple[int, ...]
    """The arm of each slot."""

    @classmethod
    def from_body(cls, body: Body) -> BlockOpened:
        return cls(body.integer("number"), body.integer("results"), body.integers("arms"))

    def apply(self, fold: Fold) -> None:
        fold.feed(self.results)
        fold.open(self.number, self.arms)

    def enter(self, recorder: Recorder, time: float) -> None:
        recorder.open(self, time)


class Slot(NamedTuple):
    """A ticket, and the slot that it stands for."""

    id: str
    arm: int
    block: int


@dataclass(frozen=True)
class TicketsGiven(Event):
    """Tickets were handed out."""

    kind = "asked"

    worker: str
    expires: float
    tickets: tuple[Slot, ...]

    def body(self) -> dict[str, Any]:
        return {"worker": self.worker, "expires": self.expires, "tickets": [list(slot) for slot in self.tickets]}

    @classmethod
    def from_body(cls, body: Body) -> TicketsGiven:
        slots = []
        for cells in body.list("tickets"):
            if not isinstance(cells, list) or len(cells) != 3:
                raise InvalidInput(f"{body.path}.tickets must hold an id, an arm and a block each; {REMEDY}")
            id_, arm, block = cells
            slots.append(Slot(body.id("tickets", id_), body.whole("tickets", arm), body.whole("tickets", block)))
        return cls(body.words("worker", 100, blank=True), body.number("expires"), tuple(slots))

    def apply(self, fold: Fold) -> None:
        fold.hand_out(self.tickets)

    def enter(self, recorder: Recorder, time: float) -> None:
        for slot in self.tickets:
            recorder.hand_out(slot, self.worker, time, self.expires)


class Told(NamedTuple):
    """A result as it was told."""

    arm: int
    outcome: float
    """In the user's units and sign."""
    block: int | None
    """Number of its block; None for results that only inform."""
    ticket: str | None


@dataclass(frozen=True)
class ResultsTold(Event):
    """Results were told: of tickets, or of an origin, which are past results or counts."""

    kind = "told"

    results: tuple[Told, ...]
    origin: str | None = None
    """Where results without tickets come from."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why trials failed, by ticket."""
    returned: tuple[str, ...] = ()
    """Tickets of failed trials that are to be handed out again."""

    def body(self) -> dict[str, Any]:
        rows = [list(each) for each in self.results]  # there may be a million
        return {"results": rows, "origin": self.origin, "failed": self.failed, "returned": list(self.returned)}

    @classmethod
    def from_body(cls, body: Body) -> ResultsTold:
        rows = []
        for cells in body.list("results"):
            if not isinstance(cells, list) or len(cells) != 4:
                raise InvalidInput(f"{body.path}.results must hold arm, outcome, block and ticket each; {REMEDY}")
            arm, outcome, block, ticket = cells
            if block is not None:
                body.whole("results", block)
            if ticket is not None:
                body.id("results", ticket)
            rows.append(Told(body.whole("results", arm), outcome, block, ticket))
        origin = body.value("origin")
        if origin is not None:
            origin = body.words("origin", 200)
        if any((each.ticket is None) == (origin is None) for each in rows):
            raise InvalidInput(f"{body.path}.results must have tickets, or an origin; {REMEDY}")
        return cls(tuple(rows), origin, body.texts("failed"), body.ids("returned"))

    def apply(self, fold: Fold) -> None:
        fold.tell(self)

    def enter(self, recorder: Recorder, time: float) -> None:
        for each in self.results:
            recorder.tell(each, self.origin, time)
        for id_, reason in self.failed.items():
            recorder.change(id_, failed=reason)
        recorder.give_back(self.returned, time)


@dataclass(frozen=True)
class TicketsReturned(Event):
    """Tickets were given back: their trials will not be done."""

    kind = "returned"

    tickets: tuple[str, ...]

    @classmethod
    def from_body(cls, body: Body) -> TicketsReturned:
        return cls(body.ids("tickets"))

    def apply(self, fold: Fold) -> None:
        fold.check_tickets(self.tickets)

    def enter(self, recorder: Recorder, time: float) -> None:
        recorder.give_back(self.tickets, time)


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
        own = {each.name: plain(getattr(self, each.name)) for each in fields(self) if each.name != "verdict"}
        verdict = self.verdict.as_dict()
        return {**own, "lacking": verdict.pop("lacking"), "verdict": verdict}

    @classmethod
    def read(cls, body: Body) -> dict[str, Any]:
        """Returns the values of the fields that all events of this sort have."""
        return {"results": body.integer("results"), "rule": body.words("rule", 100), "verdict": body.verdict()}


@dataclass(frozen=True)
class BlockClosed(RulesRead):
    """A block had all its results, and the rules were read."""

    kind = "closed"

    block: int

    @classmethod
    def from_body(cls, body: Body) -> BlockClosed:
        return cls(block=body.integer("block"), **cls.read(body))

    def apply(self, fold: Fold) -> None:
        fold.feed(self.results)
        fold.close(self)


@dataclass(frozen=True)
class OptionWithdrawn(RulesRead):
    """An option was taken out."""

    kind = "withdrawn"

    arm: int
    returned: tuple[str, ...] = ()
    """Tickets that are void since."""

    @classmethod
    def from_body(cls, body: Body) -> OptionWithdrawn:
        return cls(arm=body.integer("arm"), returned=body.ids("returned"), **cls.read(body))

    def apply(self, fold: Fold) -> None:
        fold.feed(self.results)
        fold.withdraw(self)

    def enter(self, recorder: Recorder, time: float) -> None:
        recorder.give_back(self.returned, time)


@dataclass(frozen=True)
class OptionsJoined(RulesRead):
    """Options joined."""

    kind = "joined"
    bulk = ("lacking", "instance")
    defines = True

    instance: dict[str, Any]
    """All options from then on, in its JSON form."""
    blocks: tuple[int, ...]
    """Numbers of the blocks that stayed open; no trial of the others was handed out."""
    returned: tuple[str, ...] = ()
    """Tickets that are void since."""

    @classmethod
    def from_body(cls, body: Body) -> OptionsJoined:
        instance, blocks, returned = body.object("instance", {}), body.integers("blocks"), body.ids("returned")
        return cls(instance=instance, blocks=blocks, returned=returned, **cls.read(body))

    def define(self, definition: Definition | None, time: float) -> Definition:
        from spectralbai.instance import Instance

        return _created(definition).joined(Instance.from_dict(self.instance))

    def apply(self, fold: Fold) -> None:
        fold.feed(self.results)
        fold.join(self)

    def enter(self, recorder: Recorder, time: float) -> None:
        recorder.give_back(self.returned, time)


@dataclass(frozen=True)
class StudyStopped(Event):
    """The study was stopped by hand."""

    kind = "stopped"
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
        TicketsReturned,
        BlockClosed,
        OptionWithdrawn,
        OptionsJoined,
        StudyStopped,
    )
}
"""The kinds of events by name."""


def _created(definition: Definition | None) -> Definition:
    if definition is None:
        raise InvalidInput(f'the first event must be "created"; {REMEDY}')
    return definition


def read_entry(place: int, d: Any) -> Entry:
    """Returns the entry that `Entry.as_dict` wrote, checked; `place` says where it stands in the list of events."""
    body = Body(place, d)
    if not isinstance(d, dict):
        raise InvalidInput(f"{body.path} must be an object; {REMEDY}")
    kind = body.value("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(f"{body.path}.kind must be one of {', '.join(KINDS)}, got {str(kind)[:40]!r}")
    return Entry(body.integer("revision"), body.number("time"), KINDS[kind].from_body(body))


def read_log(events: Sequence[Any]) -> list[Entry]:
    """Returns the log whose entries `Entry.as_dict` wrote, with every event checked for itself."""
    log = [read_entry(place, event) for place, event in enumerate(events)]
    for place, entry in enumerate(log):
        if entry.revision != place + 1:
            raise InvalidInput(f"$.events[{place}].revision must be {place + 1}, got {entry.revision}; {REMEDY}")
    return log


def defined_by(log: Iterable[Entry]) -> Definition:
    """Returns the definition of the study whose log this is; events that do not change it may be left out."""
    definition: Definition | None = None
    for entry in log:
        definition = entry.event.define(definition, entry.time)
    if definition is None:
        raise InvalidInput(f'the log of a study must begin with the event "created"; {REMEDY}')
    return definition
