"""Long lists in JSON, as runs of equal values: of thousands of arms, most have the same value until they are tried."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import compress, pairwise
from operator import ne
from typing import Any

LONG = 1000
"""Lists with more entries than this are written as runs if that is shorter."""
MOST = 10_000_000
"""Most entries that a list in runs may have."""


def runs_of(values: Sequence[Any]) -> list[tuple[Any, int]] | None:
    """Returns (value, how many times) for each run of equal values; None if a plain list is better."""
    size = len(values)
    if size <= LONG:
        return None
    # Floats are compared by their bits: NaN equals NaN then, and 0.0 differs from -0.0, whose sign must be kept.
    keys = array("q", array("d", values).tobytes()) if isinstance(values[0], float) else values
    starts = [0, *compress(range(1, size), map(ne, keys, keys[1:]))]
    if 4 * len(starts) > size:
        return None
    return [(values[start], end - start) for start, end in pairwise([*starts, size])]


def as_json(values: Sequence[float]) -> list[Any] | dict[str, Any]:
    """Returns numbers as a list; long lists as an object, of ranges for ascending whole numbers, else of runs."""
    if len(values) > LONG and all(isinstance(value, int) for value in values):
        starts = [0, *(i for i, (one, next_) in enumerate(pairwise(values), start=1) if next_ != one + 1)]
        return {"ranges": [(values[start], values[end - 1]) for start, end in pairwise([*starts, len(values)])]}
    runs = runs_of(values)
    return list(values) if runs is None else {"runs": runs}


def from_json(found: Any) -> list[Any]:
    """Returns the numbers that `as_json` wrote."""
    if not isinstance(found, dict):
        return list(found)
    if "ranges" in found:
        size = sum(last - first + 1 for first, last in found["ranges"])
    else:
        size = sum(times for _, times in found["runs"])
    if size > MOST:
        raise ValueError(f"more than {MOST:,} entries")
    if "ranges" in found:
        return [number for first, last in found["ranges"] for number in range(first, last + 1)]
    return [value for value, times in found["runs"] for _ in range(times)]
