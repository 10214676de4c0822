"""The solver for outcomes of two values: the distance of alternatives is the relative entropy of two coins.

A best response is the solution of a convex program in K variables with two constraints, or three if each component has
an R. A primal-dual interior-point method finds the best responses of all challengers at once. The search over
allocations is the same as in `interior_point`. The bounds come from the Lagrangian and from alternatives that are
checked to satisfy their constraints (theory, sections 15 and 16).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectralbai.allocation.certificate import MARGIN, Certified, certified_upper
from spectralbai.allocation.interior_point import BOUNDARY, central, newton_step, opening_allocation
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.responder import Responder
from spectralbai.spectral import Components

INSIDE = 1e-9
"""During the search, rates of 0 and 1 are moved inside by this part of the smallest other rate; not in the bounds."""
TINY, EPSILON = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).eps)
NEAREST = 1e-13
"""The least distance of a rate from 1 during the search: closer to 1, floating-point numbers are too coarse."""
MOST_STEPS = 60
"""Limit on the steps of the search for the best responses to one allocation."""
ACCURACY = 1e-11
"""Relative accuracy at which that search ends."""
WARM = 1e-4
"""How far that search moves back from the boundary when it starts from the best responses to another allocation."""
LARGEST_STACK = 2_000_000
"""Limit on the numbers in one stack of matrices: challengers are treated in groups to limit the memory used."""


class BinaryResponses(NamedTuple):
    """The best responses to one allocation: row i belongs to the i-th challenger, in the units of `BinaryGame`."""

    omega: Vector
    lam: Matrix
    multipliers: Matrix
    """Multipliers of the constraints: gamma of smoothness, once or twice, and nu of "the challenger wins"."""
    slacks: Matrix
    """Slacks of the same constraints."""


def binary(responder: Responder, tol: float, max_iterations: int, start: Vector | None, enough: float) -> Certified:
    """Returns an allocation with certified bounds of 1/T* for relative entropy (theory 15.2)."""
    game = BinaryGame.of(responder)
    omega = opening_allocation(responder, start)
    responses = game.respond(omega)
    best_omega, lower, upper = omega, -math.inf, math.inf
    cost = relative_entropy(game.inside, responses.lam) @ omega
    scale, point = float(cost.min()), central(omega, cost)
    for iteration in range(1, max_iterations + 1):
        gradient = relative_entropy(game.inside, responses.lam)
        cost = gradient @ responses.omega
        value = game.certified_lower(responses)
        if value > lower:
            best_omega, lower = responses.omega, value
        upper = min(
            upper, certified_upper(relative_entropy(game.rates, game.feasible(responses.lam)), point.p / cost**2)
        )
        if iteration == max_iterations or upper <= max(lower * (1 + tol), enough):
            break
        try:
            hessian = game.curvature(responses, point.p * (scale / cost) ** 2)
            point = newton_step(point, cost / scale, gradient / scale, hessian / scale)
            responses = game.respond(point.omega, responses)
        except np.linalg.LinAlgError:  # no more progress in floating point: return the best one, with its bounds
            break
    return Certified(best_omega, lower, upper, iteration)


def relative_entropy(p: Vector, q: Matrix) -> Matrix:
    """Returns kl(p, q) = p log(p/q) + (1 - p) log((1 - p)/(1 - q)) for p in [0, 1] and q in (0, 1) (theory 15.1).

    It is computed as p h((q - p)/p) + (1 - p) h((p - q)/(1 - p)) with h(x) = x - log(1 + x) >= 0, so that nothing
    cancels if q is near p.
    """
    return _term(p, q - p) + _term(1 - p, p - q)


def _term(p: Vector, d: Matrix) -> Matrix:
    """Returns p h(d/p), d at p = 0."""
    x = np.divide(d, p, out=np.zeros_like(d), where=p > 0)
    near = np.abs(x) < 0.01
    small = np.where(near, x, 0.0)
    series = np.zeros_like(x)
    for k in range(9, 1, -1):  # x^2/2 - x^3/3 + ..., to 1e-17
        series = small * series + (-1) ** k / k
    return np.where(p > 0, p * np.where(near, small**2 * series, x - np.log1p(x)), d)


def _slope(p: Vector, q: Matrix) -> Matrix:
    """Returns the derivative of kl(p, q) in q."""
    return (q - p) / (q * (1 - q))


def _second(omega: Vector, p: Vector, q: Matrix) -> Matrix:
    """Returns omega times the second derivative of kl(p, q) in q."""
    return omega * (p / q**2 + (1 - p) / (1 - q) ** 2)


@dataclass(frozen=True, eq=False)
class BinaryGame:
    """The problem of one best arm in units of the range: outcomes 0 and 1, rates in [0, 1]."""

    rates: Vector
    inside: Vector
    """The rates, with those equal to 0 or 1 moved inside."""
    best: int
    radii: Vector
    """R of all components together; or of each component, and then of no arms at all. It is 1 if S is always 0."""
    parts: Matrix
    """A row for each of `radii`: 1 for the arms that it applies to, 0 for the others."""
    tolerance: float
    challengers: Indices
    bent: Indices
    """For each challenger the rows of `parts` that it moves: the only one, or those of the best arm's component and of
    the challenger's component, (n_challengers, 1 or 2)."""
    components: Components
    laplacian: Matrix
    slater: Matrix
    """For each challenger, means inside (0, 1) that satisfy both constraints with room to spare."""

    @classmethod
    def of(cls, responder: Responder) -> BinaryGame:
        assert responder.noise.outcome_range is not None
        low, high = responder.noise.outcome_range
        rates = np.clip((responder.mu - low) / (high - low), 0.0, 1.0)
        near, far = (INSIDE * float(numbers[numbers > 0].min(initial=1.0)) for numbers in (rates, 1 - rates))
        to = responder.components
        laplacian = to.laplacian.toarray()
        radii = responder.radii / (high - low) ** 2
        tolerance = responder.tolerance / (high - low)
        challengers = responder.respond(np.ones(rates.size)).challengers
        home, away = to.of_arm[responder.best], to.of_arm[challengers]
        if radii.size == 1:
            parts, bent = np.ones((1, rates.size)), np.zeros((challengers.size, 1), dtype=np.intp)
            free = np.array([to.weights.size == 0])
        else:
            parts = (np.arange(radii.size + 1)[:, None] == to.of_arm).astype(np.float64)
            bent = np.stack([np.full(away.size, home), np.where(away == home, radii.size, away)], axis=1)
            free, radii = np.append(to.sizes == 1, True), np.append(radii, 1.0)
        radii = np.where(free, 1.0, radii)  # S = 0 without edges
        own = float(radii[0] if radii.size == 1 else radii[home])
        slater = _inner_points(laplacian, to.of_arm, responder.best, challengers, own, tolerance)
        return cls(
            rates=rates,
            inside=np.clip(rates, near, 1 - max(far, NEAREST)),
            best=responder.best,
            radii=radii,
            parts=parts,
            tolerance=tolerance,
            challengers=challengers,
            bent=bent,
            components=to,
            laplacian=laplacian,
            slater=slater,
        )

    @property
    def _rows(self) -> Indices:
        return np.arange(self.challengers.size)

    def _behind(self, lam: Matrix) -> Vector:
        """Returns lam_best - lam_i, which must be at most -tolerance."""
        return lam[:, self.best] - lam[self._rows, self.challengers]

    def _smoothness(self, lam: Matrix) -> Matrix:
        """Returns S(lam) of each row, one column for each of `radii`: sums of squares, free of cancellation."""
        a, b = self.components.pairs.T
        return np.asarray((lam[:, a] - lam[:, b]) ** 2 @ (self.components.weights * self.parts[:, a]).T)

    def _moved(self, every: Indices) -> tuple[Matrix, Matrix]:
        """Returns (R, parts) of the smoothness constraints of some challengers: (n, 1 or 2) and (n, 1 or 2, n_arms)."""
        return self.radii[self.bent[every]], self.parts[self.bent[every]]

    def respond(self, omega: Vector, start: BinaryResponses | None = None) -> BinaryResponses:
        """Returns the best responses to a positive allocation (theory 15.3)."""
        size = max(1, LARGEST_STACK // omega.size**2)
        groups = np.split(self._rows, range(size, self.challengers.size, size))
        blocks = [self._respond(omega, rows, start) for rows in groups]
        return BinaryResponses(omega, *(np.concatenate(parts) for parts in zip(*blocks, strict=True)))

    def _respond(self, omega: Vector, every: Indices, start: BinaryResponses | None) -> tuple[Matrix, Matrix, Matrix]:
        """Returns (lam, multipliers, slacks) of some of the challengers; lam stays inside its constraints."""
        p, best = self.inside, self.best
        arms = self.challengers[every]
        radii, parts = self._moved(every)
        # If each component has an R, components that the challenger does not move stay at the rates, which are smooth.
        slater = np.where(parts.any(axis=1), self.slater[every], p)
        lead = p[best] - p[arms] + self.tolerance
        if start is None:  # go from the rates to where the challenger leads, and then half as far again
            room = slater[np.arange(arms.size), arms] - slater[:, best] - self.tolerance
            share = np.clip(lead / (lead + room), EPSILON, 1.0)
            share += share * (1 - share) / 2
            lam, y = p + share[:, None] * (slater - p), np.zeros((arms.size, radii.shape[1] + 1))
        else:
            lam, y = start.lam[every] + WARM * (slater - start.lam[every]), start.multipliers[every].copy()
        s, least = np.empty_like(y), EPSILON * np.concatenate([radii, np.abs(lead)[:, None]], axis=1)
        live = np.arange(arms.size)
        for iteration in range(MOST_STEPS):
            x, arm, curved = lam[live], arms[live], parts[live]
            level_free = x - x[:, [best]]
            slope, bend = omega * _slope(p, x), level_free @ self.laplacian
            cost = (omega * relative_entropy(p, x)).sum(axis=1)
            smooth = ((level_free * bend)[:, None, :] * curved).sum(axis=2)
            ahead_by = x[np.arange(live.size), arm] - x[:, best] - self.tolerance
            slack = np.concatenate([radii[live] - smooth, ahead_by[:, None]], axis=1)
            slack = np.maximum(slack, least[live])  # rounding errors could make them 0 or negative
            if iteration == 0:
                y[live] = np.maximum(y[live], (cost if start is None else WARM * cost)[:, None] / slack)
            price, sides = y[live], self._sides(2 * bend, curved, arm)
            residual = slope + (sides[:, :, 1:] @ price[:, :, None])[:, :, 0]
            sides[:, :, 0] = -residual
            s[live] = slack
            error = (np.abs(residual) * np.minimum(x, 1 - x)).sum(axis=1) + (price * slack).sum(axis=1)
            going = error > ACCURACY * cost
            if not going.any():
                break
            lam[live], y[live] = self._newton(omega, x, price, slack, curved, sides)
            live = live[going]
        return lam, y, s

    def _sides(self, bend: Matrix, parts: Matrix, arms: Indices) -> Matrix:
        """Returns the normals of the constraints of each row as columns, after a column of zeros; `bend` is the
        gradient of S."""
        sides = np.zeros((*bend.shape, parts.shape[1] + 2))
        sides[:, :, 1:-1] = np.swapaxes(bend[:, None, :] * parts, 1, 2)
        sides[:, self.best, -1] = 1
        sides[np.arange(arms.size), arms, -1] = -1
        return sides

    def _matrix(self, root: Matrix, multipliers: Matrix, parts: Matrix) -> Matrix:
        """Returns diag(root^2) plus the second derivatives of S times their multipliers, both divided by root on both
        sides, for each row."""
        stiff, arms = (multipliers[:, :-1, None] * parts).sum(axis=1), np.arange(root.shape[1])
        matrix = 2 * stiff[:, :, None] * self.laplacian / (root[:, :, None] * root[:, None, :])
        matrix[:, arms, arms] += 1
        return np.asarray(matrix)

    def _newton(
        self, omega: Vector, x: Matrix, price: Matrix, slack: Matrix, parts: Matrix, sides: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Returns (lam, multipliers) after a predictor-corrector step from (x, price); `sides` holds minus the
        residual, and the normals of the constraints."""
        n_bounds, residual, normals = price.shape[1], -sides[:, :, 0], sides[:, :, 1:]
        # Damped near 0 and 1.
        root = np.sqrt(np.maximum(_second(omega, self.inside, x), np.maximum(residual / x, -residual / (1 - x))))
        solved = np.linalg.solve(self._matrix(root, price, parts), sides / root[:, :, None]) / root[:, :, None]
        inner = np.swapaxes(normals, 1, 2) @ solved  # (2, 3) or (3, 4) for each row
        small = inner[:, :, 1:].copy()
        small[:, np.arange(n_bounds), np.arange(n_bounds)] += slack / price
        level = (price * slack).sum(axis=1) / n_bounds
        target = np.zeros_like(price)  # of multiplier times slack, and second-order terms
        for corrector in range(2):
            dy = _solve_small(small, inner[:, :, 0] + target / price - slack)
            dx = solved[:, :, 0] - (solved[:, :, 1:] @ dy[:, :, None])[:, :, 0]
            ds = -(np.swapaxes(normals, 1, 2) @ dx[:, :, None])[:, :, 0]
            curved = np.maximum((((dx @ self.laplacian) * dx)[:, None, :] * parts).sum(axis=2), 0.0)
            if corrector == 0:
                step = np.minimum(np.minimum(_longest(price, dy), _longest(slack, ds)), 1.0)[:, None]
                ahead = ((price + step * dy) * (slack + step * ds)).sum(axis=1) / n_bounds
                target = (level * np.clip(ahead / level, 0.01, 1.0) ** 3)[:, None] - dy * ds
                target[:, :-1] += price[:, :-1] * curved
        longest = np.minimum(
            np.minimum(_longest(price, dy), _longest(slack[:, -1:], ds[:, -1:])),
            _first_root(slack[:, :-1], ds[:, :-1], curved).min(axis=1),
        )
        longest = np.minimum(longest, np.minimum(_longest(x, dx), _longest(1 - x, -dx)))
        step = np.minimum(1.0, BOUNDARY * longest)[:, None]
        return np.clip(x + step * dx, TINY, 1 - EPSILON), price + step * dy

    def curvature(self, responses: BinaryResponses, p: Vector) -> Matrix:
        """Returns -sum_i p_i Hess f_i (theory 15.4)."""
        omega, lam, multipliers, slacks = responses
        n_arms = omega.size
        hessian = np.zeros((n_arms, n_arms))
        size = max(1, LARGEST_STACK // n_arms**2)
        for rows in np.split(self._rows, range(size, self.challengers.size, size)):
            x, y, s = lam[rows], multipliers[rows], slacks[rows]
            _, parts = self._moved(rows)
            root = np.sqrt(_second(omega, self.inside, x))
            inverse = np.linalg.inv(self._matrix(root, y, parts))
            normals = self._sides(2 * x @ self.laplacian, parts, self.challengers[rows])[:, :, 1:] / root[:, :, None]
            moved = inverse @ normals
            small = np.swapaxes(normals, 1, 2) @ moved
            small[:, np.arange(y.shape[1]), np.arange(y.shape[1])] += s / y
            inverse -= moved @ np.linalg.solve(small, np.swapaxes(moved, 1, 2))
            lever = _slope(self.inside, x) / root
            hessian += np.einsum("i,ia,iab,ib->ab", p[rows], lever, inverse, lever, optimize=True)
        symmetric: Matrix = (hessian + hessian.T) / 2
        return symmetric

    def certified_lower(self, responses: BinaryResponses) -> float:
        """Returns a lower bound of the least f_i at the allocation, and so of 1/T* (theory 15.5)."""
        omega, lam, multipliers, _ = responses
        gamma, nu = multipliers[:, :-1], multipliers[:, -1]
        radii, parts = self._moved(self._rows)
        smooth, behind = np.take_along_axis(self._smoothness(lam), self.bent, axis=1), self._behind(lam)
        stiff = (gamma[:, :, None] * parts).sum(axis=1)
        residual = omega * _slope(self.rates, lam) + 2 * stiff * ((lam - lam[:, [self.best]]) @ self.laplacian)
        residual[:, self.best] += nu
        residual[self._rows, self.challengers] -= nu
        lost = np.minimum(np.maximum(residual * lam, -residual * (1 - lam)), residual**2 / (2 * omega)).sum(axis=1)
        cost = relative_entropy(self.rates, lam) @ omega
        value = cost + (gamma * (smooth - radii)).sum(axis=1) + nu * (behind + self.tolerance) - 2 * lost
        terms = cost + (gamma * (smooth + radii)).sum(axis=1) + nu * (np.abs(behind) + self.tolerance)
        return float((value - MARGIN * terms).min())

    def feasible(self, lam: Matrix) -> Matrix:
        """Returns alternatives that satisfy their constraints, one row per challenger.

        A computed alternative may violate its constraints by rounding errors. It is then moved towards one that
        satisfies them with room to spare. Rows that still violate them are nan.
        """
        alternatives = np.full_like(lam, np.nan)
        for margin in (1e9 * MARGIN, 1e6 * MARGIN, 1e3 * MARGIN, MARGIN):
            moved = lam + self._correction(lam, margin)[:, None] * (self.slater - lam)
            inside = (
                (self._smoothness(moved) * (1 + MARGIN) <= self.radii).all(axis=1)
                & (-self._behind(moved) * (1 - MARGIN) >= self.tolerance)
                & ((moved > 0) & (moved < 1)).all(axis=1)
            )
            alternatives[inside] = moved[inside]
        return alternatives

    def _correction(self, lam: Matrix, margin: float) -> Vector:
        """Returns how far to go towards the inner points so that both constraints hold, with room for rounding."""
        rough, even = np.sqrt(self._smoothness(lam)), np.sqrt(self._smoothness(self.slater))
        excess = rough - np.sqrt(self.radii) * (1 - margin)
        short = self._behind(lam) + self.tolerance * (1 + margin)
        room = -self._behind(self.slater) - self.tolerance
        needed = np.maximum(
            np.divide(excess, rough - even, out=np.zeros_like(excess), where=excess > 0).max(axis=1),
            np.divide(short, short + room, out=np.zeros_like(short), where=short > 0),
        )
        share: Vector = np.minimum(needed * (1 + margin) + margin * (needed > 0), 1.0)
        return share


def _inner_points(
    laplacian: Matrix, component: Indices, best: int, challengers: Indices, R: float, tolerance: float
) -> Matrix:
    """Returns for each challenger means inside (0, 1) that satisfy both constraints with room to spare.

    They are made from the smoothest means that are 0 at the best arm and 1 at the challenger; all of these are between
    0 and 1.
    """
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    points = np.empty((challengers.size, component.size))
    for row, i in enumerate(challengers):
        if component[i] == component[best]:
            potential = inverse[:, i] - inverse[:, best]
            resistance = potential[i] - potential[best]
            shape = np.where(component == component[best], (potential - potential[best]) / resistance, 0.5)
            most = min(1.0, math.sqrt(R * resistance))
        else:
            shape, most = np.where(component == component[i], 1.0, 0.0), 1.0
        points[row] = 0.5 + (tolerance + most) / 2 * (np.clip(shape, 0.0, 1.0) - 0.5)
    return points


def _solve_small(matrices: NDArray[Any], sides: Matrix) -> Matrix:
    """Returns the solutions of one small system for each row.

    Where a challenger can hardly win by the tolerance, the normals of its constraints are parallel up to rounding
    errors. If its matrix is singular for this reason, slightly larger diagonals give a step that is good enough.
    """
    try:
        solutions: Matrix = np.linalg.solve(matrices, sides[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        every = np.arange(sides.shape[1])
        matrices[:, every, every] *= 1 + 1e-12
        solutions = np.linalg.solve(matrices, sides[:, :, None])[:, :, 0]
    return solutions


def _first_root(slack: Matrix, slope: Matrix, curved: Matrix) -> Matrix:
    """Returns the positive root t of slack + slope t - curved t^2, for slack > 0 and curved >= 0; inf if none."""
    root = np.sqrt(slope**2 + 4 * curved * slack)
    first = np.full_like(slack, np.inf)
    # Both formulas give the same number; the one that adds numbers of the same sign is accurate.
    down = slope < 0
    np.divide(2 * slack, root - slope, out=first, where=down)
    np.divide(root + slope, 2 * curved, out=first, where=~down & (curved > 0))
    return first


def _longest(x: Matrix, dx: NDArray[Any]) -> Vector:
    """Returns the longest step of each row that keeps x + step dx non-negative."""
    ratio = np.divide(-x, dx, out=np.full_like(x, np.inf), where=dx < 0)
    least: Vector = ratio.min(axis=1)
    return least
