"""Instances on small real networks that come with networkx, with a random smooth signal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import check_integer
from spectralbai.errors import SpectralBAIError
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.instances.generators import smooth_instance


def karate_club(
    *, lead: float = 0.05, slack: float = 1.5, sigma: ArrayLike = 1.0, tolerance: float = 0.0, seed: int = 0
) -> Instance:
    """Returns a smooth signal on Zachary's karate club: 34 members, weighted by how many contexts they met in.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.karate_club()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (34, 78)
    """
    return _network("karate_club_graph", lead, slack, sigma, tolerance, seed)


def les_miserables(
    *, lead: float = 0.05, slack: float = 1.5, sigma: ArrayLike = 1.0, tolerance: float = 0.0, seed: int = 0
) -> Instance:
    """Returns a smooth signal on the 77 characters of the novel, weighted by the scenes they share.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.les_miserables()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (77, 254)
    """
    return _network("les_miserables_graph", lead, slack, sigma, tolerance, seed)


def florentine_families(
    *, lead: float = 0.05, slack: float = 1.5, sigma: ArrayLike = 1.0, tolerance: float = 0.0, seed: int = 0
) -> Instance:
    """Returns a smooth signal on the marriages between 15 families of Florence.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.florentine_families()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (15, 20)
    """
    return _network("florentine_families_graph", lead, slack, sigma, tolerance, seed)


def _network(name: str, lead: float, slack: float, sigma: ArrayLike, tolerance: float, seed: int) -> Instance:
    rng = np.random.default_rng(check_integer("seed", seed, 0))
    try:
        import networkx
    except ModuleNotFoundError:
        raise SpectralBAIError(
            "this network needs networkx, which is not installed; run: pip install networkx"
        ) from None
    network: Any = getattr(networkx, name)()
    labels = [str(node) for node in network.nodes]
    return smooth_instance(Graph.from_networkx(network), lead, slack, sigma, tolerance, rng, labels)
