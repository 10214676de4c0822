"""diag(u) and the Laplacian diagonalised together, compiled.

With u = omega / sigma^2 >= 0, each component of the graph that has some weight gets a basis B with

    B' diag(u) B = diag(theta),    B' L B = diag(rough),

so that M(gamma) = diag(u) + 2 gamma L becomes diag(theta + 2 gamma rough) for every gamma at once
(docs/theory.md, section 3). Zeros in u are allowed. The obvious method, the eigenvectors of
u^-1/2 L u^-1/2, is not accurate, because it divides by small weights. Here D = diag(u) + t L is
factorised instead, and its known eigenvector, the constant one, is deflated exactly.

Arms are in component order, so that every matrix is block diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit


class Edges(NamedTuple):
    """The edges by component, as the compiled kernels take them; `Components` explains the fields."""

    offsets: Indices
    ends: Indices
    weights: Vector
    edge_offsets: Indices


@njit
def invert_lower(factor: Matrix) -> Matrix:
    """Returns the inverse of a lower triangular matrix, row by row."""
    size = factor.shape[0]
    inverse = np.zeros((size, size))
    for a in range(size):
        for k in range(a):
            for j in range(k + 1):
                inverse[a, j] -= factor[a, k] * inverse[k, j]
        inverse[a, a] = 1.0
        for j in range(a + 1):
            inverse[a, j] /= factor[a, a]
    return inverse


@njit
def diagonalise(u: Vector, edges: Edges) -> tuple[Matrix, Vector, Vector]:
    """Returns (basis, theta, rough); the first column of each block is its constant vector.

    A component without weight has theta = 0 in all coordinates: moving its means costs nothing, and moving them all by
    the same amount does not change the roughness either.
    """
    offsets, ends, weights, edge_offsets = edges
    basis, theta, rough = np.zeros((u.size, u.size)), np.zeros(u.size), np.zeros(u.size)
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        total = u[low:high].sum()
        dead = total == 0.0
        total = float(high - low) if dead else total
        theta[low] = 0.0 if dead else 1.0
        basis[low:high, low] = 1.0 / np.sqrt(total)
        if high - low == 1:
            continue
        inside = ends[edge_offsets[c] : edge_offsets[c + 1]] - low
        strengths = weights[edge_offsets[c] : edge_offsets[c + 1]]
        block = _block(u[low:high], total, dead, inside, strengths)
        # As sums of positive terms, theta and rough keep their relative accuracy even near 0.
        for a in range(high - low):
            for j in range(high - low - 1):
                basis[low + a, low + 1 + j] = block[a, j]
                theta[low + 1 + j] += u[low + a] * block[a, j] ** 2
        for edge in range(strengths.size):
            a, b, w = inside[edge, 0], inside[edge, 1], strengths[edge]
            for j in range(high - low - 1):
                rough[low + 1 + j] += w * (block[a, j] - block[b, j]) ** 2
    return basis, theta, rough


@njit
def _block(u: Vector, total: float, dead: bool, ends: Indices, weights: Vector) -> Matrix:
    """Returns the basis of one component of several arms, without its constant vector; `dead` says that u is 0, and
    `total` is then the number of arms instead of the sum of u."""
    size = u.size
    gram = _gram(u, total, dead, ends, weights)
    factor = np.linalg.cholesky(gram)
    reflected = deflated(factor, invert_lower(factor), total)
    weighted = reflected if dead else np.sqrt(u).reshape(-1, 1) * reflected
    zeros = size - np.count_nonzero(u)
    # The eigenvectors of reflected' diag(u) reflected would not do: values of theta below the rounding error of the
    # largest would be lost.
    left, singular, right = np.linalg.svd(weighted, False)
    block: Matrix = reflected @ right.T
    singular[max(size - 1 - zeros, 0) :] = 0.0  # diag(u) loses one rank per zero
    # For arms where a basis vector is small, the left singular vectors are more accurate. They are all orthogonal
    # to sqrt(u). If singular = 0, the basis vector is exactly 0 on all arms with weight.
    mean = np.zeros(size - 1)
    for a in range(size):
        share = np.sqrt(u[a]) / total
        for j in range(size - 1):
            mean[j] += share * left[a, j]
    for a in range(size):
        if u[a] > 0.0:
            heavy = u[a] / gram[a, a]
            scale = 1.0 / np.sqrt(u[a])
            for j in range(size - 1):
                if heavy > singular[j] ** 2:
                    block[a, j] = (left[a, j] * scale - mean[j]) * singular[j]
    return block


@njit
def _gram(u: Vector, total: float, dead: bool, ends: Indices, weights: Vector) -> Matrix:
    """Returns D = diag(u) + t L with t = total / trace(L), and the unit matrix in place of diag(u) if u is 0."""
    trace = 2.0 * weights.sum()
    gram = np.eye(u.size) if dead else np.diag(u)
    for edge in range(weights.size):
        a, b, w = ends[edge, 0], ends[edge, 1], weights[edge] * total / trace
        gram[a, a] += w
        gram[b, b] += w
        gram[a, b] -= w
        gram[b, a] -= w
    return gram


@njit
def deflated(factor: Matrix, inverse: Matrix, total: float) -> Matrix:
    """Returns the transpose of `inverse`, C^-1 for D = C C', with C'1, the eigenvector of C^-1 diag(u) C^-T for
    theta = 1, removed by a Householder reflection: (size, size - 1)."""
    size = factor.shape[0]
    normal = np.zeros(size)
    for a in range(size):
        for j in range(a + 1):
            normal[j] += factor[a, j] / np.sqrt(total)
    normal[0] += 1.0 if normal[0] >= 0.0 else -1.0
    along = np.zeros(size)
    length = 0.0
    for j in range(size):
        length += normal[j] ** 2
        for a in range(j + 1):
            along[a] += normal[j] * inverse[j, a]
    reflected = np.empty((size, size - 1))
    for a in range(size):
        for j in range(size - 1):
            reflected[a, j] = inverse[j + 1, a] - 2.0 * normal[j + 1] * along[a] / length
    return reflected
