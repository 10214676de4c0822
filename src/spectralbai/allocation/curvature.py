"""The Hessian of a combination of the f_i, from the same decomposition as their values."""

from __future__ import annotations

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral.secular import Answers, Factors, Question

NODE_RATIO = 2.0
"""Ratio of neighbouring nodes when M(gamma)^-1 is interpolated; 1/x over such an interval is off by at most 13 %."""


@njit
def curvature(
    p: Vector, ratio: float, question: Question, sigma: Vector, factors: Factors, responses: Answers
) -> Matrix:
    """Returns -sum_i p_i Hess f_i at the allocation of `factors` (theory 5.6); every weight must be positive.

    Challengers differ in gamma, and a matrix product for each would take most of the solver's time. M(gamma)^-1 is
    convex in gamma, so it is interpolated between nodes whose ratio is `ratio`. This takes a few products for all
    challengers, and the Hessian is never too small; one that is too large only slows Newton's method down a little.
    With `ratio` = 1 there is a node at every gamma, and the result is exact.
    """
    u, basis, theta, rough, offsets, component = factors
    shared = question.radii.size == 1
    e = responses.gap / sigma**2
    hessian = np.zeros((p.size, p.size))

    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        if c == 0 or not shared:  # the challengers that move the component, and their prices in it
            every = shared or c == component[question.best]
            first, last, price = (0, p.size, responses.gamma[:, 0]) if every else (low, high, responses.gamma[:, 1])
            live = first + np.flatnonzero(p[first:last] > 0.0)
            nodes = _nodes(price[live], price[first:last].max(), ratio)
        for i in live:
            if price[i] <= 0.0:  # M = diag(u)
                for a in range(low, high):
                    hessian[a, a] += p[i] * e[i, a] ** 2 / u[a]
        # gamma > 0: sum_k M(node_k)^-1 * (sum_i share_ik p_i e_i e_i'), entrywise
        share = np.empty((live.size, high - low))
        for k in range(nodes.size):
            count = 0
            for i in live:
                hat = _hat(price[i], nodes, k)
                if hat > 0.0:
                    share[count] = np.sqrt(hat * p[i]) * e[i, low:high]
                    count += 1
            block, scaled = basis[low:high, low:high].copy(), share[:count].copy()
            inverse = (block / (theta[low:high] + 2.0 * nodes[k] * rough[low:high])) @ block.T
            hessian[low:high, low:high] += inverse * (scaled.T @ scaled)

    fixed = _fixed(p, e, question, factors, responses)
    left: Matrix = hessian - fixed.T @ fixed
    return left


@njit
def _fixed(p: Vector, e: Matrix, question: Question, factors: Factors, responses: Answers) -> Matrix:
    """Returns, as rows, the directions in which the constraints do not let lam move, scaled for the Hessian."""
    basis, offsets = factors.basis, factors.offsets
    rows = np.flatnonzero(p > 0.0)  # skipping the other arms pays only if there are many of them
    if 4 * rows.size > 3 * p.size:
        rows = np.arange(p.size)
    directions = _held(rows, p, question, factors, responses)
    per_row = directions.shape[0] // max(rows.size, 1)
    fixed = np.empty(directions.shape)
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        moved = directions[:, low:high].copy() @ basis[low:high, low:high].copy().T
        for row in range(directions.shape[0]):
            i = rows[row // per_row]
            fixed[row, low:high] = moved[row] * e[i, low:high] * np.sqrt(max(p[i], 0.0))
    return fixed


@njit
def _hat(price: float, nodes: Vector, k: int) -> float:
    """Returns the piecewise linear hat function of node k at the price; 0 for prices that are not positive."""
    if price <= 0.0:
        return 0.0
    if price == nodes[k]:
        return 1.0
    if price < nodes[k] and k > 0 and price > nodes[k - 1]:
        return float((price - nodes[k - 1]) / (nodes[k] - nodes[k - 1]))
    if price > nodes[k] and k + 1 < nodes.size and price < nodes[k + 1]:
        return float((nodes[k + 1] - price) / (nodes[k + 1] - nodes[k]))
    return 0.0


@njit
def _nodes(prices: Vector, largest: float, ratio: float) -> Vector:
    """Returns the prices at which M^-1 is computed: from the least positive one on, by factors of at least `ratio`."""
    nodes = np.empty(prices.size)
    n_nodes = 0
    for value in np.sort(prices):
        if value <= 0.0 or (n_nodes > 0 and value <= nodes[n_nodes - 1]):
            continue
        nodes[n_nodes] = max(value, min(nodes[n_nodes - 1] * ratio, largest)) if n_nodes > 0 else value
        n_nodes += 1
    return nodes[:n_nodes].copy()


@njit
def _held(rows: Indices, p: Vector, question: Question, factors: Factors, responses: Answers) -> Matrix:
    """Returns M^-1 G of each row in coordinates, two or three directions a row: G = [L lam, e_best - e_i], made
    orthonormal for M^-1. If each component has an R, there is an L lam in the best arm's component and one in the
    challenger's (theory 16.7), which are orthogonal."""
    best, radii, _, _ = question
    _, basis, theta, rough, offsets, component = factors
    shared = radii.size == 1
    last = 1 if shared else 2
    directions = np.zeros(((last + 1) * rows.size, p.size))
    for row in range(rows.size):
        i = rows[row]
        if p[i] <= 0.0:
            continue
        held = directions[(last + 1) * row : (last + 1) * (row + 1)]
        whole = rest = 0.0  # q' M^-1 q, and what is left of it
        for side in range(1 if shared or component[i] == component[best] else 2):
            c = component[i] if side == 1 else component[best]
            low, high = (0, p.size) if shared else (offsets[c], offsets[c + 1])
            price = responses.gamma[i, side]
            cross = bent = 0.0
            for j in range(low, high):
                den = theta[j] + 2.0 * price * rough[j]
                q = basis[best, j] - basis[i, j] if responses.nu[i] > 0.0 else 0.0
                bend = rough[j] * responses.coef[i, j] if price > 0.0 else 0.0
                whole += q * q / den
                cross += q * bend / den
                bent += bend * bend / den
            slope = cross / bent if bent > 0.0 else 0.0
            for j in range(low, high):
                den = theta[j] + 2.0 * price * rough[j]
                q = basis[best, j] - basis[i, j] if responses.nu[i] > 0.0 else 0.0
                bend = rough[j] * responses.coef[i, j] if price > 0.0 else 0.0
                if bent > 0.0:
                    held[side, j] = bend / (den * np.sqrt(bent))
                held[last, j] = (q - slope * bend) / den
                rest += held[last, j] ** 2 * den
        if rest > 1e-10 * whole:
            held[last] /= np.sqrt(rest)
        else:
            held[last] = 0.0
    return directions
