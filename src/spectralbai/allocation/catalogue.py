"""The allocation for thousands of arms in categories: an interior-point method without matrices (theory, section 17).

The steps are those of the default solver. In a best response, how the other arms of a category move depends only on a
price and a level. So the matrix of second derivatives is a diagonal plus a few directions for each category. The time
of a step is proportional to the sum of the squared sizes of the categories; most of it is spent on the best responses.
The bounds hold even if the steps are inaccurate.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spectralbai.allocation.category_responses import Alternatives, Layout, entropies, pooled, respond
from spectralbai.allocation.category_system import System
from spectralbai.allocation.certificate import MARGIN, Certified
from spectralbai.allocation.closed_form import balance_leads
from spectralbai.allocation.interior_point import BOUNDARY, RESIDUAL_SHARE, longest, opening_allocation
from spectralbai.arrays import Indices, Vector
from spectralbai.noise import SubGaussian
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.spectral import Catalogue
from spectralbai.threads import one_thread

EDGE = 1e-7
"""If the squared tolerance is at most this far (relatively) below the largest squared difference of two means that the
category allows, the two count as equal."""
FLOOR = 0.2
"""Complementarity is not driven below this part of the gap asked for, to keep the system easy to solve."""


class Point(NamedTuple):
    """A primal-dual point; every vector is positive."""

    u: Vector
    """Weights of the arms: minimise sum_a sigma_a^2 u_a subject to g_i(u) = 1/f_i(u) <= 1 (17.13)."""
    w: Vector
    """Slacks: 1 - g_i(u) at the solution."""
    p: Vector
    """Multipliers of g_i <= 1."""
    z: Vector
    """Multipliers of u >= 0."""


class WeightedAlternatives(NamedTuple):
    """Alternatives with weights, from which an upper bound of 1/T* is computed (theory 4.3)."""

    order: Indices
    """The arms, in the order of the layout."""
    layout: Layout
    u: Vector
    closest: Alternatives
    weights: Vector


def catalogue(
    responder: Responder, tol: float, max_iterations: int, start: Vector | None = None, enough: float = 0.0
) -> Certified:
    """Returns an allocation with certified bounds of 1/T*, a relative `tol` apart unless it stops early."""
    categories = responder.catalogue
    assert categories is not None, "solve_allocation takes this solver for catalogues only"
    widest = 2 * float(categories.room[categories.of_arm[responder.best]])
    if not widest * (1 - EDGE) <= responder.tolerance**2 < widest:
        return _search(responder, tol, max_iterations, start, enough)[0]
    # Arms of the best arm's category can beat it by the tolerance, but only by a margin as small as rounding errors. So
    # the upper bound is computed without them, and the lower bound with all arms and a slightly smaller tolerance.
    upper = math.inf
    if categories.n_categories > 1:
        upper = _search(responder, tol, max_iterations, start, enough)[0].upper
    easier = responder.tolerating(math.sqrt(widest * (1 - 2 * EDGE)))
    return _search(easier, tol, max_iterations, start, enough)[0]._replace(upper=upper)


def _search(
    responder: Responder, tol: float, max_iterations: int, start: Vector | None = None, enough: float = 0.0
) -> tuple[Certified, WeightedAlternatives]:
    """Returns the result of `catalogue`, without arms of the best arm's category that can hardly beat it by the
    tolerance, and what the upper bound was computed from."""
    order, layout = layout_of(responder)
    noise = responder.sigma[order] ** 2
    n, rivals = order.size, layout.rivals
    zeros = np.zeros((rivals.size, 9))
    if layout.offsets.size == n + 1:
        return _alone(order, layout, noise)
    u = 1.3 * opening_allocation(responder, start)[order] / noise
    closest = respond(layout, u, np.zeros(rivals.size), zeros, zeros)
    scale = float(closest.value.min()) / 1.3  # values are in units of this
    # Start on the central path: p_i w_i and u_a z_a all equal, and stationary on average.
    w = 1 - scale / closest.value
    level = float(noise @ u) / ((scale / closest.value / w).sum() + n)
    point = Point(u, w, level / w, level / u)
    lower, upper, best, iteration = -math.inf, math.inf, u, 0
    mixture = WeightedAlternatives(order, layout, u, closest, point.p)
    while True:
        iteration += 1
        f = closest.value / scale
        if not f.min() > 0:  # no more progress in floating point: return the best one, with its bounds
            break
        total = float(noise @ point.u)
        value = float(closest.value.min() / total) * (1 - n * 1e-16)
        if value > lower:
            lower, best = value, point.u
        weights = point.p / f**2
        ceiling = _ceiling(layout, point.u, closest, weights, noise)
        if ceiling < upper:
            upper, mixture = ceiling, WeightedAlternatives(order, layout, point.u, closest, weights)
        if iteration >= max_iterations or upper <= max(lower * (1 + 0.99 * tol), enough):
            break
        try:
            point = _step(layout, point, closest, scale, noise, FLOOR * tol * total)
        except np.linalg.LinAlgError:
            break
        closest = respond(layout, point.u, closest.push, closest.there, closest.home)
    share = np.empty(n)
    share[order] = noise * best
    return Certified(share / share.sum(), lower, upper, iteration), mixture


def _alone(order: Indices, layout: Layout, noise: Vector) -> tuple[Certified, WeightedAlternatives]:
    """Returns the result of `_search` if every category has one arm, by the closed form."""
    rivals, best = layout.rivals, layout.best
    omega = np.zeros(order.size)
    lead = (layout.tolerance - layout.mu[rivals]) ** 2
    omega[best], omega[rivals], _ = balance_leads(lead, noise[rivals], float(noise[best]))
    u, zeros = omega / noise, np.zeros((rivals.size, 9))
    closest = respond(layout, u, np.zeros(rivals.size), zeros, zeros)
    weights = noise[rivals] * (u[rivals] / closest.push) ** 2
    share = np.empty(order.size)
    share[order] = omega / omega.sum()
    lower = float(closest.value.min() / omega.sum()) * (1 - order.size * 1e-16)
    certified = Certified(share, lower, _ceiling(layout, u, closest, weights, noise), 1)
    return certified, WeightedAlternatives(order, layout, u, closest, weights)


def _ceiling(layout: Layout, u: Vector, closest: Alternatives, weights: Vector, noise: Vector) -> float:
    """Returns an upper bound of 1/T*: the largest slope of a mixture of feasible alternatives (theory 4.3)."""
    weights = np.where(closest.feasible, weights, 0.0)
    total = float(weights.sum())
    if total == 0:
        return math.inf
    slope, _ = pooled(layout, u, closest, weights)
    return float((slope / noise).max() / total) * (1 + 100 * MARGIN)


def entropy_bound(problem: Problem, mu: Vector) -> float:
    """Returns an upper bound of 1/T* for binary outcomes of arms in categories, without a tolerance (theory 17.17).

    The alternatives are those of Gaussian outcomes of about the same variances. They are feasible for binary outcomes
    too, and the bound measures them by relative entropy.
    """
    assert problem.outcome_range is not None and problem.tolerance == 0
    low, high = problem.outcome_range
    rates = (mu - low) / (high - low)
    best = problem.best_arm(mu)
    between = (rates + rates[best]) / 2
    gaussian = replace(problem, noise=SubGaussian.of((high - low) * np.sqrt(between * (1 - between)), problem.n_arms))
    responder = Responder(gaussian, mu, best)
    with one_thread():
        order, layout, u, closest, weights = _search(responder, 1e-2, 60)[1]
        weights = np.where(closest.feasible, weights, 0.0)
        slope, total = entropies(layout, u, closest, weights, rates[order], high - low)
    return float(slope.max() / total) * (1 + 100 * MARGIN) if total > 0 else math.inf


def layout_of(responder: Responder) -> tuple[Indices, Layout]:
    """Returns the arms in a new order and their layout: home first, then categories of one arm, then the others."""
    categories = responder.catalogue
    assert categories is not None, "there are catalogues only"
    of_arm, every = categories.of_arm, np.arange(categories.n_categories)
    home = int(of_arm[responder.best])
    rank = np.lexsort((every, categories.sizes > 1, every != home))
    place = np.empty(rank.size, dtype=np.intp)
    place[rank] = np.arange(rank.size)
    order = np.argsort(place[of_arm], kind="stable")
    category = place[of_arm][order]
    best = int(np.flatnonzero(order == responder.best)[0])
    can_win = np.arange(order.size) != best
    if responder.tolerance > 0 and responder.tolerance**2 >= 2 * categories.room[home] * (1 - EDGE):
        can_win &= category != 0
    offsets = np.concatenate([[0], np.cumsum(categories.sizes[rank])]).astype(np.intp)
    mu = responder.mu[order] - responder.mu[responder.best]
    room, rivals = categories.room[rank], np.flatnonzero(can_win)
    return order, Layout(mu, best, responder.tolerance, offsets, category, room, rivals)


def _step(layout: Layout, point: Point, closest: Alternatives, scale: float, noise: Vector, least: float) -> Point:
    """Returns the next point: Mehrotra's predictor and corrector (17.13-17.15)."""
    u, w, p, z = point
    f = closest.value / scale
    slope, bend = (total / scale for total in pooled(layout, u, closest, p / f**2))
    steep = (2 * p / f**3 + p / w / f**4) / scale**2
    system = System(layout, u, closest, z / u + bend, p / f**2 / scale, steep)
    size = u.size + w.size
    gap = float(p @ w + u @ z) / size
    stationarity = noise - slope - z
    infeasible = 1 - 1 / f - w
    residual = (max(0.0, float((1 / f - 1).max())) + float(u @ np.abs(stationarity))) / size
    target_w, target_z, furthest = -p * w, -u * z, 0.0
    for corrector in (False, True):
        pull = (target_w - p * infeasible) / w
        d_u = system.solve(system.back(pull / f**2) / scale + target_z / u - stationarity)
        d_w = system.along(d_u) / f**2 / scale + infeasible
        d_p = (target_w - p * d_w) / w
        d_z = (target_z - z * d_u) / u
        furthest = min(longest(u, d_u), longest(w, d_w), longest(p, d_p), longest(z, d_z))
        if not corrector:
            step = min(1.0, furthest)
            ahead = float((p + step * d_p) @ (w + step * d_w) + (u + step * d_u) @ (z + step * d_z)) / size
            centre = max(gap * min(1.0, ahead / gap) ** 2, RESIDUAL_SHARE * residual, least / size)
            target_w = centre - p * w - d_p * d_w
            target_z = centre - u * z - d_u * d_z
    step = min(1.0, BOUNDARY * furthest)
    return Point(u + step * d_u, w + step * d_w, p + step * d_p, z + step * d_z)


def shift_bound(problem: Problem, mu: Vector, answers: Indices) -> float:
    """Returns an upper bound of 1/T* for these right answers; 0 if there are none.

    It comes from one alternative: all means of the answer's category are lowered by one amount and all means of another
    category raised by another, which keeps the smoothness. This costs at most
    lead^2 / (2 (sigma_answer + sigma_other)^2) with the least sigmas of the two categories.
    """
    categories = Catalogue.of(problem)
    assert categories is not None
    if not answers.size:
        return 0.0
    top, least = np.full(categories.n_categories, -np.inf), np.full(categories.n_categories, np.inf)
    np.maximum.at(top, categories.of_arm, mu)
    np.minimum.at(least, categories.of_arm, problem.sigma)
    first, second = np.argsort(-top)[:2] if top.size > 1 else (0, 0)
    if first == second:
        return math.inf
    home = categories.of_arm[answers]
    other = np.where(home == first, second, first)
    lead = mu[answers] - top[other] + problem.tolerance
    return float((lead**2 / (2 * (least[home] + least[other]) ** 2)).max() * (1 + MARGIN))
