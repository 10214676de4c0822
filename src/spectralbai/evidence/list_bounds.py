"""What is certain of the means of a list, whatever the outcomes that are still to come."""

from __future__ import annotations

from dataclasses import dataclass

from spectralbai.arrays import Mask, Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.item_data import ItemData

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
        items, ends, data = evidence.problem.items, evidence.problem.outcome_range, evidence.data
        if items is None or items.n is None or ends is None or not isinstance(data, ItemData):
            return None
        low, high = (end - evidence.origin for end in ends)
        rest = items.n - data.counts
        return cls((data.sums + rest * low) / items.n, (data.sums + rest * high) / items.n, MARGIN * (high - low))

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
