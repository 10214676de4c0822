"""GRUB: eliminate arms whose confidence interval on the graph falls below another's, pull the least known of the
rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numba import njit

from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.errors import InvalidInput
from spectralbai.intervals import graph_intervals, graph_precision
from spectralbai.policy.contract import Policy
from spectralbai.policy.state import State


@dataclass(frozen=True, eq=False)
class GRUB(Policy):
    """Thaker, Malu, Rao and Dasarathy (2022), Maximizing and satisficing in multi-armed bandits with graph information.

    Its graph elimination with maximum-variance sampling, given R and nothing else: the regulariser is 1/R and the
    intervals are those of theory 8.3, so that its risk is proved.
    """

    uses_delta: ClassVar[bool] = True

    stopping: str = "graph-intervals"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, _ in self.rules:
            if name != "graph-intervals":
                raise InvalidInput(
                    f"`stopping` must be graph-intervals for GRUB, whose pulls follow from that rule, got {name!r}"
                )

    def _plan(self, state: State, mu_tilde: Vector) -> State:
        """Keeps the arms not eliminated as the support of `omega`."""
        smallest = min(delta for _, delta in self.rules)
        means, widths = graph_intervals(self.problem, state.data.counts, state.data.means, smallest)
        possible = means + widths >= (means - widths).max()
        active = (state.omega > 0) & possible
        if (
            active.sum() <= 1
        ):  # all others eliminated, at one time or another: those that are not now get another chance
            active = possible
        omega = active / active.sum()
        omega.setflags(write=False)
        return replace(state, omega=omega)

    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        covariance = np.linalg.inv(graph_precision(self.problem, issued)).astype(np.float64, copy=False)
        return _most_uncertain(covariance, 1 / self.problem.sigma**2, np.flatnonzero(state.omega), n)


@njit(cache=True)
def _most_uncertain(covariance: Matrix, precision: Vector, active: Indices, n: int) -> Indices:
    """Returns n arms, each the active one of largest posterior variance given the pulls before it."""
    pulls = np.empty(n, dtype=np.intp)
    for k in range(n):
        arm = active[0]
        for a in active:
            if covariance[a, a] > covariance[arm, arm] * (1 + 1e-12):  # ties to the first, whatever the rounding
                arm = a
        pulls[k] = arm
        column = covariance[:, arm].copy()
        scale = precision[arm] / (1.0 + precision[arm] * column[arm])
        for a in range(column.size):
            for b in range(column.size):
                covariance[a, b] -= scale * column[a] * column[b]
    return pulls
