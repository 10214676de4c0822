"""The allocation against stored values and against the equivalent cone program, solved by CVXPY and Clarabel."""

from __future__ import annotations

import importlib
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Problem, closest_alternative, solve_allocation
from spectralbai.allocation.interior_point import interior_point
from spectralbai.responder import Responder

cp: Any = importlib.import_module("cvxpy")  # its types are incomplete
STORED = json.loads((Path(__file__).parents[1] / "data" / "allocations.json").read_text())


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored["name"])
def test_stored_instances_are_certified_and_agree_with_their_stored_interval(stored: dict[str, Any]) -> None:
    problem = Problem(Graph.from_edges(stored["n_arms"], stored["edges"]), stored["R"])
    found = solve_allocation(problem, stored["mu"])
    assert found.status == "certified"
    assert found.gap <= 1e-6
    shortest, longest = stored["characteristic_time"]
    assert 1 / found.upper <= longest
    assert 1 / found.lower >= shortest
    assert found.omega.sum() == pytest.approx(1, abs=1e-12)
    cost = closest_alternative(problem, stored["mu"], found.omega).cost
    assert cost == pytest.approx(found.lower, rel=1e-9)
    assert problem.smoothness(stored["mu"]) == pytest.approx(stored["smoothness"], rel=1e-12)


@pytest.mark.parametrize("stored", STORED, ids=lambda stored: stored["name"])
def test_without_the_graph_stored_instances_take_their_vanilla_time(stored: dict[str, Any]) -> None:
    problem = Problem(Graph.from_edges(stored["n_arms"], stored["edges"]), math.inf)
    assert solve_allocation(problem, stored["mu"]).characteristic_time == pytest.approx(
        stored["vanilla_time"], rel=1e-8
    )


def cone_program(problem: Problem, mu: np.ndarray, best: int) -> float:
    """Returns 1/T*: the least s such that a mixture p of alternatives, row i being v_i / p_i, costs at most s at
    every arm."""
    n_arms = problem.n_arms
    others = [i for i in range(n_arms) if i != best]
    a, b = problem.graph.pairs.T
    root = np.zeros((problem.graph.n_edges, n_arms))
    root[np.arange(len(a)), a], root[np.arange(len(a)), b] = (
        np.sqrt(problem.graph.weights),
        -np.sqrt(problem.graph.weights),
    )
    p, v, s = cp.Variable(len(others)), cp.Variable((len(others), n_arms)), cp.Variable()
    # Clarabel's accuracy is absolute: units in which the closest arm is at distance one, and s likewise.
    scale = float(mu[best] - np.sort(mu)[-2]) + problem.tolerance
    unit = 1 / float((problem.sigma**2).sum())
    means = (mu - mu[best]) / scale
    constraints = [cp.sum(p) == 1, p >= 0]
    for k, i in enumerate(others):
        constraints += [v[k, i] >= v[k, best] + problem.tolerance / scale * p[k]]
        for c, R in enumerate(problem.radii.tolist()):
            own = problem.graph.components[a] == c if problem.by_component else a >= 0
            if own.any() and math.isfinite(R):
                constraints += [cp.norm(root[own] @ v[k]) <= math.sqrt(R) / scale * p[k]]
    for arm in range(n_arms):
        costs = [cp.quad_over_lin(p[k] * means[arm] - v[k, arm], p[k]) for k in range(len(others))]
        constraints += [cp.sum(cp.hstack(costs)) / (2 * problem.sigma[arm] ** 2 * unit) <= s]
    accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the comparison decides
        value = cp.Problem(cp.Minimize(s), constraints).solve(solver=cp.CLARABEL, **accuracy)
    return float(value) * unit * scale**2


@pytest.mark.parametrize("seed", range(8))
def test_certificates_bracket_the_value_where_each_component_has_its_R(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(3, 8))
    label = np.append([0, 1], rng.integers(0, 3, n_arms - 2))
    pairs = [(a, b) for a in range(n_arms) for b in range(a) if label[a] == label[b]]
    graph = Graph.from_edges(n_arms, [(a, b, rng.uniform(0.2, 3)) for a, b in pairs if rng.random() < 0.8])
    mu = rng.uniform(size=n_arms)
    sigma = 10 ** rng.uniform(-0.5, 0.5, n_arms) if seed % 2 else np.ones(n_arms)
    R = rng.choice([1.0, 1.5, 4.0, math.inf], graph.n_components, p=[0.3, 0.3, 0.3, 0.1])
    R = R * (graph.roughness_by_component(mu) + 1e-3)
    bracketed(Problem(graph, R, sigma, 0.05 if seed % 3 == 0 else 0.0), mu)


@pytest.mark.parametrize("seed", range(8))
def test_certificates_bracket_the_value_of_the_cone_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 7))
    edges = [(a, b, rng.uniform(0.2, 3)) for a in range(n_arms) for b in range(a) if rng.random() < 0.6]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.uniform(size=n_arms)
    sigma = 10 ** rng.uniform(-0.5, 0.5, n_arms) if seed % 2 else np.ones(n_arms)
    tolerance = 0.05 if seed % 3 == 0 else 0.0
    bracketed(Problem(graph, float(rng.choice([1.0, 1.5, 4.0])) * graph.smoothness(mu) + 0.01, sigma, tolerance), mu)


def bracketed(problem: Problem, mu: np.ndarray) -> None:
    """Checks that the bounds are close, and the value of the cone program between them."""
    best = int(np.argmax(mu))
    found = interior_point(Responder(problem, mu, best).renumbered(), 1e-7, 200)
    value = cone_program(problem, mu, best)
    assert found.upper <= found.lower * (1 + 1e-7)
    assert found.lower <= value * (1 + 1e-7)
    assert value <= found.upper * (1 + 1e-7)
