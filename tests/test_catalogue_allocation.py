"""The allocation by category: best responses against the dense oracle, bounds against the interior-point method."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.allocation.catalogue import Game, shift_bound
from spectralbai.checks import Vector
from spectralbai.oracle import Oracle
from spectralbai.spectral import Catalogue


def game(instance: sb.Instance, best: int | None = None) -> tuple[Game, Vector, int]:
    """Returns the game of an instance, its means and the best arm."""
    assert instance.mu is not None
    found = Catalogue.of(instance.problem)
    assert found is not None
    best = int(np.argmax(instance.mu)) if best is None else best
    return Game(found, instance.mu, best, instance.problem.tolerance), instance.mu, best


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize("slack", [1.0001, 1.5, 30.0])
def test_best_responses_are_those_of_the_dense_oracle(lone: bool, tolerance: float, slack: float) -> None:
    rng = np.random.default_rng(0)
    for size, spread in ((5, 0.05), (1, 0.0), (3, 0.1)):
        instance = sb.instances.catalogue(3, size, lone_best=lone, spread=spread, tolerance=tolerance, slack=slack)
        if instance.problem.rigid:
            continue
        play, mu, best = game(instance)
        for scale in (1.0, 1e-4, 1e4):
            u_best, u = 0.4, scale * rng.uniform(0.01, 0.1, play.catalogue.n_categories)
            omega = u[play.catalogue.of_arm]
            omega[best] = u_best
            dense = Oracle(instance.problem, mu, best).respond(omega)
            rivals = dense.challengers
            answers = play.respond(rivals, u_best, u)
            np.testing.assert_allclose(answers.cost, dense.cost[rivals], rtol=1e-7)
            np.testing.assert_allclose(answers.dual, dense.cost[rivals], rtol=1e-7)
            assert (answers.dual <= dense.cost[rivals] * (1 + 1e-9)).all(), "a lower bound"


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize(("n", "size", "spread"), [(5, 10, 0.01), (3, 8, 0.1), (12, 2, 0.02)])
def test_the_bounds_hold_the_value_of_the_best_allocation(lone: bool, n: int, size: int, spread: float) -> None:
    instance = sb.instances.catalogue(n, size, lone_best=lone, spread=spread, seed=2)
    assert instance.mu is not None
    found = sb.solve_allocation(instance.problem, instance.mu, solver="catalogue")
    exact = sb.solve_allocation(instance.problem, instance.mu, solver="interior-point", tol=1e-5)
    assert found.lower <= exact.upper * (1 + 1e-9) and found.upper >= exact.lower * (1 - 1e-9)
    assert found.lower >= 0.6 * exact.lower, "even is not far from the best"
    assert found.omega.sum() == pytest.approx(1.0) and (found.omega >= 0).all()
    reached = Oracle(instance.problem, instance.mu, found.best).respond(found.omega).value
    assert reached >= found.lower * (1 - 1e-9), "the allocation reaches what is said of it"


def test_categories_of_equal_arms_have_bounds_that_meet() -> None:
    """There the even allocation is the best one, by symmetry."""
    labels = ["a"] * 6 + ["b"] * 9 + ["best"]
    problem = sb.Problem(sb.Graph.from_categories(labels), [0.3, 0.5, 0.0])
    mu = np.array([0.1] * 6 + [0.3] * 9 + [1.0])
    found = sb.solve_allocation(problem, mu, solver="catalogue", tol=1e-4)
    assert found.gap < 5e-3
    exact = sb.solve_allocation(problem, mu, solver="interior-point", tol=1e-7)
    assert found.characteristic_time == pytest.approx(exact.characteristic_time, rel=3e-3)


@pytest.mark.parametrize("n_arms", [4, 700])
def test_arms_on_their_own_have_the_closed_form(n_arms: int) -> None:
    mu = np.random.default_rng(0).uniform(0, 0.8, n_arms)
    mu[1] = 0.9
    problem = sb.Problem(sb.Graph.from_categories([str(arm) for arm in range(n_arms)]), math.inf, 2.0)
    found = sb.solve_allocation(problem, mu, solver="catalogue", tol=1e-5)
    exact = sb.solve_allocation(problem, mu, solver="closed-form")
    assert found.status == "certified"
    assert found.characteristic_time == pytest.approx(exact.characteristic_time, rel=1e-6)
    np.testing.assert_allclose(found.omega, exact.omega, rtol=1e-5)


def test_many_arms_in_categories_are_solved_by_category() -> None:
    instance = sb.instances.catalogue(20, 100, spread=0.003)
    assert instance.mu is not None
    found = sb.solve_allocation(instance.problem, instance.mu, tol=1e-3)
    assert found.solver == "catalogue" and found.status == "unfinished" and found.gap < 0.12
    fewer = sb.instances.catalogue(5, 10)
    assert fewer.mu is not None
    assert sb.solve_allocation(fewer.problem, fewer.mu, tol=1e-3).solver == "interior-point"


def test_right_answers_that_are_not_tried_are_bounded() -> None:
    instance = sb.instances.catalogue(3, 4, lone_best=False, spread=0.1, tolerance=0.6, seed=1)
    problem, mu = instance.problem, instance.mu
    assert mu is not None
    for answer in np.flatnonzero(mu > mu.max() - 0.5):
        bound = shift_bound(problem, mu, np.array([answer]))
        play, _, _ = game(instance, int(answer))
        rivals = np.flatnonzero(np.arange(mu.size) != answer)
        for seed in range(5):
            shares = np.random.default_rng(seed).dirichlet(np.ones(play.catalogue.n_categories + 1))
            u = shares[:-1] / np.maximum(np.bincount(play.catalogue.of_arm[rivals], minlength=shares.size - 1), 1)
            assert play.respond(rivals, float(shares[-1]), u).cost.min() <= bound


def test_the_solver_by_category_is_refused_elsewhere() -> None:
    problem = sb.Problem(sb.Graph.from_edges(3, [(0, 1)]), 0.5)
    with pytest.raises(sb.InvalidInput, match="needs arms in categories, with an R for each; use solver='auto'"):
        sb.solve_allocation(problem, [0.9, 0.5, 0.4], solver="catalogue")
