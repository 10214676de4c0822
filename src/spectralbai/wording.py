"""Counts, times and missing numbers as text for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MOST_NAMED = 10
"""Most options that a sentence lists by name."""


def in_words(count: int, what: str) -> str:
    """Returns a count of things: "1 result", "1,200 results"."""
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def finite(value: float) -> float | None:
    """Returns a finite number, or None for nan and infinities, which JSON cannot represent."""
    return float(value) + 0.0 if math.isfinite(value) else None  # never -0.0


def as_time(seconds: float) -> str:
    """Returns a time as text, in UTC."""
    return datetime.fromtimestamp(min(seconds, 253402300799.0), UTC).isoformat(timespec="seconds")
