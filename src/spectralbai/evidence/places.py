"""Coordinates of the arms in which smooth means of two arms differ by at most the distance of the arms."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.linalg.lapack import dtrtri

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.checks import check_matrices
from spectralbai.graph import laplacian_of
from spectralbai.problem import Problem
from spectralbai.spectral import Components, decompose
from spectralbai.spectral.components import BYTES_PER_PAIR
from spectralbai.spectral.large_components import LARGE

LEAST_PIVOT = 1e-6
"""The least part of a diagonal entry of the Laplacian that may be left of it in a factorisation: the relative errors of
resistances are then far below 1e-9."""
AT_ONCE = 4_000_000
"""Most numbers of a temporary array."""


@lru_cache(maxsize=4)  # problems are immutable and compared by identity
def places(problem: Problem) -> Matrix:
    """Returns coordinates of the arms, (n_arms, rank), in which |mu_a - w.mu| is at most a Euclidean distance.

    The squared distance of two weighted averages x and y of arms of one component is R (x - y)' L^+ (x - y), with the
    R of that component if there are several (theory 16.12). Coordinates are used instead of a pseudo-inverse because
    they stay accurate when resistances differ by many orders of magnitude.
    """
    check_matrices(problem.n_arms, BYTES_PER_PAIR)
    to = Components.from_problem(problem)
    place = _factorised(to) if to.sizes.max() > LARGE else None
    if place is None:
        place = _decomposed(problem)
    place.setflags(write=False)
    return place


def _decomposed(problem: Problem) -> Matrix:
    parts = decompose(problem, np.ones(problem.n_arms))
    curved = parts.rough > 0
    radii = parts.components.radii
    radii = radii if radii.size == 1 else radii[parts.components.component[curved]]
    return parts.basis[:, curved] * np.sqrt(radii / parts.rough[curved])


def _factorised(to: Components) -> Matrix | None:
    """Returns the coordinates by a method that takes a fifth of the time where components are large; None if it would
    not be accurate, because groups of arms are joined by weights that are smaller by many orders of magnitude.

    One arm of each component, that of the largest weights, is put at 0. Without its row and column the Laplacian is
    C C', and c' L^+ c = |C^-1 c|^2 for vectors c with sum 0. The entries of C^-1 are sums of positive numbers, so that
    it is as accurate as C, where only the pivots suffer from cancellation.
    """
    place = np.zeros((to.order.size, to.rank))
    for c in np.flatnonzero(to.sizes > 1).tolist():
        first, size, edges = to.offsets[c], int(to.sizes[c]), slice(to.edge_offsets[c], to.edge_offsets[c + 1])
        laplacian = laplacian_of(size, to.ends[edges] - first, to.weights[edges]).toarray()
        total = np.diag(laplacian)
        others = np.delete(np.arange(size), np.argmax(total))
        try:
            factor = cholesky(laplacian[np.ix_(others, others)], lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        if (np.diag(factor) ** 2 < LEAST_PIVOT * total[others]).any():
            return None
        radius = to.radii[0] if to.radii.size == 1 else to.radii[c]
        columns = slice(first - c, first - c + size - 1)
        place[first + others, columns] = np.sqrt(radius) * dtrtri(factor, lower=1)[0].T
    return to.restored(place)


def further_apart(place: Matrix, component: Indices, distance: float) -> Mask:
    """Returns, per pair of arms, whether they are further apart than `distance`; arms of two components always are.

    Products of matrices give the squared distances with an error of at most n_arms + 4 roundings of the squared
    lengths. Pairs that this leaves in doubt are computed one by one, from differences of coordinates.
    """
    n_arms, limit = len(place), distance**2
    lengths = (place**2).sum(axis=1)
    far: Mask = component[:, None] != component
    for rows in np.array_split(np.arange(n_arms), -(-(n_arms**2) // AT_ONCE)):
        both = lengths[rows, None] + lengths
        squares = both - 2 * (place[rows] @ place.T)
        unsure = (np.abs(squares - limit) <= 2 * (n_arms + 4) * np.finfo(float).eps * both) & ~far[rows]
        far[rows] |= squares > limit
        a, b = np.nonzero(unsure)
        a = rows[a]
        for part in np.array_split(np.arange(a.size), -(-a.size * place.shape[1] // AT_ONCE) or 1):
            far[a[part], b[part]] = ((place[a[part]] - place[b[part]]) ** 2).sum(axis=1) > limit
    return far


def folded(place: Matrix) -> Matrix:
    """Returns points (..., n_points, dimensions) with the same distances, in at most n_points dimensions."""
    apart = np.swapaxes(place - place[..., :1, :], -1, -2)
    return np.swapaxes(np.linalg.qr(apart, mode="r"), -1, -2)


def spread_around(place: Matrix, weights: Vector) -> Vector:
    """Returns the distance of each point from the weighted average of them, (..., n_points); weights sum to 1."""
    centre = weights[..., None, :] @ place
    distances: Vector = np.sqrt(((place - centre) ** 2).sum(axis=-1))
    return distances
