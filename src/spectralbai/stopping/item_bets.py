"""Bets on trials that share items: one factor an item, fair however the outcomes of an item depend on each other.

See theory, section 18. On a list, the next item is drawn from those that are left, so every factor is centred at what
the claim and all results so far leave for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.item_data import Panel, panels
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.evidence.item_rows import LEAST_PAYOFF, Group, Groups, ItemRows, least
from spectralbai.spectral import Components
from spectralbai.spectral.metric import Comparisons
from spectralbai.stopping.accounts import INVESTED
from spectralbai.stopping.bets import CAUTION, BetTable

INVESTED_TOGETHER = 0.3
"""Part of the cash that is moved into bets at every block of the full design. More than otherwise: a wrong leader costs
less, since differences on the same items are soon known, and the least payoff bounds what is won later."""


@dataclass(frozen=True, eq=False)
class ItemTable(BetTable):
    """A block of trials on items at its closing."""

    outlook: ItemOutlook

    @property
    def invested(self) -> float:
        """Part of the cash that is moved into bets."""
        return INVESTED_TOGETHER if len(self._panels) == 1 else INVESTED

    def against_arms(self, leader: int, tolerance: float) -> Vector:
        strength = self.outlook.strength(leader, tolerance)
        size = 2 * strength / (2 * strength + CAUTION)  # (12.7)
        size[leader] = 0.0
        if not self._panels:
            return np.zeros(size.size)
        return self._payoffs(ItemRows.against_arms(self._groups, leader, tolerance), size)

    def against_R(self) -> float:
        excess = self.outlook.misfit - self.outlook.freedom / 2
        if excess <= 0 or not self._panels:
            return 0.0  # no reason to doubt R, and no bet
        nu = np.where(self.outlook.data.counts > 0, self.outlook.means, self.outlook.mu)
        rows = ItemRows.against_R(self._groups, nu, Components.from_problem(self.problem).radii)
        return float(self._payoffs(rows, np.array([2 * excess / (2 * excess + CAUTION)]))[0])

    def _payoffs(self, rows: ItemRows, size: Vector) -> Vector:
        """Returns the log payoffs of rows of bets of these sizes; 0 for those without a lead."""
        size = np.where(rows.bets.lead > 0, size, 0.0)
        if len(self._panels) > 1:
            return self._together(rows, size)
        pay, use = np.zeros(size.size), np.flatnonzero(size)
        bets = Comparisons(*(values[use] for values in rows.bets))
        pay[use] = self._item_by_item(bets, size[use], self._panels[0])
        return pay

    @cached_property
    def _groups(self) -> Groups:
        return Groups(self.outlook, tuple(Group(panel.arms, panel.draws.size) for panel in self._panels))

    @cached_property
    def _panels(self) -> list[Panel]:
        """The items that are bet on; trials of arms that catch up on earlier items are not.

        Without a range, bets must cancel the effect of an item: there are none on items tried with one arm. Of a list,
        all items of the block must have the same arms, which were tried on every item before (18.4).
        """
        fewest = 2 if self.outlook.ends is None else 1
        new = [
            panel for panel in panels(self.block) if panel.draws[0] >= self.block.drawn and panel.arms.size >= fewest
        ]
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
        if self.outlook.ends is None:
            h = size[:, None] * lead / variance
            noise = bets.directions**2 @ self.problem.sigma[panel.arms] ** 2
            pay: Vector = (h * (gain - centre) - 0.5 * h**2 * noise[:, None]).sum(axis=1)  # (18.3)
            return pay
        h = size[:, None] * lead / (variance + lead**2)
        worst = centre - least(bets.directions, self.outlook.ends)[:, None]
        with np.errstate(divide="ignore"):
            h = np.where(worst > 0, np.minimum(h, (1 - LEAST_PAYOFF) / worst), h)
        pay = np.log1p(h * (gain - centre)).sum(axis=1)
        return pay

    def _sums_before(self, arms: Indices) -> Vector:
        """Returns the sums of arms over all items that were drawn before the block; some may have caught up in it."""
        block, early = self.block, self._early
        caught_up = np.bincount(block.arms[early], block.outcomes[early], block.n_arms)
        return (block.data.sums + caught_up)[arms]

    def _together(self, rows: ItemRows, size: Vector) -> Vector:
        """Returns the log payoffs if items were tried with different arms: only all items together are fair (18.2), so
        each row of bets has one scale for all of them."""
        scale = rows.scales(size)
        pay = -scale * rows.slack
        for panel, at, h in zip(self._panels, rows.on.columns, rows.rows, strict=True):
            ahead = scale[:, None] * (h @ panel.outcomes - (h * rows.lam[:, at]).sum(axis=1)[:, None])
            if self.outlook.ends is None:
                noise = (scale[:, None] * h) ** 2 @ self.problem.sigma[panel.arms] ** 2
                pay += ahead.sum(axis=1) - 0.5 * panel.draws.size * noise  # (18.3)
            else:
                pay += np.log1p(ahead).sum(axis=1)  # (18.2)
        return pay
