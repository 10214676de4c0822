"""diag(u) and the Laplacian of large components diagonalised together, faster where many arms have no weight.

Given the means of the other arms, the least rough means of arms without weight are averages of them, and S is then that
of a smaller graph, whose Laplacian is a Schur complement. So only the arms with weight need a basis that depends on u.
The eigenvectors of one symmetric matrix replace a singular value decomposition; this is accurate unless the weights
differ by many orders of magnitude (theory 3.11).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dtrtri

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.graph import laplacian_of
from spectralbai.spectral.diagonalise import Edges, deflated, diagonalise

LARGE = 512
"""Components with more arms than this are treated here."""
LEVEL = 1e-8
"""The least ratio of two positive weights for which this is accurate; counts of results are far above it."""


def diagonalise_all(u: Vector, edges: Edges) -> tuple[Matrix, Vector, Vector]:
    """Returns what `diagonalise` does, by the faster method for large components."""
    offsets, ends, weights, edge_offsets = edges
    sizes = np.diff(offsets)
    if sizes.max() <= LARGE:
        return diagonalise(u, edges)
    basis, theta, rough = np.zeros((u.size, u.size)), np.zeros(u.size), np.zeros(u.size)
    for c, size in enumerate(sizes.tolist()):
        inside, own = slice(offsets[c], offsets[c + 1]), slice(edge_offsets[c], edge_offsets[c + 1])
        edges_inside = ends[own] - offsets[c], weights[own]
        if size > LARGE and _alike(u[inside]):
            block = _diagonalise_large(u[inside], *edges_inside)
        else:
            block = diagonalise(u[inside], Edges(np.array([0, size]), *edges_inside, np.array([0, weights[own].size])))
        basis[inside, inside], theta[inside], rough[inside] = block
    return basis, theta, rough


def _alike(u: Vector) -> bool:
    """Returns whether the positive weights are of similar size."""
    heavy = u[u > 0]
    return not heavy.size or bool(heavy.min() >= LEVEL * heavy.max())


def _diagonalise_large(u: Vector, ends: Indices, weights: Vector) -> tuple[Matrix, Vector, Vector]:
    """Returns (basis, theta, rough) of one component: the constant vector, the coordinates of the arms with weight, and
    those of the arms without."""
    size, dead = u.size, not u.any()
    a, b = ends.T
    # In a component without weight the first arm stands for the level.
    heavy = np.flatnonzero(u > 0) if not dead else np.zeros(1, dtype=np.intp)
    light = np.setdiff1d(np.arange(size), heavy)
    reduced, inverse, across = _reduced(size, ends, weights, heavy, light)
    n = heavy.size
    basis, theta, rough = np.zeros((size, size)), np.zeros(size), np.ones(size)
    total = float(size) if dead else float(u.sum())
    basis[:, 0], theta[0], rough[0] = 1 / np.sqrt(total), 0.0 if dead else 1.0, 0.0
    basis[light, n:] = inverse.T
    if n == 1:
        return basis, theta, rough
    heavy_u = u[heavy]
    gram = reduced * (total / np.trace(reduced))
    gram.flat[:: n + 1] += heavy_u
    factor = cholesky(gram, lower=True)
    inverse_of_factor = dtrtri(factor, lower=1)[0]
    reflected = deflated(np.ascontiguousarray(factor), np.ascontiguousarray(inverse_of_factor), total)
    block = reflected @ np.linalg.eigh((reflected.T * heavy_u) @ reflected)[1]
    basis[heavy, 1:n] = block
    basis[light, 1:n] = -(inverse.T @ (across @ block))
    # As sums of positive terms, theta and rough keep their relative accuracy even near 0.
    theta[1:n] = heavy_u @ block**2
    rough[1:n] = sum(
        weights[k] @ (basis[a[k], 1:n] - basis[b[k], 1:n]) ** 2
        for k in (slice(low, low + size) for low in range(0, weights.size, size))
    )
    return basis, theta, rough


def _reduced(
    size: int, ends: Indices, weights: Vector, heavy: Indices, light: Indices
) -> tuple[Matrix, Matrix, Matrix]:
    """Returns the Laplacian of the graph reduced to the positions `heavy`, the inverse C^-1 of the Cholesky factor of
    the block of L of the others, `light`, and C^-1 times the block between the two."""
    laplacian = laplacian_of(size, ends, weights).toarray()
    reduced, across = laplacian[np.ix_(heavy, heavy)], laplacian[np.ix_(light, heavy)]
    inverse = np.zeros((0, 0))
    if light.size:
        inverse = dtrtri(cholesky(laplacian[np.ix_(light, light)], lower=True), lower=1)[0]
        across = inverse @ across
        reduced -= across.T @ across
    # Rows sum to 0, and all entries off the diagonal are sums of terms of one sign: nothing is lost by cancellation.
    np.fill_diagonal(reduced, 0.0)
    np.fill_diagonal(reduced, -reduced.sum(axis=0))
    return reduced, inverse, across
