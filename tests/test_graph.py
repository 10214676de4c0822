"""Tests of spectralbai.graph: builders, Laplacian, smoothness, components, and every refusal."""

from __future__ import annotations

import math
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import spectralbai as sb
from spectralbai.errors import InvalidInput
from spectralbai.graph import Categories, Graph


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, float]]]:
    n_arms = draw(st.integers(2, 9))
    every_pair = [(a, b) for a in range(n_arms) for b in range(a + 1, n_arms)]
    pairs = draw(st.lists(st.sampled_from(every_pair), unique=True))
    weights = draw(st.lists(st.floats(0.01, 100), min_size=len(pairs), max_size=len(pairs)))
    turned = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return n_arms, [(b, a, w) if turn else (a, b, w) for (a, b), w, turn in zip(pairs, weights, turned, strict=True)]


def networkx_graph(n_arms: int, edges: list[tuple[int, int, float]]) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(n_arms))
    graph.add_weighted_edges_from(edges)
    return graph


def same(left: Graph, right: Graph) -> bool:
    return (
        left.n_arms == right.n_arms
        and np.array_equal(left.pairs, right.pairs)
        and np.array_equal(left.weights, right.weights)
    )


@settings(deadline=None)
@given(edge_lists())
def test_the_laplacian_is_that_of_networkx(case: tuple[int, list[tuple[int, int, float]]]) -> None:
    expected = nx.laplacian_matrix(networkx_graph(*case)).toarray()
    np.testing.assert_allclose(Graph.from_edges(*case).laplacian.toarray(), expected, rtol=1e-13, atol=1e-13)


@settings(deadline=None)
@given(edge_lists(), st.integers(0, 2**32))
def test_smoothness_is_the_quadratic_form_of_the_laplacian(
    case: tuple[int, list[tuple[int, int, float]]], seed: int
) -> None:
    mu = np.random.default_rng(seed).standard_normal(case[0])
    expected = mu @ nx.laplacian_matrix(networkx_graph(*case)).toarray() @ mu
    assert Graph.from_edges(*case).smoothness(mu) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(edge_lists())
def test_components_are_those_of_networkx(case: tuple[int, list[tuple[int, int, float]]]) -> None:
    graph = Graph.from_edges(*case)
    expected = {frozenset(component) for component in nx.connected_components(networkx_graph(*case))}
    found = {frozenset(np.flatnonzero(graph.components == c).tolist()) for c in range(graph.n_components)}
    assert found == expected


@settings(deadline=None)
@given(edge_lists())
def test_edges_dense_and_sparse_weights_and_networkx_give_the_same_graph(
    case: tuple[int, list[tuple[int, int, float]]],
) -> None:
    n_arms, edges = case
    weights = np.zeros((n_arms, n_arms))
    for a, b, w in edges:
        weights[a, b] = weights[b, a] = w
    graph = Graph.from_edges(n_arms, edges)
    assert graph.n_edges == len(edges)
    assert same(Graph.from_weights(weights), graph)
    assert same(Graph.from_weights(weights.tolist()), graph)
    assert same(Graph.from_weights(sparse.csr_array(weights)), graph)
    assert same(Graph.from_weights(sparse.csc_matrix(weights)), graph)
    assert same(Graph.from_networkx(networkx_graph(n_arms, edges)), graph)


def test_edges_are_kept_once_sorted_and_with_their_weights() -> None:
    graph = Graph.from_edges(4, [(3, 2, 0.5), (0, 1), (3, 0, 2)])
    assert graph.pairs.tolist() == [[0, 1], [0, 3], [2, 3]]
    assert graph.weights.tolist() == [1.0, 2.0, 0.5]


def test_edges_may_be_rows_of_an_array() -> None:
    assert same(
        Graph.from_edges(3, np.array([[0, 1, 0.5], [1, 2, 2.0]])), Graph.from_edges(3, [(0, 1, 0.5), (1, 2, 2.0)])
    )


