"""Tracking: which arm to pull so that counts follow a target allocation that changes over time."""

from __future__ import annotations

import numpy as np
from numba import njit

from spectralbai.checks import Indices, Vector

GROWTH = 1.02
"""The allocation is recomputed and the stopping rule checked at times that grow by this factor."""


def next_check(samples: int) -> int:
    """Returns the number of samples at the next check: one more at first, 2 % more later."""
    return max(samples + 1, int(samples * GROWTH))


def floor(n_arms: int, samples: int) -> float:
    """Returns the exploration floor epsilon_t = (K^2 + t)^(-1/2) / 2 of [GK16, Lemma 7]."""
    return float(0.5 / np.sqrt(n_arms**2 + samples))


def project_on_floor(omega: Vector, epsilon: float) -> Vector:
    """Returns the point of {omega >= epsilon, sum = 1} closest to omega in sup-norm: max(omega - c, epsilon) (theory
    7.2)."""
    ordered = np.sort(omega)[::-1]
    # With the m largest entries above the floor, c = (their sum + (K - m) epsilon - 1) / m; m is the largest consistent
    # one.
    m = np.arange(1, omega.size + 1)
    c = (np.cumsum(ordered) + (omega.size - m) * epsilon - 1) / m
    size = int(np.flatnonzero(ordered - c >= epsilon)[-1])
    projected: Vector = np.maximum(omega - c[size], epsilon)
    projected /= projected.sum()
    return projected


@njit(cache=True)
def next_pulls(targets: Vector, rate: Vector, issued: Vector, n: int) -> Indices:
    """Returns the next n arms of C-tracking: each the arm furthest behind its target, which grows by `rate` a pull.

    `targets` are the cumulated targets at the number of pulls already issued (theory 7.1).
    """
    pulls = np.empty(n, dtype=np.intp)
    counts = issued.copy()
    for k in range(n):
        arm = 0
        lag = -np.inf
        for a in range(rate.size):
            behind = targets[a] + (k + 1) * rate[a] - counts[a]
            if behind > lag:
                arm, lag = a, behind
        pulls[k] = arm
        counts[arm] += 1.0
    return pulls
