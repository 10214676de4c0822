"""The rule of LUCB and of elimination on the graph: stop once one confidence interval is above all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import graph_intervals, plain_widths
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.reading import IntervalReading, Reading


@dataclass(frozen=True)
class Intervals(StoppingRule[Memory]):
    """Stops once the confidence interval of one arm is above all others, up to the tolerance."""

    proved: bool = True
    with_graph: bool = field(kw_only=True)

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def read(self, memory: Memory, evidence: Evidence) -> Reading:
        problem, counts, means = evidence.problem, evidence.data.counts, evidence.data.means
        widths: Callable[[float], Vector]
        if self.with_graph:
            centres = graph_intervals(problem, counts, means, 0.5)[0]
            widths = lambda delta: graph_intervals(problem, counts, means, delta)[1]  # noqa: E731
        else:
            centres = np.where(counts > 0, means, -np.inf)
            widths = lambda delta: plain_widths(counts, problem.sigma, delta)  # noqa: E731
        return IntervalReading(int(np.argmax(centres)), centres, problem.tolerance, widths)
