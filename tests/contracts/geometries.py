"""What every geometry does: a `Graph`, or a class derived from it that knows more about its edges.

A new one joins by a line in `GEOMETRIES`. One from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("graph", [MyGeometry()])
    class TestMyGeometry(GeometryContract): ...
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from spectralbai import Graph, Instance, InvalidInput, Problem, SpectralRace, simulate, solve_allocation
from spectralbai.arrays import Indices, Vector
from spectralbai.graph import number_by_first

GEOMETRIES: dict[str, Graph] = {
    "no edges": Graph.from_edges(3, []),
    "path": Graph.from_edges(5, [(a, a + 1, 0.5 + a) for a in range(4)]),
    "three components": Graph.from_edges(6, [(1, 5, 2.0), (0, 3), (2, 3, 0.1), (0, 2)]),
    "features": Graph.from_features([[0.0], [0.3], [1.0], [5.0], [6.0]], neighbors=1),
    "categories": Graph.from_categories(["mugs", "pans", "mugs", "bowls", "pans", "mugs"], 0.7),
    "one category": Graph.from_categories(["mugs"] * 4),
}
SLACK = 2.5e-6
"""Two certified values agree up to twice the relative gap asked of each."""


def means_on(graph: Graph) -> Vector:
    """Returns means with one best arm, the last."""
    mu = np.random.default_rng(3).uniform(size=graph.n_arms)
    mu[-1] = mu.max() + 0.2
    return mu


def listed(graph: Graph, name: Indices | None = None) -> Graph:
    """Returns the graph of the same edges, listed; with `name`, arm a is called name[a]."""
    pairs = (graph.pairs if name is None else name[graph.pairs]).tolist()
    return Graph.from_edges(graph.n_arms, [(a, b, w) for (a, b), w in zip(pairs, graph.weights.tolist(), strict=True)])


class GeometryContract:
    """What every geometry does."""

    # Edges.

    def test_edges_are_listed_once_in_order_with_positive_weights(self, graph: Graph) -> None:
        first, second = graph.pairs.T
        assert graph.pairs.shape == (graph.n_edges, 2) and graph.weights.shape == (graph.n_edges,)
        assert (first >= 0).all() and (first < second).all() and (second < graph.n_arms).all()
        assert (np.diff(first * graph.n_arms + second) > 0).all(), "sorted, and none twice"
        assert (graph.weights > 0).all() and np.isfinite(graph.weights).all()

    def test_its_arrays_are_read_only(self, graph: Graph) -> None:
        for array in (graph.pairs, graph.weights, graph.components, graph.laplacian.data):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0

    def test_the_laplacian_is_symmetric_with_zero_row_sums_and_the_weights_off_its_diagonal(self, graph: Graph) -> None:
        L = graph.laplacian.toarray()
        weights = np.zeros((graph.n_arms, graph.n_arms))
        weights[tuple(graph.pairs.T)] = graph.weights
        assert (L == L.T).all()
        np.testing.assert_allclose(L.sum(axis=1), 0, atol=1e-12 * np.abs(L).max(initial=1.0))
        np.testing.assert_allclose(-np.triu(L, 1), weights, rtol=1e-12)

    # Components and smoothness.

    def test_components_are_those_of_the_edges_numbered_by_their_first_arms(self, graph: Graph) -> None:
        found = number_by_first(connected_components(graph.laplacian, directed=False)[1])
        assert graph.components.tolist() == found.tolist()
        assert graph.n_components == found.max() + 1
        assert graph.sizes.tolist() == np.bincount(found).tolist()
        inside = np.bincount(found[graph.pairs[:, 0]], graph.weights, found.max() + 1)
        np.testing.assert_allclose(graph.total_weights, inside, rtol=1e-12)

    def test_smoothness_is_the_quadratic_form_of_the_laplacian_and_the_sum_over_components(self, graph: Graph) -> None:
        mu, L = means_on(graph), graph.laplacian.toarray()
        exact = mu @ L @ mu
        assert graph.smoothness(mu) == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert graph.roughness(mu) == graph.smoothness(mu.tolist())
        parts = graph.roughness_by_component(mu)
        for c, part in enumerate(parts):
            alone = np.where(graph.components == c, mu, 0.0)
            assert part == pytest.approx(alone @ L @ alone, rel=1e-9, abs=1e-12)
        assert parts.shape == (graph.n_components,) and parts.sum() == pytest.approx(exact, rel=1e-9, abs=1e-12)

    def test_a_level_costs_nothing_and_twice_the_means_cost_four_times_as_much(self, graph: Graph) -> None:
        mu = means_on(graph)
        assert graph.smoothness(np.full(graph.n_arms, 7.0)) == 0.0
        assert graph.smoothness(mu + 7.0) == pytest.approx(graph.smoothness(mu), rel=1e-9, abs=1e-12)
        assert graph.smoothness(2 * mu) == pytest.approx(4 * graph.smoothness(mu), rel=1e-12)

    def test_invalid_means_are_refused(self, graph: Graph) -> None:
        for bad in (np.zeros(graph.n_arms + 1), np.full(graph.n_arms, np.nan), ["a"] * graph.n_arms):
            with pytest.raises(InvalidInput, match="`mu` must"):
                graph.smoothness(bad)

    def test_it_extends_itself_and_no_graph_with_other_weights(self, graph: Graph) -> None:
        assert graph.extends(graph)
        if graph.n_edges:
            heavier = [(int(a), int(b), 2 * w) for (a, b), w in zip(graph.pairs, graph.weights, strict=True)]
            assert not graph.extends(Graph.from_edges(graph.n_arms, heavier))

    # Files and words.

    def test_it_goes_through_an_instance_file(self, graph: Graph) -> None:
        written = json.dumps(Instance(Problem(graph, 1.0)).as_dict(), allow_nan=False)
        read = Instance.from_dict(json.loads(written)).problem.graph
        assert type(read) is type(graph) and read.as_dict() == graph.as_dict()
        assert read.pairs.tolist() == graph.pairs.tolist() and read.weights.tolist() == graph.weights.tolist()

    def test_it_is_described_in_a_line(self, graph: Graph) -> None:
        assert graph.described().strip() == graph.described() != "" and "\n" not in graph.described()

    # In use.

    @pytest.mark.parametrize("several", [False, True])
    def test_allocations_are_those_of_its_edges_however_arms_are_numbered(self, graph: Graph, several: bool) -> None:
        mu = means_on(graph)
        name = np.random.default_rng(4).permutation(graph.n_arms)
        back = np.argsort(name)
        other = listed(graph, name)
        values = []
        for each, means in ((graph, mu), (listed(graph), mu), (other, mu[back])):
            rough = each.roughness_by_component(means) if several else each.smoothness(means)
            found = solve_allocation(Problem(each, 1.5 * rough + 1e-3), means)
            assert found.status == "certified" and found.best == int(np.argmax(means))
            values.append(found.lower)
        assert values == pytest.approx([values[0]] * 3, rel=SLACK)

    def test_a_race_on_it_finds_the_best_arm(self, graph: Graph) -> None:
        mu = means_on(graph)
        problem = Problem(graph, 1.5 * graph.roughness_by_component(mu) + 1e-3, sigma=0.1)
        run = simulate.run(SpectralRace(problem, 0.05), mu, seed=1)
        assert (run.status, run.arm) == ("decided", graph.n_arms - 1)
