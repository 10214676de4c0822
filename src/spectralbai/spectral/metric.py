"""Comparisons of arms whose estimates depend on each other, as those of options tried on the same items do.

A bet against "arm i is the best" is a direction z over the arms that were tried, and a bound on z.mu under that claim
(theory 18.5). Any direction is allowed; good ones come from best responses in the metric of the estimates, at a few
prices of smoothness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.problem import Problem
from spectralbai.spectral.components import Components

PRICES = 10.0 ** np.arange(-4, 4.1, 0.75)
"""Prices of smoothness that are tried, relative to the balance of the metric and the graph."""
ROUNDING = 1e-15
"""Error of an eigenvalue, as a part of the largest one times the number of arms."""
BISECTIONS = 40
"""Steps of the search for the price at which an estimate is as smooth as R asks."""


class Comparisons(NamedTuple):
    """For each arm, the most promising direction against the claim that it is the best, or better by the tolerance."""

    directions: Matrix
    """z: one row per arm, one column per arm tried."""
    most: Vector
    """The largest z.mu if the claim is true."""
    lead: Vector
    """How far z.mu of the estimate is above that; 0 if no direction promises a gain."""
    variance: Vector
    """Variance of the estimate of z.mu."""

    @property
    def value(self) -> Vector:
        """Evidence in nats: lead^2 / (2 variance)."""
        return self.lead**2 / (2 * self.variance)


@dataclass(frozen=True, eq=False)
class Metric:
    """The covariance of the estimates of the arms tried, beside the graph."""

    problem: Problem
    arms: Indices
    """The arms tried, in ascending order."""
    covariance: Matrix
    """Covariance of their estimates, positive definite."""

    @cached_property
    def inverse(self) -> Matrix:
        return np.linalg.inv(self.covariance).astype(np.float64)

    def compare(self, nu: Vector, leader: int, radii: Vector, tolerance: float) -> Comparisons:
        """Returns the comparisons of a leader with every arm, for estimates `nu` (n_arms,) of all means.

        With a graph they are the best of those at a few prices of smoothness (theory 18.6). `radii` is R in the form of
        `Components.radii`.
        """
        if self.problem.unstructured:
            return self._pairs(nu, leader, tolerance)
        answer = self._nothing(nu.size)
        graph, pencil, responses = _graph(self.problem), self._pencil, self._responses
        if not pencil.alive[leader]:
            return answer
        means, shrink = nu[self.arms], responses.shrink
        along = pencil.along(means)
        apart = np.zeros((nu.size, along.size))  # e_leader - e_i, in the pencil's coordinates
        apart[pencil.alive] = pencil.basis_of(leader) - pencil.basis
        with np.errstate(divide="ignore", invalid="ignore"):
            press = np.maximum(((shrink * along) @ apart.T + tolerance) / (shrink @ (apart**2).T), 0.0)
        press[~(pencil.alive & np.isfinite(press))] = 0.0
        z, rest, turned = responses.against(leader, press, self._widened(self._start(along, means)))
        most = graph.most(rest, radii) - press * tolerance
        lead, variance = z @ means - most, (turned * z).sum(axis=2)
        good = (press > 0) & (lead > 0) & (variance > 0)
        good[:, leader] = False
        value = np.where(good, lead, 0.0) ** 2 / np.where(good, variance, 1.0)
        best = value.argmax(axis=0)
        use = np.flatnonzero(value.max(axis=0))
        for values, others in zip(answer, (z, most, lead, variance), strict=True):
            values[use] = others[best[use], use]
        return answer

    def project(self, means: Vector, radii: Vector) -> Vector:
        """Returns about the closest means with S <= R; `means` (n_arms,) counts for the arms tried."""
        if self.problem.unstructured:
            return means
        graph, pencil = _graph(self.problem), self._pencil
        along = pencil.along(means[self.arms])
        low, high = -9.0, 9.0
        if (graph.roughness(pencil.smoothed(10**low, along, means)) <= radii).all():
            high = low
        for _ in range(BISECTIONS if high > low else 0):
            middle = (low + high) / 2
            if (graph.roughness(pencil.smoothed(10**middle, along, means)) <= radii).all():
                high = middle
            else:
                low = middle
        return pencil.smoothed(10**high, along, means)

    def cost(self, gap: Vector) -> float:
        """Returns half the squared distance of two vectors of means whose difference is `gap` (n_arms,)."""
        apart = gap[self.arms]
        return float(0.5 * apart @ self.inverse @ apart)

    def roughness(self, means: Vector) -> Vector:
        """Returns about the least S of means equal to `means` on the arms tried, in the form of `Components.radii`."""
        free = self._pencil.smoothed(PRICES[0], self._pencil.along(means[self.arms]), means)
        return _graph(self.problem).roughness(free)

    def laplacian(self, weights: Vector) -> Matrix:
        """Returns the Laplacian, each component multiplied by one of `weights`."""
        graph = _graph(self.problem)
        return graph.laplacian * weights[graph.of_arm][:, None]

    def against_smoothness(self, nu: Vector, radii: Vector) -> tuple[Vector, float]:
        """Returns a direction over the arms tried, and the largest z.mu of smooth means, for estimates `nu`."""
        z = (self.inverse @ (nu - self.project(nu, radii))[self.arms])[None]
        graph = _graph(self.problem)
        z = self._balanced(z, np.zeros((1, graph.n_components)))
        return z[0], float(graph.most(z @ graph.root[self.arms], radii)[0])

    @cached_property
    def _pencil(self) -> _Pencil:
        return _Pencil.of(self.problem, self.arms, self.inverse)

    def _nothing(self, n_arms: int) -> Comparisons:
        return Comparisons(np.zeros((n_arms, self.arms.size)), np.zeros(n_arms), np.zeros(n_arms), np.ones(n_arms))

    def _pairs(self, nu: Vector, leader: int, tolerance: float) -> Comparisons:
        """Returns the comparisons without a graph: of pairs of arms that were both tried."""
        answer = self._nothing(nu.size)
        place = np.searchsorted(self.arms, leader)
        if place == self.arms.size or self.arms[place] != leader:
            return answer
        V = self.covariance
        lead = nu[leader] - nu[self.arms] + tolerance
        use = np.flatnonzero((lead > 0) & (self.arms != leader))
        arms = self.arms[use]
        answer.directions[arms, place] = 1.0
        answer.directions[arms, use] = -1.0
        answer.most[arms] = -tolerance
        answer.lead[arms] = lead[use]
        answer.variance[arms] = V[place, place] + V[use, use] - 2 * V[place, use]
        return answer

    @cached_property
    def _responses(self) -> _Responses:
        graph, pencil = _graph(self.problem), self._pencil
        shrink = pencil.shrink(PRICES[:, None])
        rows = np.zeros((PRICES.size, graph.of_arm.size, self.arms.size))
        rows[:, pencil.alive] = (pencil.basis * shrink[:, None]) @ pencil.pull
        rows = self._widened(self._balanced(rows, graph.member))
        rows[:, :, self.arms.size : -self.arms.size] -= graph.root
        return _Responses(self.arms.size, shrink, rows)

    def _start(self, along: Vector, means: Vector) -> Matrix:
        """Returns the directions of (18.6) without a rival, one row per price."""
        pencil, shrink = self._pencil, self._responses.shrink
        z = self.inverse @ means - (shrink * along) @ pencil.pull
        return self._balanced(z, np.zeros(_graph(self.problem).n_components))

    def _widened(self, z: Matrix) -> Matrix:
        """Returns directions z, followed by z F and by z times the covariance."""
        return np.concatenate([z, z @ _graph(self.problem).root[self.arms], z @ self.covariance], axis=-1)

    def _balanced(self, z: Matrix, sums: Matrix) -> Matrix:
        """Returns the directions, changed so that they have exactly these `sums` over each component: without this
        z.mu has no bound, since the level of a component is free."""
        member = _graph(self.problem).member[self.arms]
        size = np.maximum(member.sum(axis=0), 1.0)
        balanced: Matrix = z + ((sums - z @ member) / size) @ member.T
        return balanced


@dataclass(frozen=True, eq=False)
class _Responses:
    """What best responses at all prices of smoothness need, for every leader and all estimates (theory 18.6).

    The direction of a leader b against arm i is a start plus `press` times the difference of two rows, of b and of i:
    so no matrices are multiplied for every leader.
    """

    n_tried: int
    shrink: Matrix
    """The factor of each coordinate of the pencil, one row per price."""
    rows: Matrix
    """For each price and arm a row z over the arms tried, z F - F of the arm, and z times the covariance."""

    def against(self, leader: int, press: Matrix, start: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Returns (z, r F, z times the covariance) for each price and arm, r what z is without press (e_leader - e_i).

        `press` and `start` have one row per price.
        """
        wide = self.rows[:, leader, None] - self.rows
        wide *= press[:, :, None]
        wide += start[:, None]
        return wide[:, :, : self.n_tried], wide[:, :, self.n_tried : -self.n_tried], wide[:, :, -self.n_tried :]


