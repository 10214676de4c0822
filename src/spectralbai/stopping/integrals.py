"""Integrals of the likelihood over the prior frozen at the split, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral import Components
from spectralbai.spectral.diagonalise import Edges

STIFFEST = 1e10
"""Largest kappa trace(L) / total weight before the split: nearly rigid, but the matrix is far from singular."""


class Measured(NamedTuple):
    """Results before or after the split: the weight of each arm and its mean; arms are in component order."""

    weights: Vector
    means: Vector


class Prior(NamedTuple):
    """What the prior is made of, besides the results before the split."""

    R: float
    precision: float
    """Precision of the level of all means, and where its middle is."""
    middle: float
    scales: Vector


class Inside(NamedTuple):
    """The edges of one component, as pairs of positions in it, and their weights."""

    ends: Indices
    weights: Vector


def log_integrals(
    components: Components,
    before: Vector,
    means_before: Vector,
    u: Vector,
    means: Vector,
    R: float,
    level: tuple[float, float],
    scales: Vector,
) -> Vector:
    """Returns, per component, log of the integral of exp(-sum_a u_a (means_a - lam_a)^2 / 2) over the frozen prior.

    The prior is a mixture over k of N(m_k, P_k^-1) with P_k = kappa_k L + diag(before), kappa_k = scales_k rank / R.
    Member k is the posterior, given the results before the split, of a flat level and roughness precision kappa_k; its
    weight says how well kappa_k explains those results (theory 6.4-6.6).
    """
    then = Measured(components.ordered(before), components.ordered(means_before))
    since = Measured(components.ordered(u), components.ordered(means))
    return _log_integrals(then, since, Prior(R, *level, scales), components.edges)


@njit
def _log_integrals(then: Measured, since: Measured, prior: Prior, edges: Edges) -> Vector:
    result = np.zeros(edges.offsets.size - 1)
    for c in range(result.size):
        low, high = edges.offsets[c], edges.offsets[c + 1]
        first, last = edges.edge_offsets[c], edges.edge_offsets[c + 1]
        before = Measured(then.weights[low:high], then.means[low:high])
        after = Measured(since.weights[low:high], since.means[low:high])
        inside = Inside(edges.ends[first:last] - low, edges.weights[first:last])
        result[c] = _log_integral(before, after, prior, inside)
    return result


@njit
def _log_integral(then: Measured, since: Measured, prior: Prior, edges: Inside) -> float:
    """Returns the result of `log_integrals` for one component."""
    size, total = then.weights.size, then.weights.sum()
    # Only differences of means matter: subtracting a common centre keeps them accurate.
    centre = (then.weights * then.means).sum() / total
    if size == 1:
        u = since.weights[0]
        p = total + prior.precision
        m = prior.precision * (prior.middle - centre) / p
        return float(-0.5 * np.log1p(u / p) - 0.5 * u * p / (u + p) * (since.means[0] - centre - m) ** 2)
    laplacian = _laplacian(size, edges)
    fits, logs = np.empty(prior.scales.size), np.empty(prior.scales.size)
    for k in range(prior.scales.size):
        kappa = min(prior.scales[k] * (size - 1) / prior.R, STIFFEST * total / (2.0 * edges.weights.sum()))
        fits[k], logs[k] = _member(kappa, centre, laplacian, then, since, prior, edges)
    return _log_sum_exp(logs) - _log_sum_exp(fits)


@njit
def _laplacian(size: int, edges: Inside) -> Matrix:
    laplacian = np.zeros((size, size))
    for edge in range(edges.weights.size):
        a, b, w = edges.ends[edge, 0], edges.ends[edge, 1], edges.weights[edge]
        laplacian[a, a] += w
        laplacian[b, b] += w
        laplacian[a, b] -= w
        laplacian[b, a] -= w
    return laplacian


@njit
def _member(
    kappa: float, centre: float, laplacian: Matrix, then: Measured, since: Measured, prior: Prior, edges: Inside
) -> tuple[float, float]:
    """Returns, for one member of the prior, the logs of its weight and of weight times integral."""
    before, means_before = then
    u, means = since
    ends, weights = edges
    precision, middle, size = prior.precision, prior.middle, u.size
    # before the split: evidence of kappa, and the posterior mean m
    matrix = kappa * laplacian
    for a in range(size):
        matrix[a, a] += before[a] + precision
    pull = before * (means_before - centre) + precision * (middle - centre)
    m, logdet = _solve_factored(np.linalg.cholesky(matrix), pull)
    fit = 0.0
    for a in range(size):
        fit += before[a] * (means_before[a] - centre - m[a]) ** 2 + precision * (middle - centre - m[a]) ** 2
    for edge in range(weights.size):
        fit += kappa * weights[edge] * (m[ends[edge, 0]] - m[ends[edge, 1]]) ** 2
    log_weight = 0.5 * (size - 1) * np.log(kappa) - 0.5 * logdet - 0.5 * fit
    # after the split: the integral of this member
    for a in range(size):
        matrix[a, a] += u[a]
        pull[a] += u[a] * (means[a] - centre)
    lam, logdet_after = _solve_factored(np.linalg.cholesky(matrix), pull)
    fit = 0.0
    for a in range(size):
        fit += u[a] * (means[a] - centre - lam[a]) ** 2
        fit += (before[a] + precision) * (lam[a] - m[a]) ** 2
    for edge in range(weights.size):
        a, b = ends[edge, 0], ends[edge, 1]
        fit += kappa * weights[edge] * (lam[a] - m[a] - lam[b] + m[b]) ** 2
    return log_weight, log_weight - 0.5 * (logdet_after - logdet) - 0.5 * fit


@njit
def _log_sum_exp(x: Vector) -> float:
    top = x.max()
    return float(top + np.log(np.exp(x - top).sum()))


@njit
def _solve_factored(factor: NDArray[Any], rhs: Vector) -> tuple[Vector, float]:
    """Returns the solution of C C' x = rhs and log det(C C')."""
    x = rhs.copy()
    logdet = 0.0
    for a in range(x.size):
        for j in range(a):
            x[a] -= factor[a, j] * x[j]
        x[a] /= factor[a, a]
        logdet += 2.0 * np.log(factor[a, a])
    for a in range(x.size - 1, -1, -1):
        x[a] /= factor[a, a]
        for j in range(a):
            x[j] -= factor[a, j] * x[a]
    return x, logdet


def lone_integrals(
    before: Vector, means_before: Vector, u: Vector, means: Vector, level: tuple[float, float]
) -> Vector:
    """Returns `log_integrals` for arms without edges, one entry per arm; -inf without results before the split."""
    precision, middle = level
    logs, known = np.full(u.size, -np.inf), before + precision > 0
    before, means_before, u, means = (each[known] for each in (before, means_before, u, means))
    p = before + precision
    m = (before * means_before + precision * middle) / p
    logs[known] = -0.5 * np.log1p(u / p) - 0.5 * u * (p / (u + p)) * (means - m) ** 2
    return logs
