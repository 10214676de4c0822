"""Best responses on catalogues: for each challenger two prices and one push, from scalar roots (theory 17.9-17.11).

Only the means of the best arm's category, called home, and of the challenger's category move. Arms are numbered by
category.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spectralbai.allocation.certificate import MARGIN
from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.spectral.secular import step_to

STEPS = 100
"""Limit on the steps of a root search; Newton's method takes about five."""
INSIDE = 1e-9
"""Part of the room, and of the lead, left unused so that alternatives satisfy their constraints in floating point."""
ROOT = 1e-12
"""Relative accuracy of the root searches for the price."""


class Layout(NamedTuple):
    """Means in categories, arms numbered by category, home first."""

    mu: Vector
    """Means minus the mean of the best arm."""
    best: int
    tolerance: float
    offsets: Indices
    """Where each category begins, and where the last ends."""
    category: Indices
    """The category of each arm; home is 0."""
    room: Vector
    rivals: Indices
    """The challengers, in increasing order."""


class Side(NamedTuple):
    """How one category moves in an alternative, and the second derivatives of its Lagrangian (17.12)."""

    price: float
    level: float
    heavy: float
    """sum_a d_a; k times this sum is the derivative in (x, x)."""
    cross: float
    """The derivative in (x, k)."""
    bend: float
    """Minus the derivative in (k, k)."""
    push_level: float
    """The derivative in (s, x)."""
    push_price: float
    """The derivative in (s, k)."""
    push_push: float
    """The derivative in (s, s)."""
    spread: float


class Alternatives(NamedTuple):
    """The closest alternatives of all challengers."""

    push: Vector
    """s, the multiplier of lam_best + tolerance <= lam_i."""
    there: Matrix
    """The `Side` of each challenger's category, as rows; zeros for challengers at home."""
    home: Matrix
    """The same for the best arm's category."""
    value: Vector
    """Close lower bounds of the costs, from the multipliers found."""
    feasible: Mask
    """Whether the alternative satisfies its constraints in floating point."""


@njit
def _side(u: Vector, mu: Vector, room: float, up: int, down: int, s: float, k: float) -> Side:
    """Returns the closest means of a category if arm `up` is pushed up by s and arm `down` pushed down (-1: none).

    The price is the root of spread = room, or 0 (17.10). Newton's method is applied to 1/sqrt(spread), which is concave
    and increasing: from any start, the first step goes below the root and later ones approach it from there.
    """
    m = u.size
    if m == 1:
        k = 0.0
    for step in range(STEPS):
        r = 1.0 / (u + k)
        d = u * r
        heavy = np.dot(u, r)
        level = np.dot(d, mu)
        if up >= 0:
            level += s * r[up]
        if down >= 0:
            level -= s * r[down]
        level /= heavy
        apart = d * (mu - level)
        if up >= 0:
            apart[up] += s * r[up]
        if down >= 0:
            apart[down] -= s * r[down]
        spread, cross, bend = np.dot(apart, apart), k * np.dot(r, apart), np.dot(r * apart, apart)
        if m == 1 or abs(spread - room) <= ROOT * room or (k == 0.0 and spread <= room) or step == STEPS - 1:
            break
        falls = 2.0 * bend + (2.0 * cross * cross / (k * heavy) if k > 0.0 else 0.0)
        after = max(k + step_to(spread, -falls, room), 0.0)
        if after == k:
            break
        k = after
    push_level = push_price = push_push = 0.0
    for sign, arm in ((1.0, up), (-1.0, down)):
        if arm >= 0:
            push_level -= sign * k * r[arm]
            push_price += sign * r[arm] * apart[arm]
            push_push -= r[arm]
    if m == 1:
        spread = 0.0
    return Side(k, level, heavy, cross, bend, push_level, push_price, push_push, spread)


@njit
def _at(u: float, mu: float, side: Side, push: float) -> float:
    """Returns lam of an arm pushed up by `push`."""
    return side.level + (u * (mu - side.level) + push) / (u + side.price)


@njit
def _rate(side: Side) -> float:
    """Returns how fast the pushed arms move apart as s grows."""
    k, _, heavy, cross, bend, push_level, push_price, push_push, _ = side
    if k == 0.0:
        return -push_push
    a, c = k * heavy, -bend
    det = a * c - cross * cross
    held = (c * push_level**2 - 2.0 * cross * push_level * push_price + a * push_price**2) / det
    return held - push_push


@njit
def _dual(u: Vector, mu: Vector, room: float, up: int, down: int, s: float, side: Side) -> tuple[float, float]:
    """Returns the Lagrangian of a category at its multipliers, and the sum of the sizes of its terms (17.11)."""
    k, x = side.price, side.level
    value = 0.0
    for a in range(u.size):
        value += u[a] * k / (u[a] + k) * (mu[a] - x) ** 2 / 2.0
    terms = value + k * room / 2.0
    value -= k * room / 2.0
    for sign, arm in ((1.0, up), (-1.0, down)):
        if arm >= 0:
            along = s * (u[arm] * mu[arm] + k * x) / (u[arm] + k)
            bend = s * s / (2.0 * (u[arm] + k))
            value -= sign * along + bend
            terms += abs(along) + bend
    return value, terms


