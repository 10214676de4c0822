"""Root searches for the price of smoothness gamma, compiled: one challenger, every challenger, or none.

R is given as `radii`: one number that bounds S of all components together, or one number for each component, which are
then separate problems (docs/theory.md, section 16). Arms are in component order. All kernels that call each other are
in this file, because the cache of compiled code notices changes of its own file only.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit

T = TypeVar("T", float, Vector)

ROOT_STEPS = 200
"""Limit on the steps of a root search; Newton needs about five, safeguarded bisection fewer than this."""


class Factors(NamedTuple):
    """A decomposition as the compiled kernels take it: arms are in component order, as `Components` explains."""

    u: Vector
    basis: Matrix
    theta: Vector
    rough: Vector
    offsets: Indices
    component: Indices


class Question(NamedTuple):
    """What best responses are asked for; arms are in component order."""

    best: int
    radii: Vector
    tolerance: float
    mu: Vector


class Answers(NamedTuple):
    """The best responses of all challengers, one row for each arm, in component order; `Responses` explains them."""

    gamma: Matrix
    nu: Vector
    coef: Matrix
    gap: Matrix
    cost: Vector
    misfit: float
    rests: Vector


class Span(NamedTuple):
    """The coordinates that move in a search for one price of smoothness: all of them, or those of one component."""

    R: float
    y: Vector
    theta: Vector
    rough: Vector
    q: Vector
    """Coordinates of e_best - e_i: of e_best alone, or of -e_i, if the two are in different components."""
    coef: Vector
    """Coordinates of the alternative, the unknowns."""


@njit
def _within(whole: Span, R: float, low: int, high: int) -> Span:
    """Returns the coordinates from `low` to `high` - 1 as a span."""
    _, y, theta, rough, q, coef = whole
    return Span(R, y[low:high], theta[low:high], rough[low:high], q[low:high], coef[low:high])


@njit
def secular(gamma: float, span: Span, offset: float) -> tuple[float, float, float]:
    """Returns (S, dS/dgamma, nu) of the minimiser of the Lagrangian at `gamma`, its coordinates in `coef`.

    It minimises 1/2 theta.(coef - y/theta)^2 + gamma rough.coef^2 subject to q.coef + offset <= 0 (theory 3.4-3.6). At
    gamma = 0, coordinates with theta = 0 are arbitrary; the limit gamma -> 0+ is returned, the least rough minimiser.
    """
    _, y, theta, rough, q, coef = span
    gain = 0.0  # q' M^-1 q
    lead = offset  # how much lam0 violates the constraint
    free = 0.0  # q' L^-1 q over coordinates that change the roughness but not the cost
    costless = -1  # a coordinate that changes neither: the level of a component without weight
    for j in range(y.size):
        den = theta[j] + (2.0 * gamma * rough[j] if rough[j] > 0.0 else 0.0)  # gamma may be inf
        if den > 0.0:
            coef[j] = y[j] / den
            gain += q[j] * q[j] / den
            lead += q[j] * coef[j]
        else:
            coef[j] = 0.0
            if rough[j] > 0.0:
                free += q[j] * q[j] / rough[j]
            elif q[j] != 0.0:
                costless = j
    nu = 0.0
    if lead > 0.0 and costless >= 0:
        coef[costless] = -lead / q[costless]
    elif lead > 0.0 and free > 0.0:
        for j in range(y.size):
            if theta[j] == 0.0 and rough[j] > 0.0:
                coef[j] = -lead * q[j] / (rough[j] * free)
    elif lead > 0.0:
        nu = lead / gain  # (3.5)
    smooth = 0.0
    slope = 0.0
    cross = 0.0
    for j in range(y.size):
        den = theta[j] + (2.0 * gamma * rough[j] if rough[j] > 0.0 else 0.0)  # gamma may be inf
        if den > 0.0:
            if nu > 0.0:
                coef[j] = (y[j] - nu * q[j]) / den  # (3.4)
            push = rough[j] * coef[j]
            smooth += push * coef[j]
            slope -= 4.0 * push * push / den
            cross += push * q[j] / den
        else:
            smooth += rough[j] * coef[j] * coef[j]
    if nu > 0.0:
        slope += 4.0 * cross * cross / gain  # (3.7)
    return smooth, slope, nu


def price_step(smooth: T, slope: T, R: T) -> T:
    """Returns the step of Newton's method on 1/sqrt(S) - 1/sqrt(R), which is nearly linear in the price (theory 3.8),
    from a price where S is `smooth` with derivative `slope`; numbers or arrays."""
    step: T = 2.0 * smooth * (np.sqrt(smooth / R) - 1.0) / -slope
    return step


step_to = njit(price_step)


@njit
def next_price(
    gamma: float, low: float, high: float, smooth: float, slope: float, R: float, zero: bool
) -> tuple[float, float, float]:
    """Returns (price, low, high): the price to try next, and a narrower bracket of the root, where S at `gamma` is
    `smooth` with derivative `slope`. The price is `gamma` itself once it is accurate.

    It is the price after `price_step`; if that leaves the bracket, a price inside, or 0 if `zero` says that it was not
    tried yet.
    """
    if smooth > R:
        low = gamma
    else:
        high = gamma
    if abs(smooth - R) <= 4e-15 * R or high <= low * (1.0 + 4e-16):
        return gamma, low, high
    guess = gamma + step_to(smooth, slope, R) if slope < 0.0 else np.nan
    if not low < guess < high:
        if low == 0.0 and zero:
            guess = 0.0
        elif np.isinf(high):
            guess = max(low * 16.0, np.finfo(np.float64).tiny)
        else:
            guess = float(np.sqrt(low) * np.sqrt(high)) if low > 0.0 else high / 16.0
    return guess, low, high


@njit
def solve_secular(start: float, span: Span, offset: float) -> tuple[float, float]:
    """Returns (gamma, nu) of the minimiser with S <= R, its coordinates in `coef`; `start` is a guess of gamma.

    The steps are those of `next_price`, kept inside a bracket.
    """
    R = span.R
    if R == 0.0:
        smooth, _, nu = secular(0.0, span, offset)
        return (0.0, nu) if smooth == 0.0 else (np.inf, secular(np.inf, span, offset)[2])
    low, high = 0.0, np.inf
    gamma = start
    tried_zero = False
    for _ in range(ROOT_STEPS):
        smooth, slope, nu = secular(gamma, span, offset)
        if gamma == 0.0:
            tried_zero = True
            if smooth <= R:
                return 0.0, nu
            gamma = 1.0 if np.isinf(high) else high * 1e-3
            # If the slope at zero is -inf or 0, it gives no Newton step: start from a fixed positive gamma.
            if slope < 0.0 and np.isfinite(slope):
                guess = step_to(smooth, slope, R)
                if 0.0 < guess < high:
                    gamma = guess
            continue
        guess, low, high = next_price(gamma, low, high, smooth, slope, R, not tried_zero)
        if guess == gamma:
            break
        gamma = guess
    return gamma, nu


@njit
def centre_means(mu: Vector, factors: Factors) -> tuple[Vector, Vector, Vector]:
    """Returns (centre, centred, y): the weighted mean of each component minus mu[0], mu minus mu[0] and minus this
    centre, and B' diag(u) centred.

    Because means are centred, and centres are relative to one of the means, a common shift of all outcomes costs no
    accuracy.
    """
    u, basis, theta, _, offsets, _ = factors
    centre, centred, y = np.zeros(offsets.size - 1), np.zeros(mu.size), np.zeros(mu.size)
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        total = u[low:high].sum()
        # Computed relative to one of the means, so that the weighted mean of equal numbers is exactly that number.
        for a in range(low, high):
            centre[c] += (mu[a] - mu[low]) * (u[a] / total if total > 0.0 else 1.0 / (high - low))
        centre[c] += mu[low] - mu[0]
        for a in range(low, high):
            centred[a] = (mu[a] - mu[0]) - centre[c]
            for j in range(low + 1, high):  # the first, constant vector has coordinate 0 after centring
                if theta[j] > 0.0:
                    y[j] += basis[a, j] * u[a] * centred[a]
    return centre, centred, y


@njit
def rest(radii: Vector, y: Vector, factors: Factors) -> tuple[Vector, Vector]:
    """Returns (gamma, coef): the price in each component at the closest means with S <= R, and their coordinates."""
    _, _, theta, rough, offsets, _ = factors
    gamma, coef = np.zeros(offsets.size - 1), np.zeros(y.size)
    whole = Span(radii[0], y, theta, rough, np.zeros(y.size), coef)
    if radii.size == 1:
        gamma[:] = solve_secular(0.0, whole, -1.0)[0]
        return gamma, coef
    for c in range(gamma.size):
        if offsets[c + 1] - offsets[c] > 1:
            gamma[c] = solve_secular(0.0, _within(whole, radii[c], offsets[c], offsets[c + 1]), -1.0)[0]
    return gamma, coef


@njit
def project(radii: Vector, mu: Vector, factors: Factors) -> Vector:
    """Returns the closest means with S <= R; of several, because some u = 0, the least rough."""
    u, basis, _, _, offsets, _ = factors
    centre, _, y = centre_means(mu, factors)
    gamma, coef = rest(radii, y, factors)
    lam = basis @ coef
    for c in range(offsets.size - 1):
        for a in range(offsets[c], offsets[c + 1]):
            # Means that are smooth enough are returned exactly, without rounding errors.
            lam[a] = mu[a] if gamma[c] == 0.0 and u[a] > 0.0 else (lam[a] + centre[c]) + mu[0]
    return lam


@njit
def move(span: Span, nu: float, start: float) -> tuple[float, float, float]:
    """Returns (gamma, q.coef, -d(q.coef)/dnu) of the minimiser of cost + nu q.coef with S <= R, its coordinates in
    `coef` (theory 16.3, 16.4); nu > 0, and `start` is a guess of gamma.

    1/sqrt(S) is concave in gamma here, so all Newton iterates after the first are on the left of the root.
    """
    R = span.R
    low, high = 0.0, np.inf
    gamma = start if np.isfinite(start) else 0.0
    along = gain = 0.0
    for _ in range(ROOT_STEPS):
        along, gain, smooth, slope, free = _moved(span, nu, gamma)
        if R == 0.0:
            gamma = np.inf if smooth > 0.0 or free > 0.0 else 0.0
            along, gain, _, _, _ = _moved(span, nu, gamma)
            break
        if free > 0.0:
            # Without the factor 1 - 1e-12, the coordinates without weight alone have S = R at this price. All together
            # have a larger S, so the root is to the right.
            gamma = max(0.5 * nu * np.sqrt(free / R) * (1.0 - 1e-12), np.finfo(np.float64).tiny)
            continue
        if smooth <= R and gamma == 0.0:
            break
        guess, low, high = next_price(gamma, low, high, smooth, slope, R, gamma > 0.0)
        if guess == gamma:
            break
        gamma = guess
    return gamma, along, gain


@njit
def _moved(span: Span, nu: float, gamma: float) -> tuple[float, float, float, float, float]:
    """Returns (q.coef, -d(q.coef)/dnu, S, dS/dgamma, free) of the minimiser at its price `gamma`, its coordinates in
    `coef`; `free` is q' L^-1 q over coordinates without weight, which at gamma = 0 would go to infinity."""
    _, y, theta, rough, q, coef = span
    along = gain = smooth = cross = bend = free = 0.0
    for j in range(y.size):
        den = theta[j] + (2.0 * gamma * rough[j] if rough[j] > 0.0 else 0.0)  # gamma may be inf
        if den > 0.0:
            coef[j] = (y[j] - nu * q[j]) / den
            push = rough[j] * coef[j]
            along += q[j] * coef[j]
            gain += q[j] * q[j] / den
            smooth += push * coef[j]
            cross += q[j] * push / den
            bend += push * push / den
        else:
            coef[j] = 0.0
            free += q[j] * q[j] / rough[j] if rough[j] > 0.0 else 0.0
    if gamma > 0.0 and bend > 0.0:
        gain = max(gain - cross * cross / bend, q[0] * q[0] / theta[0])
    return along, gain, smooth, -4.0 * bend, free


