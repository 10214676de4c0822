"""Counts, times and missing numbers, as people read them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MOST_NAMED = 10
"""Options that are named in a sentence."""


def in_words(count: int, what: str) -> str:
    """Returns a count of things: "1 result", "1,200 results"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def finite(value: float) -> float | None:
    """Returns a number, or None for one that JSON and tables cannot hold."""
    return float(value) + 0.0 if math.isfinite(value) else None  # never -0.0


def as_time(seconds: float) -> str:
    """Returns a time as text, in UTC."""
    return datetime.fromtimestamp(min(seconds, 253402300799.0), UTC).isoformat(timespec="seconds")
