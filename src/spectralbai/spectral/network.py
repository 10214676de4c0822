"""A large sparse graph, factorised once: what bounds z.mu of smooth means, without a matrix of all pairs of arms.

In each component one arm is the ground. For vectors w and z that sum to 0 over each component, w'L^+z = w'Y z, where Y
is the inverse of the Laplacian without the grounds' rows and columns, and 0 there. Columns of Y are solved for where
they are needed; its diagonal holds the resistances to the ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.checks import check_memory
from spectralbai.compiled import njit
from spectralbai.errors import InvalidInput
from spectralbai.graph import Categories, laplacian_of
from spectralbai.problem import Problem
from spectralbai.spectral.sparse_factor import Pattern, SparseFactor

DENSE_UP_TO = 512
"""Components of at most so many arms are decomposed, which is exact and fast enough."""
ARMS_TRIED = 384
"""Most arms that a plan gives pulls, and whose results are used in the bets on one block; directions over them are
matrices of all arms by these."""
WIDE = 8
"""Number of such matrices in memory at a time."""
SLACK = 0.01
"""Largest relative error of resistances, as bounded, with which a graph can be used. It is far smaller unless weights
differ by very many orders of magnitude."""
ROUNDINGS = 64.0
"""Roundings, in units of the number of terms, by which sums of products are raised to be upper bounds."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of Y."""

    arms: Indices
    """The arms they belong to."""
    values: Matrix
    """(n_arms, arms.size)."""
    errors: Vector
    """Upper bounds of sqrt(e'L e), e the error of each column."""


