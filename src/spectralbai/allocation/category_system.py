"""The linear system of a step of the solver for catalogues: a diagonal and few directions (theory 17.14, 17.15)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev

from spectralbai.allocation.category_responses import Answers, Layout
from spectralbai.checks import Indices, Matrix, Vector

ACCURACY = 1e-8
"""Of the directions that the challengers of a category share: Newton's method needs no more."""
MOST_NODES = 24
"""Prices at which they are computed, at most."""
REFINEMENTS = 2
"""Times that a solution is improved by its residual."""
WIDEST = 1e8
"""Ratio of the prices told apart."""
# What the columns of `coefficients` are for: the variables of a best response, and the slopes of f_i.
PUSH, LEVEL_THERE, PRICE_THERE, LEVEL_HOME, PRICE_HOME, SLOPE = range(6)


class _Shared(NamedTuple):
    """Directions that challengers share in one category (17.14)."""

    basis: Matrix
    """B (arms, directions)."""
    slope: Matrix
    """Coefficients (challengers, directions) of the derivatives of f_i in u."""
    level: Matrix
    """Of those in u and x."""
    price: Matrix
    """Of those in u and k."""

    @classmethod
    def of(cls, u: Vector, mu: Vector, k: Vector, x: Vector) -> _Shared:
        """Interpolates (k / (u_a + k))^2 in log k, by polynomials; the rest are powers of mu."""
        tight = k > 0
        if not tight.any():
            return cls(np.zeros((u.size, 0)), *(np.zeros((k.size, 0)),) * 3)
        high = float(k.max())
        k = np.clip(k, max(float(k[tight].min()), high / WIDEST), None)
        half = max(math.log(high / float(k.min())) / 2, 0.25)
        middle = math.log(high) - half
        nearest = math.pi / half  # the poles of the interpolated function, in units of half the interval
        n = min(math.ceil(-math.log(ACCURACY) / math.asinh(nearest)), MOST_NODES)
        angles = math.pi * (np.arange(n) + 0.5) / n
        nodes = np.exp(middle + half * np.cos(angles))
        values = (nodes / (u[:, None] + nodes)) ** 2
        shapes = values @ np.cos(np.outer(angles, np.arange(n))) * (2 / n)
        shapes[:, 0] /= 2
        centre = float(mu.mean())
        apart, x = (mu - centre)[:, None], (x - centre)[:, None]
        at = (np.log(k) - middle) / half
        fit = tight[:, None] * chebyshev.chebvander(at, n - 1)
        rise = chebyshev.chebval(at, chebyshev.chebder(np.eye(n))).T if n > 1 else np.zeros((k.size, 1))
        rise = rise * (tight / (half * k))[:, None]
        return cls(
            np.hstack([shapes, shapes * apart, shapes * apart**2]),
            np.hstack([x**2 * fit, -2 * x * fit, fit]) / 2,
            np.hstack([x * fit, -fit, np.zeros_like(fit)]),
            np.hstack([x**2 * rise, -2 * x * rise, rise]) / 2,
        )


def _own(u: Vector | float, mu: Vector | float, side: Matrix, push: Vector, sign: float) -> tuple[Vector, ...]:
    """Returns what the pushed arm itself adds to derivatives in u: in s, in (x, k), and of f_i (17.12)."""
    k, x = side[:, 0], side[:, 1]
    r = 1 / (u + k)
    e, raised = k * r, sign * push * r
    fall, apart = e * (mu - x) - raised, u * r * (mu - x) + raised
    slope = fall**2 / 2 - (e * (mu - x)) ** 2 / 2
    price = r * (fall * apart - e * u * r * (mu - x) ** 2)
    return -sign * fall * r, e * raised, np.where(k > 0, price, 0.0), slope


def _second(answers: Answers) -> Matrix:
    """Returns the second derivatives (challengers, 5, 5) of the Lagrangians in push, levels and prices (17.12)."""
    matrix = np.zeros((answers.push.size, 5, 5))
    for side, level, price in ((answers.there, LEVEL_THERE, PRICE_THERE), (answers.home, LEVEL_HOME, PRICE_HOME)):
        k, _, heavy, cross, bend, push_level, push_price, push_push, _ = side.T
        tight = k > 0
        matrix[:, PUSH, PUSH] += push_push
        matrix[:, level, level] = np.where(tight, k * heavy, 1.0)
        matrix[:, price, price] = np.where(tight, -bend, -1.0)
        for one, other, value in ((level, price, cross), (PUSH, level, push_level), (PUSH, price, push_price)):
            matrix[:, one, other] = matrix[:, other, one] = np.where(tight, value, 0.0)
    return matrix


