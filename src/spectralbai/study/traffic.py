"""Counts instead of single results: the numbers of trials and successes of each arm, such as a day's traffic.

How many trials each arm got must not depend on their outcomes. The order in which an arm's visitors came is unknown and
not needed: the trials are put in a random order, so that bets can learn within the day (theory, section 12).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import LARGEST_COUNT, check_integer
from spectralbai.errors import Conflict, InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import Check, Opening, Told
from spectralbai.study.ledger import Ledger
from spectralbai.study.replay import advance, summary, with_pulls
from spectralbai.study.standing import key
from spectralbai.study.telling import add, recorded
from spectralbai.study.upkeep import Upkeep

if TYPE_CHECKING:
    from spectralbai.policy import State

MOST_TRIALS = 1_000_000
"""Most trials that can be told at once."""

CountRows = Mapping[str, tuple[int, int]] | Iterable[tuple[str, int, int]]


def counted(definition: Definition, counts: Any) -> tuple[Vector, Vector, tuple[float, float]]:
    """Returns trials and successes per arm of {label: (trials, successes)} or rows of (label, trials, successes), and
    the outcomes of a failure and of a success."""
    problem = definition.instance.problem
    if problem.outcome_range is None:
        raise InvalidInput(
            "counts of successes need outcomes of two values, but here outcomes are any numbers; create the study "
            "from an instance with --binary, or tell single outcomes"
        )
    trials, successes = np.zeros(problem.n_arms), np.zeros(problem.n_arms)
    try:
        rows = [(label, *pair) for label, pair in counts.items()] if isinstance(counts, Mapping) else counts
        table = [(label, tried, succeeded) for label, tried, succeeded in rows]
    except (TypeError, ValueError):
        raise InvalidInput("`counts` must be rows of a label, trials and successes") from None
    seen = set()
    for label, tried, succeeded in table:
        arm = definition.check_arm(label)
        if arm in seen:
            raise InvalidInput(f'"{label}" is there twice; give the sum of its counts')
        seen.add(arm)
        trials[arm] = check_integer(f'the trials of "{label}"', tried, 0, LARGEST_COUNT)
        successes[arm] = check_integer(f'the successes of "{label}"', succeeded, 0, LARGEST_COUNT)
        if successes[arm] > trials[arm]:
            raise InvalidInput(f'"{label}" has {succeeded} successes in {tried} trials; there cannot be more')
    if not 0 < trials.sum() <= MOST_TRIALS:
        raise InvalidInput(
            f"there must be 1 to {MOST_TRIALS:,} trials in all, got {int(trials.sum()):,}; tell them in parts, "
            "each with a different id"
        )
    return trials, successes, problem.outcome_range


def in_order(trials: Vector, successes: Vector, ends: tuple[float, float], seed: str) -> tuple[Indices, Vector]:
    """Returns (arms, outcomes) of all trials, in an order that depends on the seed and not on the outcomes.

    The arms are evenly mixed; which trials of an arm are its successes is random.
    """
    rng = np.random.default_rng(list(hashlib.sha256(seed.encode()).digest()))
    arms = np.repeat(np.arange(trials.size), trials.astype(int))
    place, outcomes = np.empty(arms.size), np.empty(arms.size)
    done = 0
    for tried, succeeded in zip(trials.astype(int), successes.astype(int), strict=True):
        part = slice(done, done + tried)
        place[part] = (np.arange(tried) + rng.random()) / max(tried, 1)
        outcomes[part] = np.where(rng.permutation(tried) < succeeded, ends[1], ends[0])
        done += tried
    order = np.argsort(place, kind="stable")
    return arms[order], outcomes[order]


def settle(
    definition: Definition, state: State, arms: Indices, outcomes: Vector, now: float
) -> tuple[State, list[Check], list[Opening], list[int | None]]:
    """Returns the state after these trials, cut in their order into blocks of the sizes that the policy planned, and
    what must be recorded: the checks, the blocks, and the number of the block of each trial, None for trials after a
    decision, which only inform.

    The open blocks must have no results and no pending tickets: their planned pulls are replaced by the given trials.
    """
    policy = definition.of(state).policy
    checks: list[Check] = []
    openings: list[Opening] = []
    blocks: list[int | None] = []
    while len(blocks) < arms.size:
        left, number = arms[len(blocks) :], None
        size = left.size
        if state.blocks and policy.verdict(state).stopped_at is None:
            number = state.blocks[0].number
            planned = max(state.blocks[0].arms.size, _until_estimate(definition, state, left))
            if 2 * size > 3 * planned:  # otherwise all that is left becomes one block, so that no small one remains
                size = planned
            openings.append(Opening(number, state.samples, now, tuple(left[:size].tolist())))
            state = with_pulls(state, number, left[:size])
        results = outcomes[len(blocks) : len(blocks) + size].tolist()
        told = Told(left[:size].tolist(), results, [-1 if number is None else number] * size)
        state, seen = advance(definition, state, told)
        checks += seen
        blocks += [number] * size
    return state, checks, openings, blocks


def _until_estimate(definition: Definition, state: State, arms: Indices) -> int:
    """Returns how many of these trials it takes until every category has a result; 0 if every one has, or if there are
    no categories."""
    # Imported here, because it loads compiled code that most calls do not need.
    from spectralbai.spectral import Catalogue

    problem = definition.instance.problem
    if Catalogue.of(problem) is None or definition.policy.has_estimate(state):
        return 0
    seen = np.bincount(problem.components, state.data.counts) > 0
    found, first = np.unique(problem.components[arms], return_index=True)
    missing = np.setdiff1d(np.flatnonzero(~seen), found)
    if missing.size:
        label = definition.instance.labels[int(np.flatnonzero(problem.components == missing[0])[0])]
        raise InvalidInput(
            f"the first counts must have trials of every category, got none of {missing.size:,} of them, such as that "
            f'of "{label}"; share the trials as spectralbai study shares says, or tell these as past ones'
        )
    return int(first[~seen[found]].max()) + 1


def tell_counts(upkeep: Upkeep, counts: CountRows, id_: str, past: bool) -> int:
    """Records trials and successes per arm; see `Study.tell_counts`."""
    upkeep.refresh()
    arms, outcomes = in_order(*counted(upkeep.definition, counts), f"{upkeep.name}\n{id_}")
    results = list(zip(arms.tolist(), outcomes.tolist(), strict=True))
    if past or not upkeep.definition.policy.in_blocks:
        labels = upkeep.definition.instance.labels
        return add(upkeep, [(labels[arm], outcome) for arm, outcome in results], id_)
    while True:
        upkeep.catch_up()
        with upkeep.reading() as ledger:
            if recorded(ledger, id_, results):
                return 0
            before, kept = ledger.standing(), upkeep.kept(ledger)
            _check_idle(upkeep, ledger, kept)
            unseen = ledger.results(kept.samples, before.results)
        state, seen = advance(upkeep.definition, kept, unseen)
        now = upkeep.now
        new, checks, openings, blocks = settle(upkeep.definition, state, arms, outcomes, now)
        text, columns = json.dumps(new.as_dict()), summary(upkeep.definition, new)
        with upkeep.writing() as ledger:
            standing = ledger.standing(lock=True)
            if standing != before or ledger.kept() != key(kept):
                continue  # another worker was faster: start again from the new state
            _check_idle(upkeep, ledger, kept)
            rows = [
                {"arm": arm, "outcome": outcome, "block": block, "origin": id_}
                for (arm, outcome), block in zip(results, blocks, strict=True)
            ]
            ledger.append(standing, now, rows, 0)
            for opening in openings:
                if opening.number < state.opened:
                    ledger.change_opening(opening.number, opening.arms)
            ledger.add([each for each in openings if each.number >= state.opened])
            ledger.replace_state(key(kept), new, text, now, (*seen, *checks), **columns)
        upkeep.replaced(new)
        return len(results)


def _check_idle(upkeep: Upkeep, ledger: Ledger, state: State) -> None:
    """Raises Conflict if trials of the open blocks are handed out or told: counts and tickets cannot share a block."""
    if ledger.taken(upkeep.now, state):
        raise Conflict(
            f'trials of the study "{upkeep.name}" that were asked for are not finished; ask for and tell the rest of '
            "their block first (study status shows them), or tell these counts as past ones, which only inform"
        )
