"""The closest smooth means of large components, without a decomposition: sparse systems of equations are solved.

A decomposition serves all challengers at once; for the projection alone a few systems do, which are sparse like the
graph.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import SuperLU, splu

from spectralbai.arrays import Vector
from spectralbai.spectral.components import Components
from spectralbai.spectral.secular import price_step

MOST_EDGES = 20
"""Most edges per arm; the factors of denser systems have too many entries."""
LEVEL = 1e-8
"""The least ratio of two positive weights of arms, and of two summed weights of edges, for which this is used."""
ROUNDS = 60
"""Most steps of the search for the price of smoothness; fewer than ten do."""
EXACT = 1e-12
"""Relative error of S at which the search ends."""


def project_sparsely(to: Components, u: Vector, means: Vector, radii: Vector) -> Vector | None:
    """Returns what `Decomposition.project` does, up to rounding errors; None if weights differ so much, or edges are so
    many, that this would be inaccurate or slow.

    `u` (n_arms,) is counts / sigma^2, with a positive entry in each component.
    """
    heavy, total = u[u > 0], np.bincount(to.pairs.ravel(), np.repeat(to.weights, 2), u.size)
    joined = total[total > 0]
    if to.weights.size > MOST_EDGES * u.size or heavy.min() < LEVEL * heavy.max() or not joined.size:
        return None
    if joined.min() < LEVEL * joined.max():
        return None
    level = np.bincount(to.of_arm, u * means) / np.bincount(to.of_arm, u)
    shifted = means - level[to.of_arm]
    lam = np.empty_like(means)
    groups = [np.arange(u.size)] if radii.size == 1 else [np.flatnonzero(to.of_arm == c) for c in range(radii.size)]
    for arms, R in zip(groups, radii.tolist(), strict=True):
        closest = _projected(to.laplacian[arms][:, arms].tocsc(), u[arms], shifted[arms], R)
        if closest is None:
            return None
        # Means that are smooth enough are returned exactly, without rounding errors.
        unchanged = (u[arms] > 0) & (closest == shifted[arms])
        lam[arms] = np.where(unchanged, means[arms], closest + level[to.of_arm[arms]])
    return lam


def _projected(laplacian: sparse.csc_array, u: Vector, means: Vector, R: float) -> Vector | None:
    """Returns the closest means with S <= R, or None if the search for them fails."""
    light = u == 0
    lam: Vector = np.where(light, 0.0, means)
    if light.any():  # the least rough means given those of the other arms
        lam[light] = _factors(laplacian[light][:, light]).solve(-(laplacian[light] @ lam))
    bent = laplacian @ lam
    S = float(lam @ bent)
    if S <= R * (1 + EXACT):
        return lam
    if R <= 0:
        return None
    # 1 / sqrt(S) is a concave function of the price of smoothness (theory, section 3). So Newton's steps for it stay
    # below the solution, and the first one may start anywhere.
    pull, beta = u * means, float(u.sum() / laplacian.trace())
    for _ in range(ROUNDS):
        system = _factors(laplacian * beta + sparse.diags_array(u))
        lam = system.solve(pull)
        bent = laplacian @ lam
        S = float(lam @ bent)
        if abs(S - R) <= EXACT * R:
            return lam
        slope = -2 * float(bent @ system.solve(bent))
        beta = max(beta + price_step(S, slope, R), 0.01 * beta)
    return lam if abs(S - R) <= 1e3 * EXACT * R else None


def _factors(matrix: sparse.csc_array) -> SuperLU:
    return splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
