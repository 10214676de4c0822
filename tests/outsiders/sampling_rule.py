"""A sampling rule: the leader and the arm with the fewest pulls, in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling import SamplingRule, View


@dataclass(frozen=True, eq=False)
class Leader(Memory):
    """Which arm led when rules were last read."""

    kind: ClassVar[str] = "example-leader"

    arm: int


@dataclass(frozen=True)
class LeaderAndLeast(SamplingRule[Leader]):
    """Pulls the leader every other time, and else the arm with the fewest pulls."""

    def start(self, problem: Problem) -> Leader:
        return Leader(0)

    def plan(self, memory: Leader, view: View) -> Leader:
        return Leader(view.evidence.best)

    def pulls(
        self, memory: Leader, view: View, issued: Vector, n: int, rng: np.random.Generator | None = None
    ) -> Indices:
        counts, pulls = issued.copy(), np.empty(n, dtype=np.intp)
        for k in range(n):
            pulls[k] = memory.arm if counts.sum() % 2 else np.argmin(counts)
            counts[pulls[k]] += 1
        return pulls
