"""Bounds of 1/T* that hold in floating point, from any allocation and any alternatives (theory, section 4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectralbai.arrays import Matrix, Vector
from spectralbai.spectral import Responses

MARGIN = 1e-13
"""Relative allowance for rounding errors of sums: far above the errors for any size that fits in memory, and far below
any useful gap."""


class Certified(NamedTuple):
    """An allocation with certified bounds of 1/T*, as a solver returns it; arms are numbered as in its `Responder`."""

    omega: Vector
    lower: float
    upper: float
    iterations: int


def certified_lower(responses: Responses) -> float:
    """Returns a lower bound of f(omega) = min_i f_i(omega), and so of 1/T* (theory 4.2).

    The Lagrangian bounds f_i from below at *any* multipliers, so inexact roots do no harm. If the gradient at the
    computed minimiser is r instead of 0, the error is at most r' M^-1 r / 2; twice this is subtracted. There is one
    gamma for each R (theory 16.6).
    """
    decomposition, best, rows = responses.decomposition, responses.best, responses.challengers
    here = np.arange(rows.size)
    gap, nu = responses.gap[rows], responses.nu[rows]
    gamma = responses.prices[rows]
    smooth, slope = _smoothness(responses, gap)
    radii = np.where(np.isfinite(responses.radii), responses.radii, 0.0)  # no edges then: S = 0 and gamma = 0
    moved = gap[here, rows] - gap[:, best]
    lead = responses.means[best] - responses.means[rows] + responses.tolerance
    residual = -decomposition.u * gap + 2 * responses.at_arms(gamma) * slope
    residual[:, best] += nu
    residual[here, rows] -= nu
    den = decomposition.theta + 2 * responses.at_coordinates(gamma) * decomposition.rough
    lost = np.divide((residual @ decomposition.basis) ** 2, den, out=np.zeros_like(den), where=den > 0).sum(axis=1)
    cost = responses.cost[rows]
    value = cost + (gamma * (smooth - radii)).sum(axis=1) + nu * (moved + lead) - lost
    terms = cost + (gamma * (smooth + radii)).sum(axis=1) + nu * (np.abs(moved) + np.abs(lead))
    return float((value - MARGIN * terms).min())


def feasible_gaps(responses: Responses) -> Matrix:
    """Returns mu - lam^i, one row per challenger, for alternatives lam^i that satisfy their constraints (theory 4.4).

    Alternatives that are too rough because of rounding errors are shrunk towards a constant. If lam_i - lam_best is too
    small then, it is raised along the smoothest direction. Rows that still violate their constraints are infinite.
    """
    mu, best, rows = responses.means, responses.best, responses.challengers
    basis, rough = responses.decomposition.basis, responses.decomposition.rough
    components, radii = responses.decomposition.components, responses.radii
    component = components.of_arm
    here = np.arange(rows.size)
    lift = np.zeros((rows.size, mu.size))  # raises lam_i - lam_best by one at the least roughness
    same = component[rows] == component[best]
    lift[~same] = component[rows[~same]][:, None] == component
    if same.any():
        q = basis[rows[same]] - basis[best]
        slack = np.divide(q, rough, out=np.zeros_like(q), where=rough > 0)
        lift[same] = (slack @ basis.T) / (q * slack).sum(axis=1, keepdims=True)
    # The arm whose value each arm is shrunk towards: one for all, or one in each component if each has an R.
    pivot = np.array([best]) if radii.size == 1 else components.order[components.offsets[:-1]][component]
    lead = mu[best] - mu[rows] + responses.tolerance
    gap = responses.gap[rows]
    feasible = np.zeros(rows.size, dtype=bool)
    for margin in (MARGIN, 1e3 * MARGIN, 1e6 * MARGIN):
        smooth, _ = _smoothness(responses, gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            shrink = np.where(smooth > 0, np.minimum(np.sqrt(radii / smooth) * (1 - margin), 1.0), 1.0)
        shape = (mu - mu[pivot]) - (gap - gap[:, pivot])
        gap = np.where(feasible[:, None], gap, gap + responses.at_arms(1 - shrink) * shape)
        short = lead + gap[here, rows] - gap[:, best]
        room = MARGIN * (np.abs(lead) + np.abs(gap[here, rows]) + np.abs(gap[:, best]))
        gap -= np.where(feasible, 0.0, np.maximum(short + room, 0.0))[:, None] * lift
        short = lead + gap[here, rows] - gap[:, best]
        feasible = (_smoothness(responses, gap)[0] * (1 + MARGIN) <= radii).all(axis=1) & (short <= -room / 2)
        if feasible.all():
            break
    gap[~feasible] = np.inf
    return gap


def feasible_gradients(responses: Responses) -> Matrix:
    """Returns k(mu, lam^i), one row per challenger, for the alternatives of `feasible_gaps`."""
    return 0.5 * (feasible_gaps(responses) / responses.decomposition.sigma) ** 2


def certified_upper(gradients: Matrix, p: Vector) -> float:
    """Returns max_a (sum_i p_i d^i)_a, an upper bound of 1/T* for any weights p of feasible alternatives (4.3)."""
    usable = (p > 0) & np.isfinite(gradients).all(axis=1)
    if not usable.any():
        return float("inf")
    weights = p[usable] / p[usable].sum()
    return float((weights @ gradients[usable]).max() * (1 + MARGIN))


def _smoothness(responses: Responses, gap: Matrix) -> tuple[Matrix, Matrix]:
    """Returns S, with one column for each of `radii`, and L lam, for each row of lam = mu - gap.

    S is a sum of squares over the edges, so that nothing cancels. Differences across edges are taken before mu and gap
    are subtracted, so that neither a large common level of the means nor small gaps cost accuracy.
    """
    mu, components = responses.means, responses.decomposition.components
    a, b = components.pairs.T
    across = (mu[a] - mu[b]) - (gap[:, a] - gap[:, b])
    flow = components.weights * across
    slope = flow @ components.incidence
    if responses.radii.size == 1:
        return (flow * across).sum(axis=1, keepdims=True), slope
    smooth = np.zeros((len(gap), responses.radii.size))
    joined = np.flatnonzero(components.sizes > 1)
    smooth[:, joined] = np.add.reduceat(flow * across, components.edge_offsets[joined], axis=1)
    return smooth, slope
