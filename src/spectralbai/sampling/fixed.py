"""Sampling that tracks one fixed allocation, such as omega*(mu) for known means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.checks import Vector
from spectralbai.sampling.contract import View
from spectralbai.sampling.tracking import Tracker


@dataclass(frozen=True, eq=False)
class FixedAllocation(Tracker):
    """Tracks a given allocation from the start."""

    omega: Vector

    def allocation(self, view: View) -> Vector:
        return np.array(self.omega)
