"""Counts instead of single results: the numbers of trials and successes of each arm, such as a day's traffic.

How many trials each arm got must not depend on their outcomes. The order in which an arm's visitors came is unknown and
not needed: the trials are put in a random order, so that bets can learn within the day (theory, section 12).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.checks import LARGEST_COUNT, check_integer
from spectralbai.errors import Conflict, InvalidInput
from spectralbai.journal.definition import Definition
from spectralbai.journal.entries import CountRows
from spectralbai.journal.events import BlockOpened, CountsTold, Event, ResultsTold, Told
from spectralbai.journal.fold import Fold
from spectralbai.study.ledger import Ledger, StoredState
from spectralbai.study.telling import add, check_without_items, is_recorded
from spectralbai.study.upkeep import Change, Draft, Upkeep
from spectralbai.text.wording import in_words

if TYPE_CHECKING:
    from spectralbai.policy import State

MOST_TRIALS = 1_000_000
"""Most trials that can be told at once."""


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


def settle(fold: Fold, arms: Indices, outcomes: Vector) -> tuple[list[Event], list[int | None]]:
    """Brings a fold to these trials, cut in their order into blocks of the sizes that the policy planned; returns the
    events, and the number of the block of each trial, None for trials after a decision, which only inform.

    The open blocks must have no results and no pending tickets: their planned pulls are replaced by the given trials.
    """
    events: list[Event] = []
    blocks: list[int | None] = []
    while len(blocks) < arms.size:
        left, state = arms[len(blocks) :], fold.state
        size, number = left.size, None
        if state.blocks and not fold.verdict.settled:
            number = state.blocks[0].number
            planned = max(state.blocks[0].arms.size, _until_estimate(fold.definition, state, left))
            if 2 * size > 3 * planned:  # otherwise all that is left becomes one block, so that no small one remains
                size = planned
            fold.set_pulls(number, left[:size])
            events.append(BlockOpened(number, state.samples, tuple(left[:size].tolist())))
        for arm, outcome in zip(left[:size].tolist(), outcomes[len(blocks) :].tolist(), strict=False):
            fold.queue.add(arm, outcome, number, None)
        fold.feed()
        events += fold.closings
        fold.closings.clear()
        blocks += [number] * size
    return events, blocks


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


def shares_of(fold: Fold, now: float) -> Vector:
    """Returns how to split the next traffic, (n_arms,); see `Study.shares`."""
    state, definition = fold.state, fold.definition.of(fold.state)
    policy, n_arms = definition.policy, definition.instance.problem.n_arms
    shares, verdict = policy.shares(state), policy.verdict(state)
    if verdict.decided:
        shares = (np.arange(n_arms) == verdict.arm).astype(np.float64)
    elif definition.over(state.samples, now) and verdict.candidates:
        shares = np.isin(np.arange(n_arms), verdict.candidates).astype(np.float64)
    if shares is None:
        shares = np.ones(n_arms)
        shares[list(state.withdrawn)] = 0.0
    split: Vector = shares / shares.sum()
    return split


def _counts_of(fold: Fold, id_: str, trials: Vector, successes: Vector, now: float) -> CountsTold:
    """Returns the event that counts came, to a study that is as in the fold."""
    running = not fold.verdict.settled and not fold.definition.over(fold.state.samples, now)
    asked = tuple(shares_of(fold, now).tolist()) if running else ()
    return CountsTold(id_, tuple(map(int, trials.tolist())), tuple(map(int, successes.tolist())), asked)


def tell_counts(upkeep: Upkeep, counts: CountRows, id_: str, past: bool) -> int:
    """Records trials and successes per arm; see `Study.tell_counts`."""
    upkeep.refresh()
    check_without_items(upkeep, "tickets, from ask")
    trials, successes, ends = counted(upkeep.definition, counts)
    arms, outcomes = in_order(trials, successes, ends, f"{upkeep.name}\n{id_}")
    results = list(zip(arms.tolist(), outcomes.tolist(), strict=True))
    if past:
        labels = upkeep.definition.instance.labels
        return add(upkeep, [(labels[arm], outcome) for arm, outcome in results], id_)

    def compute() -> Change[int | None]:
        with upkeep.reading() as ledger:
            known = is_recorded(ledger, id_, results)
        revision, fold = upkeep.up_to_date()
        if known:
            return revision, lambda draft: 0
        before, told = fold.state, _counts_of(fold, id_, trials, successes, upkeep.now)
        with upkeep.reading() as ledger:
            _check_idle(upkeep, ledger, before)
        events, blocks = settle(fold, arms, outcomes)
        stored = StoredState.of(fold)
        rows = tuple(Told(*each, block, None, None) for each, block in zip(results, blocks, strict=True))

        def fill(draft: Draft) -> int | None:
            if is_recorded(draft.ledger, id_, results):
                return 0
            _check_idle(upkeep, draft.ledger, before)
            if draft.standing.results != before.samples:
                return None  # results were told meanwhile
            opened = {event.number for event in events if isinstance(event, BlockOpened)}
            last = [event for event in fold.openings(before.opened) if event.number not in opened]
            draft.events += [ResultsTold(rows, id_), told, *events, *last]
            draft.stored = stored
            return len(results)

        return revision, fill

    while (new := upkeep.write(compute)) is None:
        pass
    return new


def _check_idle(upkeep: Upkeep, ledger: Ledger, state: State) -> None:
    """Raises Conflict if trials of the open blocks are handed out or told: counts and tickets cannot share a block."""
    taken = ledger.taken(upkeep.now, state)
    if not taken:
        return
    rest = sum(block.arms.size for block in state.blocks if block.number in taken) - sum(
        sum(keys.values()) for keys in taken.values()
    )
    pending = ledger.n_pending(upkeep.now)
    first = f"tell or give back the {in_words(pending, 'ticket')} that are out, then " if pending else ""
    raise Conflict(
        f'a block of the study "{upkeep.name}" was begun with tickets, and counts can only begin a new one: {first}ask '
        f"for the {in_words(rest, 'trial')} left in it (--n {rest}) and tell them; or tell these counts as past ones "
        "(--past), which only inform"
    )
