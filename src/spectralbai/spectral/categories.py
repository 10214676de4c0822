"""Arms in categories, each with an R: closed forms in place of matrices (theory, section 17).

In a category of m arms, all joined by edges of weight w, S(lam) = m w sum_a (lam_a - mean)^2. So S <= R is the same as
sum_a (lam_a - mean)^2 <= R / (m w); this bound is called the room of the category. No array here is larger than the
number of arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from spectralbai.arrays import Indices, Vector
from spectralbai.graph import Categories
from spectralbai.problem import Problem
from spectralbai.spectral.secular import price_step

LARGEST_IN_MATRICES = 200
"""Without a graph, closed forms replace matrices for more arms than this; with fewer, results stay as they were."""
ROOT_STEPS = 100
"""Limit on the steps of a root search; Newton's method needs about six."""
ROOMS = (1e-200, 1e200)
"""Room is clipped to this range: squares of numbers outside it would overflow or underflow, and no means need more."""
MIXTURES = (0.0, 0.5, 1.0)
"""Weights tried for the average of the leader's category in place of the leader; the best is used (theory 17.6)."""


@dataclass(frozen=True, eq=False)
class Duels:
    """For each arm, the most promising bet against "this arm is the best", and its expected gain (theory 17.5)."""

    value: Vector
    """Evidence in nats: lead^2 / (2 variance); 0 if no bet promises a gain."""
    lead: Vector
    """G: how far the mean of the leader's mixture is above the largest possible mean of the arm."""
    variance: Vector
    """Variance of the estimate of that lead."""
    own: Vector
    """Weight of the arm's results in the average that represents it; the rest is the average of its category."""
    mixture: Vector
    """Weight of the category's average in the mixture that represents the leader."""
    margin: Vector
    """How far the mean of an arm can be above the average of its category's results."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The categories of a problem; a single arm without edges is a category, too."""

    of_arm: Indices
    """The category of each arm."""
    sizes: Vector
    """Number of arms of each category."""
    room: Vector
    """R_c / (m_c weight); 0 for a category of one arm."""

    @classmethod
    @lru_cache(maxsize=32)  # problems are immutable and compared by identity
    def of(cls, problem: Problem) -> Catalogue | None:
        """Returns the catalogue of a problem; None if its graph needs matrices."""
        graph = problem.graph
        if problem.unstructured:
            if problem.n_arms <= LARGEST_IN_MATRICES and not isinstance(graph, Categories):
                return None
            return cls(np.arange(problem.n_arms), np.ones(problem.n_arms), np.zeros(problem.n_arms))
        if not isinstance(graph, Categories) or not (problem.by_component or graph.n_components == 1):
            return None
        components = problem.components
        sizes = np.bincount(components).astype(np.float64)
        first = np.unique(components, return_index=True)[1]
        radii = problem.radii[graph.components[first]]
        with np.errstate(over="ignore"):
            room = np.where(sizes > 1, radii, 0.0) / sizes / graph.weight
        return cls(components, sizes, np.where((sizes > 1) & (radii > 0), np.clip(room, *ROOMS), 0.0))

    @property
    def n_categories(self) -> int:
        return self.sizes.size

    def total(self, x: Vector) -> Vector:
        """Returns the sum of `x` (n_arms,) over each category."""
        return np.bincount(self.of_arm, x, self.n_categories).astype(np.float64)

    def spread(self, u: Vector, means: Vector) -> Vector:
        """Returns, per category, the least sum of (lam_a - mean)^2 over means equal to `means` where u > 0."""
        observed = (u > 0).astype(np.float64)
        number = self.total(observed)
        level = np.divide(self.total(observed * means), number, out=np.zeros_like(number), where=number > 0)
        return self.total(observed * (means - level[self.of_arm]) ** 2)

    def project(self, u: Vector, means: Vector, room: Vector) -> Vector:
        """Returns the closest means with at most this `room`, for weights `u`; arms without results get the mean of
        their category.

        lam_a = x + d_a (means_a - x) with d_a = u_a / (u_a + k), x the mean of the means weighted by d, and k the root
        of sum_a d_a^2 (means_a - x)^2 = room (theory 17.3); k = 0 if the means already fit in the room.
        """
        observed = np.flatnonzero(u > 0)
        c, weights, values = self.of_arm[observed], u[observed], means[observed]
        first = np.full(self.n_categories, np.nan)
        first[c] = values
        values = values - first[c]  # so that a large common level costs no accuracy
        k = _prices(c, weights, values, room)
        shrink = weights / (weights + k[c])
        level = np.bincount(c, shrink * values, room.size) / np.maximum(np.bincount(c, shrink, room.size), 1e-300)
        lam: Vector = (level + first)[self.of_arm]
        lam[observed] = np.where(k[c] > 0, level[c] + shrink * (values - level[c]), values) + first[c]
        return lam

    @cached_property
    def _stiffness(self) -> Vector:
        """The k of each arm in the posterior (theory 17.4)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            stiffness: Vector = np.where(self.room > 0, (self.sizes - 1) / self.room, 0.0)[self.of_arm]
        return stiffness

    def posterior(self, u: Vector, means: Vector) -> tuple[Vector, Vector]:
        """Returns (means, variances) of all arms for a flat level of each category and a Gaussian prior around it
        whose expected S is about R (theory 17.4)."""
        k = self._stiffness
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (u + k)
            heavy = np.where(u > 0, u * inverse, 0.0)
            known = self.total(heavy)
            level = (self.total(heavy * means) / known)[self.of_arm]
            mean = np.where(u > 0, level + heavy * (means - level), level)
            variance = inverse + k * inverse * inverse / known[self.of_arm]  # the square alone may overflow
        return mean, np.where(np.isnan(variance), np.inf, variance)

    def draws(self, u: Vector, means: Vector, n: int) -> Iterator[Vector]:
        """Yields n vectors of means drawn from the posterior, always with the same random numbers."""
        rng = np.random.default_rng(0)
        mean, variance = self.posterior(u, means)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.minimum(1 / (u + self._stiffness), variance)
            shared = np.sqrt(np.where(np.isfinite(variance), variance - apart, 0.0))
        for _ in range(n):
            drawn: Vector = mean + np.sqrt(apart) * rng.standard_normal(u.size)
            yield drawn + shared * rng.standard_normal(self.n_categories)[self.of_arm]

    def averages(self, v: Vector, room: Vector) -> tuple[Vector, Vector]:
        """Returns the weight of each arm in the average of its category's results, and its margin: how far its mean can
        be above the mean of that average (theory 17.2)."""
        heavy = self.total(v)[self.of_arm]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(v > 0, v / heavy, 0.0)
        margin = np.sqrt(room[self.of_arm] * np.maximum(1 - 2 * share + self.total(share**2)[self.of_arm], 0.0))
        margin[share == 1] = 0.0
        return share, margin

    def highest(self, u: Vector, means: Vector, room: Vector, nats: float) -> Vector:
        """Returns how high the mean of each arm can be, by its own results or by those of its category, whichever say
        less; the results are believed up to this many `nats` (theory 17.19)."""
        share, margin = self.averages(u, room)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = np.where(u > 0, means + np.sqrt(2 * nats / u), np.inf)
            together = self.total(share * means) + np.sqrt(2 * nats / self.total(u))
        return np.minimum(alone, together[self.of_arm] + margin)

    def duels(self, v: Vector, nu: Vector, leader: int, tolerance: float, room: Vector) -> Duels:
        """Returns the best bets of a leader against every arm, for estimates `nu` (n_arms,) and weights `v` of results.

        Arm i is represented by an average with weight `own` on its results and the rest on all results of its category.
        The mean of arm i exceeds this average by at most (1 - own) margin_i. If arm i is the best, its mean is also at
        least that of every mixture of arms that represents the leader.
        """
        of_arm = self.of_arm
        heavy = self.total(v)
        with np.errstate(divide="ignore", invalid="ignore"):
            alone, together = 1 / v, (1 / heavy)[of_arm]
        share, margin = self.averages(v, room)
        centre = self.total(share * nu)
        home = of_arm[leader]
        value, lead, variance, own, mixture = np.zeros((5, nu.size))
        duels = Duels(value, lead, variance, own, mixture, margin)
        for mixed in MIXTURES if tolerance == 0 else MIXTURES[:1]:
            if heavy[home] == 0 or (v[leader] == 0 and mixed < 1) or (mixed > 0 and share[leader] == 1):
                continue
            top = (1 - mixed) * nu[leader] + mixed * centre[home] + tolerance
            noise = 1 / heavy[home]
            if mixed < 1:
                noise += (1 - mixed) ** 2 * (1 / v[leader] - 1 / heavy[home])
            with np.errstate(divide="ignore", invalid="ignore"):
                far = top - centre[of_arm] - margin  # the lead if only the category represents the arm
                near = top - nu  # the lead if only the arm does
                at_home = of_arm == home
                a0 = np.where(at_home, noise - together, noise + together)
                a1 = np.where(at_home, (1 - mixed) * together, 0.0)
                a2 = alone - together
                best = ((near - far) * a0 - far * a1) / (far * a2 - (near - far) * a1)
                for tried in (np.zeros(nu.size), np.ones(nu.size), np.where((best > 0) & (best < 1), best, 0.0)):
                    ahead = far + tried * (near - far)
                    spread = a0 + 2 * tried * a1 + np.where(tried > 0, tried**2 * a2, 0.0)
                    usable = (heavy[of_arm] > 0) & ((tried == 0) | (v > 0)) & (ahead > 0) & (spread > 0)
                    worth = np.where(usable, ahead**2 / (2 * spread), 0.0)
                    better = worth > value
                    for most, these in ((value, worth), (lead, ahead), (variance, spread), (own, tried)):
                        most[better] = these[better]
                    mixture[better] = mixed
        value[leader] = lead[leader] = 0.0
        variance[value == 0] = 1.0
        return duels


def _prices(c: Indices, u: Vector, values: Vector, room: Vector) -> Vector:
    """Returns k of each category: 0, or the root of sum_a d_a^2 (values_a - x)^2 = room (theory 17.3)."""
    n = room.size

    def spread_at(k: Vector) -> tuple[Vector, Vector]:
        """Returns the spread and its derivative in k."""
        shrink = u / (u + k[c])
        falls = -shrink / (u + k[c])
        total = np.maximum(np.bincount(c, shrink, n), 1e-300)
        apart = values - (np.bincount(c, shrink * values, n) / total)[c]
        drift = np.bincount(c, falls * apart, n) / total
        slope = np.bincount(c, 2 * shrink * falls * apart**2, n) - 2 * drift * np.bincount(c, shrink**2 * apart, n)
        return np.bincount(c, shrink**2 * apart**2, n).astype(np.float64), slope

    k = np.zeros(n)
    spread, slope = spread_at(k)
    open_ = spread > room * (1 + 1e-15)
    low, high = np.zeros(n), np.full(n, np.inf)
    for _ in range(ROOT_STEPS):
        if not open_.any():
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            guess = k + price_step(spread, slope, room)
        inside = (low < guess) & (guess < high)
        between = np.where(np.isinf(high), np.maximum(4 * low, 1e-3), np.sqrt(np.maximum(low, high * 1e-6) * high))
        k = np.where(open_, np.where(inside, guess, between), k)
        spread, slope = spread_at(k)
        above = spread > room
        low, high = np.where(open_ & above, k, low), np.where(open_ & ~above, k, high)
        open_ &= (np.abs(spread - room) > 4e-15 * room) & (high > low * (1 + 4e-16))
    return k
