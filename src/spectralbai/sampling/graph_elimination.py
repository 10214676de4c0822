"""Elimination on the graph: of the arms whose interval is not below another one, pulls the most uncertain.

This is not GRUB as published, whose intervals are others: their constants come with a regulariser that is tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.evidence.intervals import graph_intervals, graph_precision
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View


@dataclass(frozen=True, eq=False)
class Active(Memory):
    """A vector with 1 for each arm that is not eliminated and 0 for the others."""

    kind: ClassVar[str] = "active"

    arms: Vector


@dataclass(frozen=True)
class GraphEliminationSampling(SamplingRule[Active]):
    """Elimination with maximum-variance sampling, after Thaker, Malu, Rao and Dasarathy (2022), Maximizing and
    satisficing in multi-armed bandits with graph information.

    It is given only R: the regulariser is 1/R, and the intervals are those of theory 8.3, so that its risk is proved.
    """

    uses_delta: ClassVar[bool] = True

    def start(self, problem: Problem) -> Active:
        return Active(np.ones(problem.n_arms))

    def plan(self, memory: Active, view: View) -> Active:
        data = view.evidence.data
        means, widths = graph_intervals(view.problem, data.counts, data.means, min(view.deltas))
        possible = means + widths >= (means - widths).max()
        active = (memory.arms > 0) & possible
        # If at most one arm was never eliminated, arms that the present intervals do not eliminate become active again.
        return Active((active if active.sum() > 1 else possible).astype(np.float64))

    def pulls(self, memory: Active, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        covariance = np.linalg.inv(graph_precision(view.problem, issued)).astype(np.float64, copy=False)
        return _most_uncertain(covariance, 1 / view.problem.sigma**2, np.flatnonzero(memory.arms), n)


@njit
def _most_uncertain(covariance: Matrix, precision: Vector, active: Indices, n: int) -> Indices:
    """Returns n arms; each is the active arm with the largest posterior variance after the pulls before it."""
    pulls = np.empty(n, dtype=np.intp)
    for k in range(n):
        arm = active[0]
        for a in active:
            if covariance[a, a] > covariance[arm, arm] * (1 + 1e-12):  # the first of tied arms wins despite rounding
                arm = a
        pulls[k] = arm
        column = covariance[:, arm].copy()
        scale = precision[arm] / (1.0 + precision[arm] * column[arm])
        for a in range(column.size):
            for b in range(column.size):
                covariance[a, b] -= scale * column[a] * column[b]
    return pulls
