"""The joint diagonalisation of diag(u) and the Laplacian."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.checks import Matrix, Vector
from spectralbai.spectrum import Blocks, decompose, invert_lower


def decomposition(graph: Graph, u: Vector) -> tuple[Blocks, Matrix, Vector, Vector]:
    """Returns the blocks of `graph` and the decomposition of `u`, given arm by arm."""
    blocks = Blocks.from_problem(Problem(graph, 1.0))
    return blocks, *decompose(u[blocks.order], blocks.offsets, blocks.ends, blocks.weights, blocks.edge_offsets)


def random_graph(rng: np.random.Generator, n_arms: int, n_components: int = 1, decades: float = 0.0) -> Graph:
    """Returns a random graph whose components interleave; weights spread over 10^-decades to 10^decades."""
    label = np.arange(n_arms) % n_components
    edges = []
    for b in range(n_components, n_arms):
        previous = [a for a in range(b) if label[a] == label[b]]
        joined = {previous[-1], *(a for a in previous if rng.random() < 0.4)}
        edges += [(a, b, float(10 ** rng.uniform(-decades, decades))) for a in joined]
    return Graph.from_edges(n_arms, edges)


def test_blocks_order_the_arms_by_component_and_back() -> None:
    graph = Graph.from_edges(6, [(0, 4), (4, 2, 2.0), (1, 5, 3.0)])
    blocks = Blocks.from_problem(Problem(graph, 1.0))
    np.testing.assert_array_equal(blocks.position[blocks.order], np.arange(6))
    np.testing.assert_array_equal(blocks.component, graph.components[blocks.order])
    assert (np.diff(blocks.component) >= 0).all()
    for c, (low, high) in enumerate(zip(blocks.offsets[:-1], blocks.offsets[1:], strict=True)):
        assert (blocks.component[low:high] == c).all()
        edges = slice(blocks.edge_offsets[c], blocks.edge_offsets[c + 1])
        assert ((blocks.ends[edges] >= low) & (blocks.ends[edges] < high)).all()
    assert blocks.offsets[-1] == 6 and blocks.edge_offsets[-1] == 3


def test_the_incidence_matrix_factorises_the_laplacian() -> None:
    graph = random_graph(np.random.default_rng(0), 9, 2, decades=1)
    blocks = Blocks.from_problem(Problem(graph, 1.0))
    incidence = blocks.incidence.toarray()
    product = incidence.T @ np.diag(blocks.weights) @ incidence
    np.testing.assert_allclose(product, graph.laplacian.toarray()[np.ix_(blocks.order, blocks.order)], atol=1e-13)


def test_an_infinite_R_leaves_no_edge() -> None:
    blocks = Blocks.from_problem(Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), math.inf))
    np.testing.assert_array_equal(blocks.offsets, np.arange(4))
    assert len(blocks.weights) == 0


def test_invert_lower_inverts() -> None:
    factor = np.tril(np.random.default_rng(1).normal(size=(7, 7))) + 3 * np.eye(7)
    inverse = invert_lower(factor)
    np.testing.assert_allclose(factor @ inverse, np.eye(7), atol=1e-14)
    assert (np.triu(inverse, 1) == 0).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_the_basis_diagonalises_both_matrices_over_twelve_decades(seed: int, zeros: float) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 15))
    graph = random_graph(rng, n_arms, 1 + seed % 2, decades=1)
    u = 10 ** rng.uniform(-12, 0, n_arms)
    u[rng.random(n_arms) < zeros] = 0.0
    u[0] = u[1] = 1.0  # weight in every component
    blocks, basis, theta, rough = decomposition(graph, u)
    laplacian = graph.laplacian.toarray()[np.ix_(blocks.order, blocks.order)]
    weighted = basis.T @ (u[blocks.order, None] * basis)
    # Relative to the diagonal, pair by pair: this is what an accurate small theta means.
    assert (np.abs(weighted - np.diag(theta)) <= 1e-9 * np.sqrt(np.outer(theta, theta)) + 1e-300).all()
    assert (np.abs(basis.T @ laplacian @ basis - np.diag(rough)) <= 1e-9 * rough.max()).all()
    # Nothing is lost: sum of b b' / (theta + rough) is the inverse of diag(u) + L.
    np.testing.assert_allclose(
        (basis / (theta + rough)) @ basis.T @ (np.diag(u[blocks.order]) + laplacian), np.eye(n_arms), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_vectors_of_zero_theta_live_on_the_arms_without_weight_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = 10 ** rng.uniform(-12, 0, 11)
    u[[2, 3, 7]] = 0.0
    blocks, basis, theta, _ = decomposition(random_graph(rng, 11), u)
    free = np.flatnonzero(theta == 0)
    assert free.size == 3
    assert (basis[np.ix_(u[blocks.order] > 0, free)] == 0).all()
    assert np.linalg.matrix_rank(basis[np.ix_(u[blocks.order] == 0, free)]) == 3


def test_each_block_starts_with_its_constant_vector() -> None:
    rng = np.random.default_rng(3)
    u = np.array([0.5, 0.0, 2.0, 0.0, 1e-9, 0.0])  # arms 1, 3, 5 form a component without weight
    blocks, basis, theta, rough = decomposition(random_graph(rng, 6, 2), u)
    for c, low in enumerate(blocks.offsets[:-1]):
        inside = blocks.component == c
        assert np.ptp(basis[inside, low]) == 0 and basis[low, low] > 0
        assert (basis[~inside, low] == 0).all()
        assert rough[low] == 0
        assert theta[low] == (1.0 if u[blocks.order][inside].any() else 0.0)
    other = np.setdiff1d(np.arange(6), blocks.offsets[:-1])
    assert (rough[other] > 0).all()


def test_a_component_without_weight_has_theta_zero_and_its_own_roughness() -> None:
    blocks, basis, theta, rough = decomposition(
        Graph.from_edges(4, [(0, 1, 3.0), (2, 3, 5.0)]), np.array([1.0, 1.0, 0.0, 0.0])
    )
    dead = blocks.component == blocks.component[blocks.position[2]]
    assert (theta[dead] == 0).all() and (theta[~dead] > 0).all()
    column = np.flatnonzero(dead)[1]
    a, b = blocks.position[[2, 3]]
    assert rough[column] == pytest.approx(5.0 * (basis[a, column] - basis[b, column]) ** 2, rel=1e-14)
    assert basis[a, column] == pytest.approx(-basis[b, column], rel=1e-14)


def test_two_joined_arms_have_the_vector_known_in_closed_form() -> None:
    # u-orthogonal to the constant: proportional to (u_1, -u_0); theta and rough follow.
    u = np.array([1e-12, 3.0])
    _, basis, theta, rough = decomposition(Graph.from_edges(2, [(0, 1, 7.0)]), u)
    assert basis[1, 1] / basis[0, 1] == pytest.approx(-u[0] / u[1], rel=1e-8)
    assert theta[1] / rough[1] == pytest.approx(u[0] * u[1] / (u[0] + u[1]) / 7.0, rel=1e-12)
