"""Track the optimal allocation of the current estimate: the sampling of SpectralTaS [KG20, Algorithm 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.allocation.interior_point import opening, search
from spectralbai.checks import Vector
from spectralbai.oracle import Oracle
from spectralbai.sampling.contract import View
from spectralbai.sampling.tracking import Tracker

TRACKING_TOL = 3e-2
"""Relative gap asked of the tracked allocations: the estimate they are for is never that good."""
TIED = 1e-18
"""Least evidence per trial worth speaking of: below it means are tied, or differ by rounding."""


@dataclass(frozen=True)
class OptimalTracking(Tracker):
    """Tracks omega*(mu_tilde), the optimal allocation of the constrained estimate."""

    def allocation(self, view: View) -> Vector:
        """Returns the allocation to track: omega*(mu_tilde), or the tied arms in equal parts where there is none.

        A cold start, on purpose. Where many allocations are optimal it finds a balanced one, which also tests R; the
        last allocation as a start would keep whatever imbalance early noise left, at more samples and hardly less time.
        """
        problem, mu_tilde, best = view.problem, view.evidence.mu_tilde, view.evidence.best
        oracle = Oracle(problem, mu_tilde, best)
        renumbered = oracle.renumbered()
        first = opening(renumbered)
        if TIED < first.value < np.inf:
            found = search(renumbered, TRACKING_TOL, max_iterations=50, first=first)
            return oracle.components.restored(found.best.omega)
        tied = mu_tilde >= mu_tilde[best] - 1e-7 * problem.sigma.max() - problem.tolerance
        shares: Vector = tied / tied.sum()
        return shares