@dataclass(frozen=True, eq=False)
class _Graph:
    """The Laplacian as a matrix, and what bounds directions on smooth means."""

    of_arm: Indices
    n_components: int
    laplacian: Matrix
    root: Matrix
    """F with F F' = L^+; the columns of a component are zero elsewhere."""
    column: Indices
    """Component of each column of `root`."""
    radii: Vector

    @cached_property
    def member(self) -> Matrix:
        """1 where an arm, by row, belongs to a component, by column."""
        member: Matrix = (self.of_arm[:, None] == np.arange(self.n_components)).astype(np.float64)
        return member

    def most(self, along: Matrix, radii: Vector) -> Vector:
        """Returns the largest z.mu of smooth means (theory 18.5), for rows z F of z that sum to zero over each
        component."""
        tense = along**2
        if radii.size == 1:
            member = np.ones((self.column.size, 1))
        else:
            member = (self.column[:, None] == np.arange(self.n_components)).astype(np.float64)
        most: Vector = np.sqrt((tense @ member) * radii).sum(axis=-1)
        return most

    def roughness(self, mu: Vector) -> Vector:
        """Returns S, in the form of `Components.radii`."""
        rough = mu * (self.laplacian @ mu)
        if self.radii.size == 1:
            return np.array([rough.sum()])
        return np.bincount(self.of_arm, rough, self.n_components).astype(np.float64)


