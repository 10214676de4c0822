"""Numbers of one column as text: all with the same number of decimals, which depends on their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

MOST_DECIMALS, LONGEST = 12, 15
"""Numbers with more decimals, or more digits before the point, are written with an exponent."""


@dataclass(frozen=True)
class Decimals:
    """Writes the numbers of a column, every one with the same number of decimals."""

    places: int
    unit: str = ""
    """"" for plain numbers, "%" for shares in percent, "points" for differences of shares, in percent without the sign
    "%"."""
    signed: bool = False
    """Whether positive numbers get a plus, as differences do."""
    exponent: bool = False
    """Whether numbers are written with powers of ten; `places` are then the decimals before the exponent."""

    @classmethod
    def of(
        cls, rows: Iterable[tuple[float | None, float | None, float | None]], unit: str = "", signed: bool = False
    ) -> Self:
        """Returns how to write the (estimate, low, high) of each row; None stands for unknown numbers.

        The smallest half-width of an interval is shown with two digits. Without intervals, the spread of the estimates
        is shown with three digits or, if they are all equal, the largest estimate is.
        """
        scale = 100.0 if unit else 1.0
        known = [[math.nan if value is None else scale * value for value in row] for row in rows]
        estimates = [estimate for estimate, _, _ in known if math.isfinite(estimate)]
        largest = max(map(abs, estimates), default=0.0)
        spread = max(estimates, default=0.0) - min(estimates, default=0.0)
        halves = [(high - low) / 2 for _, low, high in known if high > low]
        finest = min(halves, default=0.0) or spread / 10 or largest / 10 or 0.1
        places = 1 - _power(finest)
        digits = _power(max(largest, finest))
        if places > MOST_DECIMALS or digits > LONGEST:
            return cls(max(0, min(digits + places, 16)), unit, signed, exponent=True)
        return cls(max(0, places), unit, signed)

    def __call__(self, value: float | None) -> str:
        """Returns a number as text, "-" for None."""
        if value is None:
            return "-"
        number = 100 * value if self.unit else value
        sign, form = "+" if self.signed else "", f".{self.places}e" if self.exponent else f",.{self.places}f"
        text = f"{number:{sign}z{form}}"  # z: never -0.0
        return f"{text} %" if self.unit == "%" else text

    def interval(self, low: float | None, high: float | None) -> str:
        """Returns an interval as text: "" if both ends are unknown, and "-" in place of one unknown end."""
        return "" if low is None and high is None else f"{self(low)} to {self(high)}"


def _power(value: float) -> int:
    """Returns the power of ten of a positive number, rounded to two digits."""
    return int(f"{value:.1e}".partition("e")[2])


def percent(share: float, places: int = 1) -> str:
    """Returns a share in percent."""
    return Decimals(places, "%")(share)
