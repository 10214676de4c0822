"""The Hessian of a combination of the f_i, from the decomposition that gave their values."""

from __future__ import annotations

import numpy as np

from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral import Responses

NODE_RATIO = 2.0
"""Ratio of neighbouring nodes when M(gamma)^-1 is interpolated; 1/x over such an interval is off by at most 13 %."""


def curvature(responses: Responses, p: Vector, ratio: float = NODE_RATIO) -> Matrix:
    """Returns -sum_i p_i Hess f_i at the allocation of `responses` (theory 5.6); every weight must be positive.

    Challengers differ in gamma, and a matrix product for each would dominate the solver. M(gamma)^-1 is convex
    in gamma, so it is interpolated between nodes `ratio` apart: a few products for all, and never too small a
    Hessian, which costs Newton's method nothing but a little speed. `ratio` = 1 puts a node at every gamma: exact.
    """
    decomposition, to = responses.decomposition, responses.decomposition.components
    hessian: Matrix = curvature_kernel(
        to.ordered(p),
        ratio,
        int(to.position[responses.best]),
        to.ordered(responses.gap / decomposition.sigma**2, axes=2),
        to.ordered(responses.gamma),
        to.ordered(responses.nu),
        to.ordered(responses.coef),
        *decomposition.factors,
    )
    return to.restored(hessian, axes=2)


@njit
def curvature_kernel(
    p: Vector,
    ratio: float,
    best: int,
    e: Matrix,
    gamma: Vector,
    nu: Vector,
    coef: Matrix,
    u: Vector,
    basis: Matrix,
    theta: Vector,
    rough: Vector,
    offsets: Indices,
) -> Matrix:
    n_arms = p.size
    n_components = offsets.size - 1
    hessian = np.zeros((n_arms, n_arms))

    # gamma = 0: M = diag(u)
    n_priced = 0
    for i in range(n_arms):
        if p[i] > 0.0 and gamma[i] > 0.0:
            n_priced += 1
        elif p[i] > 0.0:
            for a in range(n_arms):
                hessian[a, a] += p[i] * e[i, a] ** 2 / u[a]

    # gamma > 0: sum_k M(node_k)^-1 * (sum_i share_ik p_i e_i e_i'), entrywise, component by component
    order = np.argsort(gamma)
    first = n_arms - 1
    while first >= 0 and gamma[order[first]] > 0.0:
        first -= 1
    nodes = np.empty(n_arms)
    n_nodes = 0
    for k in range(first + 1, n_arms):
        value = gamma[order[k]]
        if p[order[k]] <= 0.0 or (n_nodes > 0 and value <= nodes[n_nodes - 1]):
            continue
        nodes[n_nodes] = max(value, min(nodes[n_nodes - 1] * ratio, gamma[order[n_arms - 1]])) if n_nodes > 0 else value
        n_nodes += 1
    share = np.empty((n_arms, n_arms))
    for k in range(n_nodes):
        count = 0
        for i in range(n_arms):
            if p[i] <= 0.0 or gamma[i] <= 0.0:
                continue
            hat = 0.0  # piecewise linear hat function of node k at gamma_i
            if gamma[i] == nodes[k]:
                hat = 1.0
            elif gamma[i] < nodes[k] and k > 0 and gamma[i] > nodes[k - 1]:
                hat = (gamma[i] - nodes[k - 1]) / (nodes[k] - nodes[k - 1])
            elif gamma[i] > nodes[k] and k + 1 < n_nodes and gamma[i] < nodes[k + 1]:
                hat = (nodes[k + 1] - gamma[i]) / (nodes[k + 1] - nodes[k])
            if hat > 0.0:
                for a in range(n_arms):
                    share[count, a] = np.sqrt(hat * p[i]) * e[i, a]
                count += 1
        for c in range(n_components):
            low, high = offsets[c], offsets[c + 1]
            block = basis[low:high, low:high].copy()
            scaled = np.empty((high - low, high - low))
            for a in range(high - low):
                for j in range(high - low):
                    scaled[a, j] = block[a, j] / (theta[low + j] + 2.0 * nodes[k] * rough[low + j])
            part = share[:count, low:high].copy()
            inverse = scaled @ block.T
            outer = part.T @ part
            for a in range(high - low):
                for j in range(high - low):
                    hessian[low + a, low + j] += inverse[a, j] * outer[a, j]

    # minus the directions in which lam may not move: G = [e_best - e_i, L lam], made orthonormal for M^-1
    rows = np.flatnonzero(p > 0.0)  # one row per arm unless many are left out, when it pays to skip them
    if 4 * rows.size > 3 * n_arms:
        rows = np.arange(n_arms)
    directions = np.zeros((2 * rows.size, n_arms))
    for row in range(rows.size):
        i = rows[row]
        if p[i] <= 0.0:
            continue
        g11 = g12 = g22 = 0.0
        for j in range(n_arms):
            den = theta[j] + 2.0 * gamma[i] * rough[j]
            q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
            bend = rough[j] * coef[i, j] if gamma[i] > 0.0 else 0.0
            g11 += q * q / den
            g12 += q * bend / den
            g22 += bend * bend / den
        slope = g12 / g11 if g11 > 0.0 else 0.0
        rest = g22 - slope * g12
        for j in range(n_arms):
            den = theta[j] + 2.0 * gamma[i] * rough[j]
            q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
            bend = rough[j] * coef[i, j] if gamma[i] > 0.0 else 0.0
            if g11 > 0.0:
                directions[2 * row, j] = q / (den * np.sqrt(g11))
            if rest > 1e-10 * g22:
                directions[2 * row + 1, j] = (bend - slope * q) / (den * np.sqrt(rest))
    fixed = np.empty((2 * rows.size, n_arms))
    for c in range(n_components):
        low, high = offsets[c], offsets[c + 1]
        moved = directions[:, low:high].copy() @ basis[low:high, low:high].copy().T
        for row in range(2 * rows.size):
            i = rows[row // 2]
            for a in range(low, high):
                fixed[row, a] = moved[row, a - low] * e[i, a] * np.sqrt(max(p[i], 0.0))
    return hessian - fixed.T @ fixed