@dataclass(frozen=True, eq=False)
class Network:
    """The Laplacian of a problem, factorised, whatever the results are."""

    problem: Problem
    of_arm: Indices
    """The component of each arm."""
    grounds: Indices
    """The ground of each component."""
    pairs: Indices
    weights: Vector
    pattern: Pattern = field(repr=False)
    """The pattern of the Laplacian, which is that of the Laplacian with something added to its diagonal, too."""
    laplacian: sparse.csc_array

    @classmethod
    @lru_cache(maxsize=8)  # problems are immutable and compared by identity
    def of(cls, problem: Problem) -> Network | None:
        """Returns the network of a problem; None if other methods are exact and fast enough, or are needed: without a
        graph, with few arms, for categories, with an R for each component, and with items."""
        graph = problem.graph
        if problem.unstructured or problem.by_component or isinstance(graph, Categories) or problem.items is not None:
            return None
        return cls.on(problem) if graph.sizes.max() > DENSE_UP_TO else None

    @classmethod
    @lru_cache(maxsize=8)
    def on(cls, problem: Problem) -> Network:
        """Returns the network of a problem of any size with a graph and one R."""
        graph = problem.graph
        n, of_arm = problem.n_arms, problem.components
        laplacian = (laplacian_of(n, graph.pairs, graph.weights) + sparse.diags_array(np.ones(n))).tocsc()
        laplacian.sort_indices()
        pattern = Pattern.of(laplacian)  # with ones added, arms without edges have an entry, too
        columns = np.repeat(np.arange(n), np.diff(laplacian.indptr))
        laplacian.data[laplacian.indices == columns] -= 1.0
        # The arm of the largest weights, so that no pivot is left from cancellation of large numbers.
        heaviest = np.lexsort((-laplacian.diagonal(), of_arm))
        grounds = heaviest[np.unique(of_arm[heaviest], return_index=True)[1]]
        return cls(problem, of_arm, grounds, graph.pairs, graph.weights, pattern, laplacian)

    @cached_property
    def diagonal(self) -> Indices:
        """Which entries of the Laplacian are on its diagonal."""
        columns = np.repeat(np.arange(self.of_arm.size), np.diff(self.laplacian.indptr))
        return np.flatnonzero(self.laplacian.indices == columns)

    def with_diagonal(self, price: float, u: Vector) -> SparseFactor:
        """Returns the factor of diag(u) + price L."""
        values = price * self.laplacian.data
        values[self.diagonal] += u
        return self.pattern.factor(values)

    @cached_property
    def grounded(self) -> SparseFactor:
        """The factor of the Laplacian, with ones in place of the grounds' rows and columns."""
        values = self.laplacian.data.copy()
        at_ground = np.zeros(self.of_arm.size, dtype=bool)
        at_ground[self.grounds] = True
        columns = np.repeat(np.arange(self.of_arm.size), np.diff(self.laplacian.indptr))
        values[at_ground[self.laplacian.indices] | at_ground[columns]] = 0.0
        values[self.diagonal[self.grounds]] = 1.0
        try:
            return self.pattern.factor(values)
        except np.linalg.LinAlgError:
            raise self._too_different() from None

    def _too_different(self) -> InvalidInput:
        low, high = self.weights.min(), self.weights.max()
        return InvalidInput(
            f"the edges of the graph have weights from {low:g} to {high:g}, too different for floating-point "
            "arithmetic; leave out those that are many orders of magnitude below the others"
        )

    @cached_property
    def tree(self) -> Tree:
        """A spanning forest of the edges of largest weight, rooted at the grounds."""
        n, (a, b) = self.of_arm.size, self.pairs.T
        forest = minimum_spanning_tree(sparse.csr_array((1 / self.weights, (a, b)), shape=(n, n)))
        both = (forest + forest.T).tocsr()
        order, parent = np.zeros(0, dtype=np.intp), np.full(n, -1, dtype=np.intp)
        for ground in self.grounds.tolist():
            found, before = breadth_first_order(both, ground, directed=False)
            order = np.concatenate([order, found.astype(np.intp)])
            parent[found[1:]] = before[found[1:]]
        below = np.flatnonzero(parent >= 0)
        resistance = np.zeros(n)
        resistance[below] = np.asarray(both[below, parent[below]]).ravel()
        return Tree(order, parent, resistance)

    @cached_property
    def resistances(self) -> Vector:
        """Upper bounds of the resistance of each arm to the ground of its component, (n_arms,).

        The factor is that of a matrix close to L. How close is bounded by the resistances of a spanning tree, which are
        never smaller than those of the graph. All terms of a resistance are positive, so that roundings change it by
        few parts in 10^10.
        """
        error = self.grounded.backward_error(np.sqrt(self.tree.to_ground))
        roundings = 4 * np.finfo(float).eps * (self.pattern.n_entries + self.of_arm.size)
        if not error < SLACK:
            raise self._too_different()
        resistances = self.grounded.diagonal * (1 + error) * (1 + roundings)
        resistances[self.grounds] = 0.0
        resistances.setflags(write=False)
        return resistances

    def columns(self, arms: Indices) -> Columns:
        """Returns the columns of Y of some arms, and how wrong they can be."""
        load = np.zeros((self.of_arm.size, arms.size))
        load[arms, np.arange(arms.size)] = 1.0
        load[self.grounds] = 0.0
        values = self.grounded.solve(load)
        values[self.grounds] = 0.0
        return Columns(arms, values, self.errors(arms, values))

    def errors(self, arms: Indices, values: Matrix) -> Vector:
        """Returns bounds of sqrt(e'L e), e the error of each of these columns, whatever they are solved by.

        L e is what is left of the equations; and w'L^+w is at most what it is for a spanning tree, where the only flow
        with sources w is known.
        """
        rest = -(self.laplacian @ values)
        rest[arms, np.arange(arms.size)] += 1.0
        rest[self.grounds[self.of_arm[arms]], np.arange(arms.size)] -= 1.0
        return self.tree.norms(rest)

    def most(self, z: Matrix, pull: Vector, arms: Indices, columns: Columns, R: float) -> Vector:
        """Returns upper bounds of sqrt(R w'L^+w), w = z + pull (e_i - its level), for rows z over `columns.arms`.

        Each row z, plus `pull` at the row's own arm (`arms`), must sum to zero over each component.
        """
        at = columns.arms
        own = self.resistances[arms]
        far = columns.values[at]
        along = ((z @ far) * z).sum(axis=1)
        across = (columns.values[arms] * z).sum(axis=1)
        square = along + 2 * pull * across + pull**2 * own
        # What solving and adding up may have lost: the error of entry (j, a) of Y is at most sqrt(r_j) times that of
        # column a, and sums of products lose about eps per term.
        size = np.abs(z) @ np.sqrt(self.resistances[at]) + np.abs(pull) * np.sqrt(own)
        lost = 2 * size * (np.abs(z) @ columns.errors) + ROUNDINGS * at.size * np.finfo(float).eps * size**2
        most: Vector = np.sqrt(R * (np.maximum(square, 0.0) + lost))
        return most

    def spread_around(self, members: Indices, weights: Vector) -> Vector:
        """Returns upper bounds of sqrt((e_a - w)'L^+(e_a - w)) for the `members` of a component, w their weighted
        average; the weights sum to 1."""
        load = np.zeros(self.of_arm.size)
        load[members] = weights
        ground = self.grounds[self.of_arm[members[0]]]
        load[ground] -= load.sum()
        potential = self.grounded.solve(np.where(np.arange(load.size) == ground, 0.0, load))
        error = float(self.tree.norms((load - self.laplacian @ potential)[:, None])[0])
        far = np.sqrt(self.resistances[members])
        lost = 2 * error * (far + weights @ far) + ROUNDINGS * members.size * np.finfo(float).eps * far.max() ** 2
        apart = far**2 - 2 * potential[members] + weights @ potential[members]
        spread: Vector = np.sqrt(np.maximum(apart, 0.0) + lost)
        return spread

    def inside(self, members: Indices) -> Matrix:
        """Returns coordinates of the arms of connected pools of equal size, (n_pools, size, size), whose squared
        distances are resistances of the edges inside each pool: upper bounds of those of the graph."""
        size = members.shape[1]
        entries = self.laplacian[np.repeat(members, size, axis=1), np.tile(members, (1, size))]
        inside: Matrix = np.asarray(entries.toarray() if sparse.issparse(entries) else entries).reshape(-1, size, size)
        each = np.arange(size)
        inside[:, each, each] = 0.0
        inside[:, each, each] = -inside.sum(axis=2)
        values, vectors = np.linalg.eigh(inside)
        scale = np.zeros_like(values)
        scale[:, 1:] = 1 / np.sqrt(values[:, 1:] - ROUNDINGS * np.finfo(float).eps * values[:, -1:])
        coordinates: Matrix = vectors * scale[:, None, :]
        return coordinates

    def roughness(self, mu: Matrix) -> Vector:
        """Returns S of means, or of each column of a matrix."""
        a, b = self.pairs.T
        rough: Vector = self.weights @ (mu[a] - mu[b]) ** 2
        return rough

    def check(self) -> None:
        """Raises `InvalidInput` if the computations do not fit in memory."""
        n = self.of_arm.size
        needed = 8.0 * (WIDE * n * min(n, ARMS_TRIED) + 4 * self.pattern.n_entries + 20 * self.pairs.size)
        check_memory(f"the race on {n:,} arms", needed, "leave out arms, or join each to fewer neighbours")


