"""Beliefs that bets and plans are based on: variances, estimate, posterior, and whether R is doubtful.

Nothing here is proved, and nothing needs to be: the proofs allow any belief that was formed before the pulls that it
is used for. Good beliefs only make decisions faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import chdtri

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.levels import BlockData
from spectralbai.evidence.places import further_apart, places
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.spectral import Catalogue, Components, Decomposition, Duels, Network

DOUBT = 0.1
"""R is doubted if, with a correct R, a misfit at least as large would occur with at most this probability. Bets against
challengers then use the roughness of the data instead of R; this is still valid, and harder to win."""
STIFFEST = 1e100
"""Largest rank / R in the posterior; components are practically rigid at far smaller values."""
EQUAL = 1e-9
"""Relative difference above which two numbers count as different."""
DRAWS = 400
"""Number of draws from the posterior."""
BORROWED = 20.0
"""Number of results of the other arms of its category that an arm borrows when its variance is estimated."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """Beliefs formed from the results seen; every component must have a result."""

    evidence: Evidence
    """The results, and the leader."""
    levelled: bool = field(default=False, kw_only=True)
    """Whether blocks differ by more than noise, so that the levels of their blocks were subtracted from the results."""

    @classmethod
    def on(cls, evidence: Evidence) -> Outlook:
        """Returns the beliefs for this evidence, from a cache, so that the plan of a block and its bets share them."""
        return _formed(evidence.problem, evidence.data, evidence.best, evidence.origin)

    @property
    def problem(self) -> Problem:
        return self.evidence.problem

    @cached_property
    def variances(self) -> Vector:
        """The variance of one outcome of each arm: known, or estimated if outcomes lie in a known range."""
        data = self.evidence.data
        return self.problem.noise.variances(
            data.counts, data.sums, data.squares, self.evidence.origin, self.evidence.best
        )

    @cached_property
    def sigma(self) -> Vector:
        """The standard deviations that belong to `variances`."""
        return np.sqrt(self.variances)

    def decompose(self, counts: Vector) -> Decomposition:
        """Returns the decomposition for these counts, with the believed variances."""
        return Decomposition.of(Components.from_problem(self.problem), counts, self.sigma)

    @cached_property
    def decomposition(self) -> Decomposition:
        """The decomposition for the counts of the results seen."""
        if self.problem.outcome_range is None:
            return self.evidence.decomposition
        return self.decompose(self.evidence.data.counts)

    @cached_property
    def misfit(self) -> float:
        """How badly the results agree with R, in nats (see the glossary)."""
        if self.problem.unstructured:
            return 0.0
        return self.decomposition.misfit(self.evidence.data.means, self.decomposition.components.radii)

    @cached_property
    def freedom(self) -> int:
        """The number of directions in which the results could be rough: arms with results minus components."""
        return max(int((self.evidence.data.counts > 0).sum()) - int(self.problem.components.max()) - 1, 1)

    @cached_property
    def radii(self) -> Vector:
        """`Components.radii`, or the roughness of the results if they make R doubtful (theory 12.11, 16.8)."""
        radii = self.decomposition.components.radii
        if self.misfit <= 0.5 * float(chdtri(self.freedom, DOUBT)):
            return radii
        rough: Vector = self.decomposition.roughness(self.evidence.data.means, radii)
        return np.maximum(radii, rough * (1 + 1e-9))

    @cached_property
    def mu(self) -> Vector:
        """The constrained estimate for these radii and variances, minus the origin."""
        return self.decomposition.project(self.evidence.data.means, self.radii)

    def strength(self, leader: int, tolerance: float) -> Vector:
        """Returns the evidence against each challenger of a leader, in nats; 0 if there is none."""
        found = self.decomposition.respond(self.evidence.data.means, leader, self.radii, tolerance)
        return np.where(np.isfinite(found.cost), np.maximum(found.cost - found.misfit, 0.0), 0.0)

    def growth(self, leader: int, allocation: Vector) -> Vector:
        """Returns how much evidence against each challenger of a leader one pull by this allocation brings if the
        estimate is right, in nats; inf for challengers that cannot win."""
        known, cost = self._growths.get(leader, (None, np.empty(0)))
        if known is not allocation:
            cost = self.cost(leader, allocation)
            self._growths[leader] = allocation, cost
        return cost

    def cost(self, leader: int, allocation: Vector) -> Vector:
        """Returns f_i(allocation) of each challenger of a leader for the estimate; inf for those that cannot win."""
        return Responder(self.problem, self.mu, leader, self.sigma, self.radii).respond(allocation).cost

    @cached_property
    def _growths(self) -> dict[int, tuple[Vector, Vector]]:
        """By leader, the allocation that `growth` was last asked for, and the answer: a forecast asks again and again
        while results of a block arrive."""
        return {}

    @cached_property
    def _precision(self) -> Vector:
        """The precision of each coordinate of the posterior."""
        parts = self.decomposition
        return parts.theta + stiffness_of(self.problem)[parts.components.component] * parts.rough

    @cached_property
    def _inverse(self) -> Vector:
        """1 / precision; 0 for coordinates about which nothing is known."""
        return np.divide(1.0, self._precision, out=np.zeros_like(self._precision), where=self._precision > 0)

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        """(means, variances) of all arms under the graph posterior; the variance is infinite if nothing is known."""
        level, y = self.decomposition.coordinates(self.evidence.data.means)
        variance = self.decomposition.diagonal(self._inverse)
        unknown = self._precision == 0
        if unknown.any():
            variance[self.decomposition.diagonal(unknown.astype(np.float64)) > 0] = np.inf
        return self.decomposition.combine(y * self._inverse) + level, variance

    def hopes(self, leader: int) -> tuple[Vector, float]:
        """Returns an upper bound of each mean, and what it must exceed if the arm may be better than the leader."""
        mean, variance = self.posterior
        upper: Vector = mean + np.sqrt(2 * math.log(max(self.evidence.samples, 2)) * variance)  # (13.2)
        return upper, float(mean[leader])

    @cached_property
    def draws(self) -> Matrix:
        """Means drawn from the graph posterior, minus the origin, (n_arms, DRAWS); the random numbers are fixed."""
        parts = self.decomposition
        by_arm, by_edge = _normals(parts.components)
        # Its covariance is the precision matrix. The basis would do as well, but may be another one on other machines.
        stiffness = stiffness_of(self.problem)[parts.components.of_arm]
        noise = np.sqrt(parts.u)[:, None] * by_arm + np.sqrt(stiffness)[:, None] * by_edge
        return self.posterior[0][:, None] + parts.combine(self._inverse[:, None] * (parts.basis.T @ noise))

    @cached_property
    def chances(self) -> Vector:
        """The posterior probability that each arm is the best, estimated from the draws."""
        return np.bincount(self.draws.argmax(axis=0), minlength=self.problem.n_arms) / DRAWS


@dataclass(frozen=True, eq=False)
class CatalogueOutlook(Outlook):
    """Beliefs for arms in categories, from closed forms without matrices (theory, section 17)."""

    catalogue: Catalogue

    @cached_property
    def variances(self) -> Vector:
        """The variance of one outcome of each arm. If it has to be estimated, an arm borrows results of the other arms
        of its category, which are alike: one or two of its own say little (theory 17.20)."""
        data, catalogue = self.evidence.data, self.catalogue

        def others(x: Vector) -> Vector:
            """Returns the sum of `x` over the other arms of each arm's category."""
            return catalogue.total(x)[catalogue.of_arm] - x

        number = others(data.counts)
        part = np.minimum(number, BORROWED) / np.maximum(number, 1.0)
        counts, sums, squares = (x + part * others(x) for x in (data.counts, data.sums, data.squares))
        return self.problem.noise.variances(counts, sums, squares, self.evidence.origin, self.evidence.best)

    @cached_property
    def weights(self) -> Vector:
        """Counts over variances."""
        return self.evidence.data.counts / self.variances

    @cached_property
    def misfit(self) -> float:
        means = self.evidence.data.means
        lam = self.catalogue.project(self.weights, means, self.catalogue.room)
        return float(0.5 * self.weights @ (means - lam) ** 2)

    @cached_property
    def room(self) -> Vector:
        """How far apart the means of each category may be, by its R, or by results that make R doubtful (12.11)."""
        room = self.catalogue.room
        if self.misfit <= 0.5 * float(chdtri(self.freedom, DOUBT)):
            return room
        return np.maximum(room, self.catalogue.spread(self.weights, self.evidence.data.means) * (1 + 1e-9))

    @cached_property
    def mu(self) -> Vector:
        return self.catalogue.project(self.weights, self.evidence.data.means, self.room)

    def duels(self, counts: Vector, leader: int, tolerance: float) -> Duels:
        """Returns the comparisons of a leader with every arm, for these numbers of results per arm."""
        return self.catalogue.duels(counts / self.variances, self.mu, leader, tolerance, self.room)

    def strength(self, leader: int, tolerance: float) -> Vector:
        return self.duels(self.evidence.data.counts, leader, tolerance).value

    def growth(self, leader: int, allocation: Vector) -> Vector:
        return self.duels(allocation, leader, self.problem.tolerance).value

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        return self.catalogue.posterior(self.weights, self.evidence.data.means)

    def hopes(self, leader: int) -> tuple[Vector, float]:
        # The posterior takes the arms of a category to differ alike; but one of them may use all of its room.
        nats = 0.5 * math.log(max(self.evidence.samples, 2))
        return self.catalogue.highest(self.weights, self.evidence.data.means, self.room, nats), float(self.mu[leader])

    @cached_property
    def draws(self) -> Matrix:
        return np.array(list(self.catalogue.draws(self.weights, self.evidence.data.means, DRAWS))).T

    @cached_property
    def chances(self) -> Vector:
        # Not from `draws`, which would keep them all in memory.
        draws = self.catalogue.draws(self.weights, self.evidence.data.means, DRAWS)
        best = [int(np.argmax(mu)) for mu in draws]
        return np.bincount(best, minlength=self.problem.n_arms) / DRAWS