@njit
def meet(
    home: Span, away: Span, offset: float, rests: tuple[float, float], start: Vector
) -> tuple[float, float, float]:
    """Returns (gamma, gamma, nu) of the two components for lam_best + tolerance <= lam_i, coordinates in `coef`.

    Each component has an R. For given nu the two are separate problems, and lam_best - lam_i decreases in nu. So this
    is a root search for nu, with a search for the price of each component inside (theory 16.5). `offset` is how much
    the centred means violate the constraint, `rests` are the prices of the closest means with S <= R, and `start` holds
    guesses of the two prices.
    """
    lead = offset
    for span in (home, away):
        for j in range(span.y.size):
            lead += span.q[j] * span.coef[j]
    if lead <= 0.0:
        return rests[0], rests[1], 0.0
    for span in (home, away):
        if span.theta[0] == 0.0:  # a component without weight: moving its level costs nothing
            span.coef[0] = -lead / span.q[0]
            return rests[0], rests[1], 0.0

    # Moving arms without weight costs nothing, as long as S <= R.
    (room_home, free_home), (room_away, free_away) = _free_room(home, rests[0]), _free_room(away, rests[1])
    if lead <= room_home + room_away:
        _move_freely(home, free_home, lead * room_home / (room_home + room_away))
        _move_freely(away, free_away, lead * room_away / (room_home + room_away))
        return rests[0], rests[1], 0.0

    low, high = 0.0, lead / (home.q[0] ** 2 / home.theta[0] + away.q[0] ** 2 / away.theta[0]) * (1.0 + 1e-12)
    gamma_home, gamma_away = max(start[0], rests[0]), max(start[1], rests[1])
    along_home, gain_home, _, _, _ = _moved(home, 0.0, gamma_home)
    along_away, gain_away, _, _, _ = _moved(away, 0.0, gamma_away)
    guess = (offset + along_home + along_away) / (gain_home + gain_away)
    nu = guess if 0.0 < guess < high else high
    for _ in range(ROOT_STEPS):
        gamma_home, along_home, gain_home = move(home, nu, gamma_home)
        gamma_away, along_away, gain_away = move(away, nu, gamma_away)
        ahead = offset + along_home + along_away
        if ahead > 0.0:
            low = nu
        else:
            high = nu
        if abs(ahead) <= 4e-16 * (abs(offset) + abs(along_home) + abs(along_away)) or high <= low * (1.0 + 4e-16):
            break
        guess = nu + ahead / (gain_home + gain_away)
        if low < guess < high:
            if guess == nu:
                break
            nu = guess
        else:
            nu = np.sqrt(low) * np.sqrt(high) if low > 0.0 else high / 16.0
    return gamma_home, gamma_away, nu


