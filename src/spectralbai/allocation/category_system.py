"""The linear system of a step of the solver for catalogues: a diagonal plus a few directions (theory 17.14, 17.15)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from spectralbai.allocation.category_responses import Alternatives, Layout
from spectralbai.arrays import Indices, Matrix, Vector

ACCURACY = 1e-8
"""Accuracy of the directions that the challengers of a category share; Newton's method needs no more."""
REFINEMENTS = 2
"""How often a solution is improved by solving for its residual."""
# Meaning of the columns of `coefficients`: the variables of a best response, and the slopes of f_i.
PUSH, LEVEL_THERE, PRICE_THERE, LEVEL_HOME, PRICE_HOME, SLOPE = range(6)


class _Shared(NamedTuple):
    """Directions that challengers share in one category (17.14)."""

    basis: Matrix
    """B (arms, directions), with B' diag(diagonal)^-1 B = 1."""
    coefficients: Matrix
    """Coefficients of the derivatives in u and x, in u and k, and in u: (challengers, directions, 3)."""
    full: bool = False
    """Whether there is a direction for each arm."""

    @classmethod
    def of(cls, u: Vector, mu: Vector, k: Vector, x: Vector, diagonal: Vector) -> _Shared:
        """Returns the shared directions: (k / (u_a + k))^2 is interpolated by polynomials in log k; other factors are
        powers of mu."""
        tight = k > 0
        if not tight.any():
            return cls(np.zeros((u.size, 0)), np.zeros((k.size, 0, 3)))
        units = np.sqrt(diagonal)
        high = float(k.max())
        half = max(math.log(high / float(k[tight].min())) / 2, 0.25)
        middle = math.log(high) - half
        poles = math.pi / half  # distance of the interpolated function's poles, in units of half the interval
        n = math.ceil(-math.log(ACCURACY) / math.asinh(poles))
        if 3 * n >= u.size:  # interpolation would need as many directions as arms: use one for each arm
            r, apart = 1 / (u + k[:, None]), mu - x[:, None]
            e = k[:, None] * r
            exact = -(e**2) * apart, e * u * r * r * apart**2, (e * apart) ** 2 / 2
            return cls(np.diag(units), np.stack(exact, axis=2) / units[:, None], True)
        angles = math.pi * (np.arange(n) + 0.5) / n
        nodes = np.exp(middle + half * np.cos(angles))
        shapes = (nodes / (u[:, None] + nodes)) ** 2 @ np.cos(np.outer(angles, np.arange(n))) * (2 / n)
        shapes[:, 0] /= 2
        centre = float(mu.mean())
        apart, x = (mu - centre)[:, None], (x - centre)[:, None]
        k = np.where(tight, k, high)
        at = (np.log(k) - middle) / half
        fit = tight[:, None] * chebyshev.chebvander(at, n - 1)
        rise = chebyshev.chebval(at, chebyshev.chebder(np.eye(n))).T * (tight / (half * k))[:, None]
        spanned = np.hstack([shapes, shapes * apart, shapes * apart**2]) / units[:, None]
        left, sizes, right = np.linalg.svd(spanned, full_matrices=False)
        large = sizes > ACCURACY**2 * sizes[0]
        coefficients = (
            np.hstack([x * fit, -fit, np.zeros_like(fit)]),
            np.hstack([x**2 * rise, -2 * x * rise, rise]) / 2,
            np.hstack([x**2 * fit, -2 * x * fit, fit]) / 2,
        )
        turned = right[large].T * sizes[large]
        return cls(left[:, large] * units[:, None], np.stack([rows @ turned for rows in coefficients], axis=2))


def _own(u: Vector | float, mu: Vector | float, side: Matrix, push: Vector, sign: float) -> tuple[Vector, ...]:
    """Returns what the pushed arm adds to the derivatives in u: with s, with x, with k, and of f_i (17.12)."""
    k, x = side[:, 0], side[:, 1]
    r = 1 / (u + k)
    e, raised = k * r, sign * push * r
    fall, apart = e * (mu - x) - raised, u * r * (mu - x) + raised
    slope = fall**2 / 2 - (e * (mu - x)) ** 2 / 2
    price = r * (fall * apart - e * u * r * (mu - x) ** 2)
    return -sign * fall * r, e * raised, np.where(k > 0, price, 0.0), slope


def _second(closest: Alternatives) -> Matrix:
    """Returns the second derivatives (challengers, 5, 5) of the Lagrangians in push, levels and prices (17.12)."""
    matrix = np.zeros((closest.push.size, 5, 5))
    for side, level, price in ((closest.there, LEVEL_THERE, PRICE_THERE), (closest.home, LEVEL_HOME, PRICE_HOME)):
        k, _, heavy, cross, bend, push_level, push_price, push_push, _ = side.T
        tight = k > 0
        matrix[:, PUSH, PUSH] += push_push
        matrix[:, level, level] = np.where(tight, k * heavy, 1.0)
        matrix[:, price, price] = np.where(tight, -bend, -1.0)
        for one, other, value in ((level, price, cross), (PUSH, level, push_level), (PUSH, price, push_price)):
            matrix[:, one, other] = matrix[:, other, one] = np.where(tight, value, 0.0)
    return matrix


