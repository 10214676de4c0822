"""Choices that do not depend on rounding errors: of values that are equal up to these, the first one is taken.

Arms without results often look exactly alike. Which of them has the largest value in the last digit depends on the
machine, and with it everything that follows.
"""

from __future__ import annotations

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.compiled import njit

ROUNDING = 1e-10
"""Difference that counts as none, relative to the largest of the values."""


@njit
def first_largest(values: Vector) -> int:
    """Returns the index of the first value that is the largest up to rounding errors."""
    largest = -np.inf
    size = 0.0
    for value in values:
        largest = max(largest, value)
        if np.isfinite(value):
            size = max(size, abs(value))
    least = largest - ROUNDING * size if np.isfinite(largest) else largest
    for i in range(values.size):
        if values[i] >= least:
            return i
    return 0
