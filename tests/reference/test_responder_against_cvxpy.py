"""Best responses against a general cone solver, challenger by challenger."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Vector
from spectralbai.responder import Responder


def cone_cost(problem: Problem, mu: Vector, omega: Vector, best: int, challenger: int, scale: float) -> float:
    """Returns f_i(omega) / scale by Clarabel, `scale` the size to expect; inf if there is no alternative.

    The unknowns are deviations from mu in units that keep every coefficient of the objective at 1 or below, and
    the means of the arms without weight themselves.
    """
    root = np.sqrt(omega) / problem.sigma
    unit = np.minimum(1.0, np.sqrt(2 * scale) / np.where(root > 0, root, np.inf)) + (root == 0)
    deviation = cp.Variable(problem.n_arms)
    lam = np.where(root > 0, mu, 0.0) + cp.multiply(unit, deviation)
    a, b = problem.graph.pairs.T
    constraints = [lam[challenger] >= lam[best] + problem.tolerance]
    for c, R in enumerate(problem.radii):
        own = problem.graph.components[a] == c if problem.by_component else np.ones(a.size, dtype=bool)
        root_w = np.sqrt(problem.graph.weights[own] / R)
        if own.any() and np.isfinite(R):
            constraints.append(cp.norm(cp.multiply(root_w, lam[a[own]] - lam[b[own]])) <= 1)
    objective = cp.Minimize(cp.norm(cp.multiply(root * unit / np.sqrt(2 * scale), deviation)))
    program = cp.Problem(objective, constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the comparison decides
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return np.inf if "infeasible" in program.status else float(program.value) ** 2


def random_case(
    seed: int,
    relative_R: float,
    decades: float,
    zeros: float,
    tolerance: float,
    sigma_decades: float,
    n_components: int,
    several: bool = False,
) -> tuple[Problem, Vector, Vector, int]:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 9))
    label = np.arange(n_arms) % n_components
    edges = []
    for b in range(n_components, n_arms):
        previous = [a for a in range(b) if label[a] == label[b]]
        joined = {previous[-1], *(a for a in previous if rng.random() < 0.4)}
        edges += [(a, b, float(10 ** rng.uniform(-0.5, 0.5))) for a in joined]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.normal(size=n_arms)
    omega = 10 ** rng.uniform(-decades, 0, n_arms)
    omega[rng.random(n_arms) < zeros] = 0.0
    omega[int(rng.integers(n_arms))] = 1.0
    sigma = 10 ** rng.uniform(-sigma_decades, sigma_decades, n_arms)
    best = int(np.argmax(mu)) if seed % 3 else int(rng.integers(n_arms))
    R = relative_R * (graph.roughness_by_component(mu) if several else graph.smoothness(mu))
    if several:  # one of them is much wider, or leaves the component free
        R = R * np.append(rng.choice([5.0, np.inf]), 10 ** rng.uniform(-1, 0.1, n_components - 1))
    return Problem(graph, R, sigma=sigma, tolerance=tolerance), mu, omega, best


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("decades", "zeros", "tolerance", "sigma_decades", "n_components"),
    [
        (1.0, 0.0, 0.0, 0.0, 1),
        (1.0, 0.0, 0.4, 0.5, 1),
        (12.0, 0.0, 0.0, 0.0, 1),
        (12.0, 0.4, 0.0, 0.0, 1),
        (1.0, 0.5, 0.3, 0.0, 1),
        (2.0, 0.4, 0.1, 0.5, 2),
        (12.0, 0.3, 0.0, 0.0, 3),
    ],
)
@pytest.mark.parametrize("relative_R", [0.05, 0.9, 1.2])
def test_every_challenger_costs_what_the_cone_solver_finds(
    seed: int,
    relative_R: float,
    decades: float,
    zeros: float,
    tolerance: float,
    sigma_decades: float,
    n_components: int,
) -> None:
    problem, mu, omega, best = random_case(seed, relative_R, decades, zeros, tolerance, sigma_decades, n_components)
    compare(problem, mu, omega, best)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("decades", "zeros", "tolerance", "sigma_decades", "n_components"),
    [(1.0, 0.0, 0.0, 0.0, 2), (1.0, 0.4, 0.3, 0.5, 2), (6.0, 0.3, 0.0, 0.0, 2), (12.0, 0.0, 0.1, 0.0, 3)],
)
@pytest.mark.parametrize("relative_R", [0.05, 0.9, 1.2])
def test_where_each_component_has_its_R_too(
    seed: int,
    relative_R: float,
    decades: float,
    zeros: float,
    tolerance: float,
    sigma_decades: float,
    n_components: int,
) -> None:
    compare(*random_case(seed, relative_R, decades, zeros, tolerance, sigma_decades, n_components, several=True))


def compare(problem: Problem, mu: Vector, omega: Vector, best: int) -> None:
    """Compares the cost of every challenger with that of the cone solver."""
    responses = Responder(problem, mu, best).respond(omega)
    largest = float((omega / problem.sigma**2).max())
    for challenger in range(problem.n_arms):
        if challenger == best:
            continue
        cost = responses.cost[challenger]
        known = np.isfinite(cost) and cost > 1e-14 * largest
        scale = cost if known else 1e-9 * largest
        found = cone_cost(problem, mu, omega, best, challenger, scale)
        if known:
            assert found == pytest.approx(1.0, abs=1e-5)
        elif np.isfinite(cost):
            assert found == pytest.approx(0.0, abs=1e-4)
        else:
            assert found == np.inf
