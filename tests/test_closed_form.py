"""The allocation without a graph, and the recursion as the paper prints it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from spectralbai import Graph, InvalidInput, Problem, closest_alternative, solve_allocation
from spectralbai.allocation.interior_point import interior_point
from spectralbai.responder import Responder

FIVE = np.array([0.9, 0.5, 0.6, 0.3, 0.75])


def without_graph(n_arms: int, sigma: float | np.ndarray = 1.0, tolerance: float = 0.0) -> Problem:
    return Problem(Graph.from_edges(n_arms, []), math.inf, sigma, tolerance)


def time_of(omega: np.ndarray, mu: np.ndarray) -> float:
    return 1 / closest_alternative(without_graph(len(mu)), mu, omega).cost


def test_five_arms_have_the_known_allocation_and_time() -> None:
    found = solve_allocation(without_graph(5), FIVE)
    assert found.solver == "closed-form"
    assert found.status == "certified"
    np.testing.assert_allclose(found.omega, [0.4473, 0.0336, 0.0634, 0.0143, 0.4413], atol=5e-5)
    assert found.characteristic_time == pytest.approx(400.116, abs=5e-4)
    assert found.gap <= 1e-10


@pytest.mark.parametrize("seed", range(12))
def test_closed_form_and_interior_point_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 15))
    mu = rng.uniform(size=n_arms)
    sigma = 10 ** rng.uniform(-1, 1, n_arms) if seed % 2 else np.ones(n_arms)
    problem = without_graph(n_arms, sigma, tolerance=0.02 if seed % 3 == 0 else 0.0)
    best = int(np.argmax(mu))
    if problem.tolerance == 0:
        closed = solve_allocation(problem, mu, solver="closed-form")
        assert closed.gap <= 1e-9
        other = solve_allocation(problem, mu, tol=1e-8, solver="interior-point")
        assert closed.lower == pytest.approx(other.lower, rel=2e-8)
    else:
        right = np.flatnonzero(mu >= mu[best] - problem.tolerance)
        values = [interior_point(Responder(problem, mu, int(b)), 1e-8, 200).lower for b in right]
        assert solve_allocation(problem, mu, solver="closed-form").lower == pytest.approx(max(values), rel=2e-8)


def test_two_arms_share_pulls_in_proportion_to_their_noise() -> None:
    found = solve_allocation(without_graph(2, np.array([3.0, 1.0])), [0.2, 0.6])
    np.testing.assert_allclose(found.omega, [0.75, 0.25], rtol=1e-9)
    assert found.characteristic_time == pytest.approx(2 * (3 + 1) ** 2 / 0.4**2, rel=1e-9)


def test_closed_form_is_refused_where_the_graph_matters() -> None:
    problem = Problem(Graph.from_edges(3, [(1, 2)]), 0.05)
    with pytest.raises(InvalidInput, match="closed-form"):
        solve_allocation(problem, [0.9, 0.5, 0.6], solver="closed-form")


def recursion(c: float, leads: np.ndarray) -> np.ndarray:
    """Returns x_2..x_K of the paper's recursion, arms sorted by decreasing means."""
    x = [c]
    for a in range(len(leads) - 1, 0, -1):
        x.append((1 + x[-1]) * (leads[a - 1] / leads[a]) ** 2 - 1)
    return np.array(x[::-1])


def test_the_printed_recursion_may_have_no_solution() -> None:
    # f(c) = sum x_a^2 is a convex parabola: its least value over c >= 0 decides. It neither starts at 0 nor increases.
    leads = np.sort(FIVE[0] - FIVE[1:])
    values = [float((recursion(c, leads) ** 2).sum()) for c in (0.0, 1.0, 2.0)]
    curve = np.polyfit([0.0, 1.0, 2.0], values, 2)
    lowest = max(0.0, -curve[1] / (2 * curve[0]))
    assert curve[0] > 0 > curve[1] and values[0] > 1
    assert float((recursion(lowest, leads) ** 2).sum()) > 1.05


def test_the_printed_recursion_is_far_from_optimal_on_the_means_of_the_paper() -> None:
    mu = np.array([0.9, 0.6, 0.5])
    leads = mu[0] - mu[1:]
    c = brentq(lambda c: float((recursion(c, leads) ** 2).sum()) - 1, 0.5, 2.0)
    assert c == pytest.approx(0.9927, abs=5e-5)
    x = recursion(c, leads)
    omega = np.concatenate([[1.0], x]) / (1 + x.sum())
    assert (omega >= 0).all()
    assert time_of(omega, mu) == pytest.approx(435.5, abs=0.1)
    assert solve_allocation(without_graph(3), mu).characteristic_time == pytest.approx(106.154, abs=5e-4)


@pytest.mark.parametrize("mu", [FIVE, np.array([0.9, 0.5, 0.6])], ids=["five arms", "three arms"])
def test_the_recursion_is_right_for_the_inverse_ratios(mu: np.ndarray) -> None:
    order = np.argsort(-mu)
    leads = mu[order[0]] - mu[order[1:]]
    least = (leads[-1] / leads[0]) ** 2 - 1  # where the ratio of the closest arm is 0
    c = brentq(lambda c: float((recursion(c, leads) ** -2).sum()) - 1, least + 1e-9, 1e6)
    x = 1 / recursion(c, leads)
    omega = np.empty(len(mu))
    omega[order] = np.concatenate([[1.0], x]) / (1 + x.sum())
    found = solve_allocation(without_graph(len(mu)), mu)
    np.testing.assert_allclose(omega, found.omega, rtol=1e-7)
    assert time_of(omega, mu) == pytest.approx(found.characteristic_time, rel=1e-9)


def test_an_answer_exactly_at_the_limit_of_the_tolerance_is_not_used_and_changes_no_bound() -> None:
    mu, tolerance = np.array([0.63, 0.60, 0.63 - 0.05, 0.1]), 0.05
    allocation = solve_allocation(Problem(Graph.from_edges(4, []), math.inf, 0.4, tolerance), mu)
    assert allocation.status == "certified"
    assert allocation.best == 0
