"""Policies that track an allocation: C-tracking of a target that changes at every check."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.policy.contract import Policy
from spectralbai.policy.state import State
from spectralbai.tracking import floor, next_pulls, project_on_floor


@dataclass(frozen=True, eq=False)
class Tracker(Policy):
    """A policy whose counts follow an allocation (theory, section 7)."""

    @abstractmethod
    def _allocation(self, mu_tilde: Vector, best: int) -> Vector:
        """Returns the allocation to track from now on."""

    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        targets = state.targets + (issued.sum() - state.base) * state.rate
        return next_pulls(targets, state.rate, issued, n)

    def _plan(self, state: State, mu_tilde: Vector) -> State:
        omega = self._allocation(mu_tilde, state.best)
        rate = project_on_floor(omega, floor(self.problem.n_arms, state.samples))
        targets = state.targets + (state.samples - state.base) * state.rate
        for vector in (omega, rate, targets):
            vector.setflags(write=False)
        return replace(state, targets=targets, base=state.samples, omega=omega, rate=rate)

    def _current_allocation(self, state: State) -> Vector:
        return state.rate
