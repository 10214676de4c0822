"""Bounds for the mean of pooled outcomes between 0 and 1: values of the mean that bets refute (theory, section 14)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

from spectralbai.arrays import Matrix, Vector

TILTS = 4.0 * 0.5 ** np.arange(16)
"""The tilts that are mixed in (14.4): from 4, best for a handful of results, to 1e-4, best for a billion."""
STAKES = 0.95 * 0.5 ** np.arange(16)
"""The stakes that are mixed in (14.6), all below 1."""
PRICES = -np.log1p(-STAKES) - STAKES
"""The cost of each stake per squared deviation: psi of (14.5)."""
CENTRES = np.array([0.0, 0.03, -0.03, 0.1, -0.1, 0.3, -0.3, 0.7, -0.7])
"""The centres that are mixed in (18.11), for outcomes between -1 and 1. More lie near 0, because differences do."""
CENTRE_SHARES = np.array([0.5, *np.full(8, 1 / 16)])
CENTRED_STAKES = 0.95 * 0.7 ** np.arange(24)
"""The stakes that are mixed in (18.11), as parts of the largest, which the centre determines."""
STAKE_SHARES = np.append(1 / (np.arange(1, 24) * np.arange(2, 25)), 1 / 24)
"""The shares of the stakes. They fall, because a mixture costs the logarithm of the share of its best stake: little of
it if results are few, when the largest stakes are best."""
_CENTRE, _PART = (grid.ravel() for grid in np.meshgrid(CENTRES, CENTRED_STAKES, indexing="ij"))
_LOG_SHARE = np.log(np.outer(CENTRE_SHARES, STAKE_SHARES).ravel())
_STAKE = _PART / (1 + _CENTRE)
_PRICE = (-np.log1p(-_PART) - _PART) / (1 + _CENTRE) ** 2  # (14.5)
STEPS = 50
"""Number of bisections, which give the mean to within 1e-15; of steps of Newton's method, at most."""


def least_mean(n: Vector, total: Vector, deviations: Vector | None, log_goal: Vector) -> Vector:
    """Returns, per pool, a number such that all smaller values of the mean are refuted; 0 if none is (theory 14.7).

    `n` (n_pools,) holds the numbers of outcomes, which are positive, and `total` their sums. `deviations` holds the
    sums of their squared deviations from their mean: nan if unknown, None to ignore them. `log_goal` is what the log
    wealth must reach.
    """
    low, high = np.zeros(n.size), np.clip(total / n, 0.0, 1.0)  # at the mean of the outcomes no wealth exceeds 1
    start = None if deviations is None else spread_start(n, total, deviations)
    for _ in range(STEPS):
        middle = (low + high) / 2
        wealth = tilted_wealth(n, total, middle)
        if start is not None:
            wealth = np.logaddexp(wealth, spread_wealth(n, start, middle)) - math.log(2)  # (14.7)
        refuted = wealth >= log_goal
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


def tilted_wealth(n: Vector, total: Vector, mean: Vector) -> Vector:
    """Returns the log wealth, (n_pools,), of bets that the true mean is larger than `mean`."""
    return _log_mean_exp(TILTS * total[:, None] - n[:, None] * np.log1p(mean[:, None] * np.expm1(TILTS)))  # (14.4)


def spread_start(n: Vector, total: Vector, deviations: Vector) -> Matrix:
    """Returns the log wealth at mean 0 of each stake, (n_pools, n_stakes); it is smaller if outcomes spread more."""
    centre, scale = np.clip(total / n, 0.0, 1.0)[:, None], np.sqrt(PRICES * n[:, None])
    overlap = math.sqrt(math.pi) / 2 * (erf(scale * centre) + erf(scale * (1 - centre))) / scale
    start: Matrix = STAKES * total[:, None] - PRICES * deviations[:, None] + np.log(overlap)  # (14.6)
    return np.where(np.isnan(start), -np.inf, start)


def spread_wealth(n: Vector, start: Matrix, mean: Vector) -> Vector:
    """Returns the log wealth, (n_pools,), of bets that gain if outcomes spread little, from the one at mean 0."""
    return _log_mean_exp(start - STAKES * (n * mean)[:, None])  # (14.6)


def least_centred_mean(n: Vector, mean: Vector, deviations: Vector, log_goal: Vector) -> Vector:
    """Returns, per row, a number such that all smaller values of the average of the conditional means are refuted, for
    outcomes between -1 and 1; -1 if none is (theory 18.11).

    `n` holds the numbers of outcomes, which are positive, `mean` their means, `deviations` the sums of their squared
    deviations from these, and `log_goal` what the log wealth must reach.
    """
    start = centred_start(n, mean, deviations)
    least = np.full(n.size, -1.0)
    # The log wealth is convex and falls, so steps of Newton's method from the left never go beyond where it is reached.
    for _ in range(STEPS):
        wealth, slope = centred_wealth(n, start, least)
        step = np.maximum(wealth - log_goal, 0.0) / slope
        least += step
        if (step <= 1e-15).all():
            break
    return least


def centred_start(n: Vector, mean: Vector, deviations: Vector) -> Matrix:
    """Returns the parts of the log wealth of each bet that do not depend on the conditional means."""
    n, apart = n[:, None], mean[:, None] - _CENTRE
    start: Matrix = _LOG_SHARE + _STAKE * n * apart - _PRICE * (deviations[:, None] + n * apart**2)
    return start


def centred_wealth(n: Vector, start: Matrix, mean: Vector) -> tuple[Vector, Vector]:
    """Returns the log wealth of all bets together, if the conditional means have this average, and how steeply it
    falls."""
    factor = 1 + _STAKE * (mean[:, None] - _CENTRE)
    logs = start - n[:, None] * np.log(factor)  # (18.11)
    most = logs.max(axis=1)
    parts = np.exp(logs - most[:, None])
    total = parts.sum(axis=1)
    return most + np.log(total), n * (parts * (_STAKE / factor)).sum(axis=1) / total


def _log_mean_exp(logs: Matrix) -> Vector:
    """Returns the logarithm of the mean of exp(logs) in each row; -inf if all of the row is -inf."""
    most = np.maximum(logs.max(axis=1), -np.finfo(float).max)
    with np.errstate(divide="ignore"):
        found: Vector = most + np.log(np.exp(logs - most[:, None]).mean(axis=1))
    return found
