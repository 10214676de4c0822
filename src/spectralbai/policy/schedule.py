"""The schedule of a policy: when results become seen, in blocks for rules that bet, at growing intervals for others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.blocks import Block, Data, fill
from spectralbai.policy.rule_reader import Readings, RuleReader
from spectralbai.policy.state import State

GROWTH = 1.02
"""If pulls do not come in blocks, stopping rules are read at numbers of samples that grow by this factor."""


def next_reading(samples: int) -> int:
    """Returns the number of samples at which stopping rules are read next: one more at first, 2 % more later."""
    return max(samples + 1, int(samples * GROWTH))


@dataclass(frozen=True, eq=False)
class Schedule(RuleReader):
    """Opens blocks, fills their slots with results, and reads the rules when a block closes."""

    def open(self, state: State) -> State:
        """Returns the state with one more open block, planned from what is known now.

        Use it to open a block ahead, when every slot of the open blocks is handed out and workers want more. Its pulls
        may depend on the results that open blocks have so far, because these come from blocks opened earlier (theory
        12.1); the bets on it still wait until those blocks are closed.
        """
        self._check_state(state)
        if not self.in_blocks or self._settled(state):
            return state
        if state.informing.samples:
            nothing = Data.none(self.problem.n_arms)
            state = replace(state, data=state.data + state.informing, informing=nothing)
            if self.has_estimate(state):
                evidence = self._with_leader(state)
                state = self._planned(state, evidence, self._own_reading(state, evidence))
        issued = state.data.counts.copy()
        for block in state.blocks:
            issued[: block.n_arms] += block.counts
        arms = self._first_pulls(issued, state.withdrawn)
        if not arms.size:
            foreseen = self._foreseen(state)
            view = self._view(foreseen, self._seen(foreseen))
            size = self.sampling.block_size(foreseen.sampling, view, int(issued.sum()))
            arms = self.sampling.pulls(foreseen.sampling, view, issued, size)
        block = Block.opened(arms, state.data, state.best, state.opened)
        return replace(state, blocks=(*state.blocks, block), opened=state.opened + 1)

    def _foreseen(self, state: State) -> State:
        """Returns the state as if the open blocks were closed, without the slots that have no result: to plan by, not
        to decide by. If that would end the run, the state itself is returned."""
        foreseen = state
        for block in state.blocks:
            told = block.told
            if told.arms.size:
                foreseen = self._after(foreseen, told)
        return state if self._settled(foreseen) else foreseen

    def _after(self, state: State, block: Block) -> State:
        """Returns the state after the results of a block are seen."""
        return self._read(replace(state, data=state.data.plus(block.arms, block.outcomes)), block)

    def _opened(self, state: State) -> State:
        """Returns the state with an open block, unless all rules have stopped; states of earlier versions have none."""
        return state if state.blocks else self.open(state)

    def _closed(self, state: State) -> tuple[State, tuple[Readings, ...]]:
        """Returns the state after the oldest blocks have closed, as far as they have all their results, and what the
        rules said each time. If no block is left, one is opened."""
        readings: list[Readings] = []
        while state.blocks and state.blocks[0].closed:
            first, *rest = state.blocks
            before = state.data
            state = self._after(replace(state, blocks=tuple(rest)), first)
            if rest:
                ahead = tuple(self._after_closing(block, first, before, state) for block in rest)
                state = replace(state, blocks=ahead)
            readings.append(self._verdicts(state))
            if not state.blocks:
                state = self.open(state)
        return state, tuple(readings)

    def _first_pulls(self, issued: Vector, withdrawn: tuple[int, ...] = ()) -> Indices:
        """Returns, for every component without a pull, its first arm that is not withdrawn."""
        missing = self._missing(issued)
        if not missing.size:
            return missing
        components = self.problem.components.copy()
        components[list(withdrawn)] = -1
        found, first = np.unique(components, return_index=True)
        return first[np.isin(found, missing)]

    def horizon(self, state: State) -> int:
        """Returns how many pulls can be asked for at once before new results would change the choice."""
        if self.in_blocks:
            return sum(block.free.size for block in self._opened(state).blocks)
        return self.sampling.most_at_once or state.next_reading - state.samples

    def _count(self, state: State, arms: Indices, outcomes: Vector) -> tuple[State, tuple[Readings, ...]]:
        """Returns the state after results without blocks; rules are read at the scheduled numbers of samples."""
        readings: list[Readings] = []
        while arms.size:
            take = max(state.next_reading - state.samples, 1)
            state = replace(state, data=state.data.plus(arms[:take], outcomes[:take]))
            arms, outcomes = arms[take:], outcomes[take:]
            if state.samples < state.next_reading:
                break
            if not self.has_estimate(state):
                state = replace(state, next_reading=state.samples + 1)
                continue
            state = self._read(replace(state, next_reading=next_reading(state.samples)), None)
            readings.append(self._verdicts(state))
        return state, tuple(readings)

    def _fill(
        self, state: State, arms: Indices, outcomes: Vector, numbers: Indices | None
    ) -> tuple[State, tuple[Readings, ...]]:
        """Returns the state after results that fill slots of the open blocks; rules are read when a block closes."""
        readings: list[Readings] = []
        state = self._opened(state)
        while arms.size:
            blocks, taken, without_slot = fill(state.blocks, arms, outcomes, numbers)
            informing = state.informing
            if without_slot.any():
                informing = informing.plus(arms[:taken][without_slot], outcomes[:taken][without_slot])
            arms, outcomes = arms[taken:], outcomes[taken:]
            numbers = None if numbers is None else numbers[taken:]
            state, seen = self._closed(replace(state, blocks=blocks, informing=informing))
            readings += seen
        return state, tuple(readings)

    def _after_closing(self, block: Block, closed: Block, before: Data, state: State) -> Block:
        """Returns an open block after one that was opened earlier has closed; its bets may now use those results too.

        The bets stay fair, because bets may depend on all results of blocks that were opened earlier (theory 12.1). The
        pulls of the block do not change. `before` holds the results seen until now. If it has results that only inform
        and became seen after this block was opened, its bets must not use them: they may have been chosen by looking at
        its results.
        """
        if block.n_arms < state.n_arms:  # arms joined since: its leader must be one of the arms at its opening
            return replace(block, data=block.data.plus(closed.arms, closed.outcomes))
        if np.array_equal(block.data.counts, before.counts):
            return replace(block, data=state.data, best=state.best)
        data, best = block.data.plus(closed.arms, closed.outcomes), block.best
        known = replace(state, data=data, best=best)
        if self.has_estimate(known):
            evidence = self._with_leader(known)
            best = self._defended(evidence, self._own_reading(state, evidence)).best
        return replace(block, data=data, best=best)
