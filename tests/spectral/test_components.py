"""The order of the arms by component, and the way back."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.spectral import Components

INTERLEAVED = Graph.from_edges(6, [(0, 4), (4, 2, 2.0), (1, 5, 3.0)])


def test_arms_are_ordered_by_component_and_back() -> None:
    components = Components.from_problem(Problem(INTERLEAVED, 1.0))
    np.testing.assert_array_equal(components.position[components.order], np.arange(6))
    np.testing.assert_array_equal(components.of_arm, INTERLEAVED.components)
    np.testing.assert_array_equal(components.component, INTERLEAVED.components[components.order])
    assert (np.diff(components.component) >= 0).all()
    for c, (low, high) in enumerate(zip(components.offsets[:-1], components.offsets[1:], strict=True)):
        assert (components.component[low:high] == c).all()
        edges = slice(components.edge_offsets[c], components.edge_offsets[c + 1])
        assert ((components.ends[edges] >= low) & (components.ends[edges] < high)).all()
    assert components.offsets[-1] == 6 and components.edge_offsets[-1] == 3


def test_components_are_counted() -> None:
    components = Components.from_problem(Problem(INTERLEAVED, 1.0))
    assert components.n_components == 3
    assert components.rank == 3 == np.linalg.matrix_rank(INTERLEAVED.laplacian.toarray())
    assert components.sizes.tolist() == [3, 2, 1]


def test_vectors_rows_and_squares_are_ordered_and_restored() -> None:
    components = Components.from_problem(Problem(INTERLEAVED, 1.0))
    order = components.order
    assert order.tolist() == [0, 2, 4, 1, 5, 3]
    square = np.arange(36.0).reshape(6, 6)
    np.testing.assert_array_equal(components.ordered(square[0]), square[0][order])
    np.testing.assert_array_equal(components.ordered(square), square[order])
    np.testing.assert_array_equal(components.ordered(square, axes=2), square[order][:, order])
    for axes in (1, 2):
        np.testing.assert_array_equal(components.restored(components.ordered(square, axes), axes), square)
        assert components.ordered(square, axes).flags.carray and components.restored(square, axes).flags.carray


def test_what_goes_into_a_kernel_is_writable_and_contiguous_even_if_nothing_has_to_move() -> None:
    components = Components.from_problem(Problem(Graph.from_edges(3, [(0, 1)]), 1.0))
    assert components.in_order
    square = np.arange(9.0).reshape(3, 3)
    assert components.ordered(square) is square and components.restored(square) is square
    square.setflags(write=False)
    for x in (square, square[0], square[:, 0]):
        assert components.ordered(x).flags.carray
        np.testing.assert_array_equal(components.ordered(x), x)


def test_renumbered_components_are_those_of_the_graph_under_other_names() -> None:
    components = Components.from_problem(Problem(INTERLEAVED, 1.0))
    named = components.renumbered
    assert named.in_order and not components.in_order
    np.testing.assert_array_equal(named.of_arm, components.component)
    np.testing.assert_array_equal(named.pairs, components.ends)
    assert named.renumbered is named


def test_pairs_and_incidence_factorise_the_laplacian() -> None:
    components = Components.from_problem(Problem(INTERLEAVED, 1.0))
    incidence = components.incidence.toarray()
    product = incidence.T @ np.diag(components.weights) @ incidence
    np.testing.assert_allclose(product, INTERLEAVED.laplacian.toarray(), atol=1e-13)
    weights = {(a, b): w for (a, b), w in zip(components.pairs.tolist(), components.weights, strict=True)}
    assert weights == pytest.approx({(0, 4): 1.0, (2, 4): 2.0, (1, 5): 3.0})


def test_an_infinite_R_leaves_no_edge() -> None:
    components = Components.from_problem(Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), math.inf))
    np.testing.assert_array_equal(components.offsets, np.arange(4))
    assert len(components.weights) == 0 and components.rank == 0
