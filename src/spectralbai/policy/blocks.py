"""The schedule of rules that bet: pulls come in blocks, and the results of a block are seen when it closes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.blocks import ARM_BITS, Block, Data, fill, ranks_of, slot_keys
from spectralbai.policy.first_pulls import first_items, first_pulls
from spectralbai.policy.reader import RuleReader, Verdicts
from spectralbai.policy.state import State
from spectralbai.sampling import Rng


@dataclass(frozen=True, eq=False)
class InBlocks:
    """Opens blocks, fills their slots with results, and reads the rules when a block closes. Methods are those of
    `Schedule`."""

    reader: RuleReader

    def open(self, state: State) -> State:
        if state.settled:
            return state
        reader = self.reader
        if reader.problem.items is not None:
            return self._opened_on_items(state)
        if state.informing.samples:
            state = replace(state, data=state.data + state.informing, informing=Data.none(state.n_arms))
            if reader.has_estimate(state):
                evidence = reader.evidence_now(state)
                state = reader.planned(state, evidence, reader.own_reading(state, evidence))
        issued = state.data.counts.copy()
        for block in state.blocks:
            issued[: block.n_arms] += block.counts
        arms = first_pulls(reader.problem, issued, state.withdrawn)
        if not arms.size:
            foreseen = self._foreseen(state)
            view = reader.view(foreseen, reader.evidence(foreseen))
            size = reader.sampling.block_size(foreseen.sampling, view, int(issued.sum()))
            arms = reader.sampling.pulls(foreseen.sampling, view, issued, size)
        # In a random order, so that changes while a block is open meet all arms alike (theory, section 18).
        arms = np.random.default_rng((state.seed, state.opened)).permutation(arms)
        block = Block.opened(arms, state.data, state.best, state.opened)
        return replace(state, blocks=(*state.blocks, block), opened=state.opened + 1)

    def _opened_on_items(self, state: State) -> State:
        """Returns the state with one more open block of trials on items, if there are items left to try."""
        reader, drawn = self.reader, state.drawn
        issued = state.data.counts.copy()
        for block in state.blocks:
            issued[: block.n_arms] += block.counts
        arms, draws = first_items(reader.problem, issued, drawn, state.withdrawn)
        if not arms.size:
            arms, draws = reader.sampling.trials(
                state.sampling, reader.view(state, reader.evidence(state)), issued, drawn
            )
        # Item by item, so that a worker who stops leaves few items half done; the arms of an item in a random order.
        mixed = np.random.default_rng((state.seed, state.opened)).permutation(arms.size)
        arms, new = arms[mixed], bool((draws >= drawn).all())
        # Where every trial has a new item of its own, it does not matter which.
        draws = draws if new and np.unique(draws).size == draws.size else draws[mixed]
        slots = np.argsort(draws, kind="stable")
        assert reader.problem.items is not None, "only called where the problem has items"
        if reader.problem.items.available is not None:
            slots = slots[draws[slots] < reader.problem.items.available]
        if not slots.size:
            return state
        arms, draws = arms[slots], draws[slots]
        items = draws if state.order is None else state.order[draws]
        block = Block.opened(arms, state.data, state.best, state.opened, items=items, draws=draws, drawn=drawn)
        return replace(state, blocks=(*state.blocks, block), opened=state.opened + 1)

    def _foreseen(self, state: State) -> State:
        """Returns the state as if the open blocks were closed, without the slots that have no result: to plan by, not
        to decide by. If that would end the run, the state itself is returned."""
        foreseen = state
        for block in state.blocks:
            part = block.told
            if part.arms.size:
                foreseen = self._after(foreseen, part)
        return state if foreseen.settled else foreseen

    def _after(self, state: State, block: Block) -> State:
        """Returns the state after the results of a block are seen."""
        return self.reader.read(replace(state, data=state.data.after(block)), block)

    def due(self, state: State) -> int:
        return sum(block.free.size for block in state.blocks)

    horizon = due

    def pairs(self, state: State, n: int, pending: Indices) -> tuple[Indices, Indices]:
        """Returns the arms and items of free slots, at most n, except those whose keys are `pending`."""
        free = [block.free[~np.isin(block.keys[block.free], pending)] for block in state.blocks]
        arms = np.concatenate([block.arms[slots] for block, slots in zip(state.blocks, free, strict=True)])
        items = np.concatenate([block.keys[slots] for block, slots in zip(state.blocks, free, strict=True)]) >> ARM_BITS
        return arms[:n], items[:n]

    def slots(self, state: State, n: int, pending: Vector, rng: Rng) -> tuple[Indices, Indices]:
        free = np.concatenate([block.arms[block.free] for block in state.blocks])
        numbers = np.repeat([block.number for block in state.blocks], [block.free.size for block in state.blocks])
        if not pending.any():
            return free[:n], numbers[:n]
        # Pending pulls occupy the oldest free slots of their arms. A slot is available if more free slots of its arm
        # come before it than pulls of that arm are pending, or as many.
        unclaimed = np.flatnonzero(ranks_of(free) >= pending[free])[:n]
        return free[unclaimed], numbers[unclaimed]

    def take(
        self, state: State, arms: Indices, outcomes: Vector, numbers: Indices | None, items: Indices | None = None
    ) -> tuple[State, tuple[Verdicts, ...]]:
        state, said = self._closed(state)
        keys = arms if items is None else slot_keys(arms, items)
        while arms.size:
            blocks, taken, without_slot = fill(state.blocks, keys, outcomes, numbers)
            informing = state.informing
            if without_slot.any():
                informing = informing.plus(arms[:taken][without_slot], outcomes[:taken][without_slot])
            arms, keys, outcomes = arms[taken:], keys[taken:], outcomes[taken:]
            numbers = None if numbers is None else numbers[taken:]
            state, more = self._closed(replace(state, blocks=blocks, informing=informing))
            said += more
        return state, said

    def resume(self, state: State) -> tuple[State, tuple[Verdicts, ...]]:
        blocks = tuple(
            replace(block, best=self._leader_instead(state, block)) if block.best in state.withdrawn else block
            for block in state.blocks
        )
        state = replace(state, blocks=blocks)
        return self._closed(state if blocks else self.open(state))

    def _leader_instead(self, state: State, block: Block) -> int:
        """Returns the leader of the bets on an open block whose leader was withdrawn.

        It depends only on the data that these bets may use: results that became seen after the opening may have been
        chosen by looking at those of the block. An arm that joined after the opening cannot lead. The first arm left
        can: a block that is kept has at least one arm that is not withdrawn, and that arm was there at its opening.
        """
        reader, first = self.reader, int(np.delete(np.arange(state.n_arms), state.withdrawn)[0])
        known = replace(state, data=block.data.padded(state.n_arms), best=first)
        if not reader.has_estimate(known):
            return first
        best = reader.own_reading(state, reader.evidence(known)).recommended(reader.pairs[0][1])
        return best if best < block.n_arms else first

    def _closed(self, state: State) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns the state after the oldest blocks have closed, as far as they have all their results, and what the
        rules said each time. If no block is left, one is opened."""
        said: list[Verdicts] = []
        while state.blocks and state.blocks[0].closed:
            first, *rest = state.blocks
            before = state.data
            state = self._after(replace(state, blocks=tuple(rest)), first)
            if rest:
                ahead = tuple(self._informed(block, first, before, state) for block in rest)
                state = replace(state, blocks=ahead)
            said.append(self.reader.verdicts(state))
            if not state.blocks:
                state = self.open(state)
        return state, tuple(said)

    def _informed(self, block: Block, closed: Block, before: Data, state: State) -> Block:
        """Returns an open block after one that was opened earlier has closed; its bets may now use those results too.

        The bets stay fair, because bets may depend on all results of blocks that were opened earlier (theory 12.1). The
        pulls of the block do not change. `before` holds the results seen until now. If it has results that only inform
        and became seen after this block was opened, its bets must not use them: they may have been chosen by looking at
        its results.
        """
        if block.n_arms < state.n_arms:  # arms joined since: its leader must be one of the arms at its opening
            return replace(block, data=block.data.after(closed))
        if np.array_equal(block.data.counts, before.counts):
            return replace(block, data=state.data, best=state.best)
        data, best, reader = block.data.after(closed), block.best, self.reader
        known = replace(state, data=data, best=best)
        if reader.has_estimate(known):
            evidence = reader.evidence_now(known)
            best = reader.defended(evidence, reader.own_reading(state, evidence)).best
        return replace(block, data=data, best=best)
