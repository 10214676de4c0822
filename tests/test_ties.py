"""Choices that do not depend on rounding errors."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai.ties import first_largest


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([1.0, 3.0, 2.0], 1),
        ([1.0, 3.0 - 1e-15, 3.0, 3.0 + 1e-15], 1),
        ([1.0, 3.0 - 1e-6, 3.0], 2),
        ([-2.0, -1.0 - 1e-15, -1.0], 1),
        ([-np.inf, -5.0, -np.inf], 1),
        ([1.0, np.inf, np.inf], 1),
        ([-np.inf, -np.inf], 0),
        ([0.0, 0.0], 0),
        ([1e9, 1e9 + 1e-6], 0),
    ],
)
def test_the_first_of_the_largest_values_is_chosen(values: list[float], first: int) -> None:
    assert first_largest(np.array(values)) == first
