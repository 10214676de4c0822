"""Stop once one confidence interval is above all others: the rule of LUCB and GRUB."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spectralbai.checks import Vector
from spectralbai.intervals import graph_intervals, plain_widths
from spectralbai.problem import Problem
from spectralbai.stopping.evidence import Evidence
from spectralbai.stopping.reading import IntervalReading, Reading


@dataclass(frozen=True)
class Intervals:
    """Stop once the confidence interval of one arm is above all others, up to the tolerance: the rule of LUCB and
    GRUB."""

    name: str
    reference: str
    with_graph: bool
    proved: bool = True

    def read(self, evidence: Evidence) -> Reading:
        problem, data = evidence.problem, evidence.data
        if not self.with_graph:
            means = np.where(data.counts > 0, data.means, -np.inf)
            return IntervalReading(
                means, problem.tolerance, lambda delta: plain_widths(data.counts, problem.sigma, delta)
            )
        return IntervalReading(
            graph_intervals(problem, data.counts, data.means, 0.5)[0],
            problem.tolerance,
            lambda delta: graph_intervals(problem, data.counts, data.means, delta)[1],
        )

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return math.nan  # statistic and threshold both move, and not at a rate
