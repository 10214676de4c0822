"""Generated instances: a graph of a named topology, means on it, and R = slack S(mu)."""

from collections.abc import Callable

from spectralbai.instance import Instance
from spectralbai.instances.generators import (
    barabasi_albert,
    catalogue,
    cliques,
    complete,
    grid,
    nearest_neighbors,
    path,
    ring,
    star,
    stochastic_block,
)
from spectralbai.instances.networks import florentine_families, karate_club, les_miserables

KINDS: dict[str, Callable[..., Instance]] = {
    kind.__name__: kind
    for kind in (
        *(path, ring, grid, star, complete, cliques, catalogue, stochastic_block, barabasi_albert, nearest_neighbors),
        *(karate_club, les_miserables, florentine_families),
    )
}
"""The generators by name."""

__all__ = [
    "KINDS",
    "barabasi_albert",
    "catalogue",
    "cliques",
    "complete",
    "florentine_families",
    "grid",
    "karate_club",
    "les_miserables",
    "nearest_neighbors",
    "path",
    "ring",
    "star",
    "stochastic_block",
]
