"""Instances on small real networks that come with networkx, with a random smooth signal."""

from __future__ import annotations

from typing import Any, Unpack

from spectralbai.errors import SpectralBAIError
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.instances.generators import Signal, smooth_instance, with_keywords_of


@with_keywords_of(smooth_instance)
def karate_club(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on Zachary's karate club: 34 members, weighted by how many contexts they met in.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.karate_club()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (34, 78)
    """
    return _network("karate_club_graph", **signal)


@with_keywords_of(smooth_instance)
def les_miserables(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on the 77 characters of the novel, weighted by the scenes they share.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.les_miserables()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (77, 254)
    """
    return _network("les_miserables_graph", **signal)


@with_keywords_of(smooth_instance)
def florentine_families(**signal: Unpack[Signal]) -> Instance:
    """Returns a smooth signal on the marriages between 15 families of Florence.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.florentine_families()
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (15, 20)
    """
    return _network("florentine_families_graph", **signal)


def _network(name: str, **signal: Unpack[Signal]) -> Instance:
    try:
        import networkx
    except ModuleNotFoundError:
        raise SpectralBAIError(
            "this network needs networkx, which is not installed; run: pip install networkx"
        ) from None
    network: Any = getattr(networkx, name)()
    labels = [str(node) for node in network.nodes]
    return smooth_instance(Graph.from_networkx(network), labels, **signal)
