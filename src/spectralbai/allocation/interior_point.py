"""The default solver: a primal-dual interior-point method that computes best responses once per step.

It minimises s subject to 1/f_i(omega) <= s for every challenger i, omega in the simplex. The reciprocals are convex
(f_i is concave and positive) and, without a graph, linear in 1/omega. They are far less curved than the f_i, so that
Newton's method takes ten to thirty steps without a first guess on most instances (theory, section 5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spectralbai.allocation.certificate import MARGIN, Certified, certified_lower, certified_upper, feasible_gradients
from spectralbai.allocation.curvature import NODE_RATIO, curvature
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.compiled import njit
from spectralbai.responder import Responder
from spectralbai.spectral import Decomposition, Responses
from spectralbai.spectral.diagonalise import Edges, diagonalise
from spectralbai.spectral.secular import Answers, Factors, Question, respond_all

BOUNDARY = 0.95
"""Fraction of the way to the boundary that a step may go."""
RESIDUAL_SHARE = 1e-6
"""Least ratio of the target of complementarity to the residuals: if complementarity vanished much sooner than the
residuals of the curved constraints, these would never be satisfied."""
SAME = 1e-12
"""Relative difference of two values that may be due to rounding errors. Of iterates whose values differ by less, the
last one is taken: where many allocations are optimal, the result then hardly depends on the machine's rounding."""


class Iterate(NamedTuple):
    """A primal-dual point; every vector is positive."""

    omega: Vector
    s: float
    w: Vector
    """Slacks: s - 1/f_i(omega) at the solution."""
    p: Vector
    """Multipliers of 1/f_i <= s."""
    z: Vector
    """Multipliers of omega >= 0."""
    eta: float
    """Multiplier of sum(omega) = 1."""


def central(omega: Vector, cost: Vector) -> Iterate:
    """Returns the point of the central path at an allocation with these values f_i, in units of the least one: p_i w_i
    and omega_a z_a are all equal, and sum(p) = 1."""
    reciprocal = cost.min() / cost
    s = 1.3 * float(reciprocal.max())
    w = s - reciprocal
    level = 1 / (1 / w).sum()
    return Iterate(omega, s, w, level / w, level / omega, np.nan)


class Found(NamedTuple):
    """The best allocation and the least upper bound that a search found, without allowance for rounding."""

    best: Responses
    ceiling: float
    """The upper bound of 1/T*."""
    highest: Responses
    """The responses that it was computed from."""
    mixture: Vector
    """The weights of all arms as challengers in it, (n_arms,); 0 for those that do not count."""
    iterations: int


def interior_point(
    responder: Responder, tol: float, max_iterations: int, start: Vector | None = None, enough: float = 0.0
) -> Certified:
    """Returns an allocation with certified bounds, a relative `tol` apart unless it stops early.

    `start` is a guess of the allocation. The search also ends once `upper` is at most `enough`: the caller knows a
    better value then.
    """
    first = responder.respond(opening_allocation(responder, start))
    # The search gets a smaller gap, because the certificate adds an allowance for rounding errors.
    result = search(responder, max(0.99 * tol - 4 * MARGIN, 0.0), max_iterations, first, enough)
    upper = certified_upper(feasible_gradients(result.highest), result.mixture[result.highest.challengers])
    return Certified(result.best.omega, certified_lower(result.best), upper, result.iterations)


def opening(responder: Responder) -> Responses:
    """Returns the best responses to the allocation from which a search without a guess starts."""
    return responder.respond(opening_allocation(responder))


def opening_allocation(responder: Responder, guess: Vector | None = None) -> Vector:
    """Returns the allocation from which a search starts: near a guess, or half to the best arm and the rest equally."""
    n_arms = responder.mu.size
    if guess is not None:
        return 0.9 * guess + 0.1 / n_arms
    omega = np.full(n_arms, 0.5 / (n_arms - 1))
    omega[responder.best] = 0.5
    return omega


