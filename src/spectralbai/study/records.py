"""What a study hands out: tickets, results, checks, and summaries of itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.study.definition import Goal


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
    doubted: bool
    """Whether results told after the decision have contradicted R."""


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
