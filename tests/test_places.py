"""Coordinates of the arms: the two ways to compute them, and distances in them."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai import Graph, Problem, estimate
from spectralbai.arrays import Matrix
from spectralbai.evidence import places
from spectralbai.evidence.places import folded, further_apart, spread_around
from spectralbai.spectral import Components, decompose, sparse_projection
from spectralbai.spectral.sparse_projection import project_sparsely

RNG = np.random.default_rng(5)
POINTS = RNG.standard_normal((70, 2))
CLOUD = Graph.from_features(POINTS, 4)
APART = Graph.from_features(np.concatenate([POINTS, POINTS[:30] + 50, POINTS[:20] - 50]), 3)


def distances(place: Matrix) -> Matrix:
    apart: Matrix = np.sqrt(((place[:, None] - place) ** 2).sum(axis=2))
    return apart


@pytest.mark.parametrize(
    "problem",
    [Problem(CLOUD, 0.7), Problem(APART, 0.7), Problem(APART, np.linspace(0.1, 2.0, APART.n_components))],
    ids=["connected", "components", "an R for each"],
)
def test_coordinates_by_a_factorisation_have_the_distances_of_those_by_a_decomposition(problem: Problem) -> None:
    one, other = places._factorised(Components.from_problem(problem)), places._decomposed(problem)
    assert one is not None
    within = problem.components[:, None] == problem.components
    np.testing.assert_allclose(distances(one)[within], distances(other)[within], rtol=1e-9, atol=1e-9)


def test_arms_joined_by_weights_that_are_too_small_are_left_to_the_decomposition() -> None:
    groups = [(a, a + 1, 1.0) for a in range(9) if a != 4] + [(0, 2, 1.0), (5, 7, 1.0)]
    weak = Problem(Graph.from_edges(10, [*groups, (4, 5, 1e-9)]), 1.0)
    strong = Problem(Graph.from_edges(10, [*groups, (4, 5, 1e-3)]), 1.0)
    assert places._factorised(Components.from_problem(weak)) is None
    assert places._factorised(Components.from_problem(strong)) is not None


def test_pairs_are_further_apart_than_a_distance_even_if_rounding_errors_are_larger_than_it() -> None:
    place = np.repeat([[0.0, 0.0], [1e6, 0.0]], 3, axis=0)
    place[:3, 1] = place[3:, 1] = 0.0, 1e-5, 3e-5
    component = np.array([0, 0, 0, 1, 1, 1])
    expected = (distances(place) > 1.5e-5) | (component[:, None] != component)
    np.testing.assert_array_equal(further_apart(place, component, 1.5e-5), expected)
    assert expected[3, 5] and not expected[3, 4]


def test_folded_points_keep_their_distances_and_those_from_averages() -> None:
    place = RNG.standard_normal((3, 5, 40)) + 7.0
    weights = RNG.dirichlet(np.ones(5), 3)
    assert folded(place).shape == (3, 5, 5)
    np.testing.assert_allclose(spread_around(folded(place), weights), spread_around(place, weights), rtol=1e-12)
    np.testing.assert_allclose(distances(folded(place[0])), distances(place[0]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shrink", [1e-5, 0.3, 100.0])
@pytest.mark.parametrize("seen", [1.0, 0.4])
@pytest.mark.parametrize("graph", [CLOUD, APART], ids=["connected", "components"])
def test_sparse_systems_find_the_projection_of_the_decomposition(graph: Graph, seen: float, shrink: float) -> None:
    rng = np.random.default_rng(2)
    means = np.sin(np.arange(graph.n_arms)) + 3.0
    counts = rng.integers(1, 9, graph.n_arms) * (rng.random(graph.n_arms) < seen).astype(float)
    counts[np.unique(graph.components, return_index=True)[1]] = 2.0  # each component has a result
    R = shrink * graph.smoothness(means)
    each = np.where(graph.sizes > 1, R / graph.n_components, 0.0)
    for problem in (Problem(graph, R, 0.5), *((Problem(graph, each, 0.5),) if graph.n_components > 1 else ())):
        parts = decompose(problem, counts)
        expected = parts.project(means, parts.components.radii)
        found = project_sparsely(parts.components, parts.u, means, parts.components.radii)
        assert found is not None
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        if seen == 1.0 and shrink > 1:
            np.testing.assert_array_equal(found, means)


def test_weights_of_very_different_size_are_left_to_the_decomposition() -> None:
    problem = Problem(CLOUD, 0.1)
    counts = np.ones(70)
    counts[0] = 1e9
    to = Components.from_problem(problem)
    assert project_sparsely(to, counts, POINTS[:, 0], to.radii) is None


def test_the_estimate_of_a_large_component_needs_no_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Graph.from_edges(600, [(a, a + 1) for a in range(599)])
    means = np.sin(np.arange(600.0))
    found = estimate(Problem(path, 1.0), np.ones(600), means)
    assert path.smoothness(found) == pytest.approx(1.0)
    monkeypatch.setattr(sparse_projection, "LEVEL", 10.0)  # so that it is refused
    np.testing.assert_allclose(estimate(Problem(path, 1.0), np.ones(600), means), found, atol=1e-10)
