"""What a study hands out: tickets, results, checks, and summaries of itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.study.definition import Goal


MOST_NAMED = 10
"""Options that are named in a sentence."""


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
    block: int | None = None
    """Number of the block that it is a slot of; None where pulls do not come in blocks."""

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
    """What is told instead of an outcome where a trial failed."""

    reason: str


@dataclass(frozen=True)
class Check:
    """What the stopping rule saw at one time."""

    samples: int
    arm: int
    statistic: float | None
    """None if no challenger can win."""
    threshold: float | None
    """None before the rule has one."""
    candidates: tuple[int, ...] | None = None
    """The arms that could still be best; None for rules that keep no such set."""
    lacking: tuple[float, ...] | None = None
    """What the account against each arm lacked to eliminate it, in nats, 0 once it did; None with the candidates."""


@dataclass(frozen=True)
class Opening:
    """A block of pulls, as opened."""

    number: int
    results: int
    """Results that the state held when the block was there."""
    opened: float
    arms: tuple[int, ...]
    """The arm of each slot."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A study at one instant."""

    time: float
    state: State
    unweighed: int
    """Results told that wait for a worker to bring the state up to date."""
    pending: tuple[Ticket, ...]
    checks: tuple[Check, ...]
    failures: tuple[int, ...]
    """Failed trials of each arm."""
    joins: tuple[Join, ...]


@dataclass(frozen=True)
class Observation:
    """A result, as told."""

    arm: int
    outcome: float
    told: float
    ticket: str | None
    origin: str | None
    """Where a result without a ticket comes from."""
    block: int | None = None
    """Number of the block that it is of, where it has no ticket but counts that make up blocks."""


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


@dataclass(frozen=True)
class Told:
    """Results in their order, as a policy is told them: one entry of each list per result."""

    arms: list[int]
    outcomes: list[float]
    blocks: list[int]
    """Number of the block that the pull was of; -1 for results without one."""


@dataclass(frozen=True)
class TicketRecord:
    """A ticket, as given."""

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
    """An arm that was withdrawn."""

    arm: int
    results: int
    """Results that the state held then."""
    opened: int
    """Blocks that the state had opened then."""
    withdrawn: float


@dataclass(frozen=True)
class Join:
    """Arms that joined."""

    results: int
    """Results that the state held then."""
    opened: int
    """Blocks that the state had opened then."""
    withdrawn: int
    """Arms withdrawn before."""
    joined: float
    blocks: tuple[int, ...]
    """Numbers of the blocks that stayed open; of the others nobody had a trial."""
    before: dict[str, Any]
    """The instance before, in its JSON form."""


@dataclass(frozen=True)
class Records:
    """Everything ever told, in its order, asked, opened, withdrawn and joined."""

    observations: tuple[Observation, ...]
    tickets: tuple[TicketRecord, ...]
    openings: tuple[Opening, ...]
    withdrawals: tuple[Withdrawal, ...] = ()
    joins: tuple[Join, ...] = ()


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
    """At the last check: "running", "decided", "inconsistent"; or "doubted": decided, but later results contradict
    R."""
    best: str | None
    """Label of the arm recommended then, if any."""


def in_words(count: int, what: str) -> str:
    """Returns a count of things: "1 result", "1,200 results"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def finite(value: float) -> float | None:
    """Returns a number, or None for one that JSON and tables cannot hold."""
    return float(value) + 0.0 if math.isfinite(value) else None  # never -0.0


def as_time(seconds: float) -> str:
    """Returns a time as text, in UTC."""
    return datetime.fromtimestamp(min(seconds, 253402300799.0), UTC).isoformat(timespec="seconds")