def search(
    responder: Responder,
    tol: float,
    max_iterations: int,
    first: Responses | None = None,
    enough: float = 0.0,
    needs: Vector | None = None,
) -> Found:
    """Returns the best allocation found, like `interior_point` but without a certificate, which is faster.

    `needs` (in component order) scales the challengers: the search maximises the minimum of f_i(omega) / needs_i over
    challengers with positive needs, and values and bounds are those of this scaled problem. `first` holds the best
    responses to start from, by default `opening(responder)`.
    """
    responses = opening(responder) if first is None else first
    needs = np.ones(responder.mu.size) if needs is None else needs
    rows = responses.challengers
    rows = rows[needs[rows] > 0]
    need = needs[rows]
    cost = responses.cost[rows] / need
    game, answered = _Game.of(responder, rows, need, float(cost.min())), _Answered.of(responses)
    best, highest, mixture, ceiling, iterations = _iterate(
        game, central(answered.omega, cost), answered, (tol, enough), max_iterations
    )
    weights = np.zeros(responder.mu.size)
    weights[rows] = mixture
    return Found(best.responses(responder), ceiling, highest.responses(responder), weights, iterations)


class _Game(NamedTuple):
    """What a search is about, in the form that compiled code takes: the responder, and which challengers count."""

    rows: Indices
    """The challengers that can win and have positive needs."""
    need: Vector
    """Their needs."""
    scale: float
    """The least f_i / needs_i at the start, the unit of all values."""
    question: Question
    sigma: Vector
    edges: Edges

    @classmethod
    def of(cls, responder: Responder, rows: Indices, need: Vector, scale: float) -> _Game:
        to = responder.components
        question = Question(responder.best, responder.radii, responder.tolerance, to.ordered(responder.mu))
        return cls(rows, need, scale, question, to.ordered(responder.sigma), to.edges)


class _Answered(NamedTuple):
    """An allocation and the best responses to it, as the compiled step takes and returns them."""

    omega: Vector
    factors: Factors
    answers: Answers

    @classmethod
    def of(cls, responses: Responses) -> _Answered:
        answers = Answers(*(getattr(responses, name) for name in Answers._fields))
        return cls(responses.omega, responses.decomposition.factors, answers)

    def responses(self, responder: Responder) -> Responses:
        """Returns these best responses, which are those of the responder, as an object."""
        decomposition = Decomposition(responder.components, self.omega, responder.sigma, self.factors.u, self.factors)
        return Responses(
            decomposition, responder.mu, responder.best, responder.radii, responder.tolerance, *self.answers
        )


@njit
def _iterate(
    game: _Game, point: Iterate, answered: _Answered, enough: tuple[float, float], max_iterations: int
) -> tuple[_Answered, _Answered, Vector, float, int]:
    """Returns (best, highest, mixture, ceiling, iterations): the best responses with the largest value and those with
    the least upper bound, and what that bound is made of.

    It ends after `max_iterations`, or with a relative gap of enough[0], or with an upper bound of at most enough[1].
    """
    best = highest = answered
    best_value, ceiling, mixture = 0.0, np.inf, point.p
    iteration = 0
    while True:
        iteration += 1
        cost, gradient = _values(game, answered.answers)
        if np.isinf(cost.max()):  # at the limit of the tolerance, rounding decides whether a challenger can win
            break
        if cost.min() >= best_value * (1.0 - SAME):
            best, best_value = answered, max(cost.min(), best_value)
        weights = point.p / (cost * cost)  # multipliers of the values, from those of their reciprocals
        weights /= weights.sum()
        height = (weights @ gradient).max()  # (4.3)
        if height < ceiling:
            ceiling, highest, mixture = height, answered, weights
        if iteration >= max_iterations or ceiling <= max(best_value * (1.0 + enough[0]), enough[1]):
            break
        try:
            point, answered = _step(point, answered, cost, gradient, game)
        except Exception:  # no more progress in floating point: return the best one, with its bounds
            break
    return best, highest, mixture, ceiling, iteration


@njit
def _values(game: _Game, answers: Answers) -> tuple[Vector, Matrix]:
    """Returns the values f_i / needs_i of the challengers that count, and their gradients."""
    apart = answers.gap[game.rows] / game.sigma
    return answers.cost[game.rows] / game.need, 0.5 * (apart * apart) / game.need.reshape(-1, 1)


@njit
def _step(
    point: Iterate, answered: _Answered, cost: Vector, gradient: Matrix, game: _Game
) -> tuple[Iterate, _Answered]:
    """Returns the next iterate, and the best responses to its allocation."""
    before, answers = answered.factors, answered.answers
    p, ratio = np.zeros(game.sigma.size), game.scale / cost
    p[game.rows] = point.p * (ratio * ratio) / game.need
    hessian = curvature(p, NODE_RATIO, game.question, game.sigma, before, answers)
    after = newton_step(point, cost / game.scale, gradient / game.scale, hessian / game.scale)
    u = after.omega / game.sigma**2
    factors = Factors(u, *diagonalise(u, game.edges), before.offsets, before.component)
    return after, _Answered(after.omega, factors, respond_all(game.question, factors, answers.gamma))


