"""The constrained estimate against a general cone solver."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

from spectralbai import Graph, Problem, estimate
from spectralbai.arrays import Vector


def random_data(seed: int, relative_R: float, zeros: float, several: bool) -> tuple[Problem, Vector, Vector]:
    """Returns (problem, counts, means), two components, each with an observation."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 12))
    pairs = [(a, b) for b in range(2, n_arms) for a in range(b % 2, b, 2) if a == b - 2 or rng.random() < 0.3]
    edges = [(a, b, float(10 ** rng.uniform(-1, 1))) for a, b in pairs]
    graph = Graph.from_edges(n_arms, edges)
    means = rng.normal(size=n_arms)
    counts = np.ceil(10 ** rng.uniform(0, 3, n_arms))
    counts[2:][rng.random(n_arms - 2) < zeros] = 0.0
    sigma = 10 ** rng.uniform(-0.3, 0.3, n_arms)
    R = relative_R * (graph.roughness_by_component(means) * [1.0, 0.1] if several else graph.smoothness(means))
    return Problem(graph, R, sigma=sigma), counts, means


def cone_estimate(problem: Problem, counts: Vector, means: Vector) -> Vector:
    """Returns the estimate by Clarabel; then, its values on observed arms kept, the least rough values on the
    others."""
    root = np.sqrt(counts) / problem.sigma
    a, b = problem.graph.pairs.T
    root_w = np.sqrt(problem.graph.weights)

    def solve(objective: cp.Expression, constraints: list[cp.Constraint]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the comparison decides
            cp.Problem(cp.Minimize(objective), constraints).solve(
                solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
            )

    lam = cp.Variable(problem.n_arms)
    parts = [problem.graph.components[a] == c for c in range(2)] if problem.by_component else [a >= 0]
    rough = [cp.norm(cp.multiply(root_w[own], lam[a[own]] - lam[b[own]])) for own in parts]
    misfit = cp.norm(cp.multiply(root / root.max(), lam - means))
    solve(misfit, [each <= np.sqrt(R) for each, R in zip(rough, problem.radii, strict=True)])
    seen = np.flatnonzero(counts > 0)
    solve(cp.sum_squares(cp.multiply(root_w, lam[a] - lam[b])), [lam[seen] == lam.value[seen]])
    return np.array(lam.value)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("relative_R", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("several", [False, True])
def test_the_estimate_is_what_the_cone_solver_finds(seed: int, zeros: float, relative_R: float, several: bool) -> None:
    problem, counts, means = random_data(seed, relative_R, zeros, several)
    mu = estimate(problem, counts, np.where(counts > 0, means, np.nan))
    np.testing.assert_allclose(mu, cone_estimate(problem, counts, means), atol=2e-5)
