"""What the guarantees are tested by: the events that may fail with probability delta, and exact limits of their rates.

The tests and the programs in this folder share it.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import beta, binomtest

from spectralbai.arrays import Vector

CONFIDENCE = 0.999


def limits(failures: int, runs: int) -> tuple[float, float]:
    """Returns the exact one-sided lower and upper limits of a failure rate."""
    low = float(beta.ppf(1 - CONFIDENCE, failures, runs - failures + 1)) if failures else 0.0
    high = float(beta.ppf(CONFIDENCE, failures + 1, runs - failures)) if failures < runs else 1.0
    return low, high


def least_rate(failures: int, runs: int) -> float:
    """Returns the exact lower limit of a failure rate."""
    return limits(failures, runs)[0]


def chance(failures: int, runs: int, rate: float) -> float:
    """Returns the probability of at least so many failures if they have this rate."""
    return float(binomtest(failures, runs, rate, alternative="greater").pvalue)


def missed(mu: Vector, low: Vector, high: Vector) -> bool:
    """Whether an interval misses its mean; an empty one does."""
    return bool(((mu < low) | (mu > high)).any())


def strayed(mu: Vector, low: Vector, high: Vector) -> float:
    """Returns how far a mean is from the middle of its interval, in half-widths, at most: above 1 it is `missed`.

    Arms without an interval are left out.
    """
    known = np.isfinite(low) & np.isfinite(high)
    mu, low, high = mu[known], low[known], high[known]
    return float((np.abs(mu - (high + low) / 2) / ((high - low) / 2)).max(initial=0.0))