@lru_cache(maxsize=8)  # problems are immutable and compared by identity
def _graph(problem: Problem) -> _Graph:
    to = Components.from_problem(problem)
    laplacian = to.laplacian.toarray()
    root, column = np.zeros_like(laplacian), np.zeros(to.of_arm.size, dtype=np.intp)
    place = 0
    for c in range(to.n_components):
        arms = np.flatnonzero(to.of_arm == c)
        values, vectors = np.linalg.eigh(laplacian[np.ix_(arms, arms)])
        first = 1  # that of eigenvalue 0 is constant
        if arms.size > 1:
            # Rounding errors must not make the bound too small where weights differ by many orders of magnitude. Where
            # eigenvalues are near 0, their vectors mix with the constant one: all of them are kept, at the least
            # eigenvalue of a path of the weakest edges. No connected graph has a smaller one.
            edges = slice(to.edge_offsets[c], to.edge_offsets[c + 1])
            least = to.weights[edges].min() * 4 * math.sin(math.pi / (2 * arms.size)) ** 2
            error = ROUNDING * arms.size * values[-1]
            weak = values < 1000 * error
            values = np.where(weak, least, values - error)
            first = 0 if weak[1] else 1
        for value, vector in zip(values[first:], vectors.T[first:], strict=True):
            root[arms, place] = vector / np.sqrt(value)
            column[place] = c
            place += 1
    return _Graph(to.of_arm, to.n_components, laplacian, root, column, to.radii)


@dataclass(frozen=True, eq=False)
class _Pencil:
    """The metric and the graph, diagonalised together on the arms of components that have an arm tried."""

    alive: Mask
    """Which arms these are."""
    basis: Matrix
    """One row per arm that is alive."""
    theta: Vector
    """Weight of each coordinate in the metric; that in the graph is 1 - theta."""
    place: Indices
    """Rows of the arms tried."""
    inverse: Matrix
    """The metric on the arms tried."""

    @classmethod
    def of(cls, problem: Problem, arms: Indices, inverse: Matrix) -> _Pencil:
        graph = _graph(problem)
        alive = np.isin(graph.of_arm, graph.of_arm[arms])
        members = np.flatnonzero(alive)
        place = np.searchsorted(members, arms)
        stiff = graph.radii if graph.radii.size == 1 else graph.radii[graph.of_arm[members]]
        # With an R for each component, smoothness is measured in units of that R, so that one price serves all.
        with np.errstate(divide="ignore"):
            scale = np.ones(members.size) if stiff.size == 1 else np.where(stiff > 0, 1 / stiff, 0.0)
        rough = graph.laplacian[np.ix_(members, members)] * scale[:, None]
        wide = np.zeros_like(rough)
        wide[np.ix_(place, place)] = inverse
        stiffness = np.trace(rough)  # 0 if all arms tried stand alone
        balance = np.trace(wide) / stiffness if stiffness > 0 else 0.0
        theta, basis = eigh(wide, wide + balance * rough)
        return cls(alive, basis, np.clip(theta, 0.0, 1.0), place, inverse)

    @cached_property
    def pull(self) -> Matrix:
        """The basis on the arms tried times the metric, (coordinates, arms tried)."""
        return self.basis[self.place].T @ self.inverse

    def basis_of(self, arm: int) -> Vector:
        row: Vector = self.basis[np.count_nonzero(self.alive[:arm])]
        return row

    def along(self, means: Vector) -> Vector:
        """Returns the coordinates of the metric times the means of the arms tried."""
        return self.basis[self.place].T @ (self.inverse @ means)

    def shrink(self, price: float | Matrix) -> NDArray[np.float64]:
        """Returns the factor of each coordinate at a price of smoothness; one row for each price of a column."""
        return 1 / np.maximum(self.theta + price * (1 - self.theta), 1e-300)

    def smoothed(self, price: float, along: Vector, means: Vector) -> Vector:
        """Returns the means that a price of smoothness leads to; arms that are not alive keep theirs."""
        lam = means.copy()
        lam[self.alive] = self.basis @ (self.shrink(price) * along)
        return lam