@lru_cache(maxsize=4)  # problems and data are immutable and compared by identity
def _formed(problem: Problem, data: Data, best: int, origin: float) -> Outlook:
    evidence, catalogue = Evidence(problem, data, best, origin), Catalogue.of(problem)
    if problem.items is not None:
        from spectralbai.evidence.item_outlook import ItemOutlook  # which derives from Outlook

        return ItemOutlook(evidence)
    outlook = Outlook(evidence) if catalogue is None else CatalogueOutlook(evidence, catalogue)
    network = Network.of(problem)
    if network is not None:
        from spectralbai.evidence.network_outlook import NetworkOutlook  # which derives from Outlook

        outlook = NetworkOutlook(evidence, network)
    if isinstance(data, BlockData) and data.differs(outlook.variances):
        return replace(outlook, evidence=replace(evidence, data=data.levelled), levelled=True)
    return outlook


@lru_cache(maxsize=32)
def stiffness_of(problem: Problem) -> Vector:
    """Returns rank / R of each component, the factor of its Laplacian in the precision matrix of the posterior, which
    is diag(u) + (rank / R) L. Each component has its own rank and R if there are several R (theory 16.9)."""
    to = Components.from_problem(problem)
    if problem.unstructured:
        return np.zeros(to.n_components)
    rank = np.full(to.n_components, to.rank) if to.radii.size == 1 else to.sizes - 1
    stiffness: Vector = np.divide(rank, to.radii, out=np.full(rank.size, STIFFEST), where=to.radii > 0)
    return np.minimum(stiffness, STIFFEST)