class _Group(NamedTuple):
    """The arms of a block, their challengers, and the directions that these share."""

    arms: slice
    rows: slice
    """The challengers, as rows of the alternatives."""
    challengers: Indices
    """The same, as arms of the block."""
    basis: Matrix
    """B (arms, directions)."""
    shared: Matrix
    """Coefficients of the challengers' derivatives along B: (challengers, directions, 6)."""
    home: Matrix
    """The same along the directions at home; none for the block at home, where these are among the shared ones."""


class _Block:
    """Some arms and their challengers: a category, all single arms except the best one, or home.

    The arms of the block are eliminated from the system: du = E rhs - b t - E B q - b_home t_home. The unknowns
    t = B' du and q, the force along B, solve a small system (17.15).
    """

    def __init__(self, own: _Group, inverse: Vector, along: Matrix, left: Matrix, extra: Matrix | float = 0.0) -> None:
        """Prepares the small system. `inverse` is E, `left` (challengers, 6, 6) is M~, and `along` (challengers, 6) is
        M~ o / D. `extra` is the curvature that other blocks add along B."""
        self.group, self.inverse = own, inverse
        basis, r = own.basis, own.basis.shape[1]
        both = np.concatenate([own.shared, own.home], axis=1)
        rates = np.zeros((inverse.size, both.shape[1]))
        rates[own.challengers] = np.einsum("ngv,nv->ng", both, along)
        curvature = np.tensordot(both @ left, both, ((0, 2), (0, 2)))
        rate, self.rate_home = rates[:, :r], rates[:, r:]
        scaled = self.inverse[:, None] * basis
        self.outer = np.hstack([rate, scaled])
        self.left = np.hstack([scaled, rate])
        small = np.eye(2 * r)
        small[:r, :r] += basis.T @ rate
        small[:r, r:] = basis.T @ scaled
        small[r:, :r] = -curvature[:r, :r] - extra
        small[r:, r:] += rate.T @ basis
        self.small = np.linalg.inv(small)
        self.by_home = np.vstack([basis.T @ self.rate_home, -curvature[:r, r:]])
        self.to_home = np.hstack([curvature[r:, :r], -self.rate_home.T @ basis])
        self.curvature = curvature[r:, r:] - self.to_home @ self.small @ self.by_home

    def pull_home(self, rhs: Vector) -> Vector:
        """Returns what the block adds to q at home if t_home = 0."""
        return np.asarray(self.rate_home.T @ rhs + self.to_home @ (self.small @ (self.left.T @ rhs)))

    def solve(self, rhs: Vector, t_home: Vector, q: Vector | float = 0.0) -> tuple[Vector, Vector]:
        """Returns du and t; `q` is what other blocks add to q."""
        r = self.small.shape[0] // 2
        right = self.left.T @ rhs - self.by_home @ t_home
        right[r:] += q
        y = self.small @ right
        return self.inverse * rhs - self.outer @ y - self.rate_home @ t_home, y[:r]


