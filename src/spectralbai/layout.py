"""Positions for drawing the arms of a graph."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import eigsh

from spectralbai.arrays import Indices, Matrix
from spectralbai.graph import Categories, Graph, laplacian_of

SMALL = 100
"""Components of up to so many arms start on a circle and have time to unfold; larger ones start unfolded."""
STEPS_IF_SMALL, STEPS_IF_LARGE = 300, 80


@lru_cache(maxsize=16)
def layout(graph: Graph) -> Matrix:
    """Returns a position (x, y) per arm: components are placed in rows; spring forces spread the arms of each."""
    places = np.zeros((graph.n_arms, 2))
    components = graph.components
    sizes = np.bincount(components)
    order = np.argsort(-sizes, kind="stable")
    x = y = row_height = 0.0
    limit = 1.3 * np.sqrt(np.sum((np.sqrt(sizes) + 1) ** 2))
    gap = 1.2 + 0.15 * np.sqrt(sizes.max()) * isinstance(graph, Categories)  # with room for the names of categories
    for component in order:
        arms = np.flatnonzero(components == component)
        side = np.sqrt(arms.size)
        if x + side > limit and x > 0:
            x, y, row_height = 0.0, y - row_height - gap, 0.0
        inside = _sunflower(arms.size) if isinstance(graph, Categories) else _spring(graph, arms)
        places[arms] = inside * side + (x + side / 2, y - side / 2)
        x += side + 1.2
        row_height = max(row_height, side)
    places.setflags(write=False)
    return places


def _sunflower(n: int) -> Matrix:
    """Returns n positions spread evenly over the disc of diameter 1, like the seeds of a sunflower."""
    seeds = np.arange(n) + 0.5
    angle = np.pi * (1 + np.sqrt(5)) * seeds
    places: Matrix = 0.5 * np.sqrt(seeds / n)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return places if n > 1 else np.zeros((1, 2))


def _spring(graph: Graph, arms: Indices) -> Matrix:
    """Returns positions of one component in the unit square, by the forces of Fruchterman and Reingold.

    All pairs push each other apart, so a step takes n^2 operations; they are matrix products, in single precision if
    there are many arms, since sum_j f_ij (x_i - x_j) = x_i sum_j f_ij - (f x)_i.
    """
    n = arms.size
    if n == 1:
        return np.zeros((1, 2))
    number = np.full(graph.n_arms, -1)
    number[arms] = np.arange(n)
    pairs = number[graph.pairs]
    first, second = pairs[pairs[:, 0] >= 0].T
    places = _start(n, first, second).astype(float if n <= SMALL else np.float32)
    ideal = 1 / np.sqrt(n)
    steps = STEPS_IF_SMALL if n <= SMALL else STEPS_IF_LARGE
    for step in range(steps):
        squares = (places**2).sum(1)
        push = places @ (-2 * places.T)  # in place from here on, because these matrices are large
        push += squares[:, None]
        push += squares
        np.maximum(push, (0.05 * ideal) ** 2, out=push)  # squared distances
        np.divide(ideal**2, push, out=push)
        move = places * push.sum(1)[:, None] - push @ places
        apart = places[first] - places[second]
        pull = apart * (np.sqrt((apart**2).sum(1)) / ideal)[:, None]
        for axis in (0, 1):
            move[:, axis] += np.bincount(second, pull[:, axis], n) - np.bincount(first, pull[:, axis], n)
        length = np.maximum(np.sqrt((move**2).sum(-1, keepdims=True)), 1e-9)
        places = places + move / length * np.minimum(length, 0.1 * (1 - step / steps))
    found: Matrix = places.astype(float)
    found -= (found.max(0) + found.min(0)) / 2
    found /= max(float(np.ptp(found, axis=0).max()), 1e-9)
    return found


def _start(n: int, first: Indices, second: Indices) -> Matrix:
    """Returns the positions from which forces start, for a connected graph with these edges.

    In a large graph they are its two smoothest functions, eigenvectors of D^-1 L. A small circle is added, to separate
    arms that have the same neighbours.
    """
    angle = 2 * np.pi * np.arange(n) / n
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    if n <= SMALL:
        return circle
    laplacian = laplacian_of(n, np.column_stack([first, second]), np.ones(first.size)).tocsc()
    degrees = diags_array(laplacian.diagonal(), format="csc")
    values, vectors = eigsh(laplacian, 3, degrees, sigma=-1e-3, v0=1 + 0.1 * circle[:, 0])
    smooth = vectors[:, np.argsort(values)[1:]]
    start: Matrix = smooth / np.abs(smooth).max(0) + 0.1 * circle
    return start
