"""The sampling of SpectralTaS [KG20, Algorithm 1]: it tracks the optimal allocation of the current estimate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.allocation.interior_point import opening, search
from spectralbai.arrays import Vector
from spectralbai.responder import Responder
from spectralbai.sampling.contract import View
from spectralbai.sampling.tracking import Tracker

TRACKING_TOL = 3e-2
"""Relative gap up to which tracked allocations are solved; the estimate itself is always less accurate than this."""
TIED = 1e-18
"""Evidence per trial below which means count as tied: such differences come from rounding."""


@dataclass(frozen=True)
class OptimalTracking(Tracker):
    """Tracks omega*(mu_tilde), the optimal allocation of the constrained estimate."""

    def allocation(self, view: View) -> Vector:
        """Returns the allocation to track: omega*(mu_tilde), or equal shares for the tied arms if the best is tied.

        The solver does not start from the last allocation, on purpose. If many allocations are optimal, it then finds a
        balanced one, which also tests R. A start from the last allocation would keep the imbalance that early noise
        caused; this takes more samples and hardly less time.
        """
        problem, mu_tilde, best = view.problem, view.evidence.mu_tilde, view.evidence.best
        responder = Responder(problem, mu_tilde, best)
        renumbered = responder.renumbered()
        first = opening(renumbered)
        if TIED < first.value < np.inf:
            found = search(renumbered, TRACKING_TOL, max_iterations=50, first=first)
            return responder.components.restored(found.best.omega)
        tied = mu_tilde >= mu_tilde[best] - 1e-7 * problem.sigma.max() - problem.tolerance
        shares: Vector = tied / tied.sum()
        return shares
