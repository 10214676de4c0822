"""Graphs that several test files use."""

from __future__ import annotations

from spectralbai import Graph

GRAPHS = {
    "path": Graph.from_edges(5, [(a, a + 1, 1.0) for a in range(4)]),
    "three components": Graph.from_edges(6, [(0, 3, 1.0), (3, 5, 0.5), (1, 4, 2.0)]),
    "edgeless": Graph.from_edges(4, []),
}
