"""Bets on a block of a large graph: their directions may be inexact, since payoffs are charged with bounds that hold
for any direction (theory, section 19)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.spectral.metric import Comparisons
from spectralbai.spectral.network_metric import NetworkMetric
from spectralbai.stopping.bets import CAUTION, BetTable


@dataclass(frozen=True, eq=False)
class NetworkTable(BetTable):
    """A block at its closing; a row of bets has entries only for arms that the block pulled."""

    outlook: NetworkOutlook

    @cached_property
    def _metric(self) -> NetworkMetric:
        return self.outlook.metric(self.block.counts)

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        evidence = self.outlook.strength(leader, tolerance)
        size = 2 * evidence / (2 * evidence + CAUTION)  # (12.7)
        size[leader] = 0.0
        rows = np.flatnonzero(size > 0)
        found = self._metric.compare(self.outlook.mu, leader, self.outlook.R, tolerance, rows)
        pay = np.zeros(size.size)
        pay[rows] = self._paid(found, self.outlook.mu, size[rows])
        return pay

    def _paid(self, found: Comparisons, nu: Vector, size: Vector) -> Vector:
        """Returns the log payoffs of bets for the estimate `nu`: each is charged with the largest z.mu (19.4)."""
        arms, u = self._metric.arms, self._metric.u
        steep = found.lead / found.variance
        level = float(nu[arms] @ u / u.sum())  # a common level costs accuracy
        if self.problem.outcome_range is None:
            x = self._sums[arms] / self.block.counts[arms] - level
            bet = size * steep
            paid: Vector = bet * (found.directions @ x - found.most) - bet**2 * found.variance / 2
            return paid
        gap = steep[:, None] * found.directions / u
        lam = nu[arms] - gap
        slack = steep * (found.most - (found.directions * (lam - level)).sum(axis=1))
        return self._settle(lam, gap, size, slack, arms)

    def against_R(self) -> float:
        excess = self.outlook.misfit - self.outlook.freedom / 2
        if excess <= 0:
            return 0.0  # no reason to doubt R, and no bet
        data, metric = self.outlook.evidence.data, self._metric
        nu = np.where(data.counts > 0, data.means, self.outlook.mu)
        z, most = metric.against_smoothness(nu, float(self.problem.radii[0]))
        lead, variance = float(z @ nu[metric.arms]) - most, float(z @ (z / metric.u))
        if not (lead > 0 and variance > 0):
            return 0.0
        found = Comparisons(z[None], np.array([most]), np.array([lead]), np.array([variance]))
        return float(self._paid(found, nu, np.array([2 * excess / (2 * excess + CAUTION)]))[0])
