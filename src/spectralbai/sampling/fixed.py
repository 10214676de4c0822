"""Sampling by an allocation that never changes: a given one, such as omega*(mu) for known means, or equal shares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.sampling.contract import View
from spectralbai.sampling.tracking import Tracker


@dataclass(frozen=True, eq=False)
class FixedAllocation(Tracker):
    """Tracks a given allocation from the start."""

    omega: Vector

    def allocation(self, view: View) -> Vector:
        return np.array(self.omega)


@dataclass(frozen=True)
class UniformSampling(Tracker):
    """Pulls every arm equally often: compared with it, other rules show what adapting the pulls is worth."""

    def allocation(self, view: View) -> Vector:
        return np.full(view.problem.n_arms, 1 / view.problem.n_arms)
