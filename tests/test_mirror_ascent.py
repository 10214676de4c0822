"""Mirror ascent: the guarantee that is proved for it, and its bounds at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem, closest_alternative, solve_allocation
from spectralbai.allocation.mirror_ascent import lipschitz
from spectralbai.responder import Responder

CASES = {
    "paper": (Problem(Graph.from_edges(3, [(1, 2)]), 0.02), np.array([0.9, 0.5, 0.6])),
    "path": (Problem(Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)]), 0.4), np.array([0.1, 0.3, 0.7, 0.4, 0.2])),
    "noise": (
        Problem(Graph.from_edges(4, [(0, 1), (2, 3)]), 0.4, np.array([0.5, 1.0, 2.0, 0.7])),
        np.array([0.9, 0.5, 0.6, 0.2]),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("t", [1, 3, 10, 40, 200])
def test_the_average_iterate_is_as_close_to_the_optimum_as_proved(name: str, t: int) -> None:
    problem, mu = CASES[name]
    best = solve_allocation(problem, mu).upper
    run = solve_allocation(problem, mu, tol=1e-12, solver="mirror-ascent", max_iterations=t)
    assert run.iterations == t
    value = closest_alternative(problem, mu, run.omega).cost
    bound = lipschitz(Responder(problem, mu, int(np.argmax(mu)))) * math.sqrt(2 * math.log(problem.n_arms) / t)
    assert best - value <= bound


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_average_of_exponentiated_gradient_steps(name: str) -> None:
    problem, mu = CASES[name]
    n_arms, rate = mu.size, math.sqrt(2 * math.log(mu.size)) / lipschitz(Responder(problem, mu, int(np.argmax(mu))))
    omega, iterates = np.full(n_arms, 1 / n_arms), []
    for t in range(1, 31):
        iterates.append(omega)
        gradient = 0.5 * ((mu - closest_alternative(problem, mu, omega).lam) / problem.sigma) ** 2
        scores = rate / math.sqrt(t) * gradient
        omega = omega * np.exp(scores)
        omega /= omega.sum()
    run = solve_allocation(problem, mu, tol=1e-12, solver="mirror-ascent", max_iterations=30)
    np.testing.assert_allclose(run.omega, np.mean(iterates, axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["paper", "path"])
def test_the_average_iterate_approaches_the_optimum(name: str) -> None:
    problem, mu = CASES[name]
    best = solve_allocation(problem, mu).lower
    short, long = (
        best - solve_allocation(problem, mu, tol=1e-12, solver="mirror-ascent", max_iterations=t).lower
        for t in (10, 2000)
    )
    assert 0 <= long < 0.1 * short


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("t", [1, 2, 17, 300])
def test_unfinished_runs_say_so_and_their_bounds_hold(name: str, t: int) -> None:
    problem, mu = CASES[name]
    certified = solve_allocation(problem, mu)
    run = solve_allocation(problem, mu, tol=1e-9, solver="mirror-ascent", max_iterations=t)
    assert run.status == "unfinished"
    assert run.solver == "mirror-ascent"
    assert run.lower <= certified.upper
    assert run.upper >= certified.lower
    assert run.gap > 1e-9
    assert run.omega.sum() == pytest.approx(1)
    assert closest_alternative(problem, mu, run.omega).cost == pytest.approx(run.lower, rel=1e-9)


def test_three_arms_are_certified_to_one_percent() -> None:
    problem, mu = CASES["paper"]
    run = solve_allocation(problem, mu, tol=1e-2, solver="mirror-ascent")
    assert run.status == "certified"
    assert run.gap <= 1e-2
    assert 50 <= run.iterations <= 2000
    assert run.lower <= solve_allocation(problem, mu).upper
    assert run.upper >= solve_allocation(problem, mu).lower


@pytest.mark.parametrize("name", CASES)
def test_the_lipschitz_constant_bounds_every_gradient(name: str) -> None:
    problem, mu = CASES[name]
    responder = Responder(problem, mu, int(np.argmax(mu)))
    rng = np.random.default_rng(3)
    for _ in range(20):
        responses = responder.respond(rng.dirichlet(np.full(mu.size, 0.3)))
        assert responses.gradient[responses.challengers].max() <= lipschitz(responder)
