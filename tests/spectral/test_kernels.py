"""Kernels that several others use: systems solved from their factors, and Newton's step for the price of smoothness."""

from __future__ import annotations

import numpy as np
import pytest

from spectralbai.spectral.diagonalise import solve_factored
from spectralbai.spectral.secular import price_step, step_to


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_factored_system_is_solved_and_rows_beyond_its_size_do_not_count(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.standard_normal((size, size)) + 3 * np.eye(size)
    lower = np.linalg.cholesky(root @ root.T)
    scale = np.diag(lower)
    factor = np.full((9, 9), np.nan)
    factor[:size, :size] = lower / scale
    factor[range(size), range(size)] = scale**2
    x = np.full(9, np.nan)
    x[:size] = rhs = rng.standard_normal(size)
    assert solve_factored(size, factor, x) is not None
    np.testing.assert_allclose(x[:size], np.linalg.solve(root @ root.T, rhs), rtol=1e-9)
    assert np.isnan(x[size:]).all()


def test_steps_for_the_price_go_to_the_root_where_the_inverse_root_of_S_is_linear() -> None:
    # S = c / (1 + b price)^2, whose inverse root is linear: one step is exact.
    c, b, R = np.array([1.0, 4.0, 9.0]), np.array([0.5, 2.0, 1.0]), np.array([0.1, 3.0, 16.0])
    price = np.array([0.0, 1.0, 2.0])
    smooth, slope = c / (1 + b * price) ** 2, -2 * b * c / (1 + b * price) ** 3
    root = (np.sqrt(c / R) - 1) / b
    np.testing.assert_allclose(price + price_step(smooth, slope, R), root, rtol=1e-12)
    for one in range(3):
        assert price[one] + step_to(smooth[one], slope[one], R[one]) == pytest.approx(root[one], rel=1e-12)
