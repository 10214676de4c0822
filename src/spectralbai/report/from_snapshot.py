"""The status of a study, made from a snapshot of it and what its policy says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Snapshot
from spectralbai.problem import Problem
from spectralbai.report.by_category import categories_in
from spectralbai.report.by_items import items_of
from spectralbai.report.comparison import Comparison, Mean
from spectralbai.report.data_checks import checked
from spectralbai.report.statement import Statement, Statements
from spectralbai.report.status import ArmStatus, Status
from spectralbai.text.wording import as_time, finite
from spectralbai.verdict import Verdict

if TYPE_CHECKING:
    from spectralbai.policy import Differences


def status_of(at: Snapshot, control: int | None = None, said: Statement | None = None) -> Status:
    """Returns the status of a study at an instant; its arms are compared with the arm `control`, if given.

    `said` is what the policy says of the state; what is missing there is missing in the status. It is computed if it is
    not given.
    """
    state, definition = at.state, at.definition.of(at.state)
    labels, problem = definition.instance.labels, definition.instance.problem
    if said is None:
        said = Statements().read(at)
    verdict, seen = said.verdict, said.estimates
    holds = verdict.consistent and not verdict.doubted
    consistent = None if holds and (seen is None or seen.consistent is None) else holds
    claimed = consistent is not False
    results = state.samples + at.unprocessed
    ended = verdict.state == "running" and (definition.over(results - at.known, at.time) or state.used_up)
    own = None if definition.control is None else definition.check_arm(definition.control)
    control = own if control is None else control
    arms = _arms(at, definition, said, claimed)
    end = definition.until if definition.stopped is None else definition.stopped
    if control is not None:
        arms = _compared(at, definition, arms, control, claimed)
    return Status(
        name=at.name,
        time=as_time(at.time),
        state="ended" if ended else verdict.state,
        goal=definition.goal,
        delta=definition.delta,
        R=_shown_R(problem),
        tolerance=problem.tolerance,
        best=labels[verdict.arm] if at.verdicts and verdict.consistent else None,
        results=results - state.void,
        void=state.void,
        corrected=tuple(event.ticket or event.origin or "" for event in at.corrections),
        lapsed=at.lapsed,
        checks=tuple(checked(at.name, labels, at.days)),
        budget=definition.budget,
        until=None if end is None else as_time(end),
        by_hand=definition.stopped is not None,
        room=_room(definition, results - at.known, at.created, at.time),
        unprocessed=at.unprocessed,
        sealed=sum(block.arms.size - block.free.size for block in state.blocks[1:]),
        verdict=replace(verdict, lacking=None),
        consistent=consistent,
        drifting=seen is not None and seen.drifting,
        remaining=None if said.remaining is None else finite(said.remaining),
        items=items_of(problem, state, labels, at.known),
        computing=said.remaining is None,
        rates=problem.noise.outcome_range == (0.0, 1.0) and arms[0].hits is not None,
        control=None if control is None else labels[control],
        controlled=control is not None and control == own,
        arms=tuple(arms),
        pending=at.pending,
    )


def _arms(at: Snapshot, definition: Definition, said: Statement, claimed: bool) -> list[ArmStatus]:
    """Returns the arms, compared with none; unless anything is `claimed`, without intervals and eliminations."""
    state, labels, sign = at.state, definition.instance.labels, definition.sign
    verdict, seen, omega = said.verdict, said.estimates, said.omega
    mean = low = high = np.full(len(labels), np.nan)
    if seen is not None:
        mean, low, high = (seen.mean, seen.low, seen.high) if sign > 0 else (-seen.mean, -seen.high, -seen.low)
    joined_at = _joined(state.joined, at.joins, len(labels))
    lacking, out_at = verdict.lacking, _eliminated(at.verdicts, joined_at)
    still = {*state.withdrawn, *(verdict.candidates or ())}  # eliminated arms may be back after a withdrawal
    out_at = [None if arm in still else when for arm, when in enumerate(out_at)]
    if not claimed:
        low, high = low - np.inf, high + np.inf
        lacking, out_at = None, [None] * len(labels)
    out = np.bincount([ticket.arm for ticket in at.pending], minlength=len(labels))
    counts, means = state.received.counts, sign * (state.received.means + state.origin)
    shares = definition.instance.problem.noise.shares(means)
    graph = categories_in(definition)
    behind = None
    if definition.has_items and claimed and seen is not None and at.verdicts:
        behind = _gaps(seen.differences)
    return [
        ArmStatus(
            label=label,
            results=int(counts[arm]),
            share=float(counts[arm]) / max(state.samples - state.void, 1),
            pending=int(out[arm]),
            mean=finite(means[arm]) if counts[arm] else None,
            hits=None if shares is None else round(shares[arm] * counts[arm]),
            estimate=finite(mean[arm]),
            low=finite(low[arm]),
            high=finite(high[arm]),
            omega=None if omega is None else float(omega[arm]),
            out_at=out_at[arm],
            lacking=None if lacking is None or arm == verdict.arm else lacking[arm],
            failures=at.failures.get(arm, 0),
            joined_at=joined_at[arm],
            withdrawn=arm in state.withdrawn,
            against=None,
            behind=None if behind is None or arm == verdict.arm else behind[arm],
            category=None if graph is None else graph.categories[graph.of_arm[arm]],
        )
        for arm, label in enumerate(labels)
    ]


def _compared(
    at: Snapshot, definition: Definition, arms: list[ArmStatus], control: int, claimed: bool
) -> list[ArmStatus]:
    """Returns the arms, compared with the control: by the items that both were tried on, where trials have items."""
    base = arms[control].known
    comparisons = [Comparison.of(arm.known, base) for arm in arms]
    own = definition.control == definition.instance.labels[control]
    if (definition.has_items or own) and claimed and arms[control].estimate is not None:
        found = definition.policy.estimates(at.state, reference=control).differences
        flip = definition.sign < 0  # the policy is told outcomes with their signs changed
        gaps = [gap if flip else _mirrored(gap) for gap in _gaps(found)]
        if own and found.base is not None:
            least, most = found.base if not flip else (-found.base[1], -found.base[0])
            base = base[0], least, most
            comparisons = [Comparison.by(gap, base) for gap in gaps]
        else:
            comparisons = [
                replace(each, difference=mean, difference_low=low, difference_high=high)
                for each, (mean, low, high) in zip(comparisons, gaps, strict=True)
            ]
    return [
        arm if place == control else replace(arm, against=comparison)
        for place, (arm, comparison) in enumerate(zip(arms, comparisons, strict=True))
    ]


def _gaps(differences: Differences) -> list[Mean]:
    """Returns by how much the reference is better than each arm, with the ends of an interval."""
    columns = differences.mean, differences.low, differences.high
    return [(finite(mean), finite(low), finite(high)) for mean, low, high in zip(*columns, strict=True)]


def _mirrored(gap: Mean) -> Mean:
    mean, low, high = (None if value is None else -value + 0.0 for value in gap)
    return mean, high, low


def _room(definition: Definition, trials: int, created: float, now: float) -> float | None:
    """Returns how many trials can still be done; None without a limit, or if the pace is not known yet."""
    left = [] if definition.budget is None else [float(max(definition.budget - trials, 0))]
    if definition.until is not None and now > created and trials:
        left.append(max(definition.until - now, 0.0) * trials / (now - created))
    return min(left, default=None)


def _shown_R(problem: Problem) -> float | tuple[float, ...] | None:
    if problem.unstructured:
        return None
    return tuple(problem.radii.tolist()) if problem.by_component else float(problem.radii[0])


def _joined(before: tuple[int, ...], joins: tuple[int, ...], n_arms: int) -> list[int | None]:
    """Returns the number of results when each arm joined; None for arms that were there from the beginning."""
    when: list[int | None] = [None] * n_arms
    for first, results in zip(before, joins, strict=True):
        when[first:] = [results] * (n_arms - first)
    return when


def _eliminated(verdicts: tuple[Verdict, ...], joined_at: list[int | None]) -> list[int | None]:
    """Returns the number of results when each arm was eliminated; None for arms that are not eliminated."""
    joined = np.array([-1 if when is None else when for when in joined_at])
    out_at = np.zeros(joined.size, dtype=np.intp)
    for verdict in verdicts:
        if verdict.candidates is not None:
            out = joined < verdict.samples  # later arms had not joined yet
            out[list(verdict.candidates)] = False
            # An arm that is not out now has 0: a withdrawal may have brought it back.
            out_at = np.where(out, np.where(out_at > 0, out_at, verdict.samples), 0)
    return [when or None for when in out_at.tolist()]
