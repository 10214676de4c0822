"""LUCB: pull the leader and its most dangerous rival until their confidence intervals part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.intervals import plain_widths
from spectralbai.policy.contract import Policy
from spectralbai.policy.state import State


@dataclass(frozen=True, eq=False)
class LUCB(Policy):
    """Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits.

    It knows no graph. Its intervals are the anytime Gaussian ones of theory 8.1, so that its risk is proved.
    """

    uses_delta: ClassVar[bool] = True
    ignores_graph: ClassVar[bool] = True

    stopping: str = "intervals"

    def horizon(self, state: State) -> int:
        return 2

    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        means, counts = state.data.means, issued.copy()
        leader = int(np.argmax(np.where(state.counts > 0, means, -np.inf)))
        pulls = np.empty(n, dtype=np.intp)
        for k in range(n):
            arm = leader
            if (counts.sum() - counts.size) % 2:  # leader and rival in turn, however few are asked for at once
                upper = means + plain_widths(counts, self.problem.sigma, self.delta)
                upper[leader] = -np.inf
                arm = int(np.argmax(upper))
            pulls[k] = arm
            counts[arm] += 1
        return pulls