@njit
def _free_room(span: Span, rest: float) -> tuple[float, float]:
    """Returns how far q.coef can fall by moving arms without weight, from the closest means with S <= R, and q' L^-1 q
    over the coordinates without weight."""
    if rest > 0.0:
        return 0.0, 0.0
    free = smooth = 0.0
    for j in range(1, span.y.size):
        smooth += span.rough[j] * span.coef[j] ** 2
        if span.theta[j] == 0.0:
            free += span.q[j] ** 2 / span.rough[j]
    return float(np.sqrt(free * max(span.R - smooth, 0.0))), free


@njit
def _move_freely(span: Span, free: float, by: float) -> None:
    """Lowers q.coef by moving arms without weight, at the least roughness; `free` is q' L^-1 q over them."""
    for j in range(1, span.y.size):
        if by > 0.0 and span.theta[j] == 0.0:
            span.coef[j] = -by * span.q[j] / (span.rough[j] * free)


@njit
def respond_all(question: Question, factors: Factors, start: Matrix) -> Answers:
    """Returns the best responses of every challenger from one decomposition; `start` holds guesses of their gammas."""
    best, radii, _, mu = question
    u, basis, theta, rough, offsets, component = factors
    n_arms = mu.size
    gamma, nu, coef, cost = np.zeros((n_arms, 2)), np.zeros(n_arms), np.zeros((n_arms, n_arms)), np.zeros(n_arms)
    centre, centred, y = centre_means(mu, factors)
    home = component[best]
    one = radii.size == 1
    R = radii[0] if one else radii[home]
    rests, closest = np.zeros(offsets.size - 1), np.zeros(n_arms)
    if not one:
        rests, closest = rest(radii, y, factors)
    q = np.zeros(n_arms)
    for i in range(n_arms):
        away = component[i]
        offset = _constrain(i, question, factors, centre, R, q)
        if np.isinf(offset):
            cost[i] = np.inf
            continue
        whole = Span(R, y, theta, rough, q, coef[i])
        if one:
            gamma[i, :], nu[i] = solve_secular(start[i, 0], whole, offset)
            continue
        coef[i] = closest
        here = _within(whole, R, offsets[home], offsets[home + 1])
        if i == best:
            gamma[i, :] = rests[home]
        elif home == away:
            gamma[i, :], nu[i] = solve_secular(start[i, 0], here, offset)
        else:
            there = _within(whole, radii[away], offsets[away], offsets[away + 1])
            gamma[i, 0], gamma[i, 1], nu[i] = meet(here, there, offset, (rests[home], rests[away]), start[i])
    if one:
        rests[:] = gamma[best, 0]
    gap = _gaps(centred, coef, basis, offsets)
    for i in range(n_arms):
        for a in range(n_arms):
            cost[i] += 0.5 * u[a] * gap[i, a] ** 2
    misfit = cost[best]
    cost[best] = np.inf
    return Answers(gamma, nu, coef, gap, cost, misfit, rests)


