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
class Groups:
    """Groups of items, and what all rows of bets on them share."""

    outlook: ItemOutlook
    groups: tuple[Group, ...]

    @cached_property
    def arms(self) -> Indices:
        """All arms tried, in ascending order."""
        return np.unique(np.concatenate([group.arms for group in self.groups]))

    @cached_property
    def columns(self) -> tuple[Indices, ...]:
        """The places of the arms of each group in `arms`."""
        return tuple(np.searchsorted(self.arms, group.arms) for group in self.groups)

    @cached_property
    def weights(self) -> tuple[Matrix, ...]:
        """G of each group."""
        return tuple(self.outlook.weights_of(group.arms) for group in self.groups)

    @cached_property
    def covariances(self) -> tuple[Matrix, ...]:
        """The covariance of the outcomes of one item, for each group."""
        return tuple(self.outlook.covariance[np.ix_(group.arms, group.arms)] for group in self.groups)

    @cached_property
    def metric(self) -> Metric:
        """The metric of the results of all items together."""
        U = np.zeros((self.arms.size, self.arms.size))
        for group, at, G in zip(self.groups, self.columns, self.weights, strict=True):
            U[np.ix_(at, at)] += group.n * G
        return self.outlook.metric_of(self.arms, U)


@dataclass(frozen=True, eq=False)
class ItemRows:
    """Rows of bets on groups of items, as in (18.6), before they are scaled."""

    on: Groups
    bets: Comparisons
    nu: Vector
    """The estimate that the bets come from, (n_arms,)."""

    @classmethod
    def against_arms(cls, on: Groups, leader: int, tolerance: float) -> ItemRows:
        """Returns the rows of one leader against every arm."""
        return cls(on, on.outlook.compare(on.metric, leader, tolerance), on.outlook.mu)

    @classmethod
    def against_R(cls, on: Groups, nu: Vector, radii: Vector) -> ItemRows:
        """Returns a single row against the claim that the means are smooth; it has no lead if there is no such bet."""
        z, most = on.metric.against_smoothness(nu, radii)
        lead, variance = float(z @ nu[on.arms]) - most, float(z @ on.metric.covariance @ z)
        use = lead > 0 and variance > 0
        values = (most, lead, variance) if use else (0.0, 0.0, 1.0)
        return cls(on, Comparisons(z[None], *(np.array([value]) for value in values)), nu)

    @cached_property
    def gap(self) -> Matrix:
        """m - lambda, a row per challenger and a column per arm tried."""
        steep = self.bets.lead / self.bets.variance
        return steep[:, None] * (self.bets.directions @ self.on.metric.covariance)

    @cached_property
    def lam(self) -> Matrix:
        lam: Matrix = self.nu[self.on.arms] - self.gap
        return lam

    @cached_property
    def rows(self) -> tuple[Matrix, ...]:
        """h of each group: a row per challenger, a column per arm of the group."""
        return tuple(self.gap[:, at] @ G for at, G in zip(self.on.columns, self.on.weights, strict=True))

    @cached_property
    def slack(self) -> Vector:
        """What rounding errors may add to the log payoff of an unscaled row."""
        z = self.bets.directions
        excess = np.maximum(self.bets.most - (z * self.lam).sum(axis=1), 0.0)
        slack: Vector = self.bets.lead / self.bets.variance * excess
        return slack

    def scales(self, size: Vector) -> Vector:
        """Returns the factor for each row: as (12.8), for factors that stand for items."""
        if self.on.outlook.ends is None:
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
        ends = self.on.outlook.ends
        for group, at, C, h in zip(self.on.groups, self.on.columns, self.on.covariances, self.rows, strict=True):
            promise = (h * self.gap[:, at]).sum(axis=1)
            gain += group.n * promise
            risk += group.n * ((h @ C) * h).sum(axis=1)
            if ends is not None:
                risk += group.n * promise**2
                worst = np.maximum(worst, (h * self.lam[:, at]).sum(axis=1) - least(h, ends))
        return gain, risk, worst


def least(directions: Matrix, ends: tuple[float, float]) -> Vector:
    """Returns the least z.x that outcomes in a range allow, for each direction z."""
    low, high = ends
    lowest: Vector = low * np.maximum(directions, 0.0).sum(axis=1) + high * np.minimum(directions, 0.0).sum(axis=1)
    return lowest
