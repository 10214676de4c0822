"""The joint diagonalisation of diag(u) and the Laplacian, and what it is used for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem, estimate
from spectralbai.arrays import Vector
from spectralbai.responder import Responder
from spectralbai.spectral import Decomposition, decompose
from spectralbai.spectral.diagonalise import invert_lower


def decomposition(graph: Graph, u: Vector) -> Decomposition:
    return decompose(Problem(graph, 1.0), u)


def random_graph(rng: np.random.Generator, n_arms: int, n_components: int = 1, decades: float = 0.0) -> Graph:
    """Returns a random graph whose components interleave; weights spread over 10^-decades to 10^decades."""
    label = np.arange(n_arms) % n_components
    edges = []
    for b in range(n_components, n_arms):
        previous = [a for a in range(b) if label[a] == label[b]]
        joined = {previous[-1], *(a for a in previous if rng.random() < 0.4)}
        edges += [(a, b, float(10 ** rng.uniform(-decades, decades))) for a in joined]
    return Graph.from_edges(n_arms, edges)


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
    found = decomposition(graph, u)
    basis, theta, rough = found.basis, found.theta, found.rough
    laplacian = graph.laplacian.toarray()
    weighted = basis.T @ (u[:, None] * basis)
    # Relative to the diagonal, pair by pair: this is what an accurate small theta means.
    assert (np.abs(weighted - np.diag(theta)) <= 1e-9 * np.sqrt(np.outer(theta, theta)) + 1e-300).all()
    assert (np.abs(basis.T @ laplacian @ basis - np.diag(rough)) <= 1e-9 * rough.max()).all()
    # Nothing is lost: sum of b b' / (theta + rough) is the inverse of diag(u) + L.
    np.testing.assert_allclose(
        (basis / (theta + rough)) @ basis.T @ (np.diag(u) + laplacian), np.eye(n_arms), atol=1e-9
    )


@pytest.mark.parametrize("seed", range(6))
def test_vectors_of_zero_theta_live_on_the_arms_without_weight_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = 10 ** rng.uniform(-12, 0, 11)
    u[[2, 3, 7]] = 0.0
    found = decomposition(random_graph(rng, 11), u)
    free = np.flatnonzero(found.theta == 0)
    assert free.size == 3
    assert (found.basis[np.ix_(u > 0, free)] == 0).all()
    assert np.linalg.matrix_rank(found.basis[np.ix_(u == 0, free)]) == 3


def test_the_coordinates_of_a_component_start_with_its_constant_vector() -> None:
    rng = np.random.default_rng(3)
    u = np.array([0.5, 0.0, 2.0, 0.0, 1e-9, 0.0])  # arms 1, 3, 5 form a component without weight
    found = decomposition(random_graph(rng, 6, 2), u)
    first = found.components.offsets[:-1]
    for c, j in enumerate(first):
        inside = found.components.of_arm == c
        assert np.ptp(found.basis[inside, j]) == 0 and (found.basis[inside, j] > 0).all()
        assert (found.basis[~inside, j] == 0).all()
        assert found.rough[j] == 0
        assert found.theta[j] == (1.0 if u[inside].any() else 0.0)
    assert (np.delete(found.rough, first) > 0).all()


def test_a_component_without_weight_has_theta_zero_and_its_own_roughness() -> None:
    found = decomposition(Graph.from_edges(4, [(0, 1, 3.0), (2, 3, 5.0)]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert (found.theta[2:] == 0).all() and (found.theta[:2] > 0).all()
    across = found.basis[:, 3]
    assert found.rough[3] == pytest.approx(5.0 * (across[2] - across[3]) ** 2, rel=1e-14)
    assert across[2] == pytest.approx(-across[3], rel=1e-14)


def test_two_joined_arms_have_the_vector_known_in_closed_form() -> None:
    # u-orthogonal to the constant: proportional to (u_1, -u_0); theta and rough follow.
    u = np.array([1e-12, 3.0])
    found = decomposition(Graph.from_edges(2, [(0, 1, 7.0)]), u)
    assert found.basis[1, 1] / found.basis[0, 1] == pytest.approx(-u[0] / u[1], rel=1e-8)
    assert found.theta[1] / found.rough[1] == pytest.approx(u[0] * u[1] / (u[0] + u[1]) / 7.0, rel=1e-12)


# What it is used for.


def random_components(seed: int) -> tuple[Problem, Vector, Vector, int]:
    """Returns (problem, counts, means, best) with components of 1 to 4 arms; means are often rougher than R, counts
    often 0."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, int(rng.integers(3, 6)))
    edges, first = [], 0
    for size in sizes.tolist():
        for b in range(first + 1, first + size):
            edges += [
                (a, b, float(10 ** rng.uniform(-1, 1))) for a in range(first, b) if a == b - 1 or rng.random() < 0.3
            ]
        first += size
    shuffle = rng.permutation(first)
    graph = Graph.from_edges(first, [(int(shuffle[a]), int(shuffle[b]), w) for a, b, w in edges])
    means = rng.standard_normal(first)
    R = math.inf if seed % 7 == 0 else float(graph.smoothness(means) * 10 ** rng.uniform(-2, 0.5)) or 1.0
    tolerance = float(rng.choice([0.0, 0.3]))
    problem = Problem(graph, R, sigma=10 ** rng.uniform(-0.5, 0.5, first), tolerance=tolerance)
    counts = np.where(rng.random(first) < 0.25, 0.0, np.ceil(10 ** rng.uniform(0, 4, first)))
    return problem, counts, means, int(rng.integers(first))