@lru_cache(maxsize=8)
def _normals(components: Components) -> tuple[Matrix, Matrix]:
    """Returns normal numbers of two kinds, (n_arms, DRAWS) each, with the unit matrix and the Laplacian as covariances.

    They are always the same, so that equal data give equal beliefs.
    """
    rng = np.random.default_rng(0)
    by_arm = rng.standard_normal((components.order.size, DRAWS))
    by_edge = np.zeros_like(by_arm)
    for first in range(0, components.weights.size, 10_000):  # not all at once: there may be many edges
        part = slice(first, first + 10_000)
        scale = np.sqrt(components.weights[part])
        by_edge += components.incidence[part].T @ (scale[:, None] * rng.standard_normal((scale.size, DRAWS)))
    return by_arm, by_edge


@dataclass(frozen=True, eq=False)
class CategoryRivals:
    """The result of `separable` for arms in categories: rows of its matrix, computed when they are asked for."""

    of_arm: Indices
    wide: Mask
    """Categories inside which arms can be further apart than the tolerance."""

    def __getitem__(self, leader: int) -> Mask:
        rivals: Mask = (self.of_arm != self.of_arm[leader]) | self.wide[self.of_arm[leader]]
        return rivals


@dataclass(frozen=True, eq=False)
class NetworkRivals:
    """The result of `separable` for a large graph: rows of its matrix, computed when they are asked for."""

    network: Network
    least: float
    """The least resistance between two arms that can be further apart than the tolerance."""

    def __getitem__(self, leader: int) -> Mask:
        network = self.network
        column = network.columns(np.array([leader])).values[:, 0]
        rivals: Mask = network.of_arm != network.of_arm[leader]
        rivals |= network.resistances[leader] + network.resistances - 2 * column > self.least
        return rivals


@lru_cache(maxsize=32)
def separable(problem: Problem) -> Mask | CategoryRivals | NetworkRivals:
    """Returns, per (leader, challenger), whether some smooth means put the challenger ahead by the tolerance.

    Inside one component this needs tolerance^2 < R c' L^+ c with c = e_b - e_i, and with the R of the component if
    there are several (theory 3.9). The inequality must hold by more than rounding errors: where the two sides are
    equal a best response may not exist, and then no bet would ever be made against that arm.
    """
    n_arms, catalogue = problem.n_arms, Catalogue.of(problem)
    if catalogue is not None:
        wide = problem.tolerance * (1 + EQUAL) < np.sqrt(2 * catalogue.room)
        return CategoryRivals(catalogue.of_arm, wide)
    network = Network.of(problem)
    if network is not None:
        return NetworkRivals(network, (problem.tolerance * (1 + EQUAL)) ** 2 / float(problem.radii[0]))
    if problem.unstructured or problem.tolerance == 0:
        return np.ones((n_arms, n_arms), dtype=bool)
    return further_apart(places(problem), problem.components, problem.tolerance * (1 + EQUAL))
