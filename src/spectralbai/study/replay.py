"""The state of a study, computed from what is recorded: blocks as they were opened, results in the order told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralbai.checks import Indices
from spectralbai.errors import InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Check, Join, Opening, Records, Told, Withdrawal
from spectralbai.wording import finite

if TYPE_CHECKING:
    from spectralbai.policy import State, Verdict

STEP = 1000
"""Number of results replayed at once."""


def advance(definition: Definition, state: State, told: Told) -> tuple[State, list[Check]]:
    """Returns the state after more results, and a check for each time that the rule was read meanwhile."""
    definition = definition.of(state)
    policy = definition.policy
    blocks = np.array(told.blocks, dtype=np.intp) if policy.in_blocks else None
    new, readings = policy.advance(state, told.arms, definition.rewards(told.outcomes), blocks)
    # If one result closes several blocks, only the last of their readings is kept.
    return new, list({own.samples: _check(own) for own, *_ in readings}.values())


def _check(seen: Verdict) -> Check:
    return Check(seen.samples, seen.arm, finite(seen.statistic), finite(seen.threshold), seen.candidates, seen.lacking)


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
    policy = definition.history[0].policy
    block_of = {ticket.id: -1 if ticket.block is None else ticket.block for ticket in records.tickets}
    block_of_counts = [-1 if each.block is None else each.block for each in records.observations]
    blocks = [
        own if each.ticket is None else block_of[each.ticket]
        for each, own in zip(records.observations, block_of_counts, strict=True)
    ]
    state, total = policy.init(), len(records.observations)
    checks: list[Check] = []

    def tell_until(state: State, until: int) -> State:
        while state.samples < until:
            part = slice(state.samples, min(until, state.samples + STEP))
            told = records.observations[part]
            state, seen = advance(
                definition, state, Told([each.arm for each in told], [each.outcome for each in told], blocks[part])
            )
            checks.extend(seen)
            if on_check is not None:
                on_check(state.samples, total)
        return state

    for event in _in_order(records):
        state = tell_until(state, event.results)
        if isinstance(event, Join):
            if (state.samples, state.opened, len(state.withdrawn)) != (event.results, event.opened, event.withdrawn):
                raise InvalidInput(f"arms cannot have joined after {event.results} results")
            policy = definition.history[len(state.joined) + 1].policy
            state = policy.join(state, event.blocks)
            continue
        if isinstance(event, Withdrawal):
            if (state.samples, state.opened) != (event.results, event.opened):
                raise InvalidInput(f"arm {event.arm} cannot have been withdrawn after {event.results} results")
            state = policy.withdraw(state, event.arm)
            continue
        if state.opened <= event.number:
            state = policy.open(state)
        state = _as_opened(state, event)
    state = tell_until(state, total)
    if state.opened != len(records.openings) or state.samples != total:
        raise InvalidInput(
            f"{state.opened} blocks follow from the results, and {len(records.openings)} are written down; the record "
            "is not complete"
        )
    return state, checks


def _in_order(records: Records) -> list[Opening | Withdrawal | Join]:
    """Returns all events other than results, in the order in which they happened.

    A withdrawal or a join may open a block: it comes before that block, and after blocks opened earlier.
    """
    keyed: list[tuple[tuple[int, int, int, int], Opening | Withdrawal | Join]] = []
    for join in records.joins:
        keyed.append(((join.results, join.opened, join.withdrawn, 0), join))
    for withdrawn, each in enumerate(records.withdrawals):
        keyed.append(((each.results, each.opened, withdrawn, 1), each))
    for opening in records.openings:
        keyed.append(((opening.results, opening.number, len(records.withdrawals), 2), opening))
    return [event for _, event in sorted(keyed, key=lambda each: each[0])]


def _as_opened(state: State, opening: Opening) -> State:
    """Returns the state with the recorded pulls of a block."""
    if state.samples != opening.results:
        raise InvalidInput(f"block {opening.number} cannot have been opened after {opening.results} results")
    if max(opening.arms) >= state.n_arms:
        raise InvalidInput(f"block {opening.number} was opened before its arm {max(opening.arms)} joined")
    return with_pulls(state, opening.number, np.array(opening.arms, dtype=np.intp))


def with_pulls(state: State, number: int, arms: Indices) -> State:
    """Returns the state with other pulls in an open block; none of its slots may have a result."""
    found = [block for block in state.blocks if block.number == number]
    if not found or found[0].free.size < found[0].arms.size:
        raise InvalidInput(f"block {number} is not open, or has results already")
    return replace(
        state,
        blocks=tuple(
            block
            if block.number != number or np.array_equal(block.arms, arms)
            else replace(block, arms=arms, outcomes=np.full(arms.size, np.nan))
            for block in state.blocks
        ),
    )
