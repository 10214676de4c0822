"""The entries of a study's records: tickets, results, checks, and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spectralbai.text.wording import as_time

if TYPE_CHECKING:
    from spectralbai.journal.definition import Definition, Goal
    from spectralbai.policy import State


@dataclass(frozen=True)
class Ticket:
    """A trial to do: pull the arm, and tell the outcome under this id.

    Examples:
        >>> import spectralbai as sb
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("tickets", sb.Instance(problem, labels=["old", "new"]))
        >>> ticket = study.ask()[0]
        >>> ticket.label in ("old", "new"), len(ticket.id), ticket.as_dict()["worker"]
        (True, 16, '')
        >>> study.close()
    """

    id: str
    arm: int
    label: str
    worker: str
    issued: float
    expires: float
    """When it stops counting as pending, in seconds since 1970; its result is accepted even later."""
    block: int | None = None
    """Number of its block; None if pulls do not come in blocks."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the ticket, JSON-ready, with times as text."""
        return {
            "ticket": self.id,
            "arm": self.arm,
            "label": self.label,
            "block": self.block,
            "worker": self.worker,
            "issued": as_time(self.issued),
            "expires": as_time(self.expires),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Ticket:
        """Returns the ticket that `as_dict` wrote; its times are whole seconds."""
        issued, expires = (datetime.fromisoformat(d[name]).timestamp() for name in ("issued", "expires"))
        return cls(d["ticket"], d["arm"], d["label"], d["worker"], issued, expires, d["block"])


@dataclass(frozen=True)
class Failure:
    """Told instead of an outcome if a trial failed.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("failures", sb.Instance(problem, labels=["old", "new"]))
        >>> ticket = study.ask()[0]
        >>> study.tell(ticket, sb.study.Failure("the power went out"))
        True
        >>> sum(arm.failures for arm in study.status().arms)
        1
        >>> study.close()
    """

    reason: str


@dataclass(frozen=True)
class Check:
    """What the stopping rule said at one reading."""

    samples: int
    arm: int
    statistic: float | None
    """None if no challenger can win."""
    threshold: float | None
    """None before the rule has one."""
    candidates: tuple[int, ...] | None = None
    """The candidates; None for rules that do not eliminate arms."""
    lacking: tuple[float, ...] | None = None
    """What the account against each arm lacked, in nats; 0 for eliminated arms. None if `candidates` is."""


@dataclass(frozen=True)
class Opening:
    """The record of the opening of a block."""

    number: int
    results: int
    """Number of results in the state when the block was opened."""
    opened: float
    arms: tuple[int, ...]
    """The arm of each slot."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study at one instant: everything that a status needs, and a report if its checks have their accounts."""

    name: str
    created: float
    definition: Definition
    """The definition at that time; see `Definition.of`."""
    time: float
    state: State
    unprocessed: int
    """Number of results told that are not yet processed: a worker must update the stored state first."""
    pending: tuple[Ticket, ...]
    checks: tuple[Check, ...]
    failures: tuple[int, ...]
    """Number of failed trials of each arm."""
    joins: tuple[Join, ...]


@dataclass(frozen=True)
class Observation:
    """The record of a result."""

    arm: int
    outcome: float
    told: float
    ticket: str | None
    origin: str | None
    """Where a result without a ticket comes from."""
    block: int | None = None
    """Number of its block, if it came from counts without tickets that were cut into blocks."""


@dataclass(frozen=True)
class Result:
    """A result, for people."""

    number: int
    """1, 2, ... in the order told."""
    label: str
    outcome: float
    told: float
    """In seconds since 1970."""
    ticket: str | None
    worker: str | None
    origin: str | None
    """Where a result without a ticket comes from."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the result, JSON-ready, with the time as text."""
        return {**vars(self), "told": as_time(self.told)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Result:
        """Returns the result that `as_dict` wrote; its time is in whole seconds."""
        values = {field.name: d[field.name] for field in fields(cls)}
        return cls(**{**values, "told": datetime.fromisoformat(d["told"]).timestamp()})


@dataclass(frozen=True)
class Told:
    """Results in the order told: each list has one entry per result."""

    arms: list[int]
    outcomes: list[float]
    blocks: list[int]
    """Number of the block of the pull; -1 for results without a block."""


@dataclass(frozen=True)
class TicketRecord:
    """The record of a ticket."""

    id: str
    arm: int
    worker: str
    issued: float
    expires: float
    abandoned: float | None
    block: int | None = None
    failed: str | None = None
    """Why its trial failed, if it did."""


@dataclass(frozen=True)
class Withdrawal:
    """The record of a withdrawal."""

    arm: int
    results: int
    """Number of results at that time."""
    opened: int
    """Number of blocks opened before."""
    withdrawn: float


@dataclass(frozen=True)
class Join:
    """The record of a time that arms joined."""

    results: int
    """Number of results at that time."""
    opened: int
    """Number of blocks opened before."""
    withdrawn: int
    """Number of arms withdrawn before."""
    joined: float
    blocks: tuple[int, ...]
    """Numbers of the blocks that stayed open; no trial of the other blocks was handed out."""
    before: dict[str, Any]
    """The instance before the join, in its JSON form."""


@dataclass(frozen=True)
class Records:
    """All records of a study: results in the order told, tickets, blocks, withdrawals and joins."""

    observations: tuple[Observation, ...]
    tickets: tuple[TicketRecord, ...]
    openings: tuple[Opening, ...]
    withdrawals: tuple[Withdrawal, ...] = ()
    joins: tuple[Join, ...] = ()


@dataclass(frozen=True, eq=False)
class Exported:
    """Everything about a study but its state, which follows from the records."""

    name: str
    created: float
    versions: dict[str, str]
    definition: Definition
    records: Records


@dataclass(frozen=True)
class Summary:
    """A study in one line of a list.

    Examples:
        >>> import spectralbai as sb
        >>> import spectralbai.study
        >>> problem = sb.Problem(sb.Graph.from_edges(2, [(0, 1)]), R=1.0, sigma=0.1)
        >>> study = sb.Study.create("summary", sb.Instance(problem, labels=["old", "new"]))
        >>> study.close()
        >>> [(each.name, each.state, each.results) for each in sb.study.list_studies()]
        [('summary', 'running', 0)]
    """

    name: str
    created: str
    n_arms: int
    goal: Goal
    delta: float
    results: int
    state: str
    """"running", "decided" or "inconsistent" at the last check; "doubted" if it is decided but later results contradict
    R; "ended" if a limit was reached before."""
    best: str | None
    """Label of the arm recommended at the last check, if any."""
