"""LUCB: pull the leader and its most dangerous rival until their confidence intervals part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.evidence.intervals import plain_widths
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import SamplingRule, View


@dataclass(frozen=True)
class LUCBSampling(SamplingRule[Memory]):
    """Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits."""

    uses_delta: ClassVar[bool] = True
    most_at_once: ClassVar[int | None] = 2

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def pulls(
        self, memory: Memory, view: View, issued: Vector, n: int, rng: np.random.Generator | None = None
    ) -> Indices:
        data, counts = view.evidence.data, issued.copy()
        leader = int(np.argmax(np.where(data.counts > 0, data.means, -np.inf)))
        pulls = np.empty(n, dtype=np.intp)
        for k in range(n):
            arm = leader
            if (counts.sum() - counts.size) % 2:  # leader and rival in turn, however few are asked for at once
                upper = data.means + plain_widths(counts, view.problem.sigma, view.deltas[0])
                upper[leader] = -np.inf
                arm = int(np.argmax(upper))
            pulls[k] = arm
            counts[arm] += 1
        return pulls
