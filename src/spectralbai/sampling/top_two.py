"""T3C, a top-two rule: it pulls a leader drawn by Thompson sampling, or the challenger that is least refuted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View


@dataclass(frozen=True)
class TopTwoSampling(SamplingRule[Memory]):
    """Shang, de Heide, Kaufmann, Ménard and Valko (2020), Fixed-confidence guarantees for Bayesian best-arm
    identification.

    Leader and challenger are pulled with equal probability (beta = 1/2).
    """

    most_at_once: ClassVar[int | None] = 1

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def pulls(self, memory: Memory, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        if rng is None:
            raise InvalidInput(
                "`rng` must be a numpy Generator for this randomised policy, got None; pass "
                "rng=np.random.default_rng(seed)"
            )
        problem, data = view.problem, view.evidence.data
        means, received, counts = data.means, data.counts, np.maximum(issued, 1e-9)
        variance = problem.sigma**2
        # An arm without results counts as if it had one result at the origin.
        deviation = np.sqrt(variance / np.maximum(received, 1.0))
        pulls = np.empty(n, dtype=np.intp)
        for k in range(n):
            leader = int(np.argmax(means + deviation * rng.standard_normal(means.size)))
            lead = np.maximum(means[leader] - means + problem.tolerance, 0.0)
            cost = lead**2 / (variance[leader] / counts[leader] + variance / counts)
            cost[leader] = np.inf
            arm = leader if rng.random() < 0.5 else int(rng.choice(np.flatnonzero(cost == cost.min())))
            pulls[k] = arm
            counts[arm] += 1.0
        return pulls
