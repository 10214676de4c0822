"""Bets on a block: what they are, and what they pay (theory, section 12).

A row of bets is against the claim "arm i is the best". Given a leader b, an estimate nu and weights v, lam is the point
of A_{b,i} closest to nu. The bet on a result of arm a has size h_a, which is proportional to nu_a - lam_a.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.outlook import Outlook
from spectralbai.problem import Problem
from spectralbai.spectral import Decomposition
from spectralbai.stopping.accounts import INVESTED

CAUTION = 1.0
"""Bets have size s = 2E/(2E + CAUTION), where E is the evidence for them in the data they come from (theory 12.7)."""
LEAST_PAYOFF = 0.1
"""Least factor by which one result may change the wealth, if outcomes lie in a known range."""


@dataclass(frozen=True, eq=False)
class BetTable:
    """A block at its closing: the bets on it are recomputed from `block.data`, and settled."""

    block: Block
    outlook: Outlook
    """The beliefs from `block.data`, which holds no result of this block or of a later one."""

    @property
    def problem(self) -> Problem:
        return self.outlook.problem

    @property
    def invested(self) -> float:
        """Part of the cash that is moved into bets."""
        return INVESTED

    @cached_property
    def _decomposition(self) -> Decomposition:
        return self.outlook.decompose(self.block.counts)  # arms that the block does not pull have weight 0

    @cached_property
    def _sums(self) -> Vector:
        """The sum of the results of each arm."""
        return np.bincount(self.block.arms, self.block.outcomes, self.block.counts.size).astype(np.float64)

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        """Returns the log payoffs of the bets against every arm, by one leader; 0 for the leader itself."""
        radii = self.outlook.radii
        found = self._decomposition.respond(self.outlook.mu, leader, radii, tolerance)
        evidence = self.outlook.strength(leader, tolerance)
        size = 2 * evidence / (2 * evidence + CAUTION)  # (12.7)
        size[leader] = 0.0
        size[~np.isfinite(found.cost)] = 0.0
        # Rounding errors may violate the projection inequality (12.3) slightly; the payoff is reduced by the amount of
        # the violation (12.6), with one gamma for each R (16.10).
        lam = found.means - found.gap
        reach = np.sqrt(np.where(np.isfinite(radii), radii, 0.0))  # without a graph gamma is 0
        held = (found.decomposition.u * found.gap * (lam - found.means[leader])).sum(axis=1)
        slack = (2 * found.prices * reach * np.sqrt(found.smoothness)).sum(axis=1) - found.nu * tolerance - held
        return self._settle(lam, found.gap, size, slack)

    @property
    def leant_on(self) -> Mask:
        """The arms that bets at tolerance 0 rely on: they use that no such arm is better than the best one."""
        leant: Mask = np.arange(self.problem.n_arms) == self.block.best
        return leant

    def against_R(self) -> float:
        """Returns the log payoff of the bets against the hypothesis S(mu) <= R (theory 12.10)."""
        excess = self.outlook.misfit - self.outlook.freedom / 2
        if excess <= 0:
            return 0.0  # no reason to doubt R, and no bet
        data, parts = self.outlook.evidence.data, self._decomposition
        size = np.array([2 * excess / (2 * excess + CAUTION)])
        nu = np.where(data.counts > 0, data.means, self.outlook.mu)
        radii = parts.components.radii
        lam = parts.project(nu, radii)
        pull = parts.u * (nu - lam)
        # On M_R, pull.mu is at most sqrt(R pull' L^+ pull), and lam attains this up to rounding errors. If each
        # component has an R, the bound is the sum of this over the components (16.11).
        along, curved = pull @ parts.basis, parts.rough > 0
        tense = along[curved] ** 2 / parts.rough[curved]
        if radii.size == 1:
            most = math.sqrt(radii[0] * tense.sum())
        else:
            most = float(np.sqrt(radii * np.bincount(parts.components.component[curved], tense, radii.size)).sum())
        slack = np.array([most - pull @ (lam - lam[0])])
        return float(self._settle(lam[None, :], (nu - lam)[None, :], size, slack)[0])

    def _settle(
        self, lam: Matrix, gap: Matrix, size: Vector, slack: Vector, arms: Indices | slice = slice(None)
    ) -> Vector:
        """Returns the log payoffs of rows of bets of the given sizes towards `gap` = nu - lam.

        The payoffs are reduced by `slack`, what rounding errors may have added. The columns are for all arms, or for
        `arms` only, in ascending order; results of other arms are not bet on.
        """
        counts, variances = self.block.counts[arms], self.outlook.variances[arms]
        h = np.where(counts > 0, gap / variances, 0.0)
        known_range = self.problem.outcome_range
        if known_range is None:
            h *= size[:, None]
            noise = 0.5 * h**2 @ (counts * self.problem.sigma[arms] ** 2)
            pay = (h * (self._sums[arms] - counts * lam)).sum(axis=1) - noise  # (12.4)
        else:
            low, high = (end - self.outlook.evidence.origin for end in known_range)
            size = _fit(h, lam, counts, variances, low, high, size)
            h *= size[:, None]
            results, times = np.unique(
                np.stack([self.block.arms.astype(np.float64), self.block.outcomes]), axis=1, return_counts=True
            )
            columns = results[0].astype(np.intp)
            if not isinstance(arms, slice):
                inside = np.isin(columns, arms)
                results, times = results[:, inside], times[inside]
                columns = np.searchsorted(arms, columns[inside])
            pay = _bounded_payoffs(h, lam, columns, results[1], times.astype(np.float64))
        settled: Vector = pay - np.maximum(size * slack, 0.0)
        return settled


@njit
def _fit(h: Matrix, lam: Matrix, counts: Vector, variances: Vector, low: float, high: float, size: Vector) -> Vector:
    """Returns the factor for each row of bets h on results in [low, high] (theory 12.8).

    The factor is s min(1, sum n h gap / sum n h^2 (variance + gap^2)), which nearly maximises the expected logarithm of
    the payoff. It is reduced where needed so that no result pays less than LEAST_PAYOFF. The whole row is scaled:
    changing single bets would break the projection inequality.
    """
    factor = np.zeros(h.shape[0])
    for i in range(h.shape[0]):
        gain = 0.0
        risk = 0.0
        worst = 0.0
        for a in range(counts.size):
            if counts[a] > 0.0:
                gap = h[i, a] * variances[a]
                gain += counts[a] * h[i, a] * gap
                risk += counts[a] * h[i, a] ** 2 * (variances[a] + gap**2)
                worst = max(worst, -h[i, a] * (low - lam[i, a]), -h[i, a] * (high - lam[i, a]))
        if risk > 0.0:
            factor[i] = size[i] * min(1.0, gain / risk)
        if factor[i] * worst > 1.0 - LEAST_PAYOFF:
            factor[i] = (1.0 - LEAST_PAYOFF) / worst
    return factor


@njit
def _bounded_payoffs(h: Matrix, lam: Matrix, arms: Indices, outcomes: Vector, times: Vector) -> Vector:
    """Returns the log of the product of 1 + h_a (x - lam_a) over the results, for each row of bets (theory 12.5)."""
    pay = np.zeros(h.shape[0])
    for i in range(h.shape[0]):
        for k in range(arms.size):
            a = arms[k]
            if h[i, a] != 0.0:
                pay[i] += times[k] * np.log1p(h[i, a] * (outcomes[k] - lam[i, a]))
    return pay