@dataclass(frozen=True, eq=False)
class Tree:
    """A spanning forest; every arm comes after its parent in `order`."""

    order: Indices
    parent: Indices
    """-1 at the grounds."""
    resistance: Vector
    """1 / weight of the edge to the parent; 0 at the grounds."""

    @cached_property
    def to_ground(self) -> Vector:
        """The resistance of the path to the ground, rounded up."""
        total = np.zeros(self.order.size)
        for a in self.order.tolist():
            if self.parent[a] >= 0:
                total[a] = total[self.parent[a]] + self.resistance[a]
        return total * (1 + 4 * np.finfo(float).eps * self.order.size)

    def norms(self, w: Matrix) -> Vector:
        """Returns sqrt(w'T^+w) for each column of w, T the Laplacian of the forest, rounded up.

        Columns that should sum to zero over a component need not: what is left over counts along the whole tree.
        """
        left, energy = _flows(self.order, self.parent, self.resistance, np.ascontiguousarray(w))
        eps = np.finfo(float).eps * self.order.size
        lost = 4 * eps * np.abs(w).max(axis=0) + left
        norms: Vector = (np.sqrt(energy) + lost * np.sqrt(self.resistance.sum())) * (1 + 4 * eps)
        return norms


@njit
def _flows(order: Indices, parent: Indices, resistance: Vector, w: Matrix) -> tuple[Vector, Vector]:
    """Returns (left, energy): what does not cancel at the grounds, and the sum of flow^2 times resistance."""
    flow = w.copy()
    left, energy = np.zeros(w.shape[1]), np.zeros(w.shape[1])
    for s in range(order.size - 1, -1, -1):
        a = order[s]
        up = parent[a]
        for k in range(w.shape[1]):
            if up >= 0:
                flow[up, k] += flow[a, k]
                energy[k] += flow[a, k] ** 2 * resistance[a]
            else:
                left[k] += abs(flow[a, k])
    return left, energy
