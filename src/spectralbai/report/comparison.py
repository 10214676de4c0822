"""Comparison of an arm with the control: difference and lift, with limits from the intervals of the two means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from spectralbai.text.wording import finite

Mean = tuple[float | None, float | None, float | None]
"""An estimate of a mean and the ends of its interval, as far as they are known."""


@dataclass(frozen=True)
class Comparison:
    """The difference of an arm and the control, and their ratio. Unknown numbers are None.

    Whenever the intervals of the means hold, so do the limits, for all arms at all times at once: they add no risk.
    """

    difference: float | None
    """The estimate of the arm minus that of the control."""
    difference_low: float | None
    difference_high: float | None
    lift: float | None
    """The estimate of the arm divided by that of the control, minus 1; None unless the interval of the control is above
    0."""
    lift_low: float | None
    lift_high: float | None

    @classmethod
    def of(cls, arm: Mean, control: Mean) -> Comparison:
        """Returns the comparison of two means."""
        (estimate, low, high), (base, base_low, base_high) = _ends(*arm), _ends(*control)
        difference = (estimate - base, low - base_high, high - base_low)
        lift = (math.nan,) * 3
        if base_low > 0:
            # A positive quotient is smallest at the largest divisor, a negative one at the smallest.
            least = low / (base_high if low >= 0 else base_low)
            most = high / (base_low if high >= 0 else base_high)
            lift = (estimate / base - 1, least - 1, most - 1)
        return cls(*map(finite, difference), *map(finite, lift))

    @classmethod
    def by(cls, difference: Mean, control: Mean) -> Comparison:
        """Returns the comparison with a known difference from the control; its estimate is moved into the interval."""
        (gap, low, high), (base, base_low, base_high) = _ends(*difference), _ends(*control)
        gap = min(max(gap, low), high)
        lift = (math.nan,) * 3
        if base_low > 0:
            lift = (
                gap / base,
                low / (base_high if low >= 0 else base_low),
                high / (base_low if high >= 0 else base_high),
            )
        return cls(*map(finite, (gap, low, high)), *map(finite, lift))

    def verdict(self, goal: Literal["max", "min"]) -> str:
        """Returns "better" or "worse" if both limits of the difference are on that side of 0, else "open"."""
        above = self.difference_low is not None and self.difference_low > 0
        below = self.difference_high is not None and self.difference_high < 0
        if not above and not below:
            return "open"
        return "better" if above == (goal == "max") else "worse"


def _ends(estimate: float | None, low: float | None, high: float | None) -> tuple[float, float, float]:
    return (
        math.nan if estimate is None else estimate,
        -math.inf if low is None else low,
        math.inf if high is None else high,
    )
