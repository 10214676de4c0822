"""What people see of a study: tickets, results, and summaries; and a study at one instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spectralbai.text.wording import as_time

if TYPE_CHECKING:
    from spectralbai.journal.definition import Definition, Goal
    from spectralbai.journal.events import CountsTold, ResultsVoided
    from spectralbai.policy import State
    from spectralbai.verdict import Verdict


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
    block: int
    """Number of its block."""
    item: str | None = None
    """The name of the item on which the arm is to be tried; None where trials have no items."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the ticket, JSON-ready, with times as text."""
        return {
            "ticket": self.id,
            "arm": self.arm,
            "label": self.label,
            "item": self.item,
            "block": self.block,
            "worker": self.worker,
            "issued": as_time(self.issued),
            "expires": as_time(self.expires),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Ticket:
        """Returns the ticket that `as_dict` wrote; its times are whole seconds."""
        issued, expires = (datetime.fromisoformat(d[name]).timestamp() for name in ("issued", "expires"))
        return cls(d["ticket"], d["arm"], d["label"], d["worker"], issued, expires, d["block"], d["item"])


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


Outcome = float | Failure | None
Outcomes = Iterable[tuple[Ticket | str, Outcome]]
"""Outcomes of tickets."""
CountRows = Mapping[str, tuple[int, int]] | Iterable[tuple[str, int, int]]
"""Trials and successes by label, or rows of a label, trials and successes."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study at one instant: everything that a status needs, and a report if its verdicts have their accounts."""

    name: str
    created: float
    definition: Definition
    """The definition at that time; see `Definition.of`."""
    time: float
    folded: int
    """Revision up to which the stored state is folded; the results told since lead on to `state`."""
    state: State
    known: int
    """Number of results that were known from elsewhere, without a trial."""
    unprocessed: int
    """Number of results told that are not yet processed: a worker must update the stored state first."""
    pending: tuple[Ticket, ...]
    verdicts: tuple[Verdict, ...]
    """What the stopping rule said each time that a block closed."""
    failures: Mapping[int, int]
    """Number of failed trials, by arm."""
    joins: tuple[int, ...]
    """Number of results each time that arms joined."""
    corrections: tuple[ResultsVoided, ...] = ()
    """The corrections of results."""
    days: tuple[CountsTold, ...] = ()
    """The counts told, such as those of days."""
    lapsed: int = 0
    """Number of tickets that ran out without a result."""


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
    item: str | None = None
    """The name of the item on which the option was tried; None where trials have no items."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the result, JSON-ready, with the time as text."""
        return {**vars(self), "told": as_time(self.told)}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Result:
        """Returns the result that `as_dict` wrote; its time is in whole seconds."""
        values = {field.name: d[field.name] for field in fields(cls)}
        return cls(**{**values, "told": datetime.fromisoformat(d["told"]).timestamp()})


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
    damage: str | None = None
    """What is wrong with its records, if somebody noticed; its state is "damaged" then."""
