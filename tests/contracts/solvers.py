"""What every solver of the allocation does.

A solver in `spectralbai.allocation.SOLVERS` is tested automatically. One from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("solver", [Solver("mine", method, 50)])
    class TestMySolver(SolverContract): ...
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Allocation, Graph, InvalidInput, Problem, solve_allocation
from spectralbai.allocation import SOLVERS, Solver
from spectralbai.arrays import Indices
from tests.reference import test_allocation_against_cone_program as gaussian
from tests.reference import test_binary_against_cvxpy as binary

EVERY_SOLVER: dict[str, Solver] = {name: solver for name, solver in SOLVERS.items() if solver is not None}
EDGES = [(0, 2, 1.0), (2, 4, 0.5), (1, 3, 2.0)]
"""Two components whose arms are interleaved."""
MU = np.array([0.45, 0.3, 0.5, 0.35, 0.8])
SIGMA = np.array([1.0, 0.7, 1.0, 1.5, 1.2])
ROUGHLY, TOL, LIMIT = 0.5, 1e-6, 200
"""A gap that every solver closes, the usual one, and the calls of the responder within which it need not be closed."""
ACCURACY = 1e-5
"""Of the cone solver that finds the optimum in one go."""


def problem_for(solver: Solver, name: Indices | None = None) -> Problem:
    """Returns a problem that the solver is made for; with `name`, arm a is called name[a]."""
    name = np.arange(MU.size, dtype=np.intp) if name is None else name
    back = np.argsort(name)
    if solver.by_category:
        graph: Graph = Graph.from_categories([("a", "b", "a", "b", "a")[arm] for arm in back])
        return Problem(graph, 1.3 * graph.roughness_by_component(MU[back]), SIGMA[back])
    edges = [] if solver.without_graph else [(int(name[a]), int(name[b]), w) for a, b, w in EDGES]
    graph = Graph.from_edges(MU.size, edges)
    R = 1.3 * graph.smoothness(MU[back]) if edges else math.inf
    if solver.divergence == "binary":
        return Problem.bounded(graph, R, binary=True)
    return Problem(graph, R, SIGMA[back])


def optimum(problem: Problem) -> float:
    """Returns 1/T*, by one program over all alternatives at once."""
    by_cones = binary.cone_program if problem.noise.divergence == "binary" else gaussian.cone_program
    return by_cones(problem, MU, int(np.argmax(MU)))


def assert_sound(found: Allocation, value: float, tol: float = TOL) -> None:
    """Checks that the bounds hold, and that the status says how close they are."""
    assert found.lower * (1 - ACCURACY) <= value <= found.upper * (1 + ACCURACY)
    assert (found.status == "certified") == (found.upper <= found.lower * (1 + tol))
    assert (found.omega >= 0).all() and found.omega.sum() == pytest.approx(1)
    assert not found.omega.flags.writeable


class SolverContract:
    """What every solver of the allocation does."""

    def test_its_bounds_hold_the_optimum_and_come_as_close_as_asked_for(self, solver: Solver) -> None:
        problem = problem_for(solver)
        value = optimum(problem)
        roughly = solve_allocation(problem, MU, tol=ROUGHLY, solver=solver)
        assert_sound(roughly, value, tol=ROUGHLY)
        assert (roughly.status, roughly.solver, roughly.best) == ("certified", solver.name, 4)
        assert_sound(solve_allocation(problem, MU, tol=TOL, solver=solver, max_iterations=LIMIT), value)

    def test_cut_short_it_says_so_and_its_bounds_hold(self, solver: Solver) -> None:
        problem = problem_for(solver)
        value = optimum(problem)
        for limit in (1, 2):
            found = solve_allocation(problem, MU, tol=1e-12, solver=solver, max_iterations=limit)
            assert found.iterations <= limit
            assert_sound(found, value, tol=1e-12)

    def test_a_start_changes_nothing_but_the_number_of_steps(self, solver: Solver) -> None:
        problem = problem_for(solver)
        cold = solve_allocation(problem, MU, TOL, solver, LIMIT)
        for start in (cold.omega, np.eye(5)[0], 7 * np.ones(5)):
            warm = solve_allocation(problem, MU, TOL, solver, LIMIT, start)
            assert warm.lower <= cold.upper and cold.lower <= warm.upper
            assert warm.status == cold.status

    def test_the_numbers_of_the_arms_change_nothing(self, solver: Solver) -> None:
        name = np.array([3, 0, 4, 1, 2])
        one = solve_allocation(problem_for(solver), MU, TOL, solver, LIMIT)
        other = solve_allocation(problem_for(solver, name), MU[np.argsort(name)], TOL, solver, LIMIT)
        assert other.best == name[one.best]
        assert one.lower <= other.upper and other.lower <= one.upper

    def test_problems_that_it_is_not_made_for_are_refused(self, solver: Solver) -> None:
        joined = Graph.from_edges(5, EDGES)
        score, clicks = Problem(joined, 1.0), Problem.bounded(joined, 1.0, binary=True)
        others = [score if solver.divergence == "binary" else clicks]
        others += [score] if solver.without_graph or solver.by_category else []
        for problem in others:
            with pytest.raises(InvalidInput, match=f"`solver` = '{solver.name}' .*; use solver='auto'"):
                solve_allocation(problem, MU, solver=solver)
