"""The default solver: a primal-dual interior-point method that calls the oracle once a step.

Minimise s subject to 1/f_i(omega) <= s for every challenger i, omega in the simplex. The reciprocals are convex
(f_i is concave and positive) and, without a graph, linear in 1/omega: they bend far less than the f_i themselves,
and Newton's method takes ten to thirty steps from a cold start on most instances (theory, section 5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from spectralbai.allocation.certificate import MARGIN, Outcome, certified_lower, certified_upper, feasible_gradients
from spectralbai.allocation.curvature import curvature
from spectralbai.checks import Matrix, Vector
from spectralbai.oracle import Oracle
from spectralbai.spectral import Responses

BOUNDARY = 0.95
"""Fraction of the way to the boundary that a step may go."""

RESIDUAL_SHARE = 1e-6
"""Least ratio of the complementarity aimed at to the residuals: curved constraints must not be left behind for good."""


class Iterate(NamedTuple):
    """A primal-dual point; every vector is positive."""

    omega: Vector
    s: float
    w: Vector
    """Slacks: s - 1/f_i(omega) at the solution."""
    p: Vector
    """Multipliers of 1/f_i <= s."""
    z: Vector
    """Multipliers of omega >= 0."""
    eta: float
    """Multiplier of sum(omega) = 1."""


class Ceiling(NamedTuple):
    """An upper bound of 1/T* before rounding is accounted for, and what it comes from."""

    value: float
    responses: Responses
    mixture: Vector


class Found(NamedTuple):
    """Where a search stopped: the best allocation and the least upper bound seen, before rounding is accounted for."""

    best: Responses
    ceiling: Ceiling
    iterations: int


def interior_point(
    oracle: Oracle, tol: float, max_iterations: int, start: Vector | None = None, enough: float = 0.0
) -> Outcome:
    """Returns an allocation with certified bounds, a relative `tol` apart unless it stops early.

    `start` is a guess of the allocation; the search also ends once `upper` falls to `enough`, when the caller knows a
    better value.
    """
    # The certificate's room for rounding is taken out of the gap asked of the search.
    best, ceiling, iterations = search(oracle, max(0.99 * tol - 4 * MARGIN, 0.0), max_iterations, start, enough)
    upper = certified_upper(feasible_gradients(ceiling.responses), ceiling.mixture)
    return Outcome(best.omega, certified_lower(best), upper, iterations)


def opening(oracle: Oracle) -> Responses:
    """Returns the best responses to the allocation from which a cold search begins: half to the best arm."""
    n_arms = oracle.mu.size
    omega = np.full(n_arms, 0.5 / (n_arms - 1))
    omega[oracle.best] = 0.5
    return oracle.respond(omega)


def search(
    oracle: Oracle,
    tol: float,
    max_iterations: int,
    start: Vector | None = None,
    enough: float = 0.0,
    needs: Vector | None = None,
    first: Responses | None = None,
) -> Found:
    """Returns the best allocation found, as `interior_point` does but without certificate: cheap, for tracking.

    `needs` (in component order) scales the challengers: max over omega of min_i f_i(omega) / needs_i, over those with
    a positive one; the values found and bounded are then those of the scaled problem. `first` is `opening(oracle)`,
    where the caller has it already.
    """
    n_arms = oracle.mu.size
    if first is not None:
        responses = best = first
    elif start is None:
        responses = best = opening(oracle)
    else:
        responses = best = oracle.respond(0.9 * start + 0.1 / n_arms)
    omega = responses.omega
    rows = responses.challengers
    if needs is None:
        needs = np.ones(n_arms)
    rows = rows[needs[rows] > 0]
    need = needs[rows]
    scale = best_value = float((responses.cost[rows] / need).min())
    # Start on the central path: p_i w_i and omega_a z_a all equal, and sum(p) = 1.
    reciprocal = scale / (responses.cost[rows] / need)
    s = 1.3 * reciprocal.max()
    w = s - reciprocal
    level = 1 / (1 / w).sum()
    point = Iterate(omega, s, w, level / w, level / omega, np.nan)
    ceiling = Ceiling(np.inf, responses, point.p)
    iteration = 0
    while True:
        iteration += 1
        cost, gradient = responses.cost[rows] / need, responses.gradient[rows] / need[:, None]
        if not np.isfinite(cost).all():  # at the very limit of a tolerance, rounding lets a challenger come and go
            return Found(best, ceiling, iteration)
        if cost.min() > best_value:
            best, best_value = responses, float(cost.min())
        mixture = point.p / cost**2  # multipliers of the f_i from those of their reciprocals
        mixture /= mixture.sum()
        height = float((mixture @ gradient).max())
        if height < ceiling.value:
            ceiling = Ceiling(height, responses, mixture)
        if iteration >= max_iterations or ceiling.value <= max(best_value * (1 + tol), enough):
            return Found(best, ceiling, iteration)
        try:
            weights = np.zeros(n_arms)
            weights[rows] = point.p * (scale / cost) ** 2 / need
            hessian = curvature(responses, weights) / scale
            point = Iterate(*_newton_step(*point, cost / scale, gradient / scale, hessian))
            responses = oracle.respond(point.omega, responses.gamma)
        except np.linalg.LinAlgError:  # the end of floating point: what was found so far stands, with its bounds
            return Found(best, ceiling, iteration)


@njit(cache=True)
def _newton_step(
    omega: Vector, s: float, w: Vector, p: Vector, z: Vector, eta: float, f: Vector, gradient: Matrix, hessian: Matrix
) -> tuple[Vector, float, Vector, Vector, Vector, float]:
    """Returns the next iterate: Mehrotra's predictor and corrector from one factorisation (theory 5.7-5.10).

    `hessian` is that of -sum_i p_i/f_i^2 f_i.
    """
    n_cuts, size = gradient.shape
    descent = np.empty((n_cuts, size))  # -gradient of 1/f_i
    for i in range(n_cuts):
        for a in range(size):
            descent[i, a] = gradient[i, a] / f[i] ** 2
    drift = p @ descent
    if np.isnan(eta):
        eta = float((drift + z) @ omega)
    gap = (p @ w + omega @ z) / (n_cuts + size)
    stationarity = eta - drift - z  # dual residual
    infeasible = s - 1.0 / f - w  # primal residual: slacks live on their own and catch up with the curved constraints
    missing = 1.0 - p.sum()
    residual = (max(0.0, np.max(1.0 / f - s)) + omega @ np.abs(stationarity)) / (n_cuts + size)

    # Eliminating p, z, w and s leaves a positive definite system in omega; s first, which centres the rows.
    ratio = p / w
    mean = ratio @ descent / ratio.sum()
    stacked = np.empty((2 * n_cuts, size))
    for i in range(n_cuts):
        for a in range(size):
            descent[i, a] -= mean[a]
            stacked[i, a] = descent[i, a] * np.sqrt(ratio[i])
            stacked[n_cuts + i, a] = gradient[i, a] * np.sqrt(2.0 * p[i] / f[i] ** 3)
    normal = hessian + stacked.T @ stacked
    for a in range(size):
        normal[a, a] += z[a] / omega[a]
    units = np.empty(size)
    for a in range(size):
        units[a] = 1.0 / np.sqrt(normal[a, a] * (1.0 + 1e-13))
    for a in range(size):
        for j in range(size):
            normal[a, j] *= units[a] * units[j]
        normal[a, a] = 1.0
    factor = np.linalg.cholesky(normal)
    by_eta = units * _solve(factor, units)

    target_w = -p * w
    target_z = -omega * z
    for corrector in range(2):
        pull = (target_w - p * infeasible) / w
        base = units * _solve(factor, units * (pull @ descent + target_z / omega + missing * mean - stationarity))
        d_eta = (base.sum() + omega.sum() - 1.0) / by_eta.sum()
        d_omega = base - by_eta * d_eta
        d_s = (pull.sum() - missing) / ratio.sum() - mean @ d_omega
        d_w = descent @ d_omega + mean @ d_omega + d_s + infeasible
        d_p = target_w / w - ratio * d_w
        d_z = (target_z - z * d_omega) / omega
        longest = min(min(_longest(omega, d_omega), _longest(w, d_w)), min(_longest(p, d_p), _longest(z, d_z)))
        if corrector == 0:
            step = min(1.0, longest)
            ahead = ((p + step * d_p) @ (w + step * d_w) + (omega + step * d_omega) @ (z + step * d_z)) / (
                n_cuts + size
            )
            centre = max(gap * min(1.0, ahead / gap) ** 2, RESIDUAL_SHARE * residual)
            target_w = centre - p * w - d_p * d_w
            target_z = centre - omega * z - d_omega * d_z
    step = min(1.0, BOUNDARY * longest)
    omega = omega + step * d_omega
    return omega / omega.sum(), s + step * d_s, w + step * d_w, p + step * d_p, z + step * d_z, eta + step * d_eta


@njit(cache=True)
def _solve(factor: Matrix, rhs: Vector) -> Vector:
    """Returns the solution of C C' x = rhs for a lower triangular C."""
    x = rhs.copy()
    for a in range(x.size):
        for j in range(a):
            x[a] -= factor[a, j] * x[j]
        x[a] /= factor[a, a]
    for a in range(x.size - 1, -1, -1):
        x[a] /= factor[a, a]
        for j in range(a):
            x[j] -= factor[a, j] * x[a]
    return x


@njit(cache=True)
def _longest(x: Vector, dx: Vector) -> float:
    """Returns the longest step that keeps x + step dx non-negative."""
    step = np.inf
    for j in range(x.size):
        if dx[j] < 0.0:
            step = min(step, -x[j] / dx[j])
    return step