@pytest.mark.parametrize("seed", range(1, 21))
def test_misfit_and_roughness_of_results(seed: int) -> None:
    problem, counts, means, best = random_components(seed)
    found = decompose(problem, counts)
    radii = found.components.radii
    misfit, roughness = found.misfit(means, radii), found.roughness(means, radii)
    assert misfit == pytest.approx(Responder(problem, means, best).respond(counts).misfit, rel=1e-7, abs=1e-9)
    assert found.misfit(means, roughness * (1 + 1e-9)) <= 1e-9 * (1 + misfit)
    if misfit > 1e-9:
        assert roughness > problem.R
        assert found.misfit(means, 0.99 * roughness) > 1e-9


@pytest.mark.parametrize("seed", range(1, 7))
def test_one_decomposition_serves_other_means_leaders_tolerances_and_R(seed: int) -> None:
    problem, counts, means, _ = random_components(seed)
    counts, other = counts + 1.0, np.random.default_rng(seed).standard_normal(means.size)
    found = decompose(problem, counts)
    for mu in (means, other):
        for R in (problem.R, 3 * problem.R):
            there = Problem(problem.graph, R, problem.sigma)
            np.testing.assert_array_equal(found.project(mu, np.array([R])), estimate(there, counts, mu))
            for best in (0, means.size - 1):
                for tolerance in (0.0, 0.2):
                    responder = Responder(Problem(problem.graph, R, problem.sigma, tolerance), mu, best)
                    here, fresh = found.respond(mu, best, np.array([R]), tolerance), responder.respond(counts)
                    np.testing.assert_array_equal(here.cost, fresh.cost)
                    np.testing.assert_array_equal(here.gap, fresh.gap)


@pytest.mark.parametrize("seed", range(1, 7))
def test_coordinates_combine_to_the_means_and_squares_to_the_diagonal_of_the_inverse(seed: int) -> None:
    problem, counts, means, _ = random_components(seed)
    found = decompose(problem, counts + 1.0)
    level, y = found.coordinates(means + 5.0)
    np.testing.assert_allclose(found.combine(y / found.theta) + level, means + 5.0, atol=1e-9)
    for c in range(found.components.n_components):
        inside = found.components.of_arm == c
        np.testing.assert_allclose(level[inside], np.average(means[inside], weights=found.u[inside]) + 5.0, atol=1e-9)
    matrix = np.diag(found.u) + 2 * 0.7 * problem.graph.laplacian.toarray()
    np.testing.assert_allclose(
        found.diagonal(1 / (found.theta + 2 * 0.7 * found.rough)), np.diag(np.linalg.inv(matrix)), rtol=1e-9
    )
