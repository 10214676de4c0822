"""What is certain of the means of a list, whatever the outcomes that are still to come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Mask, Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.item_data import ItemData
from spectralbai.problem import Problem

MARGIN = 1e-9
"""What differences of means must exceed to be certain, in widths of the range: more than rounding errors."""


@dataclass(frozen=True, eq=False)
class ListBounds:
    """The least and the largest means that the outcomes to come allow, minus the origin, (n_arms,) each."""

    low: Vector
    high: Vector
    margin: float

    @classmethod
    def of(cls, evidence: Evidence) -> ListBounds | None:
        """Returns the bounds; None if items are not a list."""
        ends, data = evidence.problem.outcome_range, evidence.data
        if ends is None or not isinstance(data, ItemData) or data.n_items is None:
            return None
        return cls(*reachable(evidence.problem, data, evidence.origin), MARGIN * (ends[1] - ends[0]))

    @property
    def exact(self) -> Mask:
        """The arms that were tried on the whole list."""
        whole: Mask = self.high - self.low < self.margin
        return whole

    def beaten(self, leader: int, tolerance: float) -> Mask:
        """Returns which arms are certainly not better than the leader by more than the tolerance."""
        beaten: Mask = self.high <= self.low[leader] + tolerance + self.margin
        return beaten

    def out(self, left: Mask) -> Mask:
        """Returns which arms are certainly not the best of those in `left`, a mask: a withdrawn arm beats none."""
        out: Mask = self.high + self.margin < self.low[left].max()
        return out


def reachable(problem: Problem, data: ItemData, origin: float) -> tuple[Vector, Vector]:
    """Returns the least and the largest means, minus `origin`, that outcomes to come allow: of a list (18.9) those that
    its other items allow, and else the range of the outcomes."""
    low, high = (end - origin for end in problem.outcome_range or (-np.inf, np.inf))
    if data.n_items is None:
        return np.full(problem.n_arms, low), np.full(problem.n_arms, high)
    rest = data.n_items - data.counts
    return (data.sums + rest * low) / data.n_items, (data.sums + rest * high) / data.n_items