def test_an_edge_of_weight_zero_changes_nothing() -> None:
    plain = Graph.from_edges(4, [(0, 1, 2.0)])
    padded = Graph.from_edges(4, [(0, 1, 2.0), (1, 2, 0.0), (2, 3, 0)])
    assert same(padded, plain)
    assert padded.n_components == 3
    explicit_zero = sparse.coo_array(([2.0, 2.0, 0.0, 0.0], ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(4, 4))
    assert same(Graph.from_weights(explicit_zero), plain)


def test_repeated_entries_of_a_sparse_matrix_are_summed_and_the_matrix_is_left_alone() -> None:
    weights = sparse.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert Graph.from_weights(weights).weights.tolist() == [3.0]
    assert weights.data.tolist() == [1.0, 2.0, 3.0]


def test_a_boolean_adjacency_matrix_means_weight_one() -> None:
    assert same(Graph.from_weights(np.array([[False, True], [True, False]])), Graph.from_edges(2, [(0, 1)]))


def test_networkx_nodes_become_arms_in_order_and_missing_weights_are_one() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(["c", "a", "b"])
    graph.add_edge("b", "c")
    graph.add_edge("a", "b", weight=3.0, cost=7.0)
    assert same(Graph.from_networkx(graph), Graph.from_edges(3, [(0, 2, 1.0), (1, 2, 3.0)]))
    assert same(Graph.from_networkx(graph, weight="cost"), Graph.from_edges(3, [(0, 2, 1.0), (1, 2, 7.0)]))


def test_a_graph_without_edges_has_a_zero_laplacian() -> None:
    graph = Graph.from_edges(3, [])
    assert graph.laplacian.shape == (3, 3)
    assert not graph.laplacian.toarray().any()
    assert graph.n_components == 3
    assert graph.smoothness([1.0, 5.0, -2.0]) == 0.0


# Features


def test_features_join_nearest_neighbours_with_weights_that_fall_with_distance() -> None:
    graph = Graph.from_features([[0.0], [1.0], [3.0]], neighbors=1)
    assert graph.pairs.tolist() == [[0, 1], [1, 2]]
    np.testing.assert_allclose(graph.weights, np.exp([-0.5 * (1 / 1.5) ** 2, -0.5 * (2 / 1.5) ** 2]))


def test_the_graph_of_features_joins_two_arms_if_one_is_near_the_other() -> None:
    points = np.random.default_rng(1).standard_normal((40, 3))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:5]
    expected = {(min(a, b), max(a, b)) for a in range(40) for b in nearest[a].tolist()}
    graph = Graph.from_features(points, neighbors=4)
    assert {(a, b) for a, b in graph.pairs.tolist()} == expected
    laplacian = graph.laplacian.toarray()
    assert np.array_equal(laplacian, laplacian.T)
    lengths = distances[graph.pairs[:, 0], graph.pairs[:, 1]]
    np.testing.assert_allclose(graph.weights, np.exp(-0.5 * (lengths / np.median(lengths)) ** 2))


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 7.0, 1e200])
def test_scaling_the_features_changes_nothing(scale: float) -> None:
    points = np.random.default_rng(2).standard_normal((30, 2))
    graph, scaled = Graph.from_features(points), Graph.from_features(scale * points)
    assert np.array_equal(graph.pairs, scaled.pairs)
    np.testing.assert_allclose(graph.weights, scaled.weights, rtol=1e-12)


def test_a_small_group_of_far_points_is_not_joined_by_edges_that_are_lost_in_rounding_errors() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((20, 2)), 3 + 0.1 * rng.random((3, 2))])
    graph = Graph.from_features(points, neighbors=4)  # three points have four neighbours only across the distance
    assert graph.n_components == 2
    assert graph.weights.min() >= 1e-12
    problem = sb.Problem(graph, R=1.0)
    one_each = np.isin(np.arange(23), (0, 20)).astype(float)
    assert np.isfinite(sb.closest_alternative(problem, rng.random(23), one_each).cost)


def test_weights_too_different_for_floating_point_arithmetic_are_refused_with_a_sentence() -> None:
    inside = [(a, b) for group in (range(6), range(6, 12)) for a in group for b in group if a < b]
    problem = sb.Problem(Graph.from_edges(12, [*((a, b, 1.0) for a, b in inside), (0, 11, 1e-20)]), R=1.0)
    first_group = (np.arange(12) < 6).astype(float)
    with pytest.raises(InvalidInput, match="weights from 1e-20 to 1, too different for floating-point arithmetic"):
        sb.closest_alternative(problem, np.arange(12) / 12, first_group)


