"""The graph with its arms ordered by component; no other file depends on this order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from spectralbai.arrays import Indices, Vector
from spectralbai.graph import laplacian_of
from spectralbai.problem import Problem
from spectralbai.spectral.diagonalise import Edges

BYTES_PER_PAIR = 100
"""Memory for each pair of arms: computations with matrices need about a dozen of them."""


@dataclass(frozen=True, eq=False)
class Components:
    """The connected components of a graph, and its arms in an order that makes every matrix block diagonal.

    The compiled kernels work in component order, where an arm is called a *position*. All other code numbers arms as
    the problem does, and uses `ordered` and `restored` to translate.
    """

    order: Indices
    """order[k] is the arm at position k."""
    position: Indices
    """position[a] is the position of arm a: the inverse of `order`."""
    offsets: Indices
    """Component c holds the positions offsets[c] to offsets[c + 1] - 1."""
    component: Indices
    """Component of each position."""
    ends: Indices
    """Edges as pairs of positions, grouped by component: shape (n_edges, 2)."""
    weights: Vector
    """Weights of these edges."""
    edge_offsets: Indices
    """Component c holds the edges edge_offsets[c] to edge_offsets[c + 1] - 1."""
    whole: Indices
    """For each component, the component of the graph that it belongs to. They differ only if R is infinite for some
    component of the graph, whose arms are then separate components here."""
    radii: Vector
    """R in the form that the compiled kernels take: one number shared by all components, or one number per component,
    which is 0 for components of one arm."""

    @classmethod
    @lru_cache(maxsize=32)  # problems are immutable and compared by identity
    def from_problem(cls, problem: Problem) -> Components:
        """Returns the components of the problem's graph; each arm of a component with infinite R is a component."""
        labels, graph = problem.components, problem.graph
        if problem.unstructured:
            pairs, weights = np.zeros((0, 2), dtype=np.intp), np.zeros(0)
        else:
            pairs, weights = graph.pairs, graph.weights
            if problem.by_component:
                bounding = np.isfinite(problem.radii)[graph.components[pairs[:, 0]]]
                pairs, weights = pairs[bounding], weights[bounding]
        order = np.argsort(labels, kind="stable")
        position = np.argsort(order)
        offsets = np.searchsorted(labels[order], np.arange(labels.max() + 2))
        ends = position[pairs]
        edge_component = labels[pairs[:, 0]]
        by_component = np.argsort(edge_component, kind="stable")
        edge_offsets = np.searchsorted(edge_component[by_component], np.arange(labels.max() + 2))
        whole = graph.components[order[offsets[:-1]]]
        # If every R is infinite, one infinite R is used for all components.
        R = math.inf if problem.by_component and problem.unstructured else problem.R
        radii = _radii(R, whole, np.diff(offsets))
        edges = ends[by_component], weights[by_component], edge_offsets
        return cls(order, position, offsets, labels[order], *edges, whole, radii)

    def effective(self, R: float | Vector) -> Vector:
        """Returns an R, given as one number or as one per component of the graph, in the form of `radii`."""
        shared = self.radii.size == 1 and not isinstance(R, float)
        return self.radii if shared else _radii(R, self.whole, self.sizes)

    @cached_property
    def sizes(self) -> Indices:
        """Number of arms of each component."""
        return np.diff(self.offsets)

    @cached_property
    def edges(self) -> Edges:
        """The edges in the form that the compiled kernels take."""
        return Edges(self.offsets, self.ends, self.weights, self.edge_offsets)

    @property
    def n_components(self) -> int:
        return self.offsets.size - 1

    @property
    def rank(self) -> int:
        """Rank of the Laplacian: the number of directions with positive roughness."""
        return self.order.size - self.n_components

    @cached_property
    def of_arm(self) -> Indices:
        """Component of each arm."""
        return self.component[self.position]

    @cached_property
    def pairs(self) -> Indices:
        """Edges as pairs of arms, in the order of `weights`: shape (n_edges, 2)."""
        return self.order[self.ends]

    @cached_property
    def incidence(self) -> sparse.csr_array:
        """Signed incidence matrix: one row per edge, +1 at its first arm and -1 at its second."""
        n_edges = len(self.weights)
        rows = np.repeat(np.arange(n_edges), 2)
        return sparse.csr_array(
            (np.tile([1.0, -1.0], n_edges), (rows, self.pairs.ravel())), shape=(n_edges, self.order.size)
        )

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """The Laplacian of these edges, which are those of the graph that bound anything, in the order of the arms."""
        return laplacian_of(self.order.size, self.pairs, self.weights)

    @cached_property
    def in_order(self) -> bool:
        """Whether the arms are already in component order."""
        return bool((self.order == np.arange(self.order.size)).all())

    @cached_property
    def renumbered(self) -> Components:
        """The same graph with arms renumbered by position, so that `ordered` and `restored` change nothing."""
        identity = np.arange(self.order.size)
        return self if self.in_order else replace(self, order=identity, position=identity)

    def ordered(self, x: NDArray[Any], axes: int = 1) -> NDArray[Any]:
        """Returns `x`, whose first `axes` axes run over arms, in component order, ready for a compiled kernel."""
        # Kernels would be compiled again for arrays that are read-only or not contiguous, so these are always copied.
        return x if self.in_order and x.flags.carray else _permuted(x, self.order, axes)

    def restored(self, x: NDArray[Any], axes: int = 1) -> NDArray[Any]:
        """Returns `x`, whose first `axes` axes are in component order, in the problem's order of arms."""
        return x if self.in_order else _permuted(x, self.position, axes)


def _radii(R: float | Vector, whole: Indices, sizes: Indices) -> Vector:
    if not isinstance(R, np.ndarray):
        return np.array([R], dtype=np.float64)
    radii: Vector = np.where(sizes > 1, R[whole], 0.0)
    return radii


def _permuted(x: NDArray[Any], by: Indices, axes: int) -> NDArray[Any]:
    return x[by] if axes == 1 else x[np.ix_(*(by,) * axes)]
