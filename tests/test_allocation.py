"""The entry point of the allocation: invariances, tolerances, limits and refusals."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from spectralbai import Allocation, Graph, InvalidInput, Problem, closest_alternative, solve_allocation
from spectralbai.allocation import Solver
from spectralbai.allocation.certificate import Certified, certified_lower, certified_upper, feasible_gradients
from spectralbai.allocation.interior_point import interior_point
from spectralbai.arrays import Vector
from spectralbai.responder import Responder

SLACK = 2.5e-6  # two certified values agree up to twice the relative gap asked of each
quick = settings(max_examples=25, deadline=None, derandomize=True, database=None)
PAPER = Problem(Graph.from_edges(3, [(1, 2)]), 0.01)
PAPER_MU = np.array([0.9, 0.5, 0.6])


def random_instance(seed: int, tolerance: float = 0.0) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 9))
    edges = [(a, b, rng.uniform(0.2, 3)) for a in range(n_arms) for b in range(a) if rng.random() < 0.5]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.uniform(size=n_arms)
    sigma = 10 ** rng.uniform(-0.5, 0.5, n_arms) if seed % 2 else np.ones(n_arms)
    return Problem(graph, float(rng.choice([1.0, 1.3, 5.0])) * graph.smoothness(mu) + 1e-3, sigma, tolerance), mu


def edges_of(graph: Graph) -> list[tuple[int, int, float]]:
    return [(int(a), int(b), float(w)) for (a, b), w in zip(graph.pairs, graph.weights, strict=True)]


def assert_certified(found: Allocation) -> None:
    assert found.status == "certified"
    assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-6)


seeds = st.integers(0, 10_000)


@quick
@given(seeds)
def test_renumbering_the_arms_changes_nothing(seed: int) -> None:
    problem, mu = random_instance(seed)
    new = np.random.default_rng(seed).permutation(problem.n_arms)  # arm a becomes arm new[a]
    moved_mu, moved_sigma = np.empty_like(mu), np.empty_like(mu)
    moved_mu[new], moved_sigma[new] = mu, problem.sigma
    graph = Graph.from_edges(problem.n_arms, [(int(new[a]), int(new[b]), w) for a, b, w in edges_of(problem.graph)])
    one, other = solve_allocation(problem, mu), solve_allocation(Problem(graph, problem.R, moved_sigma), moved_mu)
    assert_certified(one)
    assert other.lower == pytest.approx(one.lower, rel=SLACK)
    assert other.best == new[one.best]
    assert closest_alternative(problem, mu, other.omega[new]).cost == pytest.approx(one.lower, rel=SLACK)


@quick
@given(seeds, st.sampled_from([-3.0, 0.1, 1e4]))
def test_a_common_level_changes_nothing(seed: int, level: float) -> None:
    problem, mu = random_instance(seed)
    roomy = Problem(problem.graph, problem.R * (1 + 1e-9), problem.sigma)  # mu + level is rounded
    found = solve_allocation(roomy, mu + level)
    assert_certified(found)
    assert found.lower == pytest.approx(solve_allocation(roomy, mu).lower, rel=SLACK)


@quick
@given(seeds, st.sampled_from([1e-3, 0.5, 1e3]), st.sampled_from([0.0, 0.05]))
def test_the_units_of_the_outcomes_change_nothing(seed: int, unit: float, tolerance: float) -> None:
    problem, mu = random_instance(seed, tolerance)
    R = problem.R * (1 + 1e-9)
    one = solve_allocation(Problem(problem.graph, R, problem.sigma, tolerance), mu)
    other = solve_allocation(Problem(problem.graph, R * unit**2, problem.sigma * unit, tolerance * unit), mu * unit)
    assert_certified(other)
    assert other.lower == pytest.approx(one.lower, rel=SLACK)


@quick
@given(seeds, st.sampled_from([0.01, 3.0, 100.0]))
def test_noise_s_times_larger_takes_s_squared_times_longer(seed: int, s: float) -> None:
    problem, mu = random_instance(seed)
    noisier = solve_allocation(Problem(problem.graph, problem.R, problem.sigma * s), mu)
    assert_certified(noisier)
    assert noisier.characteristic_time == pytest.approx(
        s**2 * solve_allocation(problem, mu).characteristic_time, rel=SLACK
    )


@quick
@given(seeds)
def test_the_time_grows_with_R_up_to_the_time_without_the_graph(seed: int) -> None:
    problem, mu = random_instance(seed)
    best = int(np.argmax(mu))
    vanilla = solve_allocation(Problem(problem.graph, math.inf, problem.sigma), mu)
    # Once the unconstrained best responses to its allocation are smooth enough, the graph says nothing more.
    enough = problem.R
    for i in range(problem.n_arms):
        if i != best:
            lam = mu.copy()
            share = vanilla.omega[[best, i]] / problem.sigma[[best, i]] ** 2
            lam[[best, i]] = share @ mu[[best, i]] / share.sum()
            enough = max(enough, problem.smoothness(lam))
    times = [
        solve_allocation(Problem(problem.graph, R, problem.sigma), mu)
        for R in (problem.R, 0.5 * (problem.R + enough), enough * (1 + 1e-9), 10 * enough)
    ]
    for smaller, larger in pairwise(times):
        assert_certified(smaller)
        assert 1 / smaller.upper <= 1 / larger.lower
    for free in times[2:]:
        assert free.lower <= vanilla.upper
        assert vanilla.lower <= free.upper


@quick
@given(seeds)
def test_edges_of_weight_zero_say_nothing(seed: int) -> None:
    problem, mu = random_instance(seed)
    there = {(a, b) for a, b, _ in edges_of(problem.graph)}
    absent = [(a, b, 0.0) for b in range(problem.n_arms) for a in range(b) if (a, b) not in there]
    padded = Graph.from_edges(problem.n_arms, edges_of(problem.graph) + absent)
    found = solve_allocation(Problem(padded, problem.R, problem.sigma), mu)
    assert found.lower == solve_allocation(problem, mu).lower


KINDS = ["unit", "weights", "close", "noise", "level", "ties"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", [1.0, 1 + 1e-9, 1.5, 1e8])
def test_hard_instances_are_certified(kind: str, room: float) -> None:
    # A wheel: best arm on the rim, R from S(mu) itself to no constraint at all.
    rng = np.random.default_rng(KINDS.index(kind))
    n_arms = 15
    edges = [(0, a, 1.0) for a in range(1, n_arms)] + [(a, a % (n_arms - 1) + 1, 1.0) for a in range(1, n_arms)]
    if kind == "weights":
        edges = [(a, b, 10 ** rng.uniform(-6, 6)) for a, b, _ in edges]
    mu = rng.integers(0, 3, n_arms) / 4 if kind == "ties" else rng.uniform(size=n_arms)
    mu[4] = mu.max() + (1e-4 if kind == "close" else 0.1)
    mu = mu + (1e4 if kind == "level" else 0.0)
    sigma = 10 ** rng.uniform(-1.5, 1.5, n_arms) if kind == "noise" else np.ones(n_arms)
    graph = Graph.from_edges(n_arms, edges)
    problem = Problem(graph, room * graph.smoothness(mu), sigma)
    found = solve_allocation(problem, mu)
    assert_certified(found)
    assert found.iterations <= 80
    assert closest_alternative(problem, mu, found.omega).cost == pytest.approx(found.lower, rel=1e-7)


@pytest.mark.parametrize("seed", [42, 46])
def test_steps_that_outrun_the_curved_constraints_recover(seed: int) -> None:
    # Optimal weights of very different sizes. On these two of 150 trees the search never recovers if complementarity
    # falls faster than the residuals.
    rng = np.random.default_rng(seed)
    n_arms = 35
    graph = Graph.from_edges(n_arms, [(a, int(rng.integers(a)), 1.0) for a in range(1, n_arms)])
    mu = np.linalg.solve(0.3 * np.eye(n_arms) + graph.laplacian.toarray(), rng.normal(size=n_arms))
    sigma = 10 ** rng.uniform(-1.5, 1.5, n_arms)
    assert_certified(solve_allocation(Problem(graph, 1.5 * graph.smoothness(mu), sigma), mu))


@pytest.mark.parametrize("limit", [1, 2, 4])
def test_runs_cut_short_say_so_and_their_bounds_hold(limit: int) -> None:
    for seed in range(6):
        problem, mu = random_instance(seed)
        if problem.n_arms < 4:
            continue
        full = solve_allocation(problem, mu, tol=1e-9, solver="interior-point")
        short = solve_allocation(problem, mu, tol=1e-9, solver="interior-point", max_iterations=limit)
        assert short.iterations == limit
        assert short.status == "unfinished"
        assert short.lower <= full.upper
        assert short.upper >= full.lower
        assert short.gap > 1e-9


def test_a_solver_may_be_given_as_an_object() -> None:
    """Such as one that knows the answer: half of the pulls to each of two arms."""

    def half(responder: Responder, tol: float, limit: int, start: Vector | None, enough: float) -> Certified:
        responses = responder.respond(np.full(2, 0.5))
        upper = certified_upper(feasible_gradients(responses), np.ones(1))
        return Certified(responses.omega, certified_lower(responses), upper, limit)

    problem = Problem(Graph.from_edges(2, []), 1.0)
    found = solve_allocation(problem, [1.0, 0.0], solver=Solver("half", half, 7))
    assert (found.solver, found.iterations, found.status) == ("half", 7, "certified")
    assert found.characteristic_time == pytest.approx(8.0)


def test_a_start_is_a_guess_of_the_arms_in_their_own_order() -> None:
    # Components do not come in the order of the arms; after one call of the responder the answer is the guess, made
    # positive.
    problem, mu = Problem(Graph.from_edges(4, [(0, 3), (1, 2)]), 1.0), [0.9, 0.5, 0.6, 0.4]
    start = np.array([0.6, 0.0, 0.1, 0.3])
    found = solve_allocation(problem, mu, start=start, max_iterations=1)
    np.testing.assert_allclose(found.omega, 0.9 * start + 0.1 / 4)


def test_many_allocations_are_optimal_on_the_papers_example() -> None:
    for x in (0.171, 0.25, 0.4, 0.5):
        assert 1 / closest_alternative(PAPER, PAPER_MU, [0.5, x, 0.5 - x]).cost == pytest.approx(800 / 9, rel=1e-9)
    assert 1 / closest_alternative(PAPER, PAPER_MU, [0.5, 0.165, 0.335]).cost > 89
    assert solve_allocation(PAPER, PAPER_MU).characteristic_time == pytest.approx(800 / 9, rel=1e-6)


def test_arms_that_get_no_pulls_have_smaller_entries_in_the_optimal_mixture() -> None:
    # The paper has d*_a = 1/T* for every arm; where omega*_a = 0 only d*_a <= 1/T* is true. Here: a noisy twin.
    problem = Problem(Graph.from_edges(3, [(1, 2, 1e4)]), 1e-4, [1.0, 1.0, 5.0])
    mu = np.array([0.9, 0.5, 0.5])
    found = solve_allocation(problem, mu)
    assert found.omega[2] < 1e-6
    responses = Responder(problem, mu, 0).respond(found.omega)
    gradients = responses.gradient[responses.challengers] / found.lower
    least = linprog(
        np.array([0.0, 0.0, 1.0]),
        A_ub=np.hstack([gradients.T, -np.ones((3, 1))]),
        b_ub=np.zeros(3),
        A_eq=np.array([[1.0, 1.0, 0.0]]),
        b_eq=np.ones(1),
    )
    mixed = least.x[:2] @ gradients
    np.testing.assert_allclose(mixed[:2], 1, rtol=1e-4)
    assert mixed[2] < 0.1


def test_with_a_tolerance_the_value_is_the_best_over_right_answers() -> None:
    elsewhere = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        graph = Graph.from_edges(4, [(0, 1), (1, 2)])
        mu = rng.uniform(size=4)
        problem = Problem(graph, 1.3 * graph.smoothness(mu) + 0.1, 10 ** rng.uniform(-1, 1, 4), 0.3)
        right = np.flatnonzero(mu >= mu.max() - 0.3)
        values = {int(b): interior_point(Responder(problem, mu, int(b)), 1e-8, 200) for b in right}
        found = solve_allocation(problem, mu)
        assert_certified(found)
        assert found.best in right
        assert found.lower <= max(value.upper for value in values.values())
        assert found.upper >= max(value.lower for value in values.values())
        assert closest_alternative(problem, mu, found.omega, found.best).cost == pytest.approx(found.lower, rel=1e-7)
        elsewhere += found.best != int(np.argmax(mu))
    assert elsewhere >= 1


@pytest.mark.parametrize("R", [0.5, math.inf])
def test_ties_for_the_best_are_allowed_with_a_tolerance(R: float) -> None:
    graph = Graph.from_edges(4, [(0, 1), (2, 3)])
    found = solve_allocation(Problem(graph, R, tolerance=0.1), [0.8, 0.8, 0.5, 0.4])
    assert_certified(found)
    assert found.best in (0, 1)


def test_a_tolerance_that_no_alternative_exceeds_is_refused() -> None:
    # Two arms joined by an edge: |lam_0 - lam_1| <= sqrt(R) = 0.1 < tolerance.
    problem = Problem(Graph.from_edges(2, [(0, 1)]), 0.01, tolerance=0.2)
    with pytest.raises(InvalidInput, match=r"tolerance.*0\.2.*R.*0\.01"):
        solve_allocation(problem, [0.5, 0.45])


@pytest.mark.parametrize(("n", "R", "tolerance"), [(3, 0.06, 0.2), (4, 0.08, 0.2), (5, 0.025, 0.1), (8, 0.04, 0.1)])
def test_arms_that_can_beat_the_best_by_just_the_tolerance_count_as_arms_that_cannot(
    n: int, R: float, tolerance: float
) -> None:
    # The means of a clique can differ by sqrt(2 R / n), exactly the tolerance: rounding errors would decide.
    clique = Graph.from_edges(n + 1, [(a, b) for a in range(n) for b in range(a + 1, n)])
    mu = [*np.linspace(0.5, 0.45, n), 0.2]
    at_limit, beyond = (
        solve_allocation(Problem(clique, R, tolerance=each), mu) for each in (tolerance, tolerance * (1 + 1e-6))
    )
    assert at_limit.status == "certified"
    assert at_limit.lower == pytest.approx(beyond.lower, rel=1e-4)


def test_at_R_zero_a_component_is_one_arm_and_its_least_noisy_member_is_pulled() -> None:
    graph = Graph.from_edges(5, [(1, 2), (3, 4)])
    sigma = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    mu = [0.9, 0.5, 0.5, 0.6, 0.6]
    found = solve_allocation(Problem(graph, 0.0, sigma), mu)
    quotient = solve_allocation(Problem(Graph.from_edges(3, []), math.inf, sigma[[0, 2, 3]]), [0.9, 0.5, 0.6])
    assert_certified(found)
    assert found.best == 0
    assert found.lower == quotient.lower
    np.testing.assert_array_equal(found.omega[[0, 2, 3]], quotient.omega)
    np.testing.assert_array_equal(found.omega[[1, 4]], 0)
    nearly = solve_allocation(Problem(graph, 1e-9, sigma), mu)
    assert nearly.lower == pytest.approx(found.lower, rel=1e-3)


def test_at_R_zero_a_best_arm_that_cannot_be_unique_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`R` = 0"):
        solve_allocation(Problem(Graph.from_edges(3, [(0, 1)]), 0.0), [0.9, 0.9, 0.5])
    assert_certified(solve_allocation(Problem(Graph.from_edges(3, [(0, 1)]), 0.0, tolerance=0.1), [0.9, 0.9, 0.5]))
    with pytest.raises(InvalidInput, match="connected"):
        solve_allocation(Problem(Graph.from_edges(2, [(0, 1)]), 0.0, tolerance=0.1), [0.9, 0.9])


def test_means_rougher_than_R_are_refused_with_both_numbers() -> None:
    with pytest.raises(InvalidInput, match=r"S\(mu\) = 0\.01 and R = 0\.005"):
        solve_allocation(Problem(Graph.from_edges(3, [(1, 2)]), 0.005), PAPER_MU)


def test_numbers_that_are_refused_look_different_even_if_they_are_close() -> None:
    mu = np.array([0.9, 0.5, 0.6], dtype=np.float32)  # S(mu) is slightly more than 0.01
    with pytest.raises(InvalidInput, match=r"got S\(mu\) = 0.0100000047\d* and R = 0.01;"):
        solve_allocation(Problem(Graph.from_edges(3, [(1, 2)]), 0.01), mu)


@pytest.mark.parametrize("R", [0.01, math.inf])
@pytest.mark.parametrize("lead", [1e-100, 1e-170])
def test_a_lead_whose_square_is_lost_in_floating_point_is_refused(R: float, lead: float) -> None:
    with pytest.raises(InvalidInput, match="`mu` must have a best arm that leads by 1e-75 sigma or more"):
        solve_allocation(Problem(Graph.from_edges(3, [(1, 2)]), R), [lead, 0.0, 0.0])


def test_means_at_R_up_to_rounding_are_accepted() -> None:
    assert_certified(solve_allocation(Problem(PAPER.graph, 0.01 * (1 - 1e-13)), PAPER_MU))


def test_a_tie_for_the_best_is_refused_without_a_tolerance() -> None:
    with pytest.raises(InvalidInput, match="arms 0 and 2 tied"):
        solve_allocation(Problem(PAPER.graph, 1.0), [0.6, 0.5, 0.6])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tol": 0.0}, "`tol` must be"),
        ({"tol": -1e-6}, "`tol` must be"),
        ({"tol": math.nan}, "`tol` must be"),
        (
            {"solver": "simplex"},
            "must be a Solver or one of auto, binary, catalogue, closed-form, interior-point, mirror-ascent, got 'simp",
        ),
        ({"max_iterations": 0}, "`max_iterations` must be"),
        ({"max_iterations": 2.5}, "`max_iterations` must be"),
        ({"start": [0.5, 0.5]}, "`start` must have shape"),
        ({"start": [0.5, 0.6, -0.1]}, "`start` must be non-negative"),
        ({"start": [0.0, 0.0, 0.0]}, "`start` must have a positive entry"),
        ({"start": [0.5, math.nan, 0.5]}, "`start` must be finite"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        solve_allocation(PAPER, PAPER_MU, **arguments)


def test_an_allocation_without_a_lower_bound_has_an_infinite_gap_and_time() -> None:
    empty = Allocation(np.ones(2) / 2, 0, 0.0, 1.0, 1, "unfinished", "interior-point")
    assert empty.gap == math.inf
    assert empty.characteristic_time == math.inf
