"""Intervals for means and for differences of means where trials share items: valid at all times (theory, section 18).

They come from closed blocks only, and from single arms or pairs of arms: outcomes of one item depend on each other, so
that averages over pools of arms (section 14) would take one item for several independent results.
"""

from __future__ import annotations

import math

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.list_bounds import reachable
from spectralbai.evidence.places import places
from spectralbai.noise import Pools, SubGaussian
from spectralbai.noise.unit import least_centred_mean
from spectralbai.problem import Problem


def item_intervals(problem: Problem, data: ItemData, origin: float, delta: float) -> tuple[Vector, Vector]:
    """Returns the ends of intervals for all means, minus `origin`, which hold at all times at once with probability
    1 - delta.

    They are infinite if outcomes have no range: nothing is assumed of what an item adds to them.
    """
    least, most = reachable(problem, data, origin)
    if problem.outcome_range is None:
        return least, most
    known = np.flatnonzero(data.counts > 0)
    n, sums, squares = data.counts[known], data.sums[known], data.squares[known]
    share = delta / problem.n_arms
    if problem.noise.divergence == "binary":  # the mean determines the spread
        alone = Pools(np.arange(known.size), np.arange(known.size), np.full(known.size, share / delta))
        ends = problem.noise.pooled_ends(alone, n, sums, squares, origin, delta)
    else:
        bottom, top = (end - origin for end in problem.outcome_range)
        ends = _ends(n, sums, squares, (bottom + top) / 2, (top - bottom) / 2, share)
    weights, spent = (np.diag(matrix)[known] for matrix in (data.weights, data.spent))
    low, high = least.copy(), most.copy()
    low[known], high[known] = ((n * end + spent) / weights for end in ends)  # (18.12)
    return _within(problem, low, high, least, most)


def item_differences(
    problem: Problem, data: ItemData, origin: float, reference: int, delta: float
) -> tuple[Vector, Vector]:
    """Returns the ends of intervals for the mean of the reference minus each mean, from the items that both arms were
    tried on.

    With probability 1 - delta these intervals hold for all references at once, and at all times at once.
    """
    least, most = reachable(problem, data, origin)
    least, most = least[reference] - most, most[reference] - least
    least[reference] = most[reference] = 0.0
    known = np.flatnonzero(data.together[reference] > 0)
    known = known[known != reference]
    n, weights = data.together[reference, known], data.weights[reference, known]
    sums = data.crossed[reference, known] - data.crossed[known, reference]
    share = delta / (problem.n_arms * (problem.n_arms - 1) / 2)  # one interval for each pair
    if problem.outcome_range is None:
        sigma = np.sqrt(problem.sigma[known] ** 2 + problem.sigma[reference] ** 2)
        alone = Pools(np.arange(known.size), np.arange(known.size), np.full(known.size, share / delta))
        ends = SubGaussian(sigma).pooled_ends(alone, n, sums, sums, 0.0, delta) if known.size else (n, n)
    else:
        width = problem.outcome_range[1] - problem.outcome_range[0]
        ends = _ends(n, sums, data.distances[reference, known], 0.0, width, share)
    spent = data.spent[reference, known] - data.spent[known, reference]
    low, high = least.copy(), most.copy()
    low[known], high[known] = ((n * end + spent) / weights for end in ends)  # (18.12)
    return _within(problem, low, high, least, most)


def _ends(n: Vector, sums: Vector, squares: Vector, centre: float, reach: float, risk: float) -> tuple[Vector, Vector]:
    """Returns the ends of intervals for averages of conditional means, each at this risk, of outcomes that differ from
    `centre` by at most `reach`."""
    mean = (sums / n - centre) / reach
    deviations = np.maximum(squares - sums**2 / n, 0.0) / reach**2
    goal = np.full(2 * n.size, -math.log(risk / 2))  # a half for each end
    # The upper end is the mirror image of the lower end for mirrored outcomes; one search finds both.
    ends = least_centred_mean(np.tile(n, 2), np.append(mean, -mean), np.tile(deviations, 2), goal)
    below, above = np.split(ends, 2)
    return centre + reach * below, centre - reach * above


def _within(problem: Problem, low: Vector, high: Vector, least: Vector, most: Vector) -> tuple[Vector, Vector]:
    """Returns the intervals, narrowed by what smooth means allow and by what is certain.

    Where ends cross, an event of probability delta has happened, or R is wrong: what is certain is all that is claimed.
    """
    if not problem.unstructured:
        place, component = places(problem), problem.components
        lows, highs = low.copy(), high.copy()  # an infinite R gives distances that are infinite or nan: no bound
        for arm in np.flatnonzero(np.isfinite(lows)):
            alike = np.flatnonzero(component == component[arm])
            distance = np.sqrt(((place[alike] - place[arm]) ** 2).sum(axis=1))
            low[alike] = np.fmax(low[alike], lows[arm] - distance)  # (18.13)
            high[alike] = np.fmin(high[alike], highs[arm] + distance)
    low, high = np.maximum(low, least), np.minimum(high, most)
    crossed = low > high
    return np.where(crossed, least, low), np.where(crossed, most, high)
