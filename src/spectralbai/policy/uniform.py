"""Uniform sampling: what adapting the pulls is worth, everything else being equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.checks import Vector
from spectralbai.policy.tracker import Tracker


@dataclass(frozen=True, eq=False)
class Uniform(Tracker):
    """Pulls every arm equally often; the graph serves the stopping rule only."""

    def _allocation(self, mu_tilde: Vector, best: int) -> Vector:
        return np.full(mu_tilde.size, 1 / mu_tilde.size)
