"""Beliefs for the arms of a large graph, from sparse systems of equations (theory, section 19).

Like all beliefs they need no proof. What takes a decomposition elsewhere takes a few factors of diag(u) + price L here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.outlook import DOUBT, DRAWS, Outlook, stiffness_of
from spectralbai.spectral.network import ARMS_TRIED, Network
from spectralbai.spectral.network_metric import NetworkMetric
from spectralbai.spectral.sparse_factor import SparseFactor

LIGHT = 1e-9
"""Price, relative to the balance of results and graph, at which estimates are as rough as the results."""
CLOSE = 1e-4
"""Relative error of S of the estimate."""
STEPS = 30
"""Limit on Newton's steps for it; five do."""
RUNGS, STEP = 12, 1.5
"""Most prices at which evidence is computed, and the factor between them."""
AT_ONCE = 40
"""Draws from the posterior at a time, to limit the memory used."""


class _Rung(NamedTuple):
    """Best responses at one price of smoothness."""

    factor: SparseFactor
    lam: Vector
    """The closest means at this price."""
    value: float
    """What these cost, with the price of their roughness beyond R."""


@dataclass(frozen=True, eq=False)
class NetworkOutlook(Outlook):
    """Beliefs that need no matrix of all pairs of arms."""

    network: Network

    @cached_property
    def weights(self) -> Vector:
        """Counts over variances."""
        return self.evidence.data.counts / self.variances

    @cached_property
    def _balance(self) -> float:
        return float(self.weights.sum() / self.network.laplacian.diagonal().sum())

    def _smoothed(self, price: float) -> tuple[SparseFactor, Vector]:
        """Returns the factor of diag(u) + price L, and the closest means at this price."""
        factor = self.network.with_diagonal(price, self.weights)
        means = self.evidence.data.means
        level = float(self.weights @ means / self.weights.sum())
        return factor, factor.solve(self.weights * (means - level)) + level

    def _projected(self, R: float) -> tuple[float, Vector]:
        """Returns (price, lam): about the closest means with S <= R; the price is 0 if the results are smooth."""
        data, (_, lam) = self.evidence.data, self._smoothed(LIGHT * self._balance)
        lam = np.where(data.counts > 0, data.means, lam)
        if float(self.network.roughness(lam)) <= R:
            return 0.0, lam
        # 1 / sqrt(S) is a concave function of the price (theory, section 3), so Newton's steps end below the solution.
        price = self._balance
        for _ in range(STEPS):
            factor, lam = self._smoothed(price)
            rough = float(self.network.roughness(lam))
            if abs(rough - R) <= CLOSE * R:
                break
            bent = self.network.laplacian @ lam
            slope = float(bent @ factor.solve(bent))  # S' = -2 slope
            price = max(price + rough / slope * (np.sqrt(rough / R) - 1), 0.01 * price)
        return price, lam

    @cached_property
    def _at_R(self) -> tuple[float, Vector]:
        return self._projected(float(self.problem.radii[0]))

    @cached_property
    def misfit(self) -> float:
        return float(0.5 * self.weights @ (self.evidence.data.means - self._at_R[1]) ** 2)

    @property
    def _doubted(self) -> bool:
        return self.misfit > 0.5 * float(chdtri(self.freedom, DOUBT))

    @cached_property
    def R(self) -> float:
        """R, or the roughness of the results if they make R doubtful (theory 12.11)."""
        R = float(self.problem.radii[0])
        return max(R, float(self.network.roughness(self.mu)) * (1 + 1e-9)) if self._doubted else R

    @cached_property
    def mu(self) -> Vector:
        return self._projected(np.inf)[1] if self._doubted else self._at_R[1]

    def metric(self, counts: Vector) -> NetworkMetric:
        """Returns the metric of these numbers of results per arm; of very many arms, those with most results."""
        arms = np.flatnonzero(counts)
        if arms.size > ARMS_TRIED:
            arms = np.sort(arms[np.argsort(-counts[arms], kind="stable")[:ARMS_TRIED]])
        return NetworkMetric(self.network, arms, counts[arms] / self.variances[arms])

    @cached_property
    def _rungs(self) -> dict[int, _Rung]:
        return {}

    def _rung(self, k: int) -> _Rung:
        if k not in self._rungs:
            price = max(self._at_R[0], 0.01 * self._balance) * STEP**k
            factor, lam = self._smoothed(price)
            cost = 0.5 * self.weights @ (self.evidence.data.means - lam) ** 2
            value = float(cost + price / 2 * (self.network.roughness(lam) - self.R))
            self._rungs[k] = _Rung(factor, lam, value)
        return self._rungs[k]

    def strength(self, leader: int, tolerance: float) -> Vector:
        # The dual value of a challenger's alternative at any price is a lower bound of its cost (theory 3.6), and the
        # cost is the largest one: near it, the value is about a parabola in the logarithm of the price.
        unit = np.zeros(self.weights.size)
        unit[leader] = 1.0
        values: dict[int, Vector] = {}

        def value(k: int) -> Vector:
            if k not in values:
                rung = self._rung(k)
                column = rung.factor.solve(unit)
                spread = np.maximum(column[leader] + rung.factor.diagonal - 2 * column, 1e-300)
                spread[leader] = 1.0
                values[k] = rung.value + np.maximum(rung.lam[leader] - rung.lam + tolerance, 0.0) ** 2 / (2 * spread)
            return values[k]

        low, high = -1, 1
        while high - low + 1 < RUNGS:
            least, most = value(low) > value(low + 1), value(high) > value(high - 1)
            if not (least.any() or most.any()):
                break
            low, high = low - int(least.any()), high + int(most.any())
        ladder = np.array([value(k) for k in range(low, high + 1)])
        top = np.clip(ladder.argmax(axis=0), 1, len(ladder) - 2)
        before, middle, after = (np.take_along_axis(ladder, (top + k)[None], 0)[0] for k in (-1, 0, 1))
        bend = 2 * middle - before - after
        with np.errstate(divide="ignore", invalid="ignore"):
            vertex = np.clip(np.where(bend > 0, (after - before) / (2 * bend), 0.0), -1.0, 1.0)
        best = np.maximum(middle + vertex * (after - before) / 2 - vertex**2 * bend / 2, ladder.max(axis=0))
        evidence: Vector = np.maximum(best - (0.0 if self._doubted else self.misfit), 0.0)
        evidence[leader] = 0.0
        return evidence

    def cost(self, leader: int, allocation: Vector) -> Vector:
        everyone = np.arange(self.weights.size)
        return (
            self.metric(allocation)
            .compare(self.mu, leader, self.R, self.problem.tolerance, everyone, certified=False)
            .value
        )

    @cached_property
    def _posterior(self) -> SparseFactor:
        return self.network.with_diagonal(float(stiffness_of(self.problem)[0]), self.weights)

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        means = self.evidence.data.means
        level = float(self.weights @ means / self.weights.sum())
        return self._posterior.solve(self.weights * (means - level)) + level, self._posterior.diagonal

    def _drawn(self) -> Iterator[Matrix]:
        """Yields the draws from the posterior, a few at a time."""
        network, rng = self.network, np.random.default_rng(0)
        stiff = float(stiffness_of(self.problem)[0])
        a, b = network.pairs.T
        for _ in range(0, DRAWS, AT_ONCE):
            noise = np.sqrt(self.weights)[:, None] * rng.standard_normal((self.weights.size, AT_ONCE))
            across = np.sqrt(stiff * network.weights)[:, None] * rng.standard_normal((a.size, AT_ONCE))
            np.add.at(noise, a, across)
            np.subtract.at(noise, b, across)
            yield self.posterior[0][:, None] + self._posterior.solve(noise)

    @cached_property
    def draws(self) -> Matrix:
        return np.concatenate(list(self._drawn()), axis=1)

    @cached_property
    def chances(self) -> Vector:
        best: Indices = np.concatenate([part.argmax(axis=0) for part in self._drawn()])
        return np.bincount(best, minlength=self.weights.size) / DRAWS
