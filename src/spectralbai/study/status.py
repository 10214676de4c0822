"""Where a study stands: decision, evidence, estimates with intervals, forecast, tickets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralbai.study.records import Snapshot, Ticket, as_time, finite

if TYPE_CHECKING:
    from spectralbai.study.study import Study


@dataclass(frozen=True)
class ArmStatus:
    """One arm of a study. Numbers are None where nothing is known."""

    label: str
    results: int
    pending: int
    estimate: float | None
    """Of the mean outcome: the smooth means closest to all results."""
    low: float | None
    high: float | None
    """The intervals of all arms hold at all times at once with probability 1 - delta: the event that the stopping rule rests on."""
    omega: float
    """Its share in the optimal allocation of the estimate, at the last check."""


@dataclass(frozen=True)
class Status:
    """A study at one instant."""

    name: str
    time: str
    state: Literal["running", "decided", "inconsistent"]
    """"inconsistent": the data contradict R, at risk delta; nothing is decided then."""
    goal: str
    delta: float
    R: float | None
    """None if infinite."""
    tolerance: float
    stopping: str
    proved: bool
    """Whether the risk of the stopping rule is proved."""
    best: str
    """Label of the arm recommended: the answer if decided, a guess if not."""
    results: int
    unweighed: int
    """Results told that the last check has not seen because a worker is still computing."""
    stopped_at: int | None
    """Results when the decision fell, or when the data contradicted R."""
    statistic: float | None
    """Evidence against the challenger least beaten, at the last check; None if no challenger can win."""
    threshold: float | None
    """What the statistic must exceed; None before the rule has one."""
    consistent: bool
    """Whether the data agree with R so far."""
    remaining: float | None
    """Forecast of the trials to come, at the present estimate; None if too early or if arms look tied."""
    arms: tuple[ArmStatus, ...]
    pending: tuple[Ticket, ...]

    @property
    def answer(self) -> str:
        """What the study says, in a sentence or two."""
        extreme = "largest" if self.goal == "max" else "least"
        if self.state == "inconsistent":
            return (
                f"The data contradict R = {self.R:g}, as they would with probability at most {self.delta:g} if it were right, "
                f"after {self.stopped_at:,} results. Nothing is decided: the means are rougher than promised. "
                "Start anew with a larger R; or with R = inf, and then these results may be imported."
            )
        within = f", or is within {self.tolerance:g} of it" if self.tolerance else ""
        if self.state == "decided":
            risk = (
                f"The probability that this is wrong is at most {self.delta:g}."
                if self.proved
                else f"The rule aims at a risk of {self.delta:g}, which is not proved for it."
            )
            return f'Decided after {self.stopped_at:,} results: "{self.best}" has the {extreme} mean outcome{within}. {risk}'
        if not self.results:
            return "Nothing is told yet."
        rest = "" if self.remaining is None else f" At the present estimate about {self.remaining:,.0f} more trials are needed."
        return f'Not decided after {self.results:,} results. "{self.best}" is ahead.{rest}'

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {
            "answer": self.answer,
            **asdict(self),
            "arms": [asdict(arm) for arm in self.arms],
            "pending": [ticket.as_dict() for ticket in self.pending],
        }


def status_of(study: Study, at: Snapshot) -> Status:
    """Returns the status of a study at an instant."""
    definition, state = study.definition, at.state
    policy, labels = definition.policy, definition.instance.labels
    verdict = policy.verdict(state)
    seen = policy.estimates(state)
    sign = definition.sign
    low, high = (seen.low, seen.high) if sign > 0 else (-seen.high, -seen.low)
    out = np.bincount([ticket.arm for ticket in at.pending], minlength=len(labels))
    arms = tuple(
        ArmStatus(
            label,
            int(state.counts[arm]),
            int(out[arm]),
            finite(sign * seen.mean[arm]),
            finite(low[arm]),
            finite(high[arm]),
            float(state.omega[arm]),
        )
        for arm, label in enumerate(labels)
    )
    return Status(
        name=study.name,
        time=as_time(at.time),
        state=verdict.progress,
        goal=definition.goal,
        delta=definition.delta,
        R=finite(definition.instance.problem.R),
        tolerance=definition.instance.problem.tolerance,
        stopping=definition.stopping,
        proved=verdict.proved,
        best=labels[verdict.arm],
        results=state.samples + at.unweighed,
        unweighed=at.unweighed,
        stopped_at=verdict.stopped_at,
        statistic=finite(verdict.statistic),
        threshold=finite(verdict.threshold),
        consistent=verdict.consistent,
        remaining=finite(policy.remaining(state)),
        arms=arms,
        pending=at.pending,
    )
