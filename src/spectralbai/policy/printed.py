"""SpectralTaS to the letter of the paper [KG20, Algorithm 1]."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import ranks_of
from spectralbai.policy.policy import Policy
from spectralbai.policy.state import State
from spectralbai.sampling import Rng, SamplingRule
from spectralbai.sampling.printed import Course, PrintedTracking, constants, play
from spectralbai.sampling.tracking import Tracked
from spectralbai.stopping import StoppingRule
from spectralbai.tape import Tape

RULE = "paper-printed"
LEAST_PART = 256
"""Smallest number of pulls that are played in one part; later parts have as many pulls as there are samples."""


@dataclass(frozen=True, eq=False)
class PrintedTaS(Policy):
    """Algorithm 1 as printed, one pull at a time: mirror ascent with a fixed step at the empirical means, statistics
    without the constraint, the threshold log(2 t (K - 1) / delta). Its risk is not proved."""

    stopping: str | StoppingRule[Any] = RULE
    iterations: int = field(default=300, kw_only=True)
    """Number of steps of mirror ascent, at every pull."""
    sampling: SamplingRule[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sampling", PrintedTracking(self.iterations))
        super().__post_init__()
        for name, _ in self.rules:
            if name != RULE or self.watching:
                raise InvalidInput(f"the algorithm as printed stops by {RULE} alone, got {name!r}; use SpectralTaS")

    def play(self, tape: Tape, max_samples: int, rng: Rng = None) -> State:
        """Returns what `Policy.play` returns; the loop over pulls is compiled."""
        if tape.drifts:
            return super().play(tape, max_samples, rng)
        state = self.init()
        while state.samples < max_samples and not state.settled:
            if state.samples >= self.problem.n_arms:
                state = self._before_last_pull(state, tape, max_samples)
            (arm,) = self.ask(state)
            state = self.tell(state, arm, tape.first(arm, int(state.counts[arm]) + 1)[-1])
        return state

    def _before_last_pull(self, state: State, tape: Tape, max_samples: int) -> State:
        """Returns the state right before the pull with which the run ends, or after a large number of pulls."""
        most = min(max(LEAST_PART, state.samples), max_samples - state.samples)
        longest = int(state.data.counts.max()) + most
        outcomes = np.array([tape.first(arm, longest) for arm in range(state.n_arms)]) - state.origin
        memory = state.sampling
        assert isinstance(memory, Tracked)
        growth = (state.samples - memory.base) * memory.rate
        start = state.data.counts, state.data.sums, memory.targets, memory.omega, growth
        course, pulls = Course(*(vector.copy() for vector in start)), np.empty(most, dtype=np.intp)
        pulls = pulls[: play(course, outcomes, constants(self.problem), self.iterations, self.delta, pulls)][:-1]
        if not pulls.size:
            return state
        places = state.data.counts[pulls].astype(np.intp) + ranks_of(pulls)
        data = state.data.plus(pulls, outcomes[pulls, places])
        tracked = Tracked(course.targets, data.samples, course.omega, course.rate)
        return replace(state, data=data, sampling=tracked, next_reading=data.samples + 1)
