"""Certified bounds, checked without rounding: alternatives and multipliers are taken as the rational numbers they
are."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from spectralbai import Graph, Problem, solve_allocation
from spectralbai.allocation.certificate import certified_lower, certified_upper, feasible_gaps, feasible_gradients
from spectralbai.responder import Responder
from spectralbai.spectral import Responses

STORED = {
    stored["name"]: stored
    for stored in json.loads((Path(__file__).parents[1] / "data" / "allocations.json").read_text())
}
CASES = ["plain", "level", "close", "sigma", "tolerance", "weights", "rough", "disconnected", "R each", "R each, tight"]


def case(name: str) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(CASES.index(name))
    edges = [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 0.5), (0, 3, 1.0), (3, 4, 1.5)]
    if name == "weights":
        edges = [(a, b, 10.0**exponent) for (a, b, _), exponent in zip(edges, (-6, 6, 0, 3, -3), strict=True)]
    if name in ("disconnected", "R each", "R each, tight"):
        edges = [(0, 1, 1.0), (2, 3, 1.0), (3, 4, 2.0)]
    graph = Graph.from_edges(5, edges)
    mu = rng.uniform(size=5)
    if name == "close":
        order = np.argsort(mu)
        mu[order[-1]] = mu[order[-2]] + 1e-6
    if name == "level":
        mu += 1e6
    sigma = np.array([0.1, 1.0, 3.0, 0.5, 10.0]) if name == "sigma" else np.ones(5)
    R: float | np.ndarray = graph.smoothness(mu) * (1.0 if name in ("plain", "level", "rough") else 1.5)
    if name.startswith("R each"):
        R = graph.roughness_by_component(mu) * (1.0 if name.endswith("tight") else 1.5)
    return Problem(graph, R, sigma, 0.1 if name == "tolerance" else 0.0), mu


def edges_of(responses: Responses) -> list[tuple[int, int, Fraction]]:
    components = responses.decomposition.components
    return [
        (int(a), int(b), Fraction(float(w))) for (a, b), w in zip(components.pairs, components.weights, strict=True)
    ]


def bounds_of(responses: Responses) -> list[int]:
    """Returns which R is about each arm."""
    of_arm = responses.decomposition.components.of_arm
    return [0] * of_arm.size if responses.radii.size == 1 else [int(c) for c in of_arm]


def rational(values: np.ndarray) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def exact_solve(matrix: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction]:
    rows = [[*row, value] for row, value in zip(matrix, rhs, strict=True)]
    for k in range(len(rows)):
        pivot = next(r for r in range(k, len(rows)) if rows[r][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for r in range(len(rows)):
            if r != k and rows[r][k] != 0:
                rows[r] = [x - rows[r][k] * y for x, y in zip(rows[r], rows[k], strict=True)]
    return [row[-1] for row in rows]


def exact_dual(responses: Responses, i: int) -> Fraction:
    """Returns the least value of the Lagrangian of challenger i at its computed multipliers, a lower bound of f_i."""
    n_arms, best, mu = responses.means.size, responses.best, rational(responses.means)
    sigma = rational(responses.decomposition.sigma)
    u = [w / s**2 for w, s in zip(rational(responses.omega), sigma, strict=True)]
    prices, nu = rational(responses.prices[i]), Fraction(float(responses.nu[i]))
    assert min(prices) >= 0
    assert nu >= 0
    bound = bounds_of(responses)
    matrix = [[u[a] if a == b else Fraction(0) for b in range(n_arms)] for a in range(n_arms)]
    for a, b, w in edges_of(responses):
        for x, y in ((a, b), (b, a)):
            matrix[x][x] += 2 * prices[bound[a]] * w
            matrix[x][y] -= 2 * prices[bound[a]] * w
    rhs = [x * m for x, m in zip(u, mu, strict=True)]
    rhs[best] -= nu
    rhs[i] += nu
    lam = exact_solve(matrix, rhs)
    rough = sum((prices[bound[a]] * w * (lam[a] - lam[b]) ** 2 for a, b, w in edges_of(responses)), Fraction(0))
    allowed = sum((price * R for price, R in zip(prices, rational(responses.radii), strict=True)), Fraction(0))
    cost = sum((x * (m - y) ** 2 / 2 for x, m, y in zip(u, mu, lam, strict=True)), Fraction(0))
    short = lam[best] - lam[i] + Fraction(responses.tolerance)
    return cost + rough - allowed + nu * short


def exact_upper(responses: Responses, p: np.ndarray) -> Fraction:
    """Returns max_a (sum_i p_i d^i)_a over alternatives whose constraints are verified exactly."""
    mu, sigma = rational(responses.means), rational(responses.decomposition.sigma)
    shares = rational(p)
    mixed = [Fraction(0)] * len(mu)
    for i, share, gap in zip(responses.challengers, shares, feasible_gaps(responses), strict=True):
        lam = [m - g for m, g in zip(mu, rational(gap), strict=True)]
        bound = bounds_of(responses)
        for c, R in enumerate(rational(responses.radii)):
            own = ((a, b, w) for a, b, w in edges_of(responses) if bound[a] == c)
            assert sum((w * (lam[a] - lam[b]) ** 2 for a, b, w in own), Fraction(0)) <= R
        assert lam[i] >= lam[responses.best] + Fraction(responses.tolerance)
        mixed = [x + share * ((m - y) / s) ** 2 / 2 for x, m, y, s in zip(mixed, mu, lam, sigma, strict=True)]
    return max(mixed) / sum(shares)


def allocations(problem: Problem, mu: np.ndarray) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    optimal = solve_allocation(problem, mu).omega
    return [optimal, np.full(mu.size, 1 / mu.size), rng.dirichlet(np.full(mu.size, 0.3))]


def replaced(responses: Responses, **fields: np.ndarray) -> Responses:
    return dataclasses.replace(responses, **fields)  # type: ignore[arg-type]  # every field given is an array


def alone(responses: Responses, i: int) -> Responses:
    """Returns the responses with every challenger but i out of the race, so that the bound is that of f_i."""
    return replaced(responses, cost=np.where(np.arange(responses.cost.size) == i, responses.cost, np.inf))


@pytest.mark.parametrize("name", CASES)
def test_lower_bounds_stay_below_the_exact_dual_value(name: str) -> None:
    problem, mu = case(name)
    responder = Responder(problem, mu, int(np.argmax(mu)))
    for omega in allocations(problem, mu):
        responses = responder.respond(omega)
        for i in responses.challengers:
            lower, exact = certified_lower(alone(responses, int(i))), exact_dual(responses, int(i))
            assert Fraction(lower) <= exact
            assert lower == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_lower_bounds_hold_at_multipliers_that_are_not_roots(name: str) -> None:
    # The alternatives no longer minimise the Lagrangian: what they leave of its gradient must be paid for.
    problem, mu = case(name)
    responder = Responder(problem, mu, int(np.argmax(mu)))
    responses = responder.respond(np.full(mu.size, 1 / mu.size))
    assert (responses.nu[responses.challengers] > 0).any()
    for factor in (0.5, 0.99, 1.01, 2.0):
        for moved in (
            replaced(responses, gamma=factor * responses.gamma),
            replaced(responses, nu=factor * responses.nu),
        ):
            for i in moved.challengers:
                assert Fraction(certified_lower(alone(moved, int(i)))) <= exact_dual(moved, int(i))


@pytest.mark.parametrize("name", CASES)
def test_lower_bounds_hold_at_alternatives_that_are_off_the_constraints(name: str) -> None:
    # As if the root search had stopped early: too smooth or too rough, too far or not far enough.
    problem, mu = case(name)
    responder = Responder(problem, mu, int(np.argmax(mu)))
    responses = responder.respond(np.full(mu.size, 1 / mu.size))
    u = responses.decomposition.u
    level = responder.mu[responder.best]
    for stretch in (-1e-3, -1e-6, 1e-6, 1e-3):
        gap = responses.gap - stretch * (responder.mu - level - responses.gap)
        cost = np.where(np.isfinite(responses.cost), 0.5 * (u * gap**2).sum(axis=1), np.inf)
        moved = replaced(responses, gap=gap, cost=cost)
        for i in moved.challengers:
            lower, exact = certified_lower(alone(moved, int(i))), exact_dual(moved, int(i))
            assert Fraction(lower) <= exact
            if abs(stretch) == 1e-6:
                assert lower == pytest.approx(float(exact), rel=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_upper_bounds_come_from_alternatives_that_are_exactly_feasible(name: str) -> None:
    problem, mu = case(name)
    responder = Responder(problem, mu, int(np.argmax(mu)))
    for omega in allocations(problem, mu):
        responses = responder.respond(omega)
        p = np.random.default_rng(1).uniform(1, 5, responses.challengers.size)  # need not sum to one
        exact = exact_upper(responses, p)
        upper = certified_upper(feasible_gradients(responses), p)
        assert exact <= Fraction(upper)
        assert upper == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize("roughened", [1e-15, 1e-12, 1e-9])
def test_alternatives_that_rounding_made_too_rough_are_repaired(roughened: float) -> None:
    for name in ("plain", "tolerance", "disconnected", "R each", "R each, tight"):
        problem, mu = case(name)
        responder = Responder(problem, mu, int(np.argmax(mu)))
        honest = responder.respond(np.full(mu.size, 1 / mu.size))
        gap = responder.mu - (responder.mu - honest.gap) * (1 + roughened)
        spoiled = replaced(honest, gap=gap)
        p = np.full(honest.challengers.size, 1 / honest.challengers.size)
        assert exact_upper(spoiled, p) <= Fraction(certified_upper(feasible_gradients(spoiled), p))
        assert np.isfinite(feasible_gaps(spoiled)).all()


def test_alternatives_that_cannot_be_repaired_are_not_used() -> None:
    # |lam_0 - lam_1| = sqrt(R) at most, and the tolerance is that number up to rounding: there is no room for a repair
    problem = Problem(Graph.from_edges(2, [(0, 1)]), 0.01, tolerance=0.1 * (1 - 1e-14))
    responder = Responder(problem, np.array([0.5, 0.45]), 0)
    responses = replaced(responder.respond(np.full(2, 0.5)), gap=np.array([[0.0, 0.0], [0.1, -0.1]]))
    assert responses.challengers.tolist() == [1]
    assert np.isinf(feasible_gaps(responses)).all()
    assert certified_upper(feasible_gradients(responses), np.ones(1)) == np.inf


def test_alternatives_too_rough_in_one_of_two_components_are_not_used_either() -> None:
    graph = Graph.from_edges(4, [(0, 1), (2, 3)])
    problem = Problem(graph, [0.01, 1.0], tolerance=0.1 * (1 - 1e-14))
    mu = np.array([0.5, 0.45, 0.1, 0.0])
    responses = Responder(problem, mu, 0).respond(np.full(4, 0.25))
    gap = responses.gap.copy()
    gap[1, :2] = 0.1, -0.1
    found = feasible_gaps(replaced(responses, gap=gap))
    assert responses.challengers.tolist() == [1, 2, 3]
    assert np.isinf(found[0]).all() and np.isfinite(found[1:]).all()


@pytest.mark.parametrize("seed", range(12))
def test_bounds_never_cross_on_two_arms_far_from_zero(seed: int) -> None:
    # Where the closed answer is (1/2, 1/2) both bounds are tight: an error of one ulp of the level would cross them.
    rng = np.random.default_rng(seed)
    mu = np.array([0.3, 0.3 + rng.uniform(0.05, 0.5)]) + 1e4
    graph = Graph.from_edges(2, [(0, 1, 10 ** rng.uniform(-3, 3))])
    found = solve_allocation(Problem(graph, 1.5 * graph.smoothness(mu), tolerance=0.01), mu)
    assert found.lower <= found.upper <= found.lower * (1 + 1e-9)


def test_the_stored_interval_of_geometric_weighted_ends_too_low() -> None:
    # T* >= 1/upper for an upper bound made of exactly feasible rational alternatives.
    stored = STORED["geometric-weighted"]
    problem = Problem(Graph.from_edges(stored["n_arms"], stored["edges"]), stored["R"])
    mu = np.array(stored["mu"])
    found = solve_allocation(problem, mu, tol=1e-9)
    assert found.status == "certified"
    responses = Responder(problem, mu, int(np.argmax(mu))).respond(found.omega)
    p = mixture_of(responses)
    time = 1 / exact_upper(responses, p)
    assert float(time) == pytest.approx(1429.702604, rel=2e-9)
    assert time > Fraction(stored["characteristic_time"][1])


def mixture_of(responses: Responses) -> np.ndarray:
    """Returns the mixture of the responses' gradients whose largest entry is least: a linear program."""
    gradients = feasible_gradients(responses) / responses.value
    n_rows, n_arms = gradients.shape
    answer = linprog(
        np.append(np.zeros(n_rows), 1.0),
        A_ub=np.hstack([gradients.T, -np.ones((n_arms, 1))]),
        b_ub=np.zeros(n_arms),
        A_eq=np.append(np.ones(n_rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * (n_rows + 1),
    )
    return np.maximum(np.asarray(answer.x[:-1], dtype=np.float64), 0.0)
