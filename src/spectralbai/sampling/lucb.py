"""LUCB: pulls the leader and the rival with the highest upper bound until their intervals no longer overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.intervals import plain_widths
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View


@dataclass(frozen=True)
class LUCBSampling(SamplingRule[Memory]):
    """Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits."""

    uses_delta: ClassVar[bool] = True
    most_at_once: ClassVar[int | None] = 2

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def pulls(self, memory: Memory, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        data, counts = view.evidence.data, issued.copy()
        leader = int(np.argmax(np.where(data.counts > 0, data.means, -np.inf)))
        pulls = np.empty(n, dtype=np.intp)
        for k in range(n):
            arm = leader
            if (counts.sum() - counts.size) % 2:  # leader and rival alternate, even if pulls are asked for one by one
                upper = data.means + plain_widths(counts, view.problem.sigma, view.deltas[0])
                upper[leader] = -np.inf
                arm = int(np.argmax(upper))
            pulls[k] = arm
            counts[arm] += 1
        return pulls
