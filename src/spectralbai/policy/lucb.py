"""LUCB: pull the leader and its most dangerous rival until their confidence intervals part."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.instance import Instance
from spectralbai.intervals import plain_widths
from spectralbai.policy.contract import Policy
from spectralbai.policy.state import State


@dataclass(frozen=True, eq=False)
class LUCB(Policy):
    """Kalyanakrishnan, Tewari, Auer and Stone (2012), PAC subset selection in stochastic multi-armed bandits.

    It knows no graph. Its intervals are the anytime Gaussian ones of theory 8.1, so that its risk is proved.
    """

    uses_delta: ClassVar[bool] = True

    stopping: str = "intervals"

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        return cls(replace(instance.problem, R=math.inf), **settings)

    def horizon(self, state: State) -> int:
        return 2

    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        means, counts = state.data.means, issued.copy()
        leader = int(np.argmax(np.where(state.counts > 0, means, -np.inf)))
        pulls: list[int] = []
        while len(pulls) < n:
            upper = means + plain_widths(counts, self.problem.sigma, self.delta)
            upper[state.counts == 0] = np.inf
            upper[leader] = -np.inf
            for arm in (leader, int(np.argmax(upper))):
                pulls.append(arm)
                counts[arm] += 1
        return np.array(pulls[:n], dtype=np.intp)
