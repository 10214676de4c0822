"""Rows of bets on items that are tried with different arms: their sizes, and what they promise to win."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.spectral.metric import Comparisons, Metric

LEAST_PAYOFF = 0.02
"""Least factor by which one item may change the wealth, if outcomes lie in a known range. Small, because this limits
what an item can win: two arms share the stake."""


class Group(NamedTuple):
    """Items that are tried with the same arms."""

    arms: Indices
    n: int


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Rows of bets on groups of items, as in (18.6), before they are scaled."""

    outlook: ItemOutlook
    groups: tuple[Group, ...]
    metric: Metric
    """The metric of the results of all items together."""
    bets: Comparisons
    nu: Vector
    """The estimate that the bets come from, (n_arms,)."""

    @classmethod
    def against_arms(cls, outlook: ItemOutlook, groups: tuple[Group, ...], leader: int, tolerance: float) -> ItemRows:
        """Returns the rows of one leader against every arm."""
        metric = _metric(outlook, groups)
        return cls(outlook, groups, metric, outlook.compare(metric, leader, tolerance), outlook.mu)

    @classmethod
    def against_R(cls, outlook: ItemOutlook, groups: tuple[Group, ...], nu: Vector, radii: Vector) -> ItemRows:
        """Returns a single row against the claim that the means are smooth; it has no lead if there is no such bet."""
        metric = _metric(outlook, groups)
        z, most = metric.against_smoothness(nu, radii)
        lead, variance = float(z @ nu[metric.arms]) - most, float(z @ metric.covariance @ z)
        use = lead > 0 and variance > 0
        values = (most, lead, variance) if use else (0.0, 0.0, 1.0)
        return cls(outlook, groups, metric, Comparisons(z[None], *(np.array([value]) for value in values)), nu)

    @cached_property
    def gap(self) -> Matrix:
        """m - lambda, a row per challenger and a column per arm tried."""
        steep = self.bets.lead / self.bets.variance
        return steep[:, None] * (self.bets.directions @ self.metric.covariance)

    @cached_property
    def lam(self) -> Matrix:
        lam: Matrix = self.nu[self.metric.arms] - self.gap
        return lam

    @cached_property
    def rows(self) -> tuple[Matrix, ...]:
        """h of each group: a row per challenger, a column per arm of the group."""
        return tuple(self.gap[:, self.columns(group)] @ self.outlook.weights_of(group.arms) for group in self.groups)

    def columns(self, group: Group) -> Indices:
        """Returns the columns of the arms of a group."""
        return np.searchsorted(self.metric.arms, group.arms)

    @cached_property
    def slack(self) -> Vector:
        """What rounding errors may add to the log payoff of an unscaled row."""
        z = self.bets.directions
        excess = np.maximum(self.bets.most - (z * self.lam).sum(axis=1), 0.0)
        slack: Vector = self.bets.lead / self.bets.variance * excess
        return slack

    def scales(self, size: Vector) -> Vector:
        """Returns the factor for each row: as (12.8), for factors that stand for items."""
        if self.outlook.ends is None:
            return size
        gain, risk, worst = self._stakes
        scale = size * np.minimum(1.0, gain / np.maximum(risk, 1e-300))
        capped: Vector = np.minimum(scale, (1 - LEAST_PAYOFF) / np.maximum(worst, 1e-300))
        return capped

    @cached_property
    def _stakes(self) -> tuple[Vector, Vector, Vector]:
        """(gain, risk, worst): the mean and the second moment that the beliefs give the sum of all unscaled bets, and
        the largest loss on one item."""
        gain, risk, worst = np.zeros((3, self.bets.lead.size))
        for group, h in zip(self.groups, self.rows, strict=True):
            at = self.columns(group)
            C = self.outlook.covariance[np.ix_(group.arms, group.arms)]
            promise = (h * self.gap[:, at]).sum(axis=1)
            gain += group.n * promise
            risk += group.n * ((h @ C) * h).sum(axis=1)
            if self.outlook.ends is not None:
                risk += group.n * promise**2
                worst = np.maximum(worst, (h * self.lam[:, at]).sum(axis=1) - least(h, self.outlook.ends))
        return gain, risk, worst


def _metric(outlook: ItemOutlook, groups: tuple[Group, ...]) -> Metric:
    arms = np.unique(np.concatenate([group.arms for group in groups]))
    weights = np.zeros((arms.size, arms.size))
    for group in groups:
        at = np.searchsorted(arms, group.arms)
        weights[np.ix_(at, at)] += group.n * outlook.weights_of(group.arms)
    return outlook.metric_of(arms, weights)


def least(directions: Matrix, ends: tuple[float, float]) -> Vector:
    """Returns the least z.x that outcomes in a range allow, for each direction z."""
    low, high = ends
    lowest: Vector = low * np.maximum(directions, 0.0).sum(axis=1) + high * np.minimum(directions, 0.0).sum(axis=1)
    return lowest
