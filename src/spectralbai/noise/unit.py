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
STEPS = 50
"""Number of bisections, which give the mean to within 1e-15."""


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


def _log_mean_exp(logs: Matrix) -> Vector:
    """Returns the logarithm of the mean of exp(logs) in each row; -inf if all of the row is -inf."""
    most = np.maximum(logs.max(axis=1), -np.finfo(float).max)
    with np.errstate(divide="ignore"):
        found: Vector = most + np.log(np.exp(logs - most[:, None]).mean(axis=1))
    return found