@njit
def newton_step(point: Iterate, f: Vector, gradient: Matrix, hessian: Matrix) -> Iterate:
    """Returns the next iterate: Mehrotra's predictor and corrector from one factorisation (theory 5.7-5.10).

    `hessian` is the Hessian of -sum_i p_i/f_i^2 f_i.
    """
    omega, s, w, p, z, eta = point
    n_cuts, size = gradient.shape
    descent = gradient / (f * f).reshape(-1, 1)  # -gradient of 1/f_i
    drift = p @ descent
    if np.isnan(eta):
        eta = float((drift + z) @ omega)
    gap = (p @ w + omega @ z) / (n_cuts + size)
    stationarity = eta - drift - z  # dual residual
    infeasible = s - 1.0 / f - w  # primal residual: slacks are separate variables that catch up with the constraints
    missing = 1.0 - p.sum()
    residual = (max(0.0, np.max(1.0 / f - s)) + omega @ np.abs(stationarity)) / (n_cuts + size)

    # Eliminating p, z, w and s leaves a positive definite system in omega. Eliminating s first centres the rows.
    ratio = p / w
    mean = ratio @ descent / ratio.sum()
    descent -= mean
    curved = gradient * np.sqrt(2.0 * p / (f * f * f)).reshape(-1, 1)
    stacked = np.concatenate((descent * np.sqrt(ratio).reshape(-1, 1), curved))
    normal = hessian + stacked.T @ stacked + np.diag(z / omega)
    units: Vector = 1.0 / np.sqrt(np.diag(normal) * (1.0 + 1e-13))
    normal *= units.reshape(-1, 1) * units
    np.fill_diagonal(normal, 1.0)
    factor = np.linalg.cholesky(normal)
    by_eta = units * _solve(factor, units)

    target_w = -p * w
    target_z = -omega * z
    for corrector in range(2):
        pull = (target_w - p * infeasible) / w
        base = units * _solve(factor, units * (pull @ descent + target_z / omega + missing * mean - stationarity))
        d_eta = (base.sum() + omega.sum() - 1.0) / by_eta.sum()
        d_omega = base - by_eta * d_eta
        d_s = (pull.sum() - missing) / ratio.sum() - mean @ d_omega
        d_w = descent @ d_omega + mean @ d_omega + d_s + infeasible
        d_p = target_w / w - ratio * d_w
        d_z = (target_z - z * d_omega) / omega
        furthest = min(min(longest(omega, d_omega), longest(w, d_w)), min(longest(p, d_p), longest(z, d_z)))
        if corrector == 0:
            step = min(1.0, furthest)
            ahead = ((p + step * d_p) @ (w + step * d_w) + (omega + step * d_omega) @ (z + step * d_z)) / (
                n_cuts + size
            )
            centre = max(gap * min(1.0, ahead / gap) ** 2, RESIDUAL_SHARE * residual)
            target_w = centre - p * w - d_p * d_w
            target_z = centre - omega * z - d_omega * d_z
    step = min(1.0, BOUNDARY * furthest)
    omega = omega + step * d_omega
    return Iterate(
        omega / omega.sum(), s + step * d_s, w + step * d_w, p + step * d_p, z + step * d_z, eta + step * d_eta
    )


@njit
def _solve(factor: NDArray[Any], rhs: Vector) -> Vector:
    """Returns the solution of C C' x = rhs for a lower triangular C."""
    x = rhs.copy()
    for a in range(x.size):
        for j in range(a):
            x[a] -= factor[a, j] * x[j]
        x[a] /= factor[a, a]
    for a in range(x.size - 1, -1, -1):
        x[a] /= factor[a, a]
        for j in range(a):
            x[j] -= factor[a, j] * x[a]
    return x


@njit
def longest(x: Vector, dx: Vector) -> float:
    """Returns the longest step that keeps x + step dx non-negative."""
    step = np.inf
    for j in range(x.size):
        if dx[j] < 0.0:
            step = min(step, -x[j] / dx[j])
    return step
