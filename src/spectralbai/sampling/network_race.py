"""Which arms of a large graph the race pulls: a few hundred at a time, which stand for the others (theory 20.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectralbai.allocation.fixed_bets import improve
from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.spectral.network_metric import NetworkMetric

PLANNED = 384
"""Most arms with a share of the pulls of a plan. Bets on a block use the results of all arms that it pulled, so that
only very few racing arms have to wait for a later plan."""
STEPS, START_SHARE = 2, 0.3
"""Number of steps of a plan; it starts from the last plan with this part of even shares."""
OPTIONS = 1000
"""A block has pulls as if there were at most so many arms."""


class NetworkResponses(NamedTuple):
    """Best responses of the racing arms, by their rows."""

    challengers: Indices
    cost: Vector
    gradient: Matrix


@dataclass(frozen=True, eq=False)
class NetworkResponder:
    """Best responses of racing arms to shares of a few arms."""

    outlook: NetworkOutlook
    leader: int
    racing: Indices
    arms: Indices
    """The arms that have shares, in ascending order."""

    def respond(self, omega: Vector) -> NetworkResponses:
        """Returns what `Responder.respond` does, for shares `omega` of `arms` and rows of `racing`."""
        outlook, u = self.outlook, omega / self.outlook.variances[self.arms]
        metric = NetworkMetric(outlook.network, self.arms, u)
        found = metric.compare(outlook.mu, self.leader, outlook.R, outlook.problem.tolerance, self.racing)
        gap = (found.lead / found.variance)[:, None] * found.directions / u
        return NetworkResponses(
            np.flatnonzero(found.value > 0), found.value, 0.5 * gap**2 / outlook.variances[self.arms]
        )


def aim(
    outlook: NetworkOutlook, leader: int, needs: Vector, allowed: Mask, before: Vector
) -> tuple[Vector, float]:
    """Returns the shares of the arms, and the part of what is needed that one pull brings.

    `before` is the last plan; `allowed` marks the arms that may be pulled.
    """
    racing = np.flatnonzero(needs)
    arms = _representatives(outlook, leader, needs, allowed, before)
    start = _start(before, arms, leader)
    if arms.size == PLANNED:  # arms that the plan hardly concerns wait for another one
        progress = NetworkResponder(outlook, leader, racing, arms).respond(start).cost / needs[racing]
        own = np.isin(racing, arms)
        if own.any():
            racing = racing[own | (progress >= progress[own].min())]
    shares, gain = improve(NetworkResponder(outlook, leader, racing, arms), needs[racing], start, STEPS)
    omega = np.zeros(needs.size)
    omega[arms] = shares
    return omega, gain


def _start(before: Vector, arms: Indices, leader: int) -> Vector:
    """Returns shares of `arms` from which a plan starts: the last plan, and some of even shares."""
    even = np.where(arms == leader, 0.5, 0.5 / max(arms.size - 1, 1))
    last = before[arms]
    mass = last.sum()
    start = START_SHARE * even + (1 - START_SHARE) * (last / mass if mass > 0 else even)
    return start / start.sum()


def _representatives(
    outlook: NetworkOutlook, leader: int, needs: Vector, allowed: Mask, before: Vector
) -> Indices:
    """Returns the arms that get shares: half of them as in the last plan, and arms that its shares say least about, no
    two of them neighbours as long as there are others."""
    usable = np.flatnonzero(allowed)
    if usable.size <= PLANNED:
        return usable
    racing = np.flatnonzero(needs)
    last = np.where(allowed, before, 0.0)
    last[leader] = np.inf
    by_share = np.argsort(-last, kind="stable")[: PLANNED // 2]
    chosen = np.zeros(needs.size, dtype=bool)
    chosen[by_share[last[by_share] > 0]] = True
    arms = np.flatnonzero(chosen)
    cost = NetworkResponder(outlook, leader, racing, arms).respond(_start(before, arms, leader)).cost
    waiting = racing[np.lexsort((outlook.mu[leader] - outlook.mu[racing], cost / needs[racing]))]
    laplacian = outlook.network.laplacian
    _spread_out(waiting[allowed[waiting]], laplacian.indptr, laplacian.indices, chosen, PLANNED)
    return np.flatnonzero(chosen)


@njit
def _spread_out(waiting: Indices, indptr: Indices, indices: Indices, chosen: Mask, most: int) -> None:
    """Marks arms as chosen, in their order, until there are `most`: first those without a chosen neighbour."""
    number = int(chosen.sum())
    for strict in (True, False):
        for a in waiting:
            if number >= most:
                return
            if chosen[a]:
                continue
            beside = False
            if strict:
                for p in range(indptr[a], indptr[a + 1]):
                    if chosen[indices[p]]:
                        beside = True
            if not beside:
                chosen[a] = True
                number += 1