@njit
def respond(layout: Layout, u: Vector, push: Vector, there: Matrix, home: Matrix) -> Alternatives:
    """Returns the best responses to weights u = omega / sigma^2 > 0 (17.9-17.11), from guesses of them, or zeros."""
    mu, best, tolerance, offsets, category, room, rivals = layout
    n = rivals.size
    pushes, value, feasible = np.empty(n), np.empty(n), np.empty(n, dtype=np.bool_)
    theirs, ours = np.zeros((n, 9)), np.zeros((n, 9))
    u_home, mu_home = u[: offsets[1]], mu[: offsets[1]]
    for row in range(n):
        i = rivals[row]
        low, high = offsets[category[i]], offsets[category[i] + 1]
        inside = category[i] == 0
        lead = tolerance + mu[best] - mu[i]
        aim = tolerance + INSIDE * lead
        s = push[row] if push[row] > 0.0 else lead / (1.0 / u[i] + 1.0 / u[best])
        least, most = 0.0, np.inf
        k_home, k_there = home[row, 0], there[row, 0]
        here = other = Side(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        moved = 0.0
        for _ in range(STEPS):
            here = _side(u_home, mu_home, room[0] * (1.0 - INSIDE), i if inside else -1, best, s, k_home)
            k_home = here.price
            rate, moved = _rate(here), -_at(u[best], mu[best], here, -s)
            if inside:
                moved += _at(u[i], mu[i], here, s)
            else:
                other = _side(u[low:high], mu[low:high], room[category[i]] * (1.0 - INSIDE), i - low, -1, s, k_there)
                k_there = other.price
                rate += _rate(other)
                moved += _at(u[i], mu[i], other, s)
            short = aim - moved
            if abs(short) <= 0.5 * INSIDE * lead:
                break
            if short > 0.0:
                least = s
            else:
                most = s
            if most <= least * (1.0 + 1e-15):
                break
            after = s + short / rate if rate > 0.0 else most  # rate is 0 for two arms at home that used up the room
            if not least < after < most:
                after = (least + most) / 2.0 if most < np.inf else 4.0 * s
            s = after
        total, terms = _dual(u_home, mu_home, room[0], i if inside else -1, best, s, here)
        if not inside:
            more = _dual(u[low:high], mu[low:high], room[category[i]], i - low, -1, s, other)
            total += more[0]
            terms += more[1]
        value[row] = total + s * tolerance - 100.0 * MARGIN * (terms + s * tolerance)
        feasible[row] = (
            moved >= tolerance + 0.1 * INSIDE * lead
            and here.spread <= room[0] * (1.0 - 0.1 * INSIDE)
            and (inside or other.spread <= room[category[i]] * (1.0 - 0.1 * INSIDE))
        )
        pushes[row] = s
        for column in range(9):
            ours[row, column] = here[column]
            theirs[row, column] = other[column]
    return Alternatives(pushes, theirs, ours, value, feasible)


@njit
def _moved(layout: Layout, closest: Alternatives, row: int, side: int) -> tuple[int, int, float, float]:
    """Returns (first, end, k, x): the arms that an alternative moves on one side, and their price and level. Side 0 is
    home; side 1 is the challenger's category, and empty if that is home."""
    c = layout.category[layout.rivals[row]] if side == 1 else 0
    if side == 1 and c == 0:
        return 0, 0, 0.0, 0.0
    moved = closest.there if side == 1 else closest.home
    return layout.offsets[c], layout.offsets[c + 1], moved[row, 0], moved[row, 1]


@njit
def pooled(layout: Layout, u: Vector, closest: Alternatives, weights: Vector) -> tuple[Vector, Vector]:
    """Returns sum_i weights_i d^i, times the variances, and the diagonal of -sum_i weights_i L_uu (2.5, 17.12)."""
    mu, best, rivals = layout.mu, layout.best, layout.rivals
    slope, bend = np.zeros(u.size), np.zeros(u.size)
    for row in range(rivals.size):
        i, s = rivals[row], closest.push[row]
        for side in range(2):
            first, end, k, x = _moved(layout, closest, row, side)
            for a in range(first, end):
                if k == 0.0 and a != i and a != best:
                    continue
                r = 1.0 / (u[a] + k)
                fall = k * r * (mu[a] - x)
                if a == i:
                    fall -= s * r
                if a == best:
                    fall += s * r
                square = weights[row] * fall * fall
                slope[a] += square / 2.0
                bend[a] += square * r
    return slope, bend


@njit
def entropies(
    layout: Layout, u: Vector, closest: Alternatives, weights: Vector, rates: Vector, width: float
) -> tuple[Vector, float]:
    """Returns sum_i weights_i kl(rates_a, rates of the alternative i), and the sum of the weights used.

    The alternatives are in units of the outcomes, `width` times those of rates. Those with a rate that is not between 0
    and 1 are left out.
    """
    mu, best, rivals = layout.mu, layout.best, layout.rivals
    slope, total = np.zeros(u.size), 0.0
    entropy = np.zeros(u.size)
    for row in range(rivals.size):
        if weights[row] == 0.0:
            continue
        i, s = rivals[row], closest.push[row]
        allowed = True
        for side in range(2):
            first, end, k, x = _moved(layout, closest, row, side)
            for a in range(first, end):
                fall = k * (mu[a] - x)
                if a == i:
                    fall -= s
                if a == best:
                    fall += s
                p, q = rates[a], rates[a] - fall / (u[a] + k) / width
                allowed = allowed and 0.0 < q < 1.0
                if allowed:
                    entropy[a] = (p * math.log(p / q) if p > 0.0 else 0.0) + (
                        (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
                    )
        if allowed:
            total += weights[row]
            for side in range(2):
                first, end, _, _ = _moved(layout, closest, row, side)
                slope[first:end] += weights[row] * entropy[first:end]
    return slope, total
