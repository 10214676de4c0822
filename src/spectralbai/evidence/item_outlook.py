"""Beliefs from results on items: how outcomes of one item go together, and what follows for means and chances.

As in `outlook`, nothing here is proved, and nothing needs to be (theory 18.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtri

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.outlook import DOUBT, DRAWS, Outlook, stiffness_of
from spectralbai.spectral import Components
from spectralbai.spectral.metric import Comparisons, Metric

PSEUDO_ITEMS = 2.0
"""Weight of the first guess that outcomes of an item do not depend on each other, as a number of items."""
MOST_ALIKE = 0.999
"""Largest correlation believed before there are many items."""
LEAST_EIGENVALUE = 1e-6
"""Smallest eigenvalue of a covariance that is believed, as a part of the largest."""
NEVER_EXACT = 1e-3
"""Part of its variance that the mean of a list keeps in beliefs when the list is used up."""


@dataclass(frozen=True, eq=False)
class ItemOutlook(Outlook):
    """Beliefs formed from results on items; every component must have a result."""

    @property
    def data(self) -> ItemData:
        data = self.evidence.data
        assert isinstance(data, ItemData), "problems with items have data on items"
        return data

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """The range of the outcomes minus the origin; None if they have none."""
        ends = self.problem.outcome_range
        if ends is None:
            return None
        low, high = (end - self.evidence.origin for end in ends)
        return low, high

    @cached_property
    def variances(self) -> Vector:
        data = self.data
        if self.problem.outcome_range is None:
            return self.problem.sigma**2
        return self.problem.noise.variances(
            data.counts, data.sums, data.squares, self.evidence.origin, self.evidence.best
        )

    @cached_property
    def covariance(self) -> Matrix:
        """The covariance of the outcomes of one item, (n_arms, n_arms), positive definite.

        It starts as "every item is equally hard for all arms": one correlation for all pairs. With more items it moves
        towards the empirical correlations.
        """
        data, n_arms = self.data, self.problem.n_arms
        n = data.together
        with np.errstate(divide="ignore", invalid="ignore"):
            # Rounding errors may make the variance of equal outcomes negative.
            own = np.maximum((data.squares - data.sums**2 / data.counts) / (data.counts - 1), 0.0)
            apart = (data.distances - (data.crossed - data.crossed.T) ** 2 / n) / (n - 1)
            # From the variance of differences: it is known after a few items, those of outcomes only after more.
            common = (own[:, None] + own - apart) / 2
            scale = np.sqrt(np.outer(own, own))
            correlation = np.where((n > 1) & (scale > 0), common / scale, 0.0)
        pairs = (n > 1) & ~np.eye(n_arms, dtype=bool)
        guess = 0.0
        if pairs.any() and scale[pairs].sum() > 0:
            shared = float(n[pairs].max())
            guess = float(common[pairs].sum() / scale[pairs].sum()) * shared / (shared + PSEUDO_ITEMS)
        if self.problem.outcome_range is None:  # sigma is what is left after the effect of an item, the same for all
            effect = max(float(common[pairs].mean()), 0.0) if pairs.any() else 0.0
            return np.diag(self.variances) + effect
        guess = min(max(guess, 0.0), MOST_ALIKE)
        start = 0.5 * n_arms / (0.5 * n_arms + np.maximum(n - 1, 0.0))
        believed = start * guess + (1 - start) * np.clip(correlation, -1.0, 1.0)
        np.fill_diagonal(believed, 1.0)
        return _definite(believed * np.outer(self.sigma, self.sigma))

    @cached_property
    def _tried(self) -> Indices:
        return np.flatnonzero(self.data.counts > 0)

    @cached_property
    def _estimates(self) -> tuple[Vector, Matrix]:
        """(means, covariance of the means of the arms tried): arms that were not tried on the last items are compared
        with the others on the items that they share (theory 18.8)."""
        data, tried = self.data, self._tried
        n, C = data.counts[tried], self.covariance[np.ix_(tried, tried)]
        both = data.together[np.ix_(tried, tried)]
        share = both / np.outer(n, n)
        means = data.means.copy()
        left = 0.0 if self.problem.items is None or self.problem.items.n is None else 1 / self.problem.items.n
        full = n == data.drawn
        pull = np.zeros(tried.size)
        spread = last = 0.0
        if full.any() and not full.all():
            on_all = full / full.sum()
            common = C @ on_all
            spread = float(on_all @ common)
            pull = common / spread
            with np.errstate(divide="ignore", invalid="ignore"):
                # The mean of the arms tried on everything, over the items of each arm.
                then = (data.crossed[np.ix_(tried, tried)][full] / both[full]).mean(axis=0)
            behind = ~full & np.isfinite(then)
            pull[~full & ~behind] = 0.0
            means[tried[behind]] += pull[behind] * (data.means[tried[full]].mean() - then[behind])
            last = 1 / data.drawn
        rest = C - spread * np.outer(pull, pull)
        own = np.maximum(share - left, NEVER_EXACT * share)
        covariance = spread * max(last - left, NEVER_EXACT * last) * np.outer(pull, pull) + rest * own
        return means, _definite(covariance)

    @cached_property
    def _metric(self) -> Metric:
        return Metric(self.problem, self._tried, self._estimates[1])

    @property
    def means(self) -> Vector:
        """Estimates of the means without the graph; those of arms that were not tried have no meaning."""
        return self._estimates[0]

    @cached_property
    def misfit(self) -> float:
        if self.problem.unstructured:
            return 0.0
        return self._metric.cost(self.means - self._metric.project(self.means, self._radii))

    @property
    def _radii(self) -> Vector:
        return Components.from_problem(self.problem).radii

    @cached_property
    def radii(self) -> Vector:
        if self.problem.unstructured or self.misfit <= 0.5 * float(chdtri(self.freedom, DOUBT)):
            return self._radii
        return np.maximum(self._radii, self._metric.roughness(self.means) * (1 + 1e-9))

    @cached_property
    def mu(self) -> Vector:
        return self._metric.project(self.means, self.radii)

    def strength(self, leader: int, tolerance: float) -> Vector:
        return self._metric.compare(self.mu, leader, self.radii, tolerance).value

    def compare(self, metric: Metric, leader: int, tolerance: float) -> Comparisons:
        """Returns the comparisons of a leader with every arm by results of this metric, at the present estimate."""
        return metric.compare(self.mu, leader, self.radii, tolerance)

    def metric_of(self, arms: Indices, weights: Matrix) -> Metric:
        """Returns the metric of results with this matrix of weights, the inverse of their covariance."""
        if self.problem.outcome_range is None:  # a common level costs nothing, and no direction needs it
            weights = weights + np.trace(weights) / arms.size**2
        return Metric(self.problem, arms, np.linalg.inv(weights).astype(np.float64))

    def weights_of(self, arms: Indices) -> Matrix:
        """Returns G, the weights of the outcomes of one item that is tried with these arms: the inverse of their
        covariance or, where bets must cancel the effect of the item, its part that sums to zero."""
        G = np.linalg.inv(self.covariance[np.ix_(arms, arms)])
        if self.problem.outcome_range is None:
            along = G.sum(axis=1)
            G = G - np.outer(along, along) / along.sum()
        return G.astype(np.float64)

    def growth(self, leader: int, allocation: Vector) -> Vector:
        arms = np.flatnonzero(allocation > 0)
        if arms.size < 2:
            return np.zeros(self.problem.n_arms)
        metric = Metric(self.problem, arms, arms.size * self.covariance[np.ix_(arms, arms)])
        return self.compare(metric, leader, self.problem.tolerance).value

    @cached_property
    def _posterior(self) -> tuple[Vector, Matrix]:
        """(means, covariance) of all means under the graph posterior."""
        n_arms, tried = self.problem.n_arms, self._tried
        if self.problem.unstructured and tried.size == n_arms:
            return self.means, self._estimates[1]
        precision = self._metric.laplacian(stiffness_of(self.problem))
        precision[np.ix_(tried, tried)] += self._metric.inverse
        covariance: Matrix = np.linalg.inv(_definite(precision)).astype(np.float64)
        pull = np.zeros(n_arms)
        pull[tried] = self._metric.inverse @ self.means[tried]
        return covariance @ pull, _definite(covariance)

    @property
    def posterior_covariance(self) -> Matrix:
        """The covariance of all means under the graph posterior."""
        return self._posterior[1]

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        means, covariance = self._posterior
        return means, np.diag(covariance)

    @cached_property
    def draws(self) -> Matrix:
        means, covariance = self._posterior
        normal = np.random.default_rng(0).standard_normal((means.size, DRAWS))
        drawn: Matrix = means[:, None] + np.linalg.cholesky(covariance) @ normal
        return drawn


def _definite(matrix: Matrix) -> Matrix:
    """Returns the symmetric matrix with eigenvalues that are positive, not only up to rounding errors."""
    matrix = (matrix + matrix.T) / 2
    values, vectors = np.linalg.eigh(matrix)
    least = LEAST_EIGENVALUE * values[-1]
    if values[0] >= least:
        return matrix
    definite: Matrix = (vectors * np.maximum(values, least)) @ vectors.T
    return definite
