"""Long lists in JSON, as runs of equal values: of thousands of arms, most have the same value until they are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONG = 1000
MOST = 10_000_000
"""Most entries that a list in runs may have."""
"""Lists with more entries than this are written as runs if that is shorter."""


def runs_of(values: NDArray[Any]) -> list[tuple[Any, int]] | None:
    """Returns (value, how many times) for each run of equal values; None if a plain list is better."""
    import numpy as np

    if values.ndim != 1 or values.size <= LONG:
        return None
    same = values[1:] == values[:-1]
    if values.dtype.kind == "f":
        same |= np.isnan(values[1:]) & np.isnan(values[:-1])
        same &= np.signbit(values[1:]) == np.signbit(values[:-1])  # 0.0 == -0.0, but the sign must be kept
    starts = np.flatnonzero(np.append(True, ~same))
    if 4 * starts.size > values.size:
        return None
    lengths = np.diff(starts, append=values.size)
    return list(zip(values[starts].tolist(), lengths.tolist(), strict=True))


def as_json(values: Sequence[float]) -> list[Any] | dict[str, Any]:
    """Returns numbers as a list; long lists as an object, of ranges for ascending whole numbers, else of runs."""
    if len(values) <= LONG:
        return list(values)
    import numpy as np  # only here, since readers of short lists do not need it

    array = np.asarray(values)
    if array.size > LONG and array.dtype.kind == "i":
        ends = np.flatnonzero(np.append(np.diff(array) != 1, True))
        firsts = array[np.append(0, ends[:-1] + 1)]
        return {"ranges": list(zip(firsts.tolist(), array[ends].tolist(), strict=True))}
    runs = runs_of(array)
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
