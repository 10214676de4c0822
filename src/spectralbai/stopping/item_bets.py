"""Bets on trials that share items: one factor an item, fair however the outcomes of an item depend on each other.

See theory, section 18. On a list, the next item is drawn from those that are left, so every factor is centred at what
the claim and all results so far leave for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.evidence.item_data import Panel, panels
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.spectral import Components
from spectralbai.spectral.metric import Comparisons, Metric
from spectralbai.stopping.bets import CAUTION, BetTable

LEAST_PAYOFF = 0.02
"""Least factor by which one item may change the wealth, if outcomes lie in a known range. Small, because this limits
what an item can win: two arms share the stake."""
INVESTED_ON_ITEMS = 0.3
"""Part of the cash that is moved into bets at every block. More than without items: a wrong leader costs less, since
differences on the same items are soon known, and the least payoff bounds what is won later."""


@dataclass(frozen=True, eq=False)
class ItemTable(BetTable):
    """A block of trials on items at its closing."""

    invested: ClassVar[float] = INVESTED_ON_ITEMS

    outlook: ItemOutlook

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        strength = self.outlook.strength(leader, tolerance)
        size = 2 * strength / (2 * strength + CAUTION)  # (12.7)
        size[leader] = 0.0
        pay = np.zeros(size.size)
        if not self._panels:
            return pay
        found = self.outlook.compare(self._metric, leader, tolerance)
        rows = np.flatnonzero((size > 0) & (found.lead > 0))
        if rows.size:
            pay[rows] = self._payoffs(Comparisons(*(values[rows] for values in found)), size[rows])
        return pay

    def against_R(self) -> float:
        excess = self.outlook.misfit - self.outlook.freedom / 2
        if excess <= 0 or not self._panels:
            return 0.0  # no reason to doubt R, and no bet
        radii = Components.from_problem(self.problem).radii
        nu = np.where(self.outlook.data.counts > 0, self.outlook.means, self.outlook.mu)
        z, most = self._metric.against_smoothness(nu, radii)
        lead, variance = float(z @ nu[self._metric.arms]) - most, float(z @ self._metric.covariance @ z)
        if lead <= 0 or variance <= 0:
            return 0.0
        bet = Comparisons(z[None], *(np.array([value]) for value in (most, lead, variance)))
        return float(self._payoffs(bet, np.array([2 * excess / (2 * excess + CAUTION)]))[0])

    @cached_property
    def _panels(self) -> list[Panel]:
        """The items that are bet on; trials of arms that catch up on earlier items are not.

        Without a range, bets must cancel the effect of an item: there are none on items tried with one arm. Of a list,
        all items of the block must have the same arms, which were tried on every item before (18.4).
        """
        least = 2 if self._ends is None else 1
        new = [panel for panel in panels(self.block) if panel.draws[0] >= self.block.drawn and panel.arms.size >= least]
        assert self.problem.items is not None
        fair = self.problem.items.n is None or (len(new) == 1 and self._complete[new[0].arms].all())
        return new if fair else []

    @cached_property
    def _early(self) -> Mask:
        """The slots by which arms caught up."""
        assert self.block.draws is not None
        return self.block.draws < self.block.drawn

    @property
    def _complete(self) -> Mask:
        """The arms that were tried on every item drawn before the block, perhaps in the block."""
        tried = self.block.data.counts + np.bincount(self.block.arms[self._early], minlength=self.block.n_arms)
        complete: Mask = tried == self.block.drawn
        return complete

    @cached_property
    def _metric(self) -> Metric:
        """The metric of the results of the block."""
        arms = np.unique(np.concatenate([panel.arms for panel in self._panels]))
        weights = np.zeros((arms.size, arms.size))
        for panel in self._panels:
            at = np.ix_(*(np.searchsorted(arms, panel.arms),) * 2)
            weights[at] += panel.draws.size * self.outlook.weights_of(panel.arms)
        return self.outlook.metric_of(arms, weights)

    @cached_property
    def _ends(self) -> tuple[float, float] | None:
        """The range of the outcomes, minus the origin."""
        ends = self.problem.outcome_range
        if ends is None:
            return None
        low, high = (end - self.outlook.evidence.origin for end in ends)
        return low, high

    def _payoffs(self, bets: Comparisons, size: Vector) -> Vector:
        """Returns the log payoffs of bets of these sizes in the directions of `bets`, one row each."""
        if len(self._panels) == 1:
            return self._item_by_item(bets, size, self._panels[0])
        return self._together(bets, size)

    def _item_by_item(self, bets: Comparisons, size: Vector, panel: Panel) -> Vector:
        """Returns the log payoffs if every item was tried with the same arms: each item is then fair by itself (18.2),
        also if it was drawn from a list (18.4)."""
        assert self.problem.items is not None
        n = self.problem.items.n
        gain = bets.directions @ panel.outcomes
        centre, ahead = np.broadcast_to(bets.most[:, None], gain.shape), np.ones(panel.draws.size)
        if n is not None:
            before = np.hstack([np.zeros((size.size, 1)), np.cumsum(gain, axis=1)[:, :-1]])
            before += (bets.directions @ self._sums_before(panel.arms))[:, None]
            left = n - panel.draws
            centre, ahead = (n * bets.most[:, None] - before) / left, n / left  # (18.4)
        lead = bets.lead[:, None] * ahead
        C = self.outlook.covariance[np.ix_(panel.arms, panel.arms)]
        variance = ((bets.directions @ C) * bets.directions).sum(axis=1)[:, None]
        if self._ends is None:
            h = size[:, None] * lead / variance
            noise = bets.directions**2 @ self.problem.sigma[panel.arms] ** 2
            pay: Vector = (h * (gain - centre) - 0.5 * h**2 * noise[:, None]).sum(axis=1)  # (18.3)
            return pay
        h = size[:, None] * lead / (variance + lead**2)
        worst = centre - _least(bets.directions, self._ends)[:, None]
        with np.errstate(divide="ignore"):
            h = np.where(worst > 0, np.minimum(h, (1 - LEAST_PAYOFF) / worst), h)
        pay = np.log1p(h * (gain - centre)).sum(axis=1)
        return pay

    def _sums_before(self, arms: Indices) -> Vector:
        """Returns the sums of arms over all items that were drawn before the block; some may have caught up in it."""
        block, early = self.block, self._early
        caught_up = np.bincount(block.arms[early], block.outcomes[early], block.n_arms)
        return (block.data.sums + caught_up)[arms]

    def _together(self, bets: Comparisons, size: Vector) -> Vector:
        """Returns the log payoffs if items were tried with different arms: only all items together are fair (18.2), so
        each row of bets has one scale for all of them."""
        metric = self._metric
        steep = bets.lead / bets.variance
        gap = steep[:, None] * (bets.directions @ metric.covariance)
        lam = self.outlook.mu[metric.arms] - gap
        slack = steep * np.maximum(bets.most - (bets.directions * lam).sum(axis=1), 0.0)
        rows, worst, gain, risk, noise = [], *np.zeros((4, size.size))
        for panel in self._panels:
            at, n = np.searchsorted(metric.arms, panel.arms), panel.draws.size
            C = self.outlook.covariance[np.ix_(panel.arms, panel.arms)]
            h = gap[:, at] @ self.outlook.weights_of(panel.arms)
            rows.append((h, h @ panel.outcomes - (h * lam[:, at]).sum(axis=1)[:, None]))
            promise = (h * gap[:, at]).sum(axis=1)
            gain += n * promise
            risk += n * (((h @ C) * h).sum(axis=1) + promise**2)
            noise += n * h**2 @ self.problem.sigma[panel.arms] ** 2
            if self._ends is not None:
                worst = np.maximum(worst, (h * lam[:, at]).sum(axis=1) - _least(h, self._ends))
        if self._ends is None:
            pay = sum((size * ahead.sum(axis=1) for _, ahead in rows), start=-0.5 * size**2 * noise)
        else:
            scale = size * np.minimum(1.0, gain / np.maximum(risk, 1e-300))
            scale = np.minimum(scale, (1 - LEAST_PAYOFF) / np.maximum(worst, 1e-300))
            pay = sum((np.log1p(scale[:, None] * ahead).sum(axis=1) for _, ahead in rows), start=np.zeros(size.size))
            size = scale
        settled: Vector = pay - size * slack
        return settled


def _least(directions: Matrix, ends: tuple[float, float]) -> Vector:
    """Returns the least z.x that outcomes in a range allow, for each direction z."""
    low, high = ends
    least: Vector = low * np.maximum(directions, 0.0).sum(axis=1) + high * np.minimum(directions, 0.0).sum(axis=1)
    return least