class _Block:
    """Some arms and their challengers: a category, all arms on their own but the best one, or home.

    With t = B' du and q = beta' du + gamma t + gamma_home t_home,
    (D + alpha) du + beta t + B q + beta_home t_home = rhs, and t and q solve a small system (17.15).
    """

    def __init__(
        self,
        challengers: Indices,
        basis: Matrix,
        diagonal: Vector,
        own: Matrix,
        shared: Matrix,
        home: Matrix,
        middle: Matrix,
        extra: Matrix | float = 0.0,
    ) -> None:
        """`challengers` are arms of the block. Coefficients of their derivatives are `own` (n, 6), of the arm itself,
        `shared` (n, r, 6), along B, and `home` (n, h, 6), along the directions at home, which a block of arms at home
        has among those shared; `middle` (n, 6, 6) is what stands between them, and `extra` is added to gamma."""
        r = basis.shape[1]
        weighted = np.einsum("nv,nvw->nw", own, middle)
        inverse = diagonal.copy()
        inverse[challengers] += (weighted * own).sum(axis=1)
        self.inverse = 1 / inverse
        beta, self.beta_home = np.zeros((diagonal.size, r)), np.zeros((diagonal.size, home.shape[1]))
        beta[challengers] = np.einsum("nrv,nv->nr", shared, weighted)
        self.beta_home[challengers] = np.einsum("nhv,nv->nh", home, weighted)
        self.outer, self.left = np.hstack([beta, basis]), np.hstack([basis, beta])
        both = np.concatenate([shared, home], axis=1)
        gamma = np.tensordot(both @ middle, both, ((0, 2), (0, 2)))
        small = np.eye(2 * r) + self.left.T @ (self.inverse[:, None] * self.outer)
        small[r:, :r] -= gamma[:r, :r] + extra
        self.small = np.linalg.inv(small)
        scaled = self.inverse[:, None] * self.beta_home
        self.by_home = self.left.T @ scaled
        self.by_home[r:] -= gamma[:r, r:]
        self.to_home = -scaled.T @ self.outer
        self.to_home[:, :r] += gamma[r:, :r]
        self.curvature = gamma[r:, r:] - self.beta_home.T @ scaled - self.to_home @ self.small @ self.by_home

    def reduced(self, rhs: Vector) -> Vector:
        """Returns (t, q) where t_home = 0."""
        return np.asarray(self.small @ (self.left.T @ (self.inverse * rhs)))

    def push_home(self, rhs: Vector) -> Vector:
        """Returns what the block adds to q at home where t_home = 0."""
        return np.asarray(self.beta_home.T @ (self.inverse * rhs) + self.to_home @ self.reduced(rhs))

    def solve(self, rhs: Vector, t_home: Vector, q_home: Vector | float = 0.0) -> tuple[Vector, Vector]:
        """Returns du and t."""
        r = self.small.shape[0] // 2
        right = self.left.T @ (self.inverse * rhs) - self.by_home @ t_home
        right[r:] += q_home
        y = self.small @ right
        return self.inverse * (rhs - self.outer @ y - self.beta_home @ t_home), y[:r]


