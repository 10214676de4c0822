"""Which arms of a large graph the race pulls: a few hundred at a time, which stand for the others (theory 19.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectralbai.allocation.fixed_bets import improve
from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.spectral.network import ARMS_TRIED
from spectralbai.spectral.network_metric import NetworkMetric

STEPS, START_SHARE = 1, 0.3
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
        metric, tolerance = NetworkMetric(outlook.network, self.arms, u), outlook.problem.tolerance
        found = metric.compare(outlook.mu, self.leader, outlook.R, tolerance, self.racing, certified=False)
        gap = (found.lead / found.variance)[:, None] * found.directions / u
        return NetworkResponses(
            np.flatnonzero(found.value > 0), found.value, 0.5 * gap**2 / outlook.variances[self.arms]
        )


def aim(outlook: NetworkOutlook, leader: int, needs: Vector, allowed: Mask, before: Vector) -> tuple[Vector, float]:
    """Returns the shares of the arms, and the part of what is needed that one pull brings.

    `before` is the last plan; `allowed` marks the arms that may be pulled.
    """
    racing = np.flatnonzero(needs)
    arms = _representatives(outlook, leader, needs, allowed)
    start = _start(before, arms, leader)
    if arms.size < racing.size:  # arms that the plan hardly concerns wait for another one
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
    start /= start.sum()
    return start


def _representatives(outlook: NetworkOutlook, leader: int, needs: Vector, allowed: Mask) -> Indices:
    """Returns the arms that get shares: all of them or, if there are too many, the leader and the racing arms that need
    most, of equal ones those closest to the leader. So arms that had to wait come first in the next plans."""
    usable = np.flatnonzero(allowed)
    if usable.size <= ARMS_TRIED:
        return usable
    racing = np.flatnonzero(allowed & (needs > 0))
    first = racing[np.lexsort((-outlook.mu[racing], -needs[racing]))][: ARMS_TRIED - 1]
    return np.union1d(first, leader)
