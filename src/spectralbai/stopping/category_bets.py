"""Bets on a block if arms are in categories: even arms that were never pulled can be bet against (theory, 17)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.evidence.outlook import CatalogueOutlook
from spectralbai.spectral import Duels
from spectralbai.stopping.bets import CAUTION, BetTable

ROWS = 4096
"""Number of arms whose bets are computed at a time, to limit the memory used."""


@dataclass(frozen=True, eq=False)
class CategoryTable(BetTable):
    """A block at its closing; a row of bets has entries only for the arms that the block pulled."""

    outlook: CatalogueOutlook

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        evidence = self.outlook.strength(leader, tolerance)
        size = 2 * evidence / (2 * evidence + CAUTION)  # (12.7)
        at_once = (leader, tolerance) == (self.block.best, 0.0)
        found = self._duels if at_once else self.outlook.duels(self.block.counts, leader, tolerance)
        # If arm i is the best, z.mu is at most this (17.5).
        most = (1 - found.own) * found.margin - tolerance
        rows = np.flatnonzero((size > 0) & (found.value > 0))
        pay = np.zeros(size.size)
        if self.problem.outcome_range is None:
            bet = size * found.lead / found.variance
            pay[rows] = (bet * (self._ahead(found, leader) - most) - bet**2 * found.variance / 2)[rows]  # (17.16)
            return pay
        pulled = np.flatnonzero(self.block.counts)
        u = self.block.counts[pulled] / self.outlook.variances[pulled]
        top = self.outlook.mu[leader]
        for part in np.split(rows, range(ROWS, rows.size, ROWS)):
            z = self._directions(part, found.own[part], found.mixture[part], leader)
            steep = found.lead[part] / found.variance[part]
            gap = steep[:, None] * z / u
            lam = self.outlook.mu[pulled] - gap
            # lam attains the bound `most` up to rounding errors; the payoff is reduced by their size.
            slack = steep * (most[part] - (z * (lam - top)).sum(axis=1))
            pay[part] = self._settle(lam, gap, size[part], slack, pulled)
        return pay

    def _ahead(self, found: Duels, leader: int) -> Vector:
        """Returns z.x for each arm, x the mean results of the block: how far the leader's side was above the arm's."""
        counts, catalogue = self.block.counts, self.outlook.catalogue
        u = counts / self.outlook.variances
        x = np.divide(self._sums, counts, out=np.zeros_like(counts), where=counts > 0)
        x -= np.where(counts > 0, self.outlook.mu[leader], 0.0)  # a common level costs accuracy
        average = (catalogue.total(u * x) / catalogue.total(u).clip(1e-300))[catalogue.of_arm]
        theirs = found.own * x + (1 - found.own) * average
        ahead: Vector = found.mixture * average[leader] + (1 - found.mixture) * x[leader] - theirs
        return ahead

    @cached_property
    def _duels(self) -> Duels:
        """The duels of the arm that was recommended when the block was opened, at tolerance 0."""
        return self.outlook.duels(self.block.counts, self.block.best, 0.0)

    @property
    def leant_on(self) -> Mask:
        leant = super().leant_on
        if self._duels.mixture.any():
            of_arm = self.outlook.catalogue.of_arm
            leant |= (self.block.counts > 0) & (of_arm == of_arm[self.block.best])
        return leant

    def _directions(self, arms: Indices, own: Vector, mixture: Vector, leader: int) -> Matrix:
        """Returns, for each arm, the weights of the leader minus the weights of the arm, over the pulled arms.

        The weights are mixtures of the arm itself and of the average of its category.
        """
        pulled = np.flatnonzero(self.block.counts)
        category = self.outlook.catalogue.of_arm
        u = self.block.counts / self.outlook.variances
        share = u / self.outlook.catalogue.total(u)[category].clip(1e-300)
        at_home = np.where(category[pulled] == category[leader], share[pulled], 0.0)
        z: Matrix = mixture[:, None] * at_home
        z[:, pulled == leader] += 1 - mixture[:, None]
        z -= (1 - own)[:, None] * np.where(category[arms][:, None] == category[pulled], share[pulled], 0.0)
        z -= own[:, None] * (arms[:, None] == pulled)
        return z

    def against_R(self) -> float:
        excess = self.outlook.misfit - self.outlook.freedom / 2
        if excess <= 0:
            return 0.0  # no reason to doubt R, and no bet
        catalogue, data = self.outlook.catalogue, self.outlook.evidence.data
        u = self.block.counts / self.outlook.variances
        nu = np.where(data.counts > 0, data.means, self.outlook.mu)
        lam = catalogue.project(u, nu, catalogue.room)
        pulled = np.flatnonzero(self.block.counts)
        lam = np.where(catalogue.total(u)[catalogue.of_arm] > 0, lam, nu)
        pull = u * (nu - lam)
        # If S_c <= R_c, pull.mu is at most sqrt(room_c) |pull_c| in each category, because pull sums to 0 there.
        most = np.sqrt(catalogue.room * catalogue.total(pull**2)).sum()
        level = (catalogue.total(u * lam) / np.maximum(catalogue.total(u), 1e-300))[catalogue.of_arm]
        slack = np.array([most - pull @ (lam - level)])
        size = np.array([2 * excess / (2 * excess + CAUTION)])
        return float(self._settle(lam[None, pulled], (nu - lam)[None, pulled], size, slack, pulled)[0])
