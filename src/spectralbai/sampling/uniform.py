"""Uniform sampling: compared with it, other rules show what adapting the pulls is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.checks import Vector
from spectralbai.sampling.contract import View
from spectralbai.sampling.tracking import Tracker


@dataclass(frozen=True)
class UniformSampling(Tracker):
    """Pulls every arm equally often."""

    def allocation(self, view: View) -> Vector:
        return np.full(view.problem.n_arms, 1 / view.problem.n_arms)
