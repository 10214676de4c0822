"""The Hessian of a combination of the f_i, from the same decomposition as their values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral import Factors, Responses

NODE_RATIO = 2.0
"""Ratio of neighbouring nodes when M(gamma)^-1 is interpolated; 1/x over such an interval is off by at most 13 %."""


class Moves(NamedTuple):
    """How the alternative of each challenger may move; arms are in component order, as in `Answers`."""

    gamma: Matrix
    nu: Vector
    coef: Matrix


def curvature(responses: Responses, p: Vector, ratio: float = NODE_RATIO) -> Matrix:
    """Returns -sum_i p_i Hess f_i at the allocation of `responses` (theory 5.6); every weight must be positive.

    Challengers differ in gamma, and a matrix product for each would take most of the solver's time. M(gamma)^-1 is
    convex in gamma, so it is interpolated between nodes whose ratio is `ratio`. This takes a few products for all
    challengers, and the Hessian is never too small; one that is too large only slows Newton's method down a little.
    With `ratio` = 1 there is a node at every gamma, and the result is exact.
    """
    decomposition, to = responses.decomposition, responses.decomposition.components
    moves = Moves(to.ordered(responses.gamma), to.ordered(responses.nu), to.ordered(responses.coef))
    e = to.ordered(responses.gap / decomposition.sigma**2, axes=2)
    best, shared = int(to.position[responses.best]), responses.radii.size == 1
    hessian: Matrix = curvature_kernel(to.ordered(p), ratio, best, e, shared, moves, decomposition.factors)
    return to.restored(hessian, axes=2)


@njit
def curvature_kernel(
    p: Vector, ratio: float, best: int, e: Matrix, shared: bool, moves: Moves, factors: Factors
) -> Matrix:
    """Returns what `curvature` does; `shared` says that one R is for all components."""
    gamma = moves.gamma
    u, basis, theta, rough, offsets, component = factors
    n_arms = p.size
    hessian = np.zeros((n_arms, n_arms))

    # M^-1, component by component, with the challengers that move the component and their prices in it.
    live, price = np.flatnonzero(p > 0.0), gamma[:, 0].copy()
    nodes = _nodes(price[live], price.max(), ratio)
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        if not shared and c == component[best]:
            live, price = np.flatnonzero(p > 0.0), gamma[:, 0].copy()
            nodes = _nodes(price[live], price.max(), ratio)
        elif not shared:
            live, price = low + np.flatnonzero(p[low:high] > 0.0), gamma[:, 1].copy()
            nodes = _nodes(price[live], price[low:high].max(), ratio)
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
            block, part = basis[low:high, low:high].copy(), share[:count].copy()
            inverse = (block / (theta[low:high] + 2.0 * nodes[k] * rough[low:high])) @ block.T
            hessian[low:high, low:high] += inverse * (part.T @ part)

    fixed = _fixed(p, best, e, shared, moves, factors)
    left: Matrix = hessian - fixed.T @ fixed
    return left


@njit
def _fixed(p: Vector, best: int, e: Matrix, shared: bool, moves: Moves, factors: Factors) -> Matrix:
    """Returns, as rows, the directions in which the constraints do not let lam move, scaled for the Hessian."""
    basis, offsets = factors.basis, factors.offsets
    rows = np.flatnonzero(p > 0.0)  # skipping the other arms pays only if there are many of them
    if 4 * rows.size > 3 * p.size:
        rows = np.arange(p.size)
    if shared:
        directions = _held(rows, p, best, moves, factors)
    else:
        directions = _held_apart(rows, p, best, moves, factors)
    each = directions.shape[0] // max(rows.size, 1)
    fixed = np.empty(directions.shape)
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        moved = directions[:, low:high].copy() @ basis[low:high, low:high].copy().T
        for row in range(directions.shape[0]):
            i = rows[row // each]
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
def _held(rows: Indices, p: Vector, best: int, moves: Moves, factors: Factors) -> Matrix:
    """Returns M^-1 G of each row, G = [e_best - e_i, L lam] made orthonormal for M^-1, in coordinates."""
    gamma, nu, coef = moves
    basis, theta, rough = factors.basis, factors.theta, factors.rough
    n_arms = p.size
    directions = np.zeros((2 * rows.size, n_arms))
    for row in range(rows.size):
        i = rows[row]
        if p[i] <= 0.0:
            continue
        price = gamma[i, 0]
        g11 = g12 = g22 = 0.0
        for j in range(n_arms):
            den = theta[j] + 2.0 * price * rough[j]
            q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
            bend = rough[j] * coef[i, j] if price > 0.0 else 0.0
            g11 += q * q / den
            g12 += q * bend / den
            g22 += bend * bend / den
        slope = g12 / g11 if g11 > 0.0 else 0.0
        rest = g22 - slope * g12
        for j in range(n_arms):
            den = theta[j] + 2.0 * price * rough[j]
            q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
            bend = rough[j] * coef[i, j] if price > 0.0 else 0.0
            if g11 > 0.0:
                directions[2 * row, j] = q / (den * np.sqrt(g11))
            if rest > 1e-10 * g22:
                directions[2 * row + 1, j] = (bend - slope * q) / (den * np.sqrt(rest))
    return directions


@njit
def _held_apart(rows: Indices, p: Vector, best: int, moves: Moves, factors: Factors) -> Matrix:
    """Returns M^-1 G of each row if each component has an R: G = [L lam in the best arm's component, L lam in the
    challenger's, e_best - e_i], made orthonormal for M^-1 (theory 16.7). The first two are already orthogonal."""
    gamma, nu, coef = moves
    _, basis, theta, rough, offsets, component = factors
    n_arms = p.size
    directions = np.zeros((3 * rows.size, n_arms))
    for row in range(rows.size):
        i = rows[row]
        if p[i] <= 0.0:
            continue
        last = directions[3 * row + 2]
        whole = 0.0  # q' M^-1 q
        for side in range(2):
            c = component[best] if side == 0 else component[i]
            if side == 1 and c == component[best]:
                break
            low, high = offsets[c], offsets[c + 1]
            price = gamma[i, side]
            cross = bent = 0.0
            for j in range(low, high):
                den = theta[j] + 2.0 * price * rough[j]
                q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
                bend = rough[j] * coef[i, j] if price > 0.0 else 0.0
                whole += q * q / den
                cross += q * bend / den
                bent += bend * bend / den
            slope = cross / bent if bent > 0.0 else 0.0
            for j in range(low, high):
                den = theta[j] + 2.0 * price * rough[j]
                q = basis[best, j] - basis[i, j] if nu[i] > 0.0 else 0.0
                bend = rough[j] * coef[i, j] if price > 0.0 else 0.0
                if bent > 0.0:
                    directions[3 * row + side, j] = bend / (den * np.sqrt(bent))
                last[j] = (q - slope * bend) / den
        rest = 0.0
        for side in range(2):
            c = component[best] if side == 0 else component[i]
            if side == 1 and c == component[best]:
                break
            for j in range(offsets[c], offsets[c + 1]):
                rest += last[j] ** 2 * (theta[j] + 2.0 * gamma[i, side] * rough[j])
        if rest > 1e-10 * whole:
            last /= np.sqrt(rest)
        else:
            last[:] = 0.0
    return directions