@njit
def _constrain(i: int, question: Question, factors: Factors, centre: Vector, R: float, q: Vector) -> float:
    """Returns how much means that are constant in each component violate lam_best + tolerance <= lam_i, and puts the
    coordinates of e_best - e_i into `q`.

    It is inf if no smooth means satisfy the constraint, and -1 for i = best: then smoothness is the only constraint.
    """
    best, _, tolerance, _ = question
    _, basis, _, rough, offsets, component = factors
    home, away = component[best], component[i]
    q[:] = 0.0
    if i == best:
        return -1.0
    if home == away:
        resistance = 0.0
        for j in range(offsets[home] + 1, offsets[home + 1]):
            q[j] = basis[best, j] - basis[i, j]
            resistance += q[j] ** 2 / rough[j]
        return np.inf if tolerance > 0.0 and tolerance**2 >= R * resistance else tolerance  # (3.9)
    for j in range(offsets[home], offsets[home + 1]):
        q[j] = basis[best, j]
    for j in range(offsets[away], offsets[away + 1]):
        q[j] = -basis[i, j]
    return float(tolerance + (centre[home] - centre[away]))


@njit
def _gaps(centred: Vector, coef: Matrix, basis: Matrix, offsets: Indices) -> Matrix:
    """Returns means - lam for each row of coordinates, component by component."""
    n_arms = centred.size
    gap = np.zeros((n_arms, n_arms))
    for c in range(offsets.size - 1):
        low, high = offsets[c], offsets[c + 1]
        if high - low == 1:
            gap[:, low] = centred[low] - basis[low, low] * coef[:, low]
        else:
            moved = coef[:, low:high].copy() @ basis[low:high, low:high].copy().T
            gap[:, low:high] = centred[low:high] - moved
    return gap
