"""Generated instances: a graph of a named topology, means on it, and R = slack S(mu)."""

from spectralbai.instances.generators import (
    barabasi_albert,
    cliques,
    complete,
    grid,
    nearest_neighbors,
    path,
    ring,
    star,
    stochastic_block,
)

__all__ = ["barabasi_albert", "cliques", "complete", "grid", "nearest_neighbors", "path", "ring", "star", "stochastic_block"]
