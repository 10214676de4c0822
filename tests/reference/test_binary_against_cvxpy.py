"""The allocation of binary outcomes against CVXPY: best responses, and the whole problem as one cone program."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Problem, solve_allocation
from spectralbai.allocation.binary import BinaryGame, relative_entropy
from spectralbai.arrays import Vector
from spectralbai.responder import Responder

cp: Any = importlib.import_module("cvxpy")  # its types are incomplete


def instance(seed: int, several: bool = False) -> tuple[Problem, Vector]:
    """Returns a random instance; if `several`, of two or more components, each with its R."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 7) if several else rng.integers(3, 6))
    pairs = [(a, b) for a in range(n_arms) for b in range(a) if not several or a % 2 == b % 2]
    graph = Graph.from_edges(n_arms, [(a, b, rng.uniform(0.3, 3)) for a, b in pairs if rng.random() < 0.6])
    mu = rng.uniform(0.02, 0.6 if seed % 2 else 0.98, size=n_arms)
    rough = graph.roughness_by_component(mu) if several else graph.smoothness(mu)
    R = [1.01, 1.5, 4.0][seed % 3] * rough + 1e-3
    if isinstance(R, np.ndarray) and seed % 4 == 3:
        R[0] = math.inf
    return Problem.bounded(graph, R, tolerance=[0.0, 0.03][seed % 2], binary=True), mu


def root_of(problem: Problem) -> np.ndarray:
    """Returns B with B' B = L."""
    a, b = problem.graph.pairs.T
    root = np.zeros((problem.graph.n_edges, problem.n_arms))
    root[np.arange(len(a)), a], root[np.arange(len(a)), b] = 1.0, -1.0
    return root * np.sqrt(problem.graph.weights)[:, None]


def bounds_of(problem: Problem) -> list[tuple[np.ndarray, float]]:
    """Returns the (B, R) of the constraints |B lam|^2 <= R."""
    root = root_of(problem)
    if not problem.by_component:
        return [(root, float(problem.radii[0]))] if problem.graph.n_edges else []
    of_edge = problem.graph.components[problem.graph.pairs[:, 0]]
    return [(root[of_edge == c], problem.radii[c]) for c in set(of_edge.tolist()) if math.isfinite(problem.radii[c])]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("several", [False, True])
def test_best_responses_are_those_of_cvxpy(seed: int, several: bool) -> None:
    problem, mu = instance(seed, several)
    best = int(np.argmax(mu))
    omega = np.random.default_rng(seed).dirichlet(np.ones(mu.size))
    responder = Responder(problem, mu, best)
    game = BinaryGame.of(responder.renumbered())
    responses = game.respond(responder.components.ordered(omega))
    for row, position in enumerate(game.challengers):
        i = int(responder.components.order[position])
        lam = cp.Variable(mu.size)
        cost = omega @ (cp.kl_div(mu, lam) + cp.kl_div(1 - mu, 1 - lam))
        constraints = [lam[i] >= lam[best] + problem.tolerance]
        constraints += [cp.sum_squares(root @ lam) <= R for root, R in bounds_of(problem)]
        exact = cp.Problem(cp.Minimize(cost), constraints).solve(solver=cp.CLARABEL)
        found = relative_entropy(game.rates, responses.lam[row : row + 1])[0] @ responder.components.ordered(omega)
        assert found == pytest.approx(exact, rel=1e-5, abs=1e-8)


def cone_program(problem: Problem, mu: Vector, best: int) -> float:
    """Returns 1/T*: the least s such that a mixture p of alternatives, row i being v_i / p_i, costs at most s at
    every arm; p kl(mu, v/p) is the relative entropy of (p mu, v) plus that of (p (1 - mu), p - v)."""
    others = [i for i in range(problem.n_arms) if i != best]
    p, v, s = cp.Variable(len(others)), cp.Variable((len(others), problem.n_arms)), cp.Variable()
    constraints = [cp.sum(p) == 1, p >= 0]
    for k, i in enumerate(others):
        constraints += [v[k, i] >= v[k, best] + problem.tolerance * p[k]]
        constraints += [cp.norm(root @ v[k]) <= math.sqrt(R) * p[k] for root, R in bounds_of(problem)]
    for arm, rate in enumerate(mu):
        costs = cp.rel_entr(p * rate, v[:, arm]) + cp.rel_entr(p * (1 - rate), p - v[:, arm])
        constraints += [cp.sum(costs) <= s]
    return float(cp.Problem(cp.Minimize(s), constraints).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("several", [False, True])
def test_the_whole_problem_is_that_of_the_cone_program(seed: int, several: bool) -> None:
    problem, mu = instance(seed, several)
    found = solve_allocation(problem, mu)
    assert found.status == "certified"
    # With a tolerance the best of all right answers counts.
    right = np.flatnonzero(mu >= mu.max() - problem.tolerance)
    exact = max(cone_program(problem, mu, int(b)) for b in right)
    assert found.lower * (1 - 1e-5) <= exact <= found.upper * (1 + 1e-5)


def test_the_example_of_the_test_of_the_bound() -> None:
    problem = Problem.bounded(Graph.from_edges(3, [(1, 2)]), 0.01, binary=True)
    assert 1 / cone_program(problem, np.array([0.15, 0.05, 0.07]), 0) == pytest.approx(146.157449, rel=1e-5)
