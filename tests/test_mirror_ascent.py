"""Mirror ascent: the guarantee that is proved for it, and its bounds at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralbai import Graph, Problem, closest_alternative, solve_allocation
from spectralbai.allocation.mirror_ascent import lipschitz
from spectralbai.responder import Responder
from spectralbai.sampling import printed

CASES = {
    "paper": (Problem(Graph.from_edges(3, [(1, 2)]), 0.02), np.array([0.9, 0.5, 0.6])),
    "path": (Problem(Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)]), 0.4), np.array([0.1, 0.3, 0.7, 0.4, 0.2])),
    "noise": (
        Problem(Graph.from_edges(4, [(0, 1), (2, 3)]), 0.4, np.array([0.5, 1.0, 2.0, 0.7])),
        np.array([0.9, 0.5, 0.6, 0.2]),
    ),
}


def guaranteed(problem: Problem, mu: np.ndarray, t: int, printed: bool) -> float:
    """Returns how far from the optimum the average of t iterates is at most: (5.5) for steps as printed, or (5.12)."""
    L, n_arms = lipschitz(Responder(problem, mu, int(np.argmax(mu)))), mu.size
    if printed:
        return L * math.sqrt(2 * math.log(n_arms) / t)
    s = np.arange(1, t + 1)
    return float(L * math.sqrt(math.log(n_arms) / 2) * (1 + (1 / s).sum() / 4) / (s**-0.5).sum())


def loss(problem: Problem, mu: np.ndarray, omega: np.ndarray) -> float:
    return solve_allocation(problem, mu).upper - closest_alternative(problem, mu, omega).cost


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("t", [1, 3, 10, 40, 200])
def test_the_answer_is_as_close_to_the_optimum_as_proved(name: str, t: int) -> None:
    problem, mu = CASES[name]
    run = solve_allocation(problem, mu, tol=1e-12, solver="mirror-ascent", max_iterations=t)
    assert run.iterations == t
    assert loss(problem, mu, run.omega) <= guaranteed(problem, mu, t, printed=False)


LONE = Problem(Graph.from_edges(20, [(a, b) for b in range(1, 20) for a in range(1, b)]), 1e-6), np.eye(20)[0]
"""One arm ahead of nineteen alike, of which equal shares give far too much to the nineteen."""


@pytest.mark.parametrize("t", [300, 1000])
def test_the_guarantee_says_more_than_that_the_answer_is_no_worse_than_equal_shares(t: int) -> None:
    run = solve_allocation(*LONE, tol=1e-12, solver="mirror-ascent", max_iterations=t)
    bound = guaranteed(*LONE, t, printed=False)
    assert loss(*LONE, run.omega) <= bound < loss(*LONE, np.full(20, 1 / 20))


@pytest.mark.parametrize(("case", "t"), [(LONE, 400), (LONE, 1500), (CASES["paper"], 10_000), (CASES["paper"], 40_000)])
def test_the_steps_as_printed_have_the_guarantee_of_the_theorem_where_it_says_something(
    case: tuple[Problem, np.ndarray], t: int
) -> None:
    omega = printed.mirror_ascent(case[1], printed.constants(case[0]), t)
    assert loss(*case, omega) <= guaranteed(*case, t, printed=True) < loss(*case, np.full(omega.size, 1 / omega.size))


def test_steps_that_need_no_horizon_have_the_better_guarantee_up_to_87_000_of_them() -> None:
    for t in (1, 2, 5, 14, 100, 1000, 80_000):
        assert guaranteed(*LONE, t, printed=False) < guaranteed(*LONE, t, printed=True)
    assert guaranteed(*LONE, 90_000, printed=False) > guaranteed(*LONE, 90_000, printed=True)


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_an_average_of_exponentiated_gradient_steps(name: str) -> None:
    problem, mu = CASES[name]
    n_arms, rate = mu.size, math.sqrt(2 * math.log(mu.size)) / lipschitz(Responder(problem, mu, int(np.argmax(mu))))
    omega, iterates, steps = np.full(n_arms, 1 / n_arms), [], rate / np.sqrt(np.arange(1, 31))
    for step in steps:
        iterates.append(omega)
        gradient = 0.5 * ((mu - closest_alternative(problem, mu, omega).lam) / problem.sigma) ** 2
        omega = omega * np.exp(step * gradient)
        omega /= omega.sum()
    averages = [np.average(iterates, axis=0, weights=weights) for weights in (None, steps)]
    values = [closest_alternative(problem, mu, average).cost for average in averages]
    run = solve_allocation(problem, mu, tol=1e-12, solver="mirror-ascent", max_iterations=30)
    np.testing.assert_allclose(run.omega, averages[int(np.argmax(values))], rtol=1e-9)
    assert run.lower == pytest.approx(max(values), rel=1e-9)


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
