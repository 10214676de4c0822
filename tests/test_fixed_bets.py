"""Plans for many arms: the directions of bets are held fixed in turn."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import spectralbai as sb
from spectralbai.allocation.fixed_bets import BALANCED, balance_rows, improve
from spectralbai.allocation.interior_point import opening_allocation, search
from spectralbai.responder import Responder


def _oracle(kind: str) -> Responder:
    made = {
        "neighbors": lambda: sb.instances.nearest_neighbors(40, 4, lead=0.3, seed=2),
        "cliques": lambda: sb.instances.cliques(4, 8, seed=1),
        "tolerance": lambda: sb.instances.grid(5, 6, lead=0.2, tolerance=0.1),
        "catalogue as edges": lambda: sb.instances.cliques(4, 8, seed=3),
    }[kind]()
    assert made.mu is not None
    problem = made.problem
    if kind == "catalogue as edges":  # an R for each component, noise that differs
        rough = problem.graph.roughness_by_component(made.mu)
        problem = sb.Problem(problem.graph, 1.5 * rough + 0.01, np.random.default_rng(0).uniform(0.5, 2, made.mu.size))
    return Responder(problem, made.mu, int(np.argmax(made.mu))).renumbered()


@pytest.mark.parametrize("kind", ["neighbors", "cliques", "tolerance", "catalogue as edges"])
def test_a_few_steps_come_near_the_best_value_and_no_step_loses(kind: str) -> None:
    responder = _oracle(kind)
    needs = np.random.default_rng(1).uniform(1, 5, responder.mu.size)
    needs[[responder.best, 5, 9]] = 0
    racing = needs > 0
    best = search(responder, 1e-4, 60, needs=needs).ceiling
    omega, before, promised = opening_allocation(responder), 0.0, 0.0
    for _ in range(6):
        value = float((responder.respond(omega).cost[racing] / needs[racing]).min())
        assert promised <= value * (1 + 1e-9)
        assert value >= before / (1 + BALANCED) * (1 - 1e-3)
        before = value
        omega, promised = improve(responder, needs, omega, 1)
    assert omega.sum() == pytest.approx(1)
    assert 0.9 * best < promised <= best


def test_without_a_graph_one_step_is_enough() -> None:
    rng = np.random.default_rng(3)
    mu = rng.random(12)
    responder = Responder(sb.Problem(sb.Graph.from_edges(12, []), np.inf), mu, int(np.argmax(mu)))
    best = sb.solve_allocation(responder.problem, mu).upper
    _, value = improve(responder, np.ones(12), np.full(12, 1 / 12), 1)
    assert best / (1 + BALANCED) * (1 - 1e-5) < value <= best


def test_challengers_that_cannot_win_leave_nothing_to_plan() -> None:
    problem = sb.Problem(sb.Graph.from_edges(3, [(0, 1), (1, 2)]), 0.01, tolerance=1.0)
    responder = Responder(problem, np.array([0.1, 0.0, 0.0]), 0)
    omega, value = improve(responder, np.ones(3), np.full(3, 1 / 3), 2)
    assert value == 0
    assert omega.tolist() == [1 / 3] * 3


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_balanced_as_by_cvxpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slopes = rng.exponential(size=(15, 10)) * (rng.random((15, 10)) < 0.5)
    slopes[:, 0] = 1.0
    omega = cp.Variable(10)
    largest = cp.max(cp.hstack([row @ cp.inv_pos(omega) for row in slopes]))
    expected = cp.Problem(cp.Minimize(largest), [cp.sum(omega) == 1]).solve(solver=cp.CLARABEL)
    found, value = balance_rows(slopes)
    assert found.sum() == pytest.approx(1)
    assert value == pytest.approx((slopes @ (1 / found)).max())
    assert expected * (1 - 1e-6) <= value <= expected * (1 + BALANCED)
