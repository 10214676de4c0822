"""Confidence intervals that hold for all arms and all times at once: without a graph, and with one."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.checks import check_matrices
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.places import AT_ONCE, folded, places, spread_around
from spectralbai.noise import Pools
from spectralbai.problem import Problem
from spectralbai.spectral import Catalogue, Components, Network

STIFFEST = 1e10
"""Largest ratio of the trace of L/R to the summed precisions of one result per arm: the components are nearly rigid
then, but the matrix is still far from singular."""
FEW = 64
"""Pools of at most so many arms are treated together."""


def plain_widths(counts: Vector, sigma: Vector, delta: float) -> Vector:
    """Returns half the widths of intervals around the empirical means (theory 8.1); inf for arms without results."""
    widths = np.full(counts.size, np.inf)
    seen = counts > 0
    n = counts[seen]
    widths[seen] = sigma[seen] * np.sqrt((n + 1) * (2 * math.log(counts.size / delta) + np.log1p(n))) / n
    return widths


def graph_precision(problem: Problem, counts: Vector) -> Matrix:
    """Returns V = diag(counts / sigma^2) + L / R (theory 8.2), with the R of each component if there are several
    (theory 16.12). A tiny R is raised to a value that floating-point arithmetic can still tell from 0."""
    check_matrices(problem.n_arms, 50)
    precision: Matrix = np.diag(counts / problem.sigma**2)
    if not problem.unstructured:
        least = 2 * problem.graph.weights.sum() / (STIFFEST * (1 / problem.sigma**2).sum())
        radii = np.maximum(problem.radii, least)
        each = radii[problem.graph.components][:, None] if problem.by_component else radii
        precision += problem.graph.laplacian.toarray() / each
    return precision


def graph_intervals(problem: Problem, counts: Vector, means: Vector, delta: float) -> tuple[Vector, Vector]:
    """Returns estimates regularised by the graph and half the widths of intervals around them (theory 8.2, 8.3).

    The first arm of every component is its anchor: the widths are infinite until every anchor has a result.
    """
    n_arms = problem.n_arms
    anchors = np.unique(problem.components, return_index=True)[1]
    if (counts[anchors] == 0).any():
        return means, np.full(n_arms, np.inf)
    precision = graph_precision(problem, counts)
    covariance = np.linalg.inv(precision)
    estimates = covariance @ (counts / problem.sigma**2 * means)
    first = np.zeros(n_arms)
    first[anchors] = 1.0
    growth = float(np.linalg.slogdet(precision)[1] - np.linalg.slogdet(graph_precision(problem, first))[1])
    x = math.log(2 / delta)
    start = math.sqrt(anchors.size + 2 * math.sqrt(anchors.size * x) + 2 * x)
    bias = 0.0 if problem.unstructured else 1.0
    return estimates, np.sqrt(np.diag(covariance)) * (math.sqrt(2 * x + growth) + start + bias)


def pooled_intervals(problem: Problem, data: Data, origin: float, delta: float) -> tuple[Vector, Vector] | None:
    """Returns the ends of intervals for all means, minus `origin`; None if no means with S <= R are left.

    With probability 1 - delta all intervals hold at all times at once, however arms are chosen from earlier results.
    They come from averages over pools of arms and from the largest distance of smooth means from such an average
    (theory 14.8). They are infinite in components without results.
    """
    pools, catalogue = pools_of(problem), Catalogue.of(problem)
    lows, highs = problem.noise.pooled_ends(pools, data.counts, data.sums, data.squares, origin, delta)
    if catalogue is not None:
        low, high = _in_categories(catalogue, data.counts / problem.sigma**2, lows, highs)
        return None if (low > high).any() else (low, high)
    precision = data.counts / problem.sigma**2
    low, high = np.full(problem.n_arms, -np.inf), np.full(problem.n_arms, np.inf)
    for of, members, place in _placed(problem):
        known = lows[of] > -np.inf
        of, members, place = of[known], members[known], place[known]
        weights = precision[members] / precision[members].sum(axis=1, keepdims=True)
        bias = spread_around(place, weights)  # (14.3)
        np.maximum.at(low, members, lows[of, None] - bias)  # (14.8)
        np.minimum.at(high, members, highs[of, None] + bias)
    network = Network.of(problem)
    for pool in np.flatnonzero((pools.sizes > FEW) & (lows > -np.inf)).tolist():
        members = pools.members[pools.starts[pool] : pools.starts[pool] + pools.sizes[pool]]
        weight = precision[members] / precision[members].sum()
        if network is None:
            bias = spread_around(places(problem)[members], weight)  # (14.3)
        else:
            bias = math.sqrt(problem.radii[0]) * network.spread_around(members, weight)
        low[members] = np.maximum(low[members], lows[pool] - bias)  # (14.8)
        high[members] = np.minimum(high[members], highs[pool] + bias)
    return None if (low > high).any() else (low, high)


@lru_cache(maxsize=4)
def _placed(problem: Problem) -> list[tuple[Indices, Indices, Matrix]]:
    """Returns the pools of at most `FEW` arms, grouped by size: their numbers (n_pools,), their members
    (n_pools, size), and coordinates of the members, (n_pools, size, dimensions).

    The coordinates are those of `places`, but in at most `size` dimensions, where all arms together may need thousands.
    In a large graph only the edges inside each pool count, so that distances are upper bounds.
    """
    pools, network = pools_of(problem), Network.of(problem)
    sizes, groups = pools.sizes, []
    for size in np.unique(sizes[sizes <= FEW]).tolist():
        numbers = np.flatnonzero(sizes == size)
        if network is not None:
            members = pools.members[pools.starts[numbers, None] + np.arange(size)]
            groups.append((numbers, members, math.sqrt(problem.radii[0]) * network.inside(members)))
            continue
        place = places(problem)
        for of in np.array_split(numbers, -(-numbers.size * size * place.shape[1] // AT_ONCE) or 1):
            members = pools.members[pools.starts[of, None] + np.arange(size)]
            groups.append((of, members, folded(place[members])))
    return groups


def _in_categories(catalogue: Catalogue, precision: Vector, lows: Vector, highs: Vector) -> tuple[Vector, Vector]:
    """Returns the ends of the intervals of all arms, from the ends for the pools: first arms, then categories."""
    n_arms, of_arm = precision.size, catalogue.of_arm
    shared = np.flatnonzero(catalogue.sizes > 1)
    total = np.maximum(catalogue.total(precision), np.finfo(float).tiny)
    weights = precision / total[of_arm]
    apart = np.maximum(1 - 2 * weights + catalogue.total(weights**2)[of_arm], 0.0)
    bias = np.sqrt(catalogue.room[of_arm] * apart)  # (14.3)
    pool_low, pool_high = np.full(catalogue.n_categories, -np.inf), np.full(catalogue.n_categories, np.inf)
    pool_low[shared], pool_high[shared] = lows[n_arms:], highs[n_arms:]
    low = np.maximum(lows[:n_arms], pool_low[of_arm] - bias)  # (14.8)
    return low, np.minimum(highs[:n_arms], pool_high[of_arm] + bias)


def _catalogue_pools(catalogue: Catalogue) -> Pools:
    """Returns the pools of a catalogue, arms before categories: an arm with its neighbours is the whole category."""
    n_arms, n = catalogue.of_arm.size, catalogue.n_categories
    shared = np.flatnonzero(catalogue.sizes > 1)
    alone = np.full(n_arms, 1 / (3 * n_arms)) + np.where(catalogue.sizes[catalogue.of_arm] == 1, 2 / (3 * n), 0.0)
    by_category = np.argsort(catalogue.of_arm, kind="stable")
    members = by_category[catalogue.sizes[catalogue.of_arm[by_category]] > 1]
    starts = n_arms + np.concatenate([[0], np.cumsum(catalogue.sizes[shared])])[: shared.size]
    return Pools(
        np.concatenate([np.arange(n_arms), members]),
        np.concatenate([np.arange(n_arms), starts.astype(np.intp)]),
        np.concatenate([alone, np.full(shared.size, 2 / (3 * n))]),
    )


@lru_cache(maxsize=32)  # problems are immutable and compared by identity
def pools_of(problem: Problem) -> Pools:
    """Returns the pools: each arm, each arm with its neighbours, and each component, every set of arms once.

    Each of the three kinds gets a third of the risk, shared equally among its sets; a set of several kinds gets the
    sum of its shares.
    """
    catalogue = Catalogue.of(problem)
    if catalogue is not None:
        return _catalogue_pools(catalogue)
    n_arms = problem.n_arms
    alone = [frozenset([arm]) for arm in range(n_arms)]
    around = [{arm} for arm in range(n_arms)]
    for a, b in Components.from_problem(problem).pairs.tolist():
        around[a].add(b)
        around[b].add(a)
    components = [
        frozenset(np.flatnonzero(problem.components == c).tolist()) for c in range(int(problem.components.max()) + 1)
    ]
    shares: dict[frozenset[int], float] = {}
    for kind in (alone, [frozenset(pool) for pool in around], components):
        distinct = dict.fromkeys(kind)
        for pool in distinct:
            shares[pool] = shares.get(pool, 0.0) + 1 / (3 * len(distinct))
    sizes = [len(pool) for pool in shares]
    members = np.array([arm for pool in shares for arm in sorted(pool)], dtype=np.intp)
    return Pools(members, np.cumsum([0, *sizes[:-1]]), np.array(list(shares.values())))
