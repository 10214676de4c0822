from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from spectralbai.spectral.sparse_factor import Pattern


def positive_definite(seed: int, n: int, density: float, spread: float = 0.0) -> sparse.csc_array:
    """Returns a random Laplacian plus a diagonal, with weights from 1 to 10^spread."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.random((n, n)) < density, 1) * 10 ** (spread * rng.random((n, n)))
    weights = weights + weights.T
    return sparse.csc_array(np.diag(weights.sum(axis=0) + rng.random(n) + 1e-3) - weights)


MATRICES = given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from([0.0, 0.1, 0.4, 1.0]))


@settings(max_examples=40, deadline=None)
@MATRICES
def test_solutions_and_the_diagonal_of_the_inverse_agree_with_dense_matrices(seed: int, n: int, density: float) -> None:
    matrix = positive_definite(seed, n, density)
    factor, inverse = Pattern.of(matrix).factor(matrix.data), np.linalg.inv(matrix.toarray())
    loads = np.random.default_rng(seed).standard_normal((n, 3))
    np.testing.assert_allclose(factor.solve(loads), inverse @ loads, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.solve(loads[:, 0]), inverse @ loads[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(factor.diagonal, np.diag(inverse), rtol=1e-9)


def test_one_pattern_serves_matrices_with_other_entries() -> None:
    matrix = positive_definite(0, 20, 0.2)
    pattern = Pattern.of(matrix)
    other = matrix * 3 + sparse.diags_array(np.ones(20))
    load = np.arange(20.0)
    np.testing.assert_allclose(pattern.factor(other.tocsc().data).solve(load), np.linalg.solve(other.toarray(), load))


def test_more_right_hand_sides_than_are_solved_for_at_once() -> None:
    matrix = positive_definite(1, 12, 0.3)
    loads = np.random.default_rng(0).standard_normal((12, 75))
    np.testing.assert_allclose(matrix @ Pattern.of(matrix).factor(matrix.data).solve(loads), loads, atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_refused() -> None:
    matrix = sparse.csc_array(np.array([[1.0, -2.0], [-2.0, 1.0]]))
    with pytest.raises(np.linalg.LinAlgError):
        Pattern.of(matrix).factor(matrix.data)


@pytest.mark.parametrize("seed", range(5))
def test_the_backward_error_bounds_that_of_the_factor_in_exact_arithmetic(seed: int) -> None:
    matrix = positive_definite(seed, 8, 0.5, spread=6.0)
    pattern = Pattern.of(matrix)
    factor = pattern.factor(matrix.data)
    unit = [[Fraction(int(i == j)) for j in range(8)] for i in range(8)]
    for j in range(8):
        for q in range(pattern.starts[j], pattern.starts[j + 1]):
            unit[factor.rows[q]][j] = Fraction(float(factor.entries[q]))
    pivots = [Fraction(float(pivot)) for pivot in factor.pivots]
    ordered = matrix.toarray()[np.ix_(pattern.order, pattern.order)]
    error = np.array(
        [
            [
                float(sum(unit[i][k] * pivots[k] * unit[j][k] for k in range(8)) - Fraction(float(ordered[i, j])))
                for j in range(8)
            ]
            for i in range(8)
        ]
    )
    values, vectors = np.linalg.eigh(ordered)
    root = vectors / np.sqrt(values)
    largest = np.abs(np.linalg.eigvalsh(root.T @ error @ root)).max()
    bound = factor.backward_error(np.sqrt(np.diag(np.linalg.inv(matrix.toarray()))))
    assert 0 < largest <= bound < 1e-6