class System:
    """The linear system of a step, in the weights u of all arms."""

    def __init__(self, layout: Layout, u: Vector, answers: Answers, diagonal: Vector, weight: Vector, steep: Vector):
        """The matrix is diag(diagonal) + sum_i weight_i L_uy L_yy^-1 L_yu + sum_i steep_i L_u L_u' (17.14)."""
        mu, best, rivals, category = layout.mu, layout.best, layout.rivals, layout.category
        n, end = rivals.size, int(layout.offsets[1])
        middle = np.zeros((n, 6, 6))
        middle[:, :5, :5] = weight[:, None, None] * np.linalg.inv(_second(answers))
        middle[:, 5, 5] = steep
        shared = _Shared.of(u[:end], mu[:end], answers.home[:, 0], answers.home[:, 1])
        r = shared.basis.shape[1]
        home = np.zeros((n, r + 1, 6))  # the last direction at home is the best arm
        home[:, :r, LEVEL_HOME], home[:, :r, PRICE_HOME] = shared.level, shared.price
        home[:, :r, SLOPE] = shared.slope
        columns = [PUSH, LEVEL_HOME, PRICE_HOME, SLOPE]
        home[:, r, columns] = np.array(_own(u[best], mu[best], answers.home, answers.push, -1.0)).T
        own = np.zeros((n, 6))
        mates = int(np.searchsorted(rivals, end))
        for part, side, where in (
            (slice(mates), answers.home, columns),
            (slice(mates, n), answers.there, [PUSH, LEVEL_THERE, PRICE_THERE, SLOPE]),
        ):
            arms = rivals[part]
            own[part, where] = np.array(_own(u[arms], mu[arms], side[part], answers.push[part], 1.0)).T
        sizes = np.diff(layout.offsets)
        alone = int((sizes[1:] == 1).sum())
        starts = np.concatenate([[end] * (alone > 0), layout.offsets[1 + alone :]])
        self.parts = [slice(int(a), int(b)) for a, b in zip(starts[:-1], starts[1:], strict=True)]
        self.first, self.end, self.rivals, self.mates = mates - end, end, rivals, mates
        self.blocks, self.shared, self.tensors = [], [], []
        self.own, self.home, self.middle, self.diagonal = own, home, middle, diagonal
        curvature = np.zeros((r + 1, r + 1))
        for arms in self.parts:
            rows = slice(arms.start + self.first, arms.stop + self.first)
            k, x = answers.there[rows, 0], answers.there[rows, 1]
            if category[arms.stop - 1] != category[arms.start]:  # arms on their own have nothing to share
                k = np.zeros_like(k)
            there = _Shared.of(u[arms], mu[arms], k, x)
            tensor = np.zeros((k.size, there.basis.shape[1], 6))
            tensor[:, :, LEVEL_THERE], tensor[:, :, PRICE_THERE] = there.level, there.price
            tensor[:, :, SLOPE] = there.slope
            everyone = np.arange(k.size)
            pieces = own[rows], tensor, home[rows], middle[rows]
            block = _Block(everyone, there.basis, diagonal[arms], *pieces)
            curvature += block.curvature
            self.blocks.append(block)
            self.shared.append(there)
            self.tensors.append(tensor)
        last = np.zeros((end, 1))
        last[best] = 1.0
        self.basis = np.hstack([shared.basis, last])
        pieces = own[:mates], home[:mates], np.zeros((mates, 0, 6)), middle[:mates]
        self.at_home = _Block(rivals[:mates], self.basis, diagonal[:end], *pieces, curvature)
        self.own_slope, self.home_slope = own[:, SLOPE], home[:, :, SLOPE]

    def solve(self, rhs: Vector) -> Vector:
        """Returns the solution du."""
        du = self._solve(rhs)
        for _ in range(REFINEMENTS):
            du += self._solve(rhs - self.product(du))
        return du

    def product(self, du: Vector) -> Vector:
        """Returns the matrix times du."""
        t = self.basis.T @ du[: self.end]
        own, home = self.own, self.home
        along = own * du[self.rivals][:, None] + np.einsum("nhv,h->nv", home, t)
        for arms, tensor, there in zip(self.parts, self.tensors, self.shared, strict=True):
            rows = slice(arms.start + self.first, arms.stop + self.first)
            along[rows] += np.einsum("nrv,r->nv", tensor, there.basis.T @ du[arms])
        weights = np.einsum("nvw,nw->nv", self.middle, along)
        out = self.diagonal * du
        out[self.rivals] += (own * weights).sum(axis=1)
        out[: self.end] += self.basis @ np.einsum("nhv,nv->h", home, weights)
        for arms, tensor, there in zip(self.parts, self.tensors, self.shared, strict=True):
            rows = slice(arms.start + self.first, arms.stop + self.first)
            out[arms] += there.basis @ np.einsum("nrv,nv->r", tensor, weights[rows])
        return out

    def _solve(self, rhs: Vector) -> Vector:
        q = np.zeros(self.basis.shape[1])
        for arms, block in zip(self.parts, self.blocks, strict=True):
            q += block.push_home(rhs[arms])
        du = np.empty(rhs.size)
        du[: self.end], t = self.at_home.solve(rhs[: self.end], np.zeros(0), q)
        for arms, block in zip(self.parts, self.blocks, strict=True):
            du[arms], _ = block.solve(rhs[arms], t)
        return du

    def along(self, du: Vector) -> Vector:
        """Returns the change L_u du of each f_i."""
        change: Vector = self.own_slope * du[self.rivals] + self.home_slope @ (self.basis.T @ du[: self.end])
        for arms, there in zip(self.parts, self.shared, strict=True):
            change[arms.start + self.first : arms.stop + self.first] += there.slope @ (there.basis.T @ du[arms])
        return change

    def back(self, weights: Vector) -> Vector:
        """Returns sum_i weights_i L_u."""
        total = np.zeros(self.end + self.rivals.size - self.mates)
        total[self.rivals] = self.own_slope * weights
        total[: self.end] += self.basis @ (self.home_slope.T @ weights)
        for arms, there in zip(self.parts, self.shared, strict=True):
            rows = slice(arms.start + self.first, arms.stop + self.first)
            total[arms] += there.basis @ (there.slope.T @ weights[rows])
        return total
