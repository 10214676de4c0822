"""Positions for drawing the arms of a graph."""

from __future__ import annotations

import numpy as np

from spectralbai.checks import Matrix
from spectralbai.graph import Categories, Graph


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
    return places


def _sunflower(n: int) -> Matrix:
    """Returns n positions spread evenly over the disc of diameter 1, like the seeds of a sunflower."""
    seeds = np.arange(n) + 0.5
    angle = np.pi * (1 + np.sqrt(5)) * seeds
    places: Matrix = 0.5 * np.sqrt(seeds / n)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return places if n > 1 else np.zeros((1, 2))


def _spring(graph: Graph, arms: np.ndarray, steps: int = 300) -> Matrix:
    """Returns positions of one component in the unit square, by the forces of Fruchterman and Reingold; they start on a
    circle."""
    n = arms.size
    if n == 1:
        return np.zeros((1, 2))
    joined = graph.laplacian[arms][:, arms].toarray() < 0
    angle = 2 * np.pi * np.arange(n) / n
    places = np.column_stack([np.cos(angle), np.sin(angle)])
    ideal = 1 / np.sqrt(n)
    for step in range(steps):
        apart = places[:, None] - places[None]
        distance = np.maximum(np.sqrt((apart**2).sum(-1)), 1e-6)
        force = ideal**2 / distance**2 - np.where(joined, distance / ideal, 0.0)
        move = (apart * force[..., None]).sum(1)
        length = np.maximum(np.sqrt((move**2).sum(-1, keepdims=True)), 1e-9)
        places = places + move / length * np.minimum(length, 0.1 * (1 - step / steps))
    places -= (places.max(0) + places.min(0)) / 2
    return places / max(float(np.ptp(places, axis=0).max()), 1e-9)
