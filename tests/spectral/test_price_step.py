"""Newton's step for the price of smoothness, which every search for it takes."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai.spectral.secular import price_step, step_to


def test_steps_for_the_price_go_to_the_root_where_the_inverse_root_of_S_is_linear() -> None:
    # S = c / (1 + b price)^2, whose inverse root is linear: one step is exact.
    c, b, R = np.array([1.0, 4.0, 9.0]), np.array([0.5, 2.0, 1.0]), np.array([0.1, 3.0, 16.0])
    price = np.array([0.0, 1.0, 2.0])
    smooth, slope = c / (1 + b * price) ** 2, -2 * b * c / (1 + b * price) ** 3
    root = (np.sqrt(c / R) - 1) / b
    np.testing.assert_allclose(price + price_step(smooth, slope, R), root, rtol=1e-12)
    for one in range(3):
        assert price[one] + step_to(smooth[one], slope[one], R[one]) == pytest.approx(root[one], rel=1e-12)
