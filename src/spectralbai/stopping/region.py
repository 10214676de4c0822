"""The means that the data do not exclude: confidence intervals from the same event as the proof of the mixture rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.spectral import Decomposition

PRICES = 128
"""Number of prices of smoothness tried at once. Every price gives valid intervals; more prices only tighten them."""

MARGIN = 1e4
"""Factor by which the prices tried extend beyond the scales of the problem."""

EXTREME = 1e12
"""Factor by which the scale of R may exceed the other scales: beyond it components are practically rigid, or free."""


def number_of_tests(sizes: Indices) -> Indices:
    """Returns, for each of more than two components, how many tests can go wrong if the best arm is in it (6.7)."""
    return sizes.size - 1 + (sizes >= 2)


def graph_penalties(integrals: Vector, sizes: Indices) -> Vector:
    """Returns, per component, the largest cost of the true means on its results, minus log(1/risk) (theory 6.10, 6.13).

    With more than two components this depends on the component c of the best arm. That one is unknown, so the largest
    value over all c is used.
    """
    if sizes.size <= 2:
        return np.full(sizes.size, -integrals.sum())
    logs = np.log(number_of_tests(sizes))
    return np.maximum(_largest_other(logs - integrals), logs) - integrals


def lone_penalties(alone: Vector) -> Vector:
    """Returns the same per arm, from the comparisons of two arms (theory 6.14); infinite for an arm without a prior."""
    return math.log(alone.size - 1) - alone + _largest_other(-alone)


def _largest_other(x: Vector) -> Vector:
    """Returns, per entry, the largest of the other entries."""
    second, first = np.partition(x, -2)[-2:]
    others: Vector = np.where(np.arange(x.size) == np.argmax(x), second, first)
    return others


@dataclass(frozen=True, eq=False)
class Region:
    """Where the true means lie, at all times at once, with probability 1 - delta."""

    decomposition: Decomposition
    """The decomposition for the counts of the results that the tests use."""
    R: float
    """Largest S that the tests allow."""
    means: Vector
    """Empirical means of these results."""
    penalty: Vector
    """Largest cost of the true means on each component's results, minus log(1/delta), (n_components,). With up to two
    components: the cost on all results together."""
    lone_penalty: Vector | None
    """The same for each single arm; None if no part of the risk is spent on it."""

    def intervals(self, delta: float) -> tuple[Vector, Vector] | None:
        """Returns the ends of the intervals of all arms; None if the data exclude all means with S <= R."""
        radius = self.penalty - math.log(delta)
        low, high = np.full(self.means.size, -np.inf), np.full(self.means.size, np.inf)
        prices = self._prices(radius)
        for _ in range(2):  # first over all scales, then finely around the prices that gave the tightest ends
            lows, highs = self._ends(prices, radius)
            low, high = np.maximum(low, lows.max(axis=1)), np.minimum(high, highs.min(axis=1))
            useful = prices[np.append(lows.argmax(axis=1), highs.argmin(axis=1))]
            useful = useful[useful > 0]
            if not useful.size:
                break
            step = prices[2] / prices[1]
            prices = np.geomspace(useful.min() / step, useful.max() * step, PRICES)
        if self.lone_penalty is not None:
            with np.errstate(divide="ignore"):
                half = np.sqrt(2 * (self.lone_penalty - math.log(delta)) / self.decomposition.u)  # (6.14)
            low, high = np.maximum(low, self.means - half), np.minimum(high, self.means + half)
        if (low > high).any():
            return None
        return low, high

    def _prices(self, radius: Vector) -> Vector:
        """Returns prices of smoothness on a grid around the two scales that matter.

        These are the prices at which the penalty of a direction equals its weight, and the price at which R costs as
        much as the radius.
        """
        theta, rough = self.decomposition.theta, self.decomposition.rough
        curved = rough > 0
        if not curved.any():
            return np.zeros(1)
        bends = np.where(theta > 0, theta, 1.0)[curved] / rough[curved]
        with np.errstate(over="ignore"):
            scales = np.append(bends, np.clip(2 * radius / self.R, bends.min() / EXTREME, bends.max() * EXTREME))
        return np.append(0.0, np.geomspace(scales.min() / MARGIN, scales.max() * MARGIN, PRICES))

    def _ends(self, prices: Vector, radius: Vector) -> tuple[Matrix, Matrix]:
        """Returns the ends (n_arms, n_prices) of an ellipsoid for each price that contains the region (6.11, 6.12).

        The lower end is above the upper one if the ellipsoid, and so the region, is empty.
        """
        decomposition, components = self.decomposition, self.decomposition.components
        level, y = decomposition.coordinates(self.means)
        theta = decomposition.theta
        bend = decomposition.rough[:, None] * prices
        stiffness = theta[:, None] + bend
        inverse = np.divide(1.0, stiffness, out=np.zeros_like(stiffness), where=stiffness > 0)
        energy = np.divide(0.5 * y**2, theta, out=np.zeros_like(y), where=theta > 0)
        least = np.add.reduceat(energy[:, None] * bend * inverse, components.offsets[:-1], axis=0)
        if radius.size <= 2:
            least = least.sum(axis=0)
        with np.errstate(over="ignore"):  # after an overflow the ellipsoid is infinite: valid, though of no use
            room = 0.5 * prices * self.R if math.isfinite(self.R) else 0.0  # without a graph the price is 0
        slack = np.minimum(radius[:, None] + room - least, np.finfo(float).max / 4)
        reach = np.where(slack > 0, np.sqrt(2 * np.maximum(slack, np.finfo(float).tiny)), -np.inf)
        variance = decomposition.diagonal(inverse)
        variance[decomposition.diagonal((stiffness == 0).astype(np.float64)) > 0] = np.inf  # nothing bounds the arm
        half = reach[components.of_arm] * np.sqrt(variance)
        middle = decomposition.combine(y[:, None] * inverse) + level[:, None]
        return middle - half, middle + half
