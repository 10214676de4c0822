"""What the results seen say to a bettor or planner: variances, estimate, posterior, and whether R is doubtful.

Nothing here is proved or needs to be: bets and plans may rest on any belief formed before the pulls they are for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import chdtri

from spectralbai.checks import Indices, Mask, Matrix, Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.oracle import Oracle
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue, Components, Decomposition, Duels, decompose

DOUBT = 0.1
"""Where the misfit is larger than it would be with this probability if R were right, challengers get the benefit of the
doubt: they are bet against at the roughness of the data instead, which is valid and harder."""
STIFFEST = 1e100
"""Largest rank / R in the posterior: components are as good as rigid before."""
EQUAL = 1e-9
"""Relative difference from which two differences of means are not the same."""
DRAWS = 400
"""Draws from the posterior."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """Beliefs formed from the results seen; every component has one."""

    evidence: Evidence
    """The results, and the leader: the arm to defend."""

    @classmethod
    def on(cls, evidence: Evidence) -> Outlook:
        """Returns the beliefs on this evidence, formed once: what a block was planned on is what its bets come from."""
        return _formed(evidence.problem, evidence.data, evidence.best, evidence.origin)

    @property
    def problem(self) -> Problem:
        return self.evidence.problem

    @cached_property
    def variances(self) -> Vector:
        """Of one outcome of each arm: known, or learnt for outcomes in a range."""
        data = self.evidence.data
        return self.problem.noise.variances(
            data.counts, data.sums, data.squares, self.evidence.origin, self.evidence.best
        )

    @cached_property
    def sigma(self) -> Vector:
        """The standard deviations believed."""
        sigma: Vector = np.sqrt(self.variances)
        return sigma

    def decompose(self, counts: Vector) -> Decomposition:
        """Returns the decomposition for these counts at the variances believed."""
        return Decomposition.of(Components.from_problem(self.problem), counts, self.sigma)

    @cached_property
    def decomposition(self) -> Decomposition:
        """That of the counts seen."""
        if self.problem.outcome_range is None:
            return self.evidence.decomposition
        return self.decompose(self.evidence.data.counts)

    @cached_property
    def misfit(self) -> float:
        """What the best smooth explanation of the results costs."""
        if self.problem.unstructured:
            return 0.0
        return self.decomposition.misfit(self.evidence.data.means, self.decomposition.components.radii)

    @cached_property
    def freedom(self) -> int:
        """Directions in which the results could be rough: arms seen, less one per component."""
        return max(int((self.evidence.data.counts > 0).sum()) - self.decomposition.components.n_components, 1)

    @cached_property
    def radii(self) -> Vector:
        """R, or the roughness of the results where they make R doubtful (theory 12.11, 16.8), in the form of
        `Components.radii`."""
        radii = self.decomposition.components.radii
        if self.misfit <= 0.5 * float(chdtri(self.freedom, DOUBT)):
            return radii
        rough: Vector = self.decomposition.roughness(self.evidence.data.means, radii)
        return np.maximum(radii, rough * (1 + 1e-9))

    @cached_property
    def mu(self) -> Vector:
        """The constrained estimate at this R and these variances, less the origin."""
        return self.decomposition.project(self.evidence.data.means, self.radii)

    def strength(self, leader: int, tolerance: float) -> Vector:
        """Returns the evidence against each challenger of a leader, in nats; 0 where there is none."""
        found = self.decomposition.respond(self.evidence.data.means, leader, self.radii, tolerance)
        return np.where(np.isfinite(found.cost), np.maximum(found.cost - found.misfit, 0.0), 0.0)

    def growth(self, leader: int, allocation: Vector) -> Vector:
        """Returns the evidence against each challenger of a leader that a pull by this allocation brings, if the
        estimate is right, in nats; inf for challengers that cannot win."""
        oracle = Oracle(self.problem, self.mu, leader, self.sigma, self.radii)
        return oracle.respond(allocation).cost

    @cached_property
    def _precision(self) -> Vector:
        """Of each coordinate of the posterior, whose precision is diag(u) + (rank/R) L, in each component if R is so
        (theory 16.9)."""
        parts, to = self.decomposition, self.decomposition.components
        if self.problem.unstructured:
            return parts.theta + 0.0 * parts.rough
        if to.radii.size == 1:
            stiffness = np.minimum(to.rank / to.radii, STIFFEST)
        else:
            ratio = np.divide(to.sizes - 1, to.radii, out=np.full_like(to.radii, STIFFEST), where=to.radii > 0)
            stiffness = np.minimum(ratio, STIFFEST)[to.component]
        precision: Vector = parts.theta + stiffness * parts.rough
        return precision

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        """(means, variances) of all arms under the graph posterior; the variance is infinite where nothing is known."""
        level, y = self.decomposition.coordinates(self.evidence.data.means)
        known = self._precision > 0
        inverse = np.divide(1.0, self._precision, out=np.zeros_like(self._precision), where=known)
        variance = self.decomposition.diagonal(inverse)
        variance[self.decomposition.diagonal((~known).astype(np.float64)) > 0] = np.inf
        return self.decomposition.combine(y * inverse) + level, variance

    @cached_property
    def draws(self) -> Matrix:
        """Means drawn from the graph posterior, always with the same luck, less the origin: shape (n_arms, DRAWS)."""
        known = self._precision > 0
        scale = np.divide(1.0, np.sqrt(self._precision), out=np.zeros_like(self._precision), where=known)
        drawn: Matrix = self.posterior[0][:, None] + self.decomposition.combine(scale[:, None] * _normals(scale.size))
        return drawn

    @cached_property
    def chances(self) -> Vector:
        """The posterior probability of each arm to be the best, from these draws."""
        chances: Vector = np.bincount(self.draws.argmax(axis=0), minlength=self.problem.n_arms) / DRAWS
        return chances


@dataclass(frozen=True, eq=False)
class CatalogueOutlook(Outlook):
    """The same for arms in categories: closed forms, no matrices (theory, section 17)."""

    catalogue: Catalogue

    @cached_property
    def weights(self) -> Vector:
        """Counts over variances."""
        weights: Vector = self.evidence.data.counts / self.variances
        return weights

    @cached_property
    def misfit(self) -> float:
        means = self.evidence.data.means
        lam = self.catalogue.project(self.weights, means, self.catalogue.room)
        return float(0.5 * self.weights @ (means - lam) ** 2)

    @cached_property
    def freedom(self) -> int:
        return max(int((self.weights > 0).sum()) - self.catalogue.n_categories, 1)

    @cached_property
    def room(self) -> Vector:
        """Of each category: as its R says, or as the results need where they make the R doubtful (theory 12.11)."""
        room = self.catalogue.room
        if self.misfit <= 0.5 * float(chdtri(self.freedom, DOUBT)):
            return room
        return np.maximum(room, self.catalogue.spread(self.weights, self.evidence.data.means) * (1 + 1e-9))

    @cached_property
    def mu(self) -> Vector:
        return self.catalogue.project(self.weights, self.evidence.data.means, self.room)

    def duels(self, counts: Vector, leader: int, tolerance: float) -> Duels:
        """Returns the bets of a leader for these numbers of results."""
        return self.catalogue.duels(counts / self.variances, self.mu, leader, tolerance, self.room)

    def strength(self, leader: int, tolerance: float) -> Vector:
        return self.duels(self.evidence.data.counts, leader, tolerance).value

    def growth(self, leader: int, allocation: Vector) -> Vector:
        return self.duels(allocation, leader, self.problem.tolerance).value

    @cached_property
    def posterior(self) -> tuple[Vector, Vector]:
        return self.catalogue.posterior(self.weights, self.evidence.data.means)

    @cached_property
    def chances(self) -> Vector:
        draws = self.catalogue.draws(self.weights, self.evidence.data.means, DRAWS)
        best = [int(np.argmax(mu)) for mu in draws]
        chances: Vector = np.bincount(best, minlength=self.problem.n_arms) / DRAWS
        return chances


@lru_cache(maxsize=4)  # problems and data are immutable and compared by identity
def _formed(problem: Problem, data: Data, best: int, origin: float) -> Outlook:
    evidence, catalogue = Evidence(problem, data, best, origin), Catalogue.of(problem)
    return Outlook(evidence) if catalogue is None else CatalogueOutlook(evidence, catalogue)


@lru_cache(maxsize=8)
def _normals(n: int) -> Matrix:
    """Returns standard normal numbers (n, DRAWS), always the same ones: a belief must not depend on luck."""
    return np.random.default_rng(0).standard_normal((n, DRAWS))


@dataclass(frozen=True, eq=False)
class CategoryRivals:
    """What `separable` is, a row at a time, where arms are in categories."""

    of_arm: Indices
    wide: Mask
    """Categories inside which arms can be further apart than the tolerance."""

    def __getitem__(self, leader: int) -> Mask:
        rivals: Mask = (self.of_arm != self.of_arm[leader]) | self.wide[self.of_arm[leader]]
        return rivals


@lru_cache(maxsize=32)
def separable(problem: Problem) -> Mask | CategoryRivals:
    """Returns, per (leader, challenger), whether smooth means can let the challenger beat the leader by the tolerance.

    In one component it needs tolerance^2 < R c' L^+ c, c = e_b - e_i and R that of the component if it has one
    (theory 3.9), by more than rounding: the oracle may find no alternative where the two are equal, and nobody would
    ever bet against that arm.
    """
    n_arms, catalogue = problem.n_arms, Catalogue.of(problem)
    if catalogue is not None:
        wide = problem.tolerance * (1 + EQUAL) < np.sqrt(2 * catalogue.room)
        return CategoryRivals(catalogue.of_arm, wide)
    if problem.unstructured or problem.tolerance == 0:
        return np.ones((n_arms, n_arms), dtype=bool)
    # Squares of differences over the roughness of each coordinate, as in the oracle: a pseudo-inverse loses resistances
    # that differ by many orders of magnitude.
    parts = decompose(problem, np.ones(n_arms))
    basis, curved = parts.basis, parts.rough > 0
    reach = np.sqrt(parts.components.radii)
    reach = np.full(n_arms, reach[0]) if reach.size == 1 else reach[parts.components.of_arm]
    far: Mask = problem.components[:, None] != problem.components[None, :]
    for b in range(n_arms):
        mates = np.flatnonzero(~far[b])
        resistance = (basis[mates][:, curved] - basis[b, curved]) ** 2 @ (1 / parts.rough[curved])
        far[b, mates] = problem.tolerance * (1 + EQUAL) < reach[b] * np.sqrt(resistance)
    return far
