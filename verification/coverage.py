"""What the guarantees are tested by: the events that may fail with probability delta, and exact limits of their rates.

The tests and the programs in this folder share it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import beta, binomtest

from spectralbai import Problem
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.spectral import Components
from spectralbai.stopping import integrals
from spectralbai.stopping.mixture import PAIR_SHARE, PRIOR_SCALES

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


def uncovered(problem: Problem, mu: Vector, split: Data, data: Data, delta: float, level: tuple[float, float]) -> bool:
    """Whether results after the split cost the true means more than the rule mixture allows, at risk delta.

    On the whole graph with up to two components; else on each pair of components in which the best arm can be tested;
    and on pairs of arms, which have their own part of the risk. `level` is what the prior knows about the level.
    """
    components, later = Components.from_problem(problem), data.since(split)
    u, before = later.counts / problem.sigma**2, split.counts / problem.sigma**2
    logs = integrals.log_integrals(
        components, before, split.means, u, later.means, float(problem.R), level, np.array(PRIOR_SCALES)
    )
    excess = logs + np.bincount(components.of_arm, 0.5 * u * (later.means - mu) ** 2)
    risk = delta if problem.unstructured else (1 - PAIR_SHARE) * delta
    if not problem.unstructured and pairs_uncovered(problem, mu, split, data, PAIR_SHARE * delta, level):
        return True
    if excess.size <= 2:
        return bool(excess.sum() > -math.log(risk))
    home = components.of_arm[np.argmax(mu)]
    tests = [excess[home] + excess[c] for c in range(excess.size) if c != home]
    if components.sizes[home] > 1:
        tests.append(excess[home])
    return bool(max(tests) > math.log(len(tests) / risk))


def pairs_uncovered(
    problem: Problem, mu: Vector, split: Data, data: Data, risk: float, level: tuple[float, float]
) -> bool:
    """Whether results after the split of the best arm and another cost their true means more than the test of that
    pair allows."""
    later = data.since(split)
    u, before = later.counts / problem.sigma**2, split.counts / problem.sigma**2
    spent = 0.5 * u * (later.means - mu) ** 2
    excess = integrals.lone_integrals(before, split.means, u, later.means, level) + spent
    best = int(np.argmax(mu))
    return bool((excess[best] + np.delete(excess, best)).max() > math.log((mu.size - 1) / risk))
