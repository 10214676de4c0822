"""Whether visitors are split as asked: bets against the shares, fair at all times if the split is as asked."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import gammaln

from spectralbai.arrays import Vector

FIRMNESS = np.array([10.0, 100.0, 1000.0, 10000.0])
"""How many visitors the belief in the shares is worth at first; wealth is the mean over these."""


def mismatch(days: Iterable[tuple[Vector, Vector]]) -> float:
    """Returns the largest logarithm so far of the wealth of bets that visitors are not split as asked.

    `days` holds the counts and the shares asked for, (n_arms,), of each day. If the counts of every day are multinomial
    with these shares given the days before, the wealth ever reaches 1/delta with probability at most delta
    (theory 22.1). Arms of which nothing was asked are left out.
    """
    log_wealth, peak = np.zeros(FIRMNESS.size), 0.0
    counts = expected = np.zeros(0)
    for n, asked in days:
        if counts.size < n.size:  # arms joined
            counts, expected = (np.append(each, np.zeros(n.size - each.size)) for each in (counts, expected))
        here = asked > 0
        p, seen = asked[here] / asked[here].sum(), n[here]
        first = FIRMNESS[:, None] * p
        believed = p * (counts[here] + first) / (expected[here] + first)
        alpha = (FIRMNESS[:, None] + counts.sum()) * believed / believed.sum(axis=1, keepdims=True)
        log_wealth += gammaln(alpha.sum(axis=1)) - gammaln(alpha.sum(axis=1) + seen.sum())
        log_wealth += (gammaln(alpha + seen) - gammaln(alpha)).sum(axis=1) - (seen * np.log(p)).sum()  # (22.1)
        counts[here] += seen
        expected[here] += seen.sum() * p
        peak = max(peak, float(np.logaddexp.reduce(log_wealth)) - math.log(FIRMNESS.size))
    return peak
