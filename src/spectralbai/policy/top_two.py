"""T3C, a top-two rule: a leader by Thompson sampling, and the challenger the evidence separates least from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.errors import InvalidInput
from spectralbai.policy.contract import Policy
from spectralbai.policy.state import State


@dataclass(frozen=True, eq=False)
class TopTwo(Policy):
    """Shang, de Heide, Kaufmann, Ménard and Valko (2020), Fixed-confidence guarantees for Bayesian best-arm
    identification.

    Leader and challenger are pulled with equal chances (beta = 1/2). It knows no graph; the stopping rule is the
    default.
    """

    ignores_graph: ClassVar[bool] = True

    def horizon(self, state: State) -> int:
        return 1

    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        if rng is None:
            raise InvalidInput(
                "`rng` must be a numpy Generator for this randomised policy, got None; pass "
                "rng=np.random.default_rng(seed)"
            )
        means, received, counts = state.data.means, state.counts, np.maximum(issued, 1e-9)
        variance = self.problem.sigma**2
        deviation = np.sqrt(
            variance / np.maximum(received, 1.0)
        )  # an arm without results keeps the prior of one at the origin
        pulls = np.empty(n, dtype=np.intp)
        for k in range(n):
            leader = int(np.argmax(means + deviation * rng.standard_normal(means.size)))
            lead = np.maximum(means[leader] - means + self.problem.tolerance, 0.0)
            cost = lead**2 / (variance[leader] / counts[leader] + variance / counts)
            cost[leader] = np.inf
            arm = leader if rng.random() < 0.5 else int(rng.choice(np.flatnonzero(cost == cost.min())))
            pulls[k] = arm
            counts[arm] += 1.0
        return pulls