class System:
    """The linear system of a step, in the weights u of all arms."""

    def __init__(
        self, layout: Layout, u: Vector, closest: Alternatives, diagonal: Vector, weight: Vector, steep: Vector
    ):
        """Prepares the matrix diag(diagonal) + sum_i weight_i L_uy L_yy^-1 L_yu + sum_i steep_i L_u L_u' (17.14)."""
        mu, best, rivals = layout.mu, layout.best, layout.rivals
        n, end, mates = rivals.size, int(layout.offsets[1]), int(np.searchsorted(rivals, layout.offsets[1]))
        at_home, away = [PUSH, LEVEL_HOME, PRICE_HOME, SLOPE], [PUSH, LEVEL_THERE, PRICE_THERE, SLOPE]
        own = np.zeros((n, 6))
        for rows, side, columns in ((slice(mates), closest.home, at_home), (slice(mates, n), closest.there, away)):
            i = rivals[rows]
            own[rows, columns] = np.array(_own(u[i], mu[i], side[rows], closest.push[rows], 1.0)).T

        shared = _Shared.of(u[:end], mu[:end], closest.home[:, 0], closest.home[:, 1], diagonal[:end])
        unit = np.zeros((end, 1))
        unit[best] = math.sqrt(diagonal[best])
        home = np.zeros((n, shared.basis.shape[1] + 1, 6))  # the last direction at home is the best arm
        home[:, :-1, at_home[1:]] = shared.coefficients
        home[:, -1, at_home] = np.array(_own(u[best], mu[best], closest.home, closest.push, -1.0)).T / unit[best]
        if shared.full:
            home[np.arange(mates), rivals[:mates]] += own[:mates] / np.sqrt(diagonal[rivals[:mates]])[:, None]
            own[:mates] = 0.0
        groups = []
        alone = int((np.diff(layout.offsets[1:]) == 1).sum())
        starts = np.concatenate([[end] * (alone > 0), layout.offsets[1 + alone :]]).astype(np.intp)
        for low, high in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            arms, rows = slice(low, high), slice(low + mates - end, high + mates - end)
            k, x = closest.there[rows, 0], closest.there[rows, 1]
            there = _Shared.of(u[arms], mu[arms], k, x, diagonal[arms])
            coefficients = np.zeros((k.size, there.basis.shape[1], 6))
            coefficients[:, :, away[1:]] = there.coefficients
            if there.full:
                here = np.arange(k.size)
                coefficients[here, here] += own[rows] / np.sqrt(diagonal[arms])[:, None]
                own[rows] = 0.0
            groups.append(_Group(arms, rows, rivals[rows] - low, there.basis, coefficients, home[rows]))
        basis, nothing = np.hstack([shared.basis, unit]), np.zeros((mates, 0, 6))
        last = _Group(slice(end), slice(mates), rivals[:mates], basis, home[:mates], nothing)
        self.rivals, self.own, self.home, self.diagonal = rivals, own, home, diagonal

        second = np.zeros((n, 6, 6))
        second[:, :5, :5] = _second(closest) / weight[:, None, None]
        second[:, 5, 5] = 1 / steep
        self.middle = _inverse(second)
        free = diagonal[rivals]
        left = _inverse(second + own[:, :, None] * own[:, None, :] / free[:, None, None])
        along = np.einsum("nvw,nw->nv", left, own) / free[:, None]
        inverse = 1 / diagonal
        inverse[rivals] = 1 / (free + np.einsum("nv,nvw,nw->n", own, self.middle, own))
        self.away = [_Block(group, inverse[group.arms], along[group.rows], left[group.rows]) for group in groups]
        curvature = sum((block.curvature for block in self.away), start=0.0)
        self.at_home = _Block(last, inverse[:end], along[:mates], left[:mates], curvature)

    def solve(self, rhs: Vector) -> Vector:
        """Returns the solution du."""
        du = self._solve(rhs)
        for _ in range(REFINEMENTS):
            du += self._solve(rhs - self.product(du))
        return du

    def _solve(self, rhs: Vector) -> Vector:
        q = np.zeros(self.home.shape[1])
        for block in self.away:
            q += block.pull_home(rhs[block.group.arms])
        du, home = np.empty(rhs.size), self.at_home.group.arms
        du[home], t = self.at_home.solve(rhs[home], np.zeros(0), q)
        for block in self.away:
            du[block.group.arms], _ = block.solve(rhs[block.group.arms], t)
        return du

    def product(self, du: Vector) -> Vector:
        """Returns the matrix times du."""
        weights = np.einsum("nvw,nw->nv", self.middle, self._along(du))
        return self.diagonal * du + self._back(weights)

    def along(self, du: Vector) -> Vector:
        """Returns the change L_u du of each f_i."""
        return self._along(du)[:, SLOPE]

    def back(self, weights: Vector) -> Vector:
        """Returns sum_i weights_i L_u."""
        return self._back(weights[:, None] * (np.arange(6) == SLOPE))

    def _along(self, du: Vector) -> Matrix:
        """Returns (L_yu, L_u) du of each challenger."""
        at_home = self.at_home.group
        change: Matrix = self.own * du[self.rivals][:, None]
        change += np.einsum("nhv,h->nv", self.home, at_home.basis.T @ du[at_home.arms])
        for group in (block.group for block in self.away):
            change[group.rows] += np.einsum("nrv,r->nv", group.shared, group.basis.T @ du[group.arms])
        return change

    def _back(self, weights: Matrix) -> Vector:
        """Returns sum_i (L_uy, L_u) weights_i."""
        at_home = self.at_home.group
        total = np.zeros(self.diagonal.size)
        total[self.rivals] = (self.own * weights).sum(axis=1)
        total[at_home.arms] += at_home.basis @ np.einsum("nhv,nv->h", self.home, weights)
        for group in (block.group for block in self.away):
            total[group.arms] += group.basis @ np.einsum("nrv,nv->r", group.shared, weights[group.rows])
        return total


def _inverse(matrices: Matrix) -> Matrix:
    """Returns the inverses of symmetric matrices (n, 6, 6) whose entries may differ by many orders of magnitude."""
    units = 1 / np.sqrt(np.abs(np.einsum("nvv->nv", matrices)))
    scale = units[:, :, None] * units[:, None, :]
    return np.asarray(np.linalg.inv(matrices * scale) * scale)
