"""Counts, times and missing numbers as text for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime

MONTHS = "January February March April May June July August September October November December".split()
MOST_NAMED = 10
"""Most options that a sentence lists by name."""


def in_words(count: int, what: str) -> str:
    """Returns a count of things: "1 result", "1,200 results"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def finite(value: float) -> float | None:
    """Returns a finite number, or None for nan and infinities, which JSON cannot represent."""
    return float(value) + 0.0 if math.isfinite(value) else None  # never -0.0


def difference_in_words(difference: float, ends: tuple[float, float] | None) -> str:
    """Returns a difference of means of outcomes between `ends`, if these are known: in percentage points if the
    outcomes lie between 0 and 1."""
    if ends != (0.0, 1.0):
        return f"{difference:g}"
    points = float(f"{100 * difference:.12g}")  # without the rounding error of the product
    return f"{points:g} percentage point" + ("" if points == 1 else "s")


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How the cells of a spreadsheet begin that it computes."""


def as_cell(text: str | None) -> str:
    """Returns a text for a cell of a CSV file, which a spreadsheet takes for text; `from_cell` restores it."""
    text = text or ""
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def from_cell(cell: str) -> str:
    """Returns the text that `as_cell` wrote; all other cells as they are."""
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


def as_time(seconds: float) -> str:
    """Returns a time as text, in UTC."""
    return datetime.fromtimestamp(min(seconds, 253402300799.0), UTC).isoformat(timespec="seconds")


def in_full(time: str) -> str:
    """Returns a time that `as_time` wrote as people read it: "17 May 2026 at 18:00 UTC"."""
    at = datetime.fromisoformat(time)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year} at {at:%H:%M} UTC"


def R_in_words(R: float | Iterable[float]) -> str:
    """Returns one R, or those of the components of several arms, in words."""
    if isinstance(R, float):
        return f"{R:g}"
    low, high = min(known := [*R], default=0.0), max(known, default=0.0)
    return f"{low:g} for each component" if low == high else f"{low:g} to {high:g}, one per component"
