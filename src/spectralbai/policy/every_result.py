"""The schedule of rules that do not bet: every result is seen when it arrives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.policy.first_pulls import first_pulls
from spectralbai.policy.reader import RuleReader, Verdicts
from spectralbai.policy.state import State
from spectralbai.sampling import Rng

GROWTH = 1.02
"""Stopping rules are read at numbers of samples that grow by this factor."""


def next_reading(samples: int) -> int:
    """Returns the number of samples at which stopping rules are read next: one more at first, 2 % more later."""
    return max(samples + 1, int(samples * GROWTH))


@dataclass(frozen=True, eq=False)
class EveryResult:
    """Reads the rules at numbers of results that grow by 2 %, or after every result if the sampling rule asks for it.
    Methods are those of `Schedule`."""

    reader: RuleReader

    def open(self, state: State) -> State:
        return state

    def resume(self, state: State) -> tuple[State, tuple[Verdicts, ...]]:
        return state, ()

    def due(self, state: State) -> int:
        return state.next_reading - state.samples

    def horizon(self, state: State) -> int:
        return self.reader.sampling.most_at_once or self.due(state)

    def slots(self, state: State, n: int, pending: Vector, rng: Rng) -> tuple[Indices, Indices]:
        issued = state.counts + pending
        arms = first_pulls(self.reader.problem, issued)[:n]
        if arms.size < n:
            issued = issued + np.bincount(arms, minlength=issued.size)
            view = self.reader.view(state, self.reader.evidence(state))
            more = self.reader.sampling.pulls(state.sampling, view, issued, n - arms.size, rng)
            arms = np.concatenate([arms, more])
        return arms, np.full(arms.size, -1)

    def pairs(self, state: State, n: int, pending: Indices) -> tuple[Indices, Indices]:
        raise NotImplementedError("only rules that bet use items")

    def take(
        self, state: State, arms: Indices, outcomes: Vector, numbers: Indices | None, items: Indices | None = None
    ) -> tuple[State, tuple[Verdicts, ...]]:
        said: list[Verdicts] = []
        while arms.size:
            taken = max(self.due(state), 1)
            state = replace(state, data=state.data.plus(arms[:taken], outcomes[:taken]))
            arms, outcomes = arms[taken:], outcomes[taken:]
            if state.samples < state.next_reading:
                break
            if not self.reader.has_estimate(state):
                state = replace(state, next_reading=state.samples + 1)
                continue
            later = state.samples + 1 if self.reader.sampling.reads_every_result else next_reading(state.samples)
            state = self.reader.read(replace(state, next_reading=later), None)
            said.append(self.reader.verdicts(state))
        return state, tuple(said)
