"""Generators of instances: a graph of a named topology and means on it, the same for the same seed.

Every generator takes `slack`, sigma and tolerance. The instance has R = slack S(mu), so with slack below 1 the
hypothesis S(mu) <= R is false. A smooth signal ranges from 0 to 1, and `lead` is added to its best arm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Vector, check_integer, check_number
from spectralbai.errors import InvalidInput
from spectralbai.graph import Graph
from spectralbai.instance import Instance
from spectralbai.instances import signals, topologies
from spectralbai.problem import Problem


def path(
    n_arms: int,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal on a path.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.path(6)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (6, 5)
    """
    return smooth_instance(topologies.path(n_arms), lead, slack, sigma, tolerance, _generator(seed))


def ring(
    n_arms: int,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal on a cycle of at least 3 arms.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.ring(6)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (6, 6)
    """
    return smooth_instance(topologies.ring(n_arms), lead, slack, sigma, tolerance, _generator(seed))


def grid(
    rows: int,
    columns: int,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal on a grid, whose arm number is row * columns + column.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.grid(3, 4)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (12, 17)
    """
    return smooth_instance(topologies.grid(rows, columns), lead, slack, sigma, tolerance, _generator(seed))


def star(
    n_arms: int,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a signal that is as smooth as possible on a star with arm 0 at its centre.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.star(6)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (6, 5)
    """
    return smooth_instance(topologies.star(n_arms), lead, slack, sigma, tolerance, _generator(seed))


def complete(
    n_arms: int,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns scaled white noise on the complete graph, where all signals of one variance are equally smooth.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.complete(5)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (5, 10)
    """
    return smooth_instance(topologies.complete(n_arms), lead, slack, sigma, tolerance, _generator(seed))


def cliques(
    n_cliques: int,
    size: int,
    *,
    lone_best: bool = True,
    levels: tuple[float, float] = (0.2, 0.6),
    spread: float = 0.01,
    best: float = 0.9,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns cliques of `size` arms, each with a level drawn from `levels`, plus `spread` times white noise per arm.

    The best arm has mean `best`. It is an additional last arm without edges or, if not `lone_best`, a random arm of the
    cliques.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.cliques(2, 5)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (11, 20)
    """
    _check_lone_best(lone_best)
    graph = topologies.cliques(n_cliques, size, n_lone=int(lone_best))
    mu = _clustered(graph, size, lone_best, levels, spread, best, _generator(seed))
    return _instance(graph, mu, slack, sigma, tolerance)


def catalogue(
    n_categories: int,
    size: int,
    *,
    lone_best: bool = True,
    levels: tuple[float, float] = (0.2, 0.6),
    spread: float = 0.01,
    best: float = 0.9,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns the means of `cliques` as categories; the R of each is slack times the roughness of the category.

    The best arm has mean `best`. It is an additional last arm in a separate category or, if not `lone_best`, a random
    arm.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.catalogue(20, 100)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (2001, 99000)
    """
    _check_lone_best(lone_best)
    n_categories, size = check_integer("n_categories", n_categories, 1), check_integer("size", size, 1)
    labels = [f"category {c}" for c in range(n_categories) for _ in range(size)] + ["alone"] * lone_best
    graph = Graph.from_categories(labels)
    mu = _clustered(graph, size, lone_best, levels, spread, best, _generator(seed))
    slack = check_number("slack", slack, "a finite positive number", low=0.0, strict=True)
    return Instance(Problem(graph, slack * graph.roughness_by_component(mu), sigma, tolerance), mu)


def stochastic_block(
    n_blocks: int,
    size: int,
    *,
    p_inside: float = 0.5,
    p_across: float = 0.02,
    levels: tuple[float, float] = (0.2, 0.6),
    spread: float = 0.01,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns blocks of `size` arms with levels drawn from `levels`, plus `spread` times white noise; `lead` is added
    to the best arm.

    Two arms are joined with probability `p_inside` if they are in the same block, and `p_across` otherwise.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.stochastic_block(2, 8, seed=1)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (16, 33)
    """
    rng = _generator(seed)
    graph = topologies.stochastic_block(n_blocks, size, p_inside, p_across, rng)
    mu = signals.clustered(np.arange(graph.n_arms) // size, levels, spread, rng)
    return _instance(graph, signals.raise_best(mu, lead), slack, sigma, tolerance)


def barabasi_albert(
    n_arms: int,
    attachments: int = 2,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal on a graph grown by preferential attachment.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.barabasi_albert(10)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (10, 16)
    """
    rng = _generator(seed)
    return smooth_instance(topologies.barabasi_albert(n_arms, attachments, rng), lead, slack, sigma, tolerance, rng)


def nearest_neighbors(
    n_arms: int,
    neighbors: int = 5,
    *,
    lead: float = 0.05,
    slack: float = 1.5,
    sigma: ArrayLike = 1.0,
    tolerance: float = 0.0,
    seed: int = 0,
) -> Instance:
    """Returns a smooth signal on the graph of the nearest neighbours among random points of the unit square.

    Examples:
        >>> import spectralbai as sb
        >>> instance = sb.instances.nearest_neighbors(10, 3)
        >>> instance.problem.n_arms, instance.problem.graph.n_edges
        (10, 18)
    """
    rng = _generator(seed)
    return smooth_instance(topologies.nearest_neighbors(n_arms, neighbors, rng), lead, slack, sigma, tolerance, rng)


def _check_lone_best(lone_best: bool) -> None:
    if not isinstance(lone_best, bool):
        raise InvalidInput(f"`lone_best` must be True or False, got {lone_best!r}")


def _clustered(
    graph: Graph,
    size: int,
    lone_best: bool,
    levels: tuple[float, float],
    spread: float,
    best: float,
    rng: np.random.Generator,
) -> Vector:
    """Returns means around one level for each group of `size` arms. The last arm, or a random one, gets the mean
    `best`, which must be the largest."""
    best = check_number("best", best, "a finite number", low=-np.inf, strict=True)
    mu = signals.clustered(np.arange(graph.n_arms) // size, levels, spread, rng)
    arm = graph.n_arms - 1 if lone_best else int(rng.integers(graph.n_arms))
    highest = float(np.delete(mu, arm).max())
    if best <= highest:
        raise InvalidInput(
            f"`best` must be above the mean of every other arm, got {best} and another mean of {highest:.6g}; raise "
            "best"
        )
    mu[arm] = best
    return mu


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(check_integer("seed", seed, 0))


def smooth_instance(
    graph: Graph,
    lead: float,
    slack: float,
    sigma: ArrayLike,
    tolerance: float,
    rng: np.random.Generator,
    labels: list[str] | None = None,
) -> Instance:
    """Returns a smooth signal on any graph."""
    return _instance(graph, signals.smooth(graph, lead, rng), slack, sigma, tolerance, labels)


def _instance(
    graph: Graph, mu: Vector, slack: float, sigma: ArrayLike, tolerance: float, labels: list[str] | None = None
) -> Instance:
    slack = check_number("slack", slack, "a finite positive number", low=0.0, strict=True)
    problem = Problem(graph, slack * graph.smoothness(mu), sigma, tolerance)
    problem.best_arm(mu)
    return Instance(problem, mu, labels)
