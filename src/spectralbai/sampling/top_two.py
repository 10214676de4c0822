"""T3C, a top-two rule: it pulls a leader drawn by Thompson sampling, or the challenger that is least refuted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View


@dataclass(frozen=True)
class TopTwoSampling(SamplingRule[Memory]):
    """Shang, de Heide, Kaufmann, Ménard and Valko (2020), Fixed-confidence guarantees for Bayesian best-arm
    identification.

    Leader and challenger are pulled with equal probability (beta = 1/2). Leaders are drawn from the posterior of the
    results seen. Without `rng` the draws are seeded by these results and by the number of pulls so far: the same
    results give the same pulls, and runs with other results have draws of their own.
    """

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def pulls(self, memory: Memory, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        problem, data = view.problem, view.evidence.data
        if rng is None:
            rng = np.random.default_rng([int(issued.sum()), *data.sums.view(np.uint64).tolist()])
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
