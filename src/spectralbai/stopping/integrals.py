"""Integrals of the likelihood over the prior frozen at the split, compiled.

All kernels that call each other are in this file, because the cache of compiled code notices changes of its own file
only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectralbai.checks import Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral import Components
from spectralbai.spectral.diagonalise import Edges

STIFFEST = 1e10
"""Largest kappa trace(L) / total weight before the split: components are nearly rigid then, but the matrix is still far
from singular."""


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
    n_components = edges.offsets.size - 1
    result = np.zeros(n_components)
    for c in range(n_components):
        low = edges.offsets[c]
        size = edges.offsets[c + 1] - low
        centre = 0.0
        total = 0.0
        for a in range(low, low + size):
            centre += then.weights[a] * then.means[a]
            total += then.weights[a]
        centre /= total  # only differences of means matter: subtracting a common centre keeps them accurate
        if size == 1:
            u = since.weights[low]
            p = then.weights[low] + prior.precision
            m = prior.precision * (prior.middle - centre) / p
            result[c] = -0.5 * np.log1p(u / p) - 0.5 * u * p / (u + p) * (since.means[low] - centre - m) ** 2
            continue
        laplacian = _laplacian(c, edges)
        trace = 0.0
        for edge in range(edges.edge_offsets[c], edges.edge_offsets[c + 1]):
            trace += 2.0 * edges.weights[edge]
        fits = np.empty(prior.scales.size)
        logs = np.empty(prior.scales.size)
        for k in range(prior.scales.size):
            kappa = min(prior.scales[k] * (size - 1) / prior.R, STIFFEST * total / trace)
            fits[k], logs[k] = _member(kappa, centre, c, laplacian, then, since, prior, edges)
        result[c] = _log_sum_exp(logs) - _log_sum_exp(fits)
    return result


@njit
def _laplacian(c: int, edges: Edges) -> Matrix:
    """Returns the Laplacian of component c."""
    low, size = edges.offsets[c], edges.offsets[c + 1] - edges.offsets[c]
    laplacian = np.zeros((size, size))
    for edge in range(edges.edge_offsets[c], edges.edge_offsets[c + 1]):
        a, b, w = edges.ends[edge, 0] - low, edges.ends[edge, 1] - low, edges.weights[edge]
        laplacian[a, a] += w
        laplacian[b, b] += w
        laplacian[a, b] -= w
        laplacian[b, a] -= w
    return laplacian


@njit
def _member(
    kappa: float, centre: float, c: int, laplacian: Matrix, then: Measured, since: Measured, prior: Prior, edges: Edges
) -> tuple[float, float]:
    """Returns, for one member of the prior of component c, the logs of its weight and of weight times integral."""
    _, precision, middle, _ = prior
    _, ends, weights, edge_offsets = edges
    low, high = edges.offsets[c], edges.offsets[c + 1]
    size = high - low
    before, means_before = then.weights[low:high], then.means[low:high]
    u, means = since.weights[low:high], since.means[low:high]
    # before the split: evidence of kappa, and the posterior mean m
    matrix = kappa * laplacian
    for a in range(size):
        matrix[a, a] += before[a] + precision
    pull = before * (means_before - centre) + precision * (middle - centre)
    m, logdet = _solve_factored(np.linalg.cholesky(matrix), pull)
    fit = 0.0
    for a in range(size):
        fit += before[a] * (means_before[a] - centre - m[a]) ** 2 + precision * (middle - centre - m[a]) ** 2
    for edge in range(edge_offsets[c], edge_offsets[c + 1]):
        fit += kappa * weights[edge] * (m[ends[edge, 0] - low] - m[ends[edge, 1] - low]) ** 2
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
    for edge in range(edge_offsets[c], edge_offsets[c + 1]):
        a, b = ends[edge, 0] - low, ends[edge, 1] - low
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
    """Returns the result of `log_integrals` for arms without edges, one entry per arm; -inf for arms without results
    before the split."""
    precision, middle = level
    p = before + precision
    known = p > 0
    m = (before * means_before + precision * middle)[known] / p[known]
    logs = np.full(u.size, -np.inf)
    logs[known] = (
        -0.5 * np.log1p(u[known] / p[known])
        - 0.5 * u[known] * (p[known] / (u[known] + p[known])) * (means[known] - m) ** 2
    )
    return logs
