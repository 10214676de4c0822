"""The state of a study, computed from what is recorded: blocks as they were opened, results in the order told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralbai.checks import Indices
from spectralbai.errors import InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Check, Join, Opening, Records, Told, Withdrawal
from spectralbai.text.wording import finite

if TYPE_CHECKING:
    from spectralbai.policy import State
    from spectralbai.policy.reader import Verdicts as Readings

STEP = 1000
"""Number of results replayed at once."""


def advance(definition: Definition, state: State, told: Told) -> tuple[State, list[Check]]:
    """Returns the state after more results, and a check for each time that the rule was read meanwhile."""
    definition = definition.of(state)
    policy = definition.policy
    blocks = np.array(told.blocks, dtype=np.intp) if policy.in_blocks else None
    new, readings = policy.advance(state, told.arms, definition.rewards(told.outcomes), blocks)
    return new, checks_of(readings)


def checks_of(readings: Iterable[Readings], before: Iterable[Check] = ()) -> list[Check]:
    """Returns the checks `before` and those of these readings; of several after one result only the last is kept."""
    new = (
        Check(own.samples, own.arm, finite(own.statistic), finite(own.threshold), own.candidates, own.lacking)
        for own, *_ in readings
    )
    return list({check.samples: check for check in (*before, *new)}.values())


def summary(definition: Definition, state: State) -> dict[str, Any]:
    """Returns what a list of studies shows about a state: its progress, and the arm recommended, if any."""
    policy = definition.of(state).policy
    verdict = policy.verdict(state)
    recommends = policy.has_estimate(state) and verdict.consistent
    return {"progress": "doubted" if verdict.doubted else verdict.state, "best": verdict.arm if recommends else None}


def replay(
    definition: Definition, records: Records, on_check: Callable[[int, int], object] | None = None
) -> tuple[State, list[Check]]:
    """Returns the state that follows from the blocks and results of a study, and the checks on the way.

    Every block is taken as it was recorded at its opening, so that it matches the tickets handed out. A computer that
    rounds differently might have planned other pulls.
    """
    if len(records.joins) != len(definition.history) - 1:
        raise InvalidInput("the times that arms joined are not all written down; the record is not complete")
    told, total = _told(records), len(records.observations)
    state = definition.history[0].policy.init()
    checks: list[Check] = []
    for event in (*_in_order(records), None):
        until = total if event is None else event.results
        while state.samples < until:
            part = slice(state.samples, min(until, state.samples + STEP))
            state, seen = advance(definition, state, Told(told.arms[part], told.outcomes[part], told.blocks[part]))
            checks += seen
            if on_check is not None:
                on_check(state.samples, total)
        if event is not None:
            state, readings = _after(definition, state, event)
            checks = checks_of(readings, checks) if readings else checks
    if state.opened != len(records.openings) or state.samples != total:
        raise InvalidInput(
            f"{state.opened} blocks follow from the results, and {len(records.openings)} are written down; the record "
            "is not complete"
        )
    return state, checks


def _told(records: Records) -> Told:
    """Returns all results; the block of a result is that of its ticket, if it has one."""
    block_of = {ticket.id: ticket.block for ticket in records.tickets}
    told = records.observations
    blocks = [each.block if each.ticket is None else block_of[each.ticket] for each in told]
    numbers = [-1 if block is None else block for block in blocks]
    return Told([each.arm for each in told], [each.outcome for each in told], numbers)


def _after(
    definition: Definition, state: State, event: Opening | Withdrawal | Join
) -> tuple[State, tuple[Readings, ...]]:
    """Returns the state after an event, and what was read then; raises InvalidInput if it cannot have happened then."""
    policy = definition.of(state).policy
    if isinstance(event, Join):
        if (state.samples, state.opened, len(state.withdrawn)) != (event.results, event.opened, event.withdrawn):
            raise InvalidInput(f"arms cannot have joined after {event.results} results")
        return definition.history[len(state.joined) + 1].policy.after_join(state, event.blocks)
    if isinstance(event, Withdrawal):
        if (state.samples, state.opened) != (event.results, event.opened):
            raise InvalidInput(f"arm {event.arm} cannot have been withdrawn after {event.results} results")
        return policy.after_withdrawal(state, event.arm)
    if state.opened <= event.number:
        state = policy.open(state)
    if state.samples != event.results:
        raise InvalidInput(f"block {event.number} cannot have been opened after {event.results} results")
    if max(event.arms) >= state.n_arms:
        raise InvalidInput(f"block {event.number} was opened before its arm {max(event.arms)} joined")
    return with_pulls(state, event.number, np.array(event.arms, dtype=np.intp)), ()


def _in_order(records: Records) -> list[Opening | Withdrawal | Join]:
    """Returns all events other than results, in the order in which they happened.

    A withdrawal or a join may open a block: it comes before that block, and after blocks opened earlier.
    """
    withdrawals = enumerate(records.withdrawals)
    keyed: list[tuple[tuple[int, int, int, int], Opening | Withdrawal | Join]] = [
        *(((each.results, each.opened, each.withdrawn, 0), each) for each in records.joins),
        *(((each.results, each.opened, before, 1), each) for before, each in withdrawals),
        *(((each.results, each.number, len(records.withdrawals), 2), each) for each in records.openings),
    ]
    return [event for _, event in sorted(keyed, key=lambda each: each[0])]


def with_pulls(state: State, number: int, arms: Indices) -> State:
    """Returns the state with other pulls in an open block; none of its slots may have a result."""
    block = next((block for block in state.blocks if block.number == number), None)
    if block is None or block.free.size < block.arms.size:
        raise InvalidInput(f"block {number} is not open, or has results already")
    if np.array_equal(block.arms, arms):
        return state
    new = replace(block, arms=arms, outcomes=np.full(arms.size, np.nan))
    return replace(state, blocks=tuple(new if each is block else each for each in state.blocks))