def test_duplicated_points_are_joined_with_weight_one_and_no_self_loop() -> None:
    graph = Graph.from_features([[0.0], [0.0], [1.0], [1.0]], neighbors=1)
    assert graph.pairs.tolist() == [[0, 1], [2, 3]]
    assert graph.weights.tolist() == [1.0, 1.0]


def test_many_duplicated_points_have_no_more_than_their_number_of_neighbours() -> None:
    graph = Graph.from_features(np.zeros((30, 2)), neighbors=2)
    assert graph.n_edges <= 60
    assert np.diff(graph.laplacian.indptr).min() >= 3  # the diagonal and two neighbours
    assert (graph.weights == 1.0).all()


@pytest.mark.parametrize(
    ("features", "neighbors", "message"),
    [
        ([[0.0], [1.0]], 2, "`neighbors` must be below the number of arms 2, got 2"),
        ([[0.0], [1.0]], 0, "`neighbors` must be a whole number of at least 1, got 0"),
        ([[0.0], [1.0]], 1.5, "`neighbors` must be a whole number of at least 1, got 1.5"),
        ([[0.0], [1.0]], True, "`neighbors` must be a whole number of at least 1, got True"),
        ([0.0, 1.0], 1, "`features` must have shape (n_arms, n_features), got (2,); one row per arm"),
        ([[], []], 1, "`features` must have shape (n_arms, n_features), got (2, 0)"),
        ([[0.0], [math.nan]], 1, "`features` must be finite, got nan at row 1, column 0"),
        ([[0.0, math.inf], [1.0, 1.0]], 1, "`features` must be finite, got inf at row 0, column 1"),
        ([[0.0], [1.0, 2.0]], 1, "`features` must be a table of numbers, one row per arm"),
        ([["red"], ["blue"]], 1, "`features` must be a table of numbers, one row per arm"),
        ([[0.0]], 1, "`n_arms` must be at least 2, got 1"),
    ],
)
def test_bad_features_are_refused(features: Any, neighbors: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_features(features, neighbors)


# Refusals


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ((0, 3, 1.0), "edge 1 must join arms between 0 and 2, got arm 3; arms are numbered from 0"),
        ((-1, 2, 1.0), "got arm -1; arms are numbered from 0"),
        ((0.5, 2, 1.0), "got arm 0.5"),
        ((math.nan, 2, 1.0), "got arm nan"),
        ((math.inf, 2, 1.0), "got arm inf"),
        ((True, 2, 1.0), "got arm True"),
        (("a", 2, 1.0), "got arm 'a'"),
        (("1", 2, 1.0), "got arm '1'"),
        ((None, 2, 1.0), "got arm None"),
        (([1], 2, 1.0), "got arm [1]"),
        ((2, 2, 1.0), "edge 1 must join two different arms, got 2 and 2; remove the self-loop"),
        ((0, 1, 2.0), "edge 1 must be new, got 0 and 1 again, as in edge 0; give each edge once"),
        ((1, 0, 1.0), "edge 1 must be new, got 0 and 1 again"),
        ((1, 2, -0.5), "`weight of edge 1` must be a finite non-negative number, got -0.5"),
        ((1, 2, math.nan), "`weight of edge 1` must be a finite non-negative number, got nan"),
        ((1, 2, math.inf), "`weight of edge 1` must be a finite non-negative number, got inf"),
        ((1, 2, 10**400), "`weight of edge 1` must be a finite non-negative number, got inf"),
        ((1, 2, True), "`weight of edge 1` must be a finite non-negative number, got True; give a number"),
        ((1, 2, "1"), "got '1'; give a number"),
        ((1, 2, None), "got None; give a number"),
        ((1,), "edge 1 must be (a, b) or (a, b, weight), got (1,)"),
        ((1, 2, 1.0, 1.0), "edge 1 must be (a, b) or (a, b, weight)"),
        (7, "edge 1 must be (a, b) or (a, b, weight), got 7"),
        ("12", "edge 1 must be (a, b) or (a, b, weight), got '12'"),
        (np.array(5), "edge 1 must be (a, b) or (a, b, weight), got 5"),
    ],
)
def test_a_bad_edge_is_refused(edge: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_edges(3, [(0, 1, 1.0), edge])


@pytest.mark.parametrize("edges", [None, 5])
def test_edges_that_are_no_list_are_refused(edges: Any) -> None:
    with pytest.raises(InvalidInput, match=f"`edges` must be a list of .* got {edges}"):
        Graph.from_edges(3, edges)


@pytest.mark.parametrize(
    ("n_arms", "message"),
    [
        (1, "`n_arms` must be at least 2, got 1; with fewer arms there is nothing to find"),
        (0, "`n_arms` must be at least 2, got 0"),
        (-3, "got -3"),
        (2.0, "must be a whole number of at least"),
        (True, "got True"),
        ("3", "got '3'"),
        (None, "got None"),
    ],
)
def test_a_bad_number_of_arms_is_refused(n_arms: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_edges(n_arms, [])


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.coo_matrix])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0.0, math.nan], [math.nan, 0.0]], "`weights` must be finite, got nan at (0, 1)"),
        ([[0.0, math.inf], [math.inf, 0.0]], "`weights` must be finite, got inf at (0, 1)"),
        ([[0.0, -2.0], [-2.0, 0.0]], "`weights` must be non-negative, got -2.0 at (0, 1)"),
        ([[0.0, 1.0], [1.0, 3.0]], "`weights` must have a zero diagonal, got 3.0 at arm 1; remove the self-loop"),
        ([[0.0, 1.0], [2.0, 0.0]], "`weights` must be symmetric, got 1.0 at (0, 1) but 2.0 at (1, 0); use (W + W.T)/2"),
        ([[0.0, 1.0], [0.0, 0.0]], "`weights` must be symmetric, got 1.0 at (0, 1) but 0.0 at (1, 0)"),
        ([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], "`weights` must have shape (n_arms, n_arms), got (2, 3)"),
        ([[0.0]], "`n_arms` must be at least 2, got 1"),
        ([[0.0, 1j], [1j, 0.0]], "`weights` must be a matrix of numbers"),
    ],
)
def test_a_bad_matrix_of_weights_is_refused_dense_or_sparse(form: Any, weights: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_weights(form(weights))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.0, 1.0], "got (2,)"),
        (np.zeros((2, 2, 2)), "got (2, 2, 2)"),
        ([[0.0, 1.0], [1.0]], "`weights` must be a matrix of numbers, got [[0.0, 1.0], [1.0]]"),
        ([["0", "1"], ["1", "0"]], "`weights` must be a matrix of numbers"),
        ([[None, None], [None, None]], "`weights` must be a matrix of numbers"),
        (None, "`weights` must be a matrix of numbers, got None"),
        (4.0, "got ()"),
        (np.zeros((0, 0)), "got 0"),
    ],
)
def test_weights_that_are_no_square_matrix_of_numbers_are_refused(weights: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_weights(weights)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_directed_and_multiple_networkx_graphs_are_refused(kind: Any) -> None:
    message = f"`graph` must be a plain undirected networkx Graph, got {kind.__name__}; use networkx.Graph(graph)"
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_networkx(kind([(0, 1)]))


def test_networkx_self_loops_and_bad_weights_are_refused() -> None:
    with pytest.raises(InvalidInput, match="remove the self-loop"):
        Graph.from_networkx(nx.Graph([(0, 1), (1, 1)]))
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edge(0, 1, weight="heavy")
    with pytest.raises(InvalidInput, match="got 'heavy'; give a number"):
        Graph.from_networkx(graph)


def test_something_else_than_a_networkx_graph_is_refused() -> None:
    other: Any = [(0, 1)]
    with pytest.raises(InvalidInput, match="`graph` must be a networkx Graph, got list; use Graph.from_edges"):
        Graph.from_networkx(other)


@pytest.mark.parametrize(
    ("mu", "message"),
    [
        ([1.0, 2.0], "`mu` must have shape (n_arms,) = (3,), got (2,); give one entry per arm"),
        ([[1.0, 2.0, 3.0]], "got (1, 3)"),
        (1.0, "got ()"),
        ([1.0, math.nan, 3.0], "`mu` must be finite, got nan at arm 1"),
        ([1.0, 2.0, -math.inf], "`mu` must be finite, got -inf at arm 2"),
        (["1", "2", "3"], "`mu` must hold one number per arm, got ['1', '2', '3']"),
        ([True, False, True], "`mu` must hold one number per arm, got [True, False, True]"),
        ([1.0, None, 3.0], "`mu` must hold one number per arm, got [1.0, None, 3.0]"),
        ([1.0, [2.0], 3.0], "`mu` must hold one number per arm, got [1.0, [2.0], 3.0]"),
        ([1j, 2.0, 3.0], "`mu` must hold one number per arm"),
        (None, "`mu` must hold one number per arm, got None"),
    ],
)
def test_smoothness_of_a_bad_vector_is_refused(mu: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        Graph.from_edges(3, [(0, 1)]).smoothness(mu)


@given(
    st.lists(st.sampled_from("abcd"), min_size=2, max_size=9), st.floats(0.01, 100), st.randoms(use_true_random=False)
)
def test_categories_are_the_graph_of_all_edges_inside_them(labels: list[str], weight: float, luck: Any) -> None:
    graph = Graph.from_categories(labels, weight)
    n_arms = len(labels)
    pairs = [(a, b) for a in range(n_arms) for b in range(a + 1, n_arms) if labels[a] == labels[b]]
    other = Graph.from_edges(n_arms, [(a, b, weight) for a, b in pairs])
    mu = np.array([luck.uniform(-1, 1) for _ in labels])
    assert graph.n_edges == other.n_edges
    assert graph.components.tolist() == other.components.tolist()
    assert graph.sizes.tolist() == other.sizes.tolist()
    assert [graph.categories[c] for c in graph.components] == labels
    np.testing.assert_allclose(graph.smoothness(mu), other.smoothness(mu), atol=1e-12 * weight)
    np.testing.assert_allclose(graph.roughness_by_component(mu), other.roughness_by_component(mu), atol=1e-12 * weight)
    np.testing.assert_allclose(other.roughness_by_component(mu).sum(), other.smoothness(mu), atol=1e-12 * weight)
    assert (graph.pairs == other.pairs).all() and (graph.weights == other.weights).all()
    assert (graph.laplacian != other.laplacian).nnz == 0


def test_categories_take_no_memory_for_edges_and_refuse_to_list_too_many() -> None:
    graph = Graph.from_categories([str(arm // 100_000) for arm in range(1_000_000)])
    assert graph.n_edges == 49_999_500_000
    assert graph.smoothness(np.ones(1_000_000)) == 0.0
    with pytest.raises(InvalidInput, match=r"the 49,999,500,000 edges of these categories would need about 3,200.0 GB"):
        graph.pairs  # noqa: B018


@pytest.mark.parametrize(
    ("labels", "weight", "message"),
    [
        ("abc", 1.0, "`labels` must be a list of categories, one per arm, got 'abc'"),
        (["a"], 1.0, "`n_arms` must be at least 2, got 1"),
        (["a", "a"], 0.0, "`weight` must be a finite positive number, got 0.0"),
    ],
)
def test_bad_categories_are_refused(labels: Any, weight: float, message: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Graph.from_categories(labels, weight)
    assert str(refusal.value).startswith(message)


def test_components_are_numbered_by_their_first_arms() -> None:
    assert Graph.from_edges(6, [(1, 5), (0, 3), (2, 3)]).components.tolist() == [0, 1, 0, 0, 2, 1]
    assert isinstance(Graph.from_categories("ab ab".split()), Categories)


def test_equal_means_of_a_category_have_no_roughness_at_all() -> None:
    graph = Graph.from_categories([*"aaabbb", "c"])
    rough = graph.roughness_by_component(np.array([0.7, 0.7, 0.7, 0.1, 0.2, 0.1, 0.9]))
    assert rough[0] == rough[2] == 0 and rough[1] == pytest.approx(0.02)
