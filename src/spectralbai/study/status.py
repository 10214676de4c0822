"""Where a study stands: decision, evidence, estimates with intervals, forecast, tickets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralbai.study.records import Snapshot, Ticket, as_time, finite, in_words

if TYPE_CHECKING:
    from spectralbai.study.study import Study


@dataclass(frozen=True)
class ArmStatus:
    """One arm of a study. Numbers are None where nothing is known."""

    label: str
    results: int
    share: float
    """Of all results."""
    pending: int
    estimate: float | None
    """Of the mean outcome: the smooth means closest to all results."""
    low: float | None
    high: float | None
    """The intervals of all arms hold at all times at once with probability 1 - delta; see `policy.Estimates`."""
    omega: float | None
    """Its share in the pulls to come, as planned when rules were last read; null before."""


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
    """None where the graph is not used: R infinite, or no edges."""
    tolerance: float
    stopping: str
    proved: bool
    """Whether the risk of the stopping rule is proved."""
    best: str | None
    """Label of the arm recommended: the answer if decided, what it would be now if not; None before there is an
    estimate, and
    where the data contradict R."""
    results: int
    unweighed: int
    """Results told that the last check has not seen because a worker is still computing."""
    stopped_at: int | None
    """Results when the decision fell, or when the data contradicted R."""
    statistic: float | None
    """Evidence against the challenger least beaten, at the last check; None if no challenger can win."""
    threshold: float | None
    """What the statistic must exceed; None before the rule has one."""
    consistent: bool | None
    """Whether the data agree with R so far, also those told since a decision; None where the rule does not test it,
    or not yet."""
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
                f"The data contradict R = {self.R:g}, as they would with probability at most {self.delta:g} if it "
                "were right, "
                f"after {in_words(self.stopped_at or 0, 'result')}. Nothing is decided: the means are rougher than "
                "promised. "
                "Start anew with a larger R; or with R = inf, and then these results may be imported."
            )
        within = f", or is within {self.tolerance:g} of it" if self.tolerance else ""
        if self.state == "decided":
            risk = (
                f"The probability that this is wrong is at most {self.delta:g}."
                if self.proved
                else f"The rule aims at a risk of {self.delta:g}, which is not proved for it."
            )
            doubt = (
                ""
                if self.consistent is not False
                else f" But results told since contradict R = {self.R:g}, without which no risk holds."
            )
            after = in_words(self.stopped_at or 0, "result")
            return f'Decided after {after}: "{self.best}" has the {extreme} mean outcome{within}. {risk}{doubt}'
        if not self.results:
            return "Nothing is told yet."
        after = f"Not decided after {in_words(self.results, 'result')}"
        if self.best is None:
            return f"{after}: " + (
                "they are being weighed." if self.unweighed else "every part of the graph needs one first."
            )
        rest = (
            ""
            if self.remaining is None
            else f" About {in_words(round(self.remaining), 'trial')} more at the present estimate."
        )
        return f'{after}. The answer would be "{self.best}" now.{rest}'

    @property
    def evidence(self) -> str:
        """Statistic and threshold, in words."""
        if self.statistic is None:
            return "no arm can be better by more than the tolerance"
        needed = "what is needed is not set yet" if self.threshold is None else f"needed {self.threshold:.4g}"
        return f"{self.statistic:.4g}, {needed}"

    @property
    def agreement(self) -> str:
        """Whether the data agree with R, in words."""
        if self.consistent is None:
            return (
                "not tested without a graph"
                if self.R is None
                else "not tested " + ("yet" if self.stopping == "mixture" else "by this rule")
            )
        return "yes, so far" if self.consistent else "no: they contradict it"

    @property
    def precise(self) -> Callable[[float | None], str]:
        """How to write estimates and intervals so that their differences can be seen."""
        estimates = [arm.estimate for arm in self.arms if arm.estimate is not None]
        largest = max(map(abs, estimates), default=0.0)
        differences = [arm.high - arm.low for arm in self.arms if arm.low is not None and arm.high is not None]
        differences.append(max(estimates, default=0.0) - min(estimates, default=0.0))
        least = min((each for each in differences if each > 0), default=0.0)
        digits = 4
        if largest > 0 and least > 0:
            digits = min(max(4, math.floor(math.log10(largest)) - math.floor(math.log10(least)) + 3), 17)
        return lambda value: "-" if value is None else f"{value:.{digits}g}"

    def as_dict(self) -> dict[str, Any]:
        """Returns everything, JSON-ready."""
        return {
            "answer": self.answer,
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "arms": [asdict(arm) for arm in self.arms],
            "pending": [ticket.as_dict() for ticket in self.pending],
        }


def status_of(study: Study, at: Snapshot) -> Status:
    """Returns the status of a study at an instant."""
    definition, state = study.definition, at.state
    policy, labels = definition.policy, definition.instance.labels
    verdict = policy.verdict(state)
    seen, shares = policy.estimates(state), policy.shares(state)
    sign = definition.sign
    low, high = (seen.low, seen.high) if sign > 0 else (-seen.high, -seen.low)
    consistent = None if seen.consistent is None else verdict.consistent and not at.doubted
    if consistent is False:
        low, high = low - np.inf, high + np.inf  # nothing is claimed
    out = np.bincount([ticket.arm for ticket in at.pending], minlength=len(labels))
    arms = tuple(
        ArmStatus(
            label,
            int(state.counts[arm]),
            float(state.counts[arm]) / max(state.samples, 1),
            int(out[arm]),
            finite(sign * seen.mean[arm]),
            finite(low[arm]),
            finite(high[arm]),
            None if shares is None else float(shares[arm]),
        )
        for arm, label in enumerate(labels)
    )
    return Status(
        name=study.name,
        time=as_time(at.time),
        state=verdict.progress,
        goal=definition.goal,
        delta=definition.delta,
        R=None if definition.instance.problem.unstructured else definition.instance.problem.R,
        tolerance=definition.instance.problem.tolerance,
        stopping=definition.stopping,
        proved=verdict.proved,
        best=None if np.isnan(seen.mean).any() or not verdict.consistent else labels[verdict.arm],
        results=state.samples + at.unweighed,
        unweighed=at.unweighed,
        stopped_at=verdict.stopped_at,
        statistic=finite(verdict.statistic),
        threshold=finite(verdict.threshold),
        consistent=consistent,
        remaining=finite(policy.remaining(state)),
        arms=arms,
        pending=at.pending,
    )
