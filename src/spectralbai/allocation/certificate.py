"""Bounds of 1/T* that hold in floating point, from any allocation and any mixture of alternatives (theory, section
4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectralbai.checks import Matrix, Vector
from spectralbai.oracle import Oracle, Responses

MARGIN = 1e-13
"""Relative room for the rounding of sums: far above it for any size that fits in memory, far below any useful gap."""


class Outcome(NamedTuple):
    """Where a solver stopped: an allocation in component order, with certified bounds of 1/T*."""

    omega: Vector
    lower: float
    upper: float
    iterations: int


def certified_lower(responses: Responses) -> float:
    """Returns a lower bound of f(omega) = min_i f_i(omega), hence of 1/T* (theory 4.2).

    The Lagrangian bounds f_i from below at *any* multipliers, so inexact roots do no harm; what the computed
    minimiser leaves of its gradient, r, costs at most r' M^-1 r / 2, of which twice is subtracted.
    """
    oracle, rows = responses.oracle, responses.challengers
    here = np.arange(rows.size)
    u = responses.omega / oracle.sigma**2
    gap, gamma, nu = responses.gap[rows], responses.gamma[rows], responses.nu[rows]
    smooth, slope = _smoothness(oracle, gap)
    R = oracle.R if np.isfinite(oracle.R) else 0.0  # no edges then: S = 0 and gamma = 0
    moved = gap[here, rows] - gap[:, oracle.best]
    lead = oracle.mu[oracle.best] - oracle.mu[rows] + oracle.problem.tolerance
    residual = -u * gap + 2 * gamma[:, None] * slope
    residual[:, oracle.best] += nu
    residual[here, rows] -= nu
    den = responses.theta + 2 * gamma[:, None] * responses.rough
    seen = np.divide((residual @ responses.basis) ** 2, den, out=np.zeros_like(den), where=den > 0).sum(axis=1)
    cost = responses.cost[rows]
    value = cost + gamma * (smooth - R) + nu * (moved + lead) - seen
    return float((value - MARGIN * (cost + gamma * (smooth + R) + nu * (np.abs(moved) + np.abs(lead)))).min())


def feasible_gaps(responses: Responses) -> Matrix:
    """Returns mu - lam^i, one row per challenger, for alternatives lam^i that satisfy their constraints (theory 4.4).

    Alternatives too rough by rounding are shrunk towards a constant, and what this takes from lam_i - lam_best is
    given back along the smoothest direction. Rows that cannot be mended are infinite.
    """
    oracle, rows = responses.oracle, responses.challengers
    blocks = oracle.blocks
    here = np.arange(rows.size)
    lift = np.zeros((rows.size, oracle.mu.size))  # raises lam_i - lam_best by one at the least roughness
    same = blocks.component[rows] == blocks.component[oracle.best]
    lift[~same] = blocks.component[rows[~same]][:, None] == blocks.component
    if same.any():
        q = responses.basis[rows[same]] - responses.basis[oracle.best]
        slack = np.divide(q, responses.rough, out=np.zeros_like(q), where=responses.rough > 0)
        lift[same] = (slack @ responses.basis.T) / (q * slack).sum(axis=1, keepdims=True)
    lead = oracle.mu[oracle.best] - oracle.mu[rows] + oracle.problem.tolerance
    gap = responses.gap[rows]
    mended = np.zeros(rows.size, dtype=bool)
    for margin in (MARGIN, 1e3 * MARGIN, 1e6 * MARGIN):
        smooth, _ = _smoothness(oracle, gap)
        with np.errstate(divide="ignore"):
            shrink = np.where(smooth > 0, np.minimum(np.sqrt(oracle.R / smooth) * (1 - margin), 1.0), 1.0)
        shape = (oracle.mu - oracle.mu[oracle.best]) - (gap - gap[:, [oracle.best]])
        gap = np.where(mended[:, None], gap, gap + (1 - shrink)[:, None] * shape)
        short = lead + gap[here, rows] - gap[:, oracle.best]
        room = MARGIN * (np.abs(lead) + np.abs(gap[here, rows]) + np.abs(gap[:, oracle.best]))
        gap -= np.where(mended, 0.0, np.maximum(short + room, 0.0))[:, None] * lift
        short = lead + gap[here, rows] - gap[:, oracle.best]
        mended = (_smoothness(oracle, gap)[0] * (1 + MARGIN) <= oracle.R) & (short <= -room / 2)
        if mended.all():
            break
    gap[~mended] = np.inf
    return gap


def feasible_gradients(responses: Responses) -> Matrix:
    """Returns k(mu, lam^i), one row per challenger, for the alternatives of `feasible_gaps`."""
    return 0.5 * (feasible_gaps(responses) / responses.oracle.sigma) ** 2


def certified_upper(gradients: Matrix, p: Vector) -> float:
    """Returns max_a (sum_i p_i d^i)_a, an upper bound of 1/T* for any mixture p of feasible alternatives (theory
    4.3)."""
    usable = (p > 0) & np.isfinite(gradients).all(axis=1)
    if not usable.any():
        return float("inf")
    weights = p[usable] / p[usable].sum()
    return float((weights @ gradients[usable]).max() * (1 + MARGIN))


def _smoothness(oracle: Oracle, gap: Matrix) -> tuple[Vector, Matrix]:
    """Returns S(lam) and L lam for each row of lam = mu - gap, from the edges: sums of squares, free of cancellation.

    Differences come before the subtraction: neither a common level of the means nor small gaps cost accuracy.
    """
    blocks = oracle.blocks
    a, b = blocks.ends.T
    across = (oracle.mu[a] - oracle.mu[b]) - (gap[:, a] - gap[:, b])
    flow = blocks.weights * across
    slope = flow @ blocks.incidence
    return (flow * across).sum(axis=1), slope
