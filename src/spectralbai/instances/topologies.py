"""Similarity graphs of the generated instances, with unit weights unless said otherwise."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from spectralbai.checks import check_integer, check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph


def path(n_arms: int) -> Graph:
    """Returns the path 0 - 1 - ... - (n_arms - 1)."""
    n_arms = check_integer("n_arms", n_arms, 2)
    return Graph.from_edges(n_arms, itertools.pairwise(range(n_arms)))


def ring(n_arms: int) -> Graph:
    """Returns the cycle of at least 3 arms."""
    n_arms = check_integer("n_arms", n_arms, 3)
    return Graph.from_edges(n_arms, [(a, (a + 1) % n_arms) for a in range(n_arms)])


def grid(rows: int, columns: int) -> Graph:
    """Returns the grid whose arm row * columns + column is joined to the four around it."""
    rows, columns = check_integer("rows", rows, 1), check_integer("columns", columns, 1)
    arms = np.arange(rows * columns).reshape(rows, columns)
    across = zip(arms[:, :-1].ravel().tolist(), arms[:, 1:].ravel().tolist(), strict=True)
    down = zip(arms[:-1].ravel().tolist(), arms[1:].ravel().tolist(), strict=True)
    return Graph.from_edges(rows * columns, [*across, *down])


def star(n_arms: int) -> Graph:
    """Returns the star with arm 0 at its centre."""
    n_arms = check_integer("n_arms", n_arms, 2)
    return Graph.from_edges(n_arms, [(0, a) for a in range(1, n_arms)])


def complete(n_arms: int) -> Graph:
    """Returns the graph of all pairs of arms."""
    n_arms = check_integer("n_arms", n_arms, 2)
    return Graph.from_edges(n_arms, itertools.combinations(range(n_arms), 2))


def cliques(n_cliques: int, size: int, n_lone: int) -> Graph:
    """Returns `n_cliques` complete graphs of `size` consecutive arms, then `n_lone` arms without edges."""
    n_cliques, size = check_integer("n_cliques", n_cliques, 1), check_integer("size", size, 1)
    edges = [
        pair
        for first in range(0, n_cliques * size, size)
        for pair in itertools.combinations(range(first, first + size), 2)
    ]
    return Graph.from_edges(n_cliques * size + n_lone, edges)


def stochastic_block(n_blocks: int, size: int, p_inside: float, p_across: float, rng: np.random.Generator) -> Graph:
    """Returns a random graph on blocks of `size` consecutive arms, with independent edges of two probabilities."""
    n_arms = check_integer("n_blocks", n_blocks, 1) * check_integer("size", size, 1)
    p_inside, p_across = _check_probability("p_inside", p_inside), _check_probability("p_across", p_across)
    a, b = np.triu_indices(n_arms, k=1)
    kept = rng.random(a.size) < np.where(a // size == b // size, p_inside, p_across)
    return Graph.from_edges(n_arms, list(zip(a[kept].tolist(), b[kept].tolist(), strict=True)))


def barabasi_albert(n_arms: int, attachments: int, rng: np.random.Generator) -> Graph:
    """Returns a star of `attachments` + 1 arms to which further arms are added; each is joined to `attachments` others,
    drawn with probabilities proportional to their degrees."""
    n_arms, attachments = check_integer("n_arms", n_arms, 2), check_integer("attachments", attachments, 1)
    if attachments >= n_arms:
        raise InvalidInput(f"`attachments` must be below the number of arms {n_arms}, got {attachments}")
    edges = [(0, a) for a in range(1, attachments + 1)]
    for new in range(attachments + 1, n_arms):
        ends = list(itertools.chain.from_iterable(edges))  # each arm as often as its degree
        chosen: set[int] = set()
        while len(chosen) < attachments:
            chosen.add(ends[rng.integers(len(ends))])
        edges += [(arm, new) for arm in sorted(chosen)]
    return Graph.from_edges(n_arms, edges)


def nearest_neighbors(n_arms: int, neighbors: int, rng: np.random.Generator) -> Graph:
    """Returns the weighted graph of `Graph.from_features` on random points of the unit square."""
    return Graph.from_features(rng.random((check_integer("n_arms", n_arms, 2), 2)), neighbors)


def _check_probability(name: str, value: Any) -> float:
    rule = "a probability between 0 and 1"
    probability = check_number(name, value, rule, low=0.0, strict=False)
    if probability > 1:
        raise InvalidInput(f"`{name}` must be {rule}, got {value}")
    return probability
