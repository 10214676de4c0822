"""The allocation by category: best responses against the dense method, bounds against the interior-point method."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.allocation.catalogue import entropy_bound, layout_of, shift_bound
from spectralbai.allocation.category_responses import Alternatives, Layout, pooled, respond
from spectralbai.allocation.category_system import System
from spectralbai.arrays import Indices, Vector
from spectralbai.responder import Responder


def layout(problem: sb.Problem, mu: Vector) -> tuple[Responder, Indices, Layout]:
    """Returns the responder of a problem, its arms in the order of the solver, and how they lie there."""
    responder = Responder(problem, mu, int(np.argmax(mu)))
    assert responder.catalogue is not None
    order, found = layout_of(responder)
    return responder, order, found


def cold(found: Layout, u: Vector) -> Alternatives:
    """Returns the best responses without a guess."""
    n = found.rivals.size
    return respond(found, u, np.zeros(n), np.zeros((n, 9)), np.zeros((n, 9)))


def mixed(seed: int, slack: float, noisy: float, close: float | None = None) -> tuple[sb.Problem, Vector]:
    """Returns categories of 12, 5, 2 and 1 arms, and one on its own, in a shuffled order; `noisy` is the log of the
    largest ratio of a sigma to 1, and `close` the lead of the best arm."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation([f"c{c}" for c, size in enumerate((12, 5, 2, 1, 1)) for _ in range(size)]).tolist()
    graph = sb.Graph.from_categories(labels)
    level = dict(zip(sorted(set(labels)), rng.uniform(0, 1, 5), strict=True))
    mu = np.array([level[label] for label in labels]) + 0.02 * rng.standard_normal(21)
    if close is not None:
        first, second = np.argsort(-mu)[:2]
        mu[second] = mu[first] - close
    sigma = np.exp(noisy * rng.uniform(-1, 1, 21))
    return sb.Problem(graph, slack * graph.roughness_by_component(mu), sigma), mu


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
@pytest.mark.parametrize("slack", [1.0001, 1.5, 30.0])
def test_best_responses_are_those_of_the_dense_oracle(lone: bool, tolerance: float, slack: float) -> None:
    rng = np.random.default_rng(0)
    for size, spread in ((5, 0.05), (1, 0.0), (3, 0.1)):
        instance = sb.instances.catalogue(3, size, lone_best=lone, spread=spread, tolerance=tolerance, slack=slack)
        if instance.problem.rigid:
            continue
        assert instance.mu is not None
        responder, order, found = layout(instance.problem, instance.mu)
        for scale in (1.0, 1e-4, 1e4):
            omega = scale * rng.uniform(0.001, 0.1, instance.problem.n_arms)
            omega[responder.best] = 0.4
            dense = responder.respond(omega)
            answers = cold(found, omega[order])
            rivals = order[found.rivals]
            assert sorted(rivals) == dense.challengers.tolist()
            np.testing.assert_allclose(answers.value, dense.cost[rivals], rtol=1e-7)
            assert (answers.value <= dense.cost[rivals] * (1 + 1e-9)).all(), "a lower bound"
            assert answers.feasible.all()
            mixture = rng.dirichlet(np.ones(rivals.size))
            slope, _ = pooled(found, omega[order], answers, mixture)
            np.testing.assert_allclose(slope, mixture @ dense.gradient[np.ix_(rivals, order)], rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize("size", [6, 70])
def test_the_system_of_a_step_has_the_second_derivatives(lone: bool, size: int) -> None:
    """In small categories each arm has a direction of its own, in large ones few directions are shared."""
    instance = sb.instances.catalogue(2, size, lone_best=lone, spread=0.02, seed=3)
    assert instance.mu is not None
    rng = np.random.default_rng(0)
    _, _, found = layout(instance.problem, instance.mu)
    u, rivals = rng.uniform(0.5, 1.5, instance.problem.n_arms), found.rivals
    answers = cold(found, u)
    weight, steep = rng.uniform(0.5, 1.0, rivals.size), rng.uniform(0.5, 1.0, rivals.size)
    slope, bend = pooled(found, u, answers, weight)
    system = System(found, u, answers, bend + 0.01, weight, steep)
    np.testing.assert_allclose(system.back(weight), slope, atol=1e-5 * slope.max())
    for _ in range(3):
        du = rng.standard_normal(u.size)
        after, before = cold(found, u + 1e-5 * du), cold(found, u - 1e-5 * du)
        change = (after.value - before.value) / 2e-5
        np.testing.assert_allclose(system.along(du), change, atol=1e-5 * np.abs(change).max())
        bent = (
            -(pooled(found, u + 1e-5 * du, after, weight)[0] - pooled(found, u - 1e-5 * du, before, weight)[0]) / 2e-5
        )
        expected = bent + 0.01 * du + system.back(steep * system.along(du))
        np.testing.assert_allclose(system.product(du), expected, atol=1e-4 * np.abs(expected).max())
        np.testing.assert_allclose(system.solve(system.product(du)), du, atol=1e-8)


def agrees(problem: sb.Problem, mu: Vector, tol: float = 1e-5) -> sb.Allocation:
    """Returns what the solver finds, after comparing it with the dense one and its bounds with the responder."""
    found = sb.solve_allocation(problem, mu, solver="catalogue", tol=tol)
    exact = sb.solve_allocation(problem, mu, solver="interior-point", tol=1e-6)
    assert found.status == "certified" and found.gap <= tol
    assert found.lower <= exact.upper and found.upper >= exact.lower
    assert found.omega.sum() == pytest.approx(1.0) and (found.omega >= 0).all()
    reached = sb.closest_alternative(problem, mu, found.omega, found.best).cost
    assert found.lower <= reached * (1 + 1e-9) and reached <= found.lower * (1 + 1e-6), "the allocation reaches it"
    return found


@pytest.mark.parametrize("lone", [True, False])
@pytest.mark.parametrize(("n", "size", "spread"), [(5, 10, 0.01), (3, 8, 0.1), (12, 2, 0.02), (2, 45, 0.005)])
def test_small_catalogues_have_the_allocation_of_the_dense_method(lone: bool, n: int, size: int, spread: float) -> None:
    instance = sb.instances.catalogue(n, size, lone_best=lone, spread=spread, seed=2)
    assert instance.mu is not None
    agrees(instance.problem, instance.mu)


@pytest.mark.parametrize("slack", [1.0001, 3.0, 1e6])
@pytest.mark.parametrize("noisy", [0.0, 0.7, 2.3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_categories_of_all_sizes_with_unequal_noise(slack: float, noisy: float, seed: int) -> None:
    agrees(*mixed(seed, slack, noisy))


@pytest.mark.parametrize("close", [1e-2, 1e-4])
@pytest.mark.parametrize("seed", [3, 4])
def test_two_arms_nearly_tied(close: float, seed: int) -> None:
    agrees(*mixed(seed, 2.0, 0.5, close))


@pytest.mark.parametrize("R", [1e-10, 1e-6, 1e9])
def test_R_from_next_to_nothing_to_no_help(R: float) -> None:
    graph = sb.Graph.from_categories(["a"] * 6 + ["b"] * 5 + ["best"])
    means = np.repeat([0.3, 0.5, 1.0], [6, 5, 1])
    found = agrees(sb.Problem(graph, [R, R, 0.0]), means)
    apart = sb.solve_allocation(sb.Problem(graph, math.inf), means).lower
    pooled_arms = sb.solve_allocation(sb.Problem(sb.Graph.from_edges(3, []), math.inf), [0.3, 0.5, 1.0]).lower
    assert found.lower == pytest.approx(apart if R == 1e9 else pooled_arms, rel=1e-2)


@pytest.mark.parametrize("R", [1e-12, 1e-13])
def test_bounds_hold_where_R_is_too_small_for_the_steps(R: float) -> None:
    graph = sb.Graph.from_categories(["a"] * 6 + ["b"] * 5 + ["best"])
    means = np.repeat([0.3, 0.5, 1.0], [6, 5, 1])
    problem = sb.Problem(graph, [R, R, 0.0])
    bounds = sb.solve_allocation(problem, means, solver="catalogue", tol=1e-5)
    exact = sb.solve_allocation(problem, means, solver="interior-point", tol=1e-6)
    assert bounds.status == ("certified" if bounds.gap <= 1e-5 else "unfinished")  # which one depends on the machine
    assert bounds.lower <= exact.upper and bounds.upper >= exact.lower and bounds.gap < 0.01


def test_the_order_of_arms_and_the_units_do_not_matter() -> None:
    problem, mu = mixed(5, 1.5, 0.5)
    found = sb.solve_allocation(problem, mu, solver="catalogue")
    rng = np.random.default_rng(0)
    order = rng.permutation(mu.size)
    labels = [str(problem.components[arm]) for arm in order]
    graph = sb.Graph.from_categories(labels)
    radii = 1.5 * graph.roughness_by_component(mu[order])
    other = sb.solve_allocation(sb.Problem(graph, radii, problem.sigma[order]), mu[order], solver="catalogue")
    assert other.lower == pytest.approx(found.lower, rel=2e-6)
    assert other.best == np.flatnonzero(order == found.best)[0]
    noisier = sb.Problem(graph, radii, 3 * problem.sigma[order])
    assert sb.solve_allocation(noisier, mu[order], solver="catalogue").lower == pytest.approx(found.lower / 9, rel=2e-6)
    higher = sb.solve_allocation(problem, mu + 100.0, solver="catalogue")
    assert higher.lower == pytest.approx(found.lower, rel=2e-6)


def test_the_bounds_hold_wherever_the_search_stops() -> None:
    problem, mu = mixed(6, 1.5, 0.7)
    exact = sb.solve_allocation(problem, mu, solver="interior-point")
    for limit in (1, 2, 4, 7):
        found = sb.solve_allocation(problem, mu, solver="catalogue", max_iterations=limit)
        assert found.iterations == limit and found.lower <= exact.upper and found.upper >= exact.lower
    nearby = sb.solve_allocation(problem, mu, solver="catalogue", start=exact.omega)
    assert nearby.status == "certified"


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


@pytest.mark.parametrize(("n", "size", "lone", "noisy"), [(50, 100, True, False), (20, 100, False, True)])
def test_many_arms_in_categories_are_solved_by_category(n: int, size: int, lone: bool, noisy: bool) -> None:
    sigma = np.random.default_rng(0).uniform(0.5, 2.0, n * size + lone) if noisy else 1.0
    instance = sb.instances.catalogue(n, size, lone_best=lone, spread=0.003, sigma=sigma)
    assert instance.mu is not None
    found = sb.solve_allocation(instance.problem, instance.mu, tol=1e-3)
    assert found.solver == "catalogue" and found.status == "certified" and found.gap <= 1e-3


def test_few_arms_in_categories_are_solved_by_the_dense_method() -> None:
    fewer = sb.instances.catalogue(5, 10)
    assert fewer.mu is not None
    assert sb.solve_allocation(fewer.problem, fewer.mu, tol=1e-3).solver == "interior-point"


def test_right_answers_that_are_not_tried_are_bounded() -> None:
    instance = sb.instances.catalogue(3, 4, lone_best=False, spread=0.1, tolerance=0.6, seed=1)
    problem, mu = instance.problem, instance.mu
    assert mu is not None
    for answer in np.flatnonzero(mu > mu.max() - 0.5):
        bound = shift_bound(problem, mu, np.array([answer]))
        for seed in range(5):
            omega = np.random.default_rng(seed).dirichlet(np.ones(mu.size))
            assert sb.closest_alternative(problem, mu, omega, int(answer)).cost <= bound


def test_an_allocation_is_certified_where_the_bound_of_answers_that_are_not_tried_is_close_enough() -> None:
    mu = np.concatenate([np.zeros(300), np.full(300, 0.5)]) + 0.01 * np.random.default_rng(0).standard_normal(600)
    graph = sb.Graph.from_categories(["a"] * 300 + ["b"] * 300)
    problem = sb.Problem(graph, 1.5 * graph.roughness_by_component(mu), tolerance=0.3)
    for tol in (1e-3, 1.0):
        found = sb.solve_allocation(problem, mu, tol=tol)
        assert found.upper == shift_bound(problem, mu, np.argsort(-mu)[6:300])
        assert found.status == ("certified" if found.gap <= tol else "unfinished")


def test_the_bound_of_an_answer_allows_for_less_noisy_arms_of_its_category() -> None:
    """The alternative lowers them together with the answer, and fewer samples of them show it."""
    problem = sb.Problem(sb.Graph.from_categories(list("aabb")), [1e-6, 1e-6], [5.0, 0.1, 0.1, 0.1])
    mu = np.array([1.0, 0.9999, 0.0, 0.0])
    reached = Responder(problem, mu, 0).respond(np.array([0.0, 0.5, 0.25, 0.25])).cost[2:].min()
    assert reached <= shift_bound(problem, mu, np.array([0]))


@pytest.mark.parametrize("short", [1e-12, 1e-10, 3e-10, 2e-8, 2e-7])
def test_a_tolerance_at_the_edge_of_what_a_category_allows(short: float) -> None:
    """The other arm of the category can just win by it: the lower bound holds, although rounding makes the
    alternative unusable."""
    tolerance = math.sqrt(2 * 0.01) * (1 - short)
    problem = sb.Problem(sb.Graph.from_categories(list("aab")), [0.02, 0.0], tolerance=tolerance)
    mu = [0.05, -0.05, -3.0]
    exact = sb.solve_allocation(problem, mu, solver="interior-point", tol=1e-3)
    found = sb.solve_allocation(problem, mu, solver="catalogue", tol=1e-3)
    assert 0.9 * exact.lower <= found.lower <= exact.upper and found.upper >= exact.lower
    alone = sb.Problem(sb.Graph.from_categories(list("aa")), 0.02, tolerance=tolerance)
    if short < 1e-9:
        with pytest.raises(sb.InvalidInput, match="lets no other arm beat arm 0"):
            sb.solve_allocation(alone, mu[:2], solver="catalogue")
    else:
        there = sb.solve_allocation(alone, mu[:2], solver="catalogue", tol=1e-3)
        assert 0 < there.lower <= there.upper


def test_a_category_with_equal_means_is_one_arm_and_the_others_stay_categories() -> None:
    graph = sb.Graph.from_categories([*("a" * 300), *("b" * 300), "c"])
    mu = np.concatenate([np.full(300, 0.3), np.linspace(0.4, 0.41, 300), [0.9]])
    R = [0.0, 1.5 * float(graph.roughness_by_component(mu)[1]), 0.0]
    found = sb.solve_allocation(sb.Problem(graph, R), mu, tol=1e-3, solver="catalogue")
    assert found.status == "certified" and found.solver == "catalogue"
    assert (found.omega[:300] > 0).sum() == 1
    room = sb.Problem(graph, [1e-9, *R[1:]])
    assert found.lower <= sb.solve_allocation(room, mu, tol=1e-3).upper * (1 + 1e-3)


def test_the_solver_by_category_is_refused_elsewhere() -> None:
    problem = sb.Problem(sb.Graph.from_edges(3, [(0, 1)]), 0.5)
    with pytest.raises(sb.InvalidInput, match="needs arms in categories, with an R for each; use solver='auto'"):
        sb.solve_allocation(problem, [0.9, 0.5, 0.4], solver="catalogue")


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
def test_the_bound_for_binary_outcomes_is_valid_and_nearly_that_of_their_own_solver(
    inside: bool, low: float, high: float
) -> None:
    rng = np.random.default_rng(4)
    labels = [*"aaaaaabbbbbbcccc", "b" if inside else "d"]
    graph = sb.Graph.from_categories(labels)
    for scale in (0.05, 0.5):
        level = dict(zip("abcd", scale * rng.uniform(0.2, 0.8, 4), strict=True))
        rates = np.array([level[each] for each in labels]) + 0.02 * scale * rng.standard_normal(17)
        rates[-1] = 1.3 * rates[:-1].max()
        mu = low + (high - low) * rates
        R = 1.5 * graph.roughness_by_component(mu)
        problem = sb.Problem.bounded(graph, R, low, high, binary=True)
        exact, bound = sb.solve_allocation(problem, mu, tol=1e-4), entropy_bound(problem, mu)
        assert exact.lower <= bound <= 1.1 * exact.upper


def test_alternatives_with_impossible_rates_are_left_out_of_the_bound() -> None:
    """Far above the others the best arm would be lowered below them, or the others raised above 1."""
    problem = sb.Problem.bounded(sb.Graph.from_categories(list("aaab")), [0.5, 0.0], binary=True)
    mu = np.array([0.0, 1e-9, 1e-9, 1 - 1e-9])
    exact = sb.solve_allocation(problem, mu, tol=1e-2)
    assert entropy_bound(problem, mu) >= exact.lower


def test_many_binary_arms_in_categories_have_a_lower_bound() -> None:
    rng = np.random.default_rng(0)
    labels = [f"c{a % 6}" for a in range(600)] + ["best"]
    graph = sb.Graph.from_categories(labels)
    rates = np.append((0.01 + 0.005 * np.arange(6))[np.arange(600) % 6] + 2e-4 * rng.standard_normal(600), 0.08)
    problem = sb.Problem.bounded(graph, 1.5 * graph.roughness_by_component(rates), binary=True)
    bound = sb.lower_bound(problem, rates, 0.05)
    # The categories have little room, so that this is about as hard as to find the best of seven arms.
    few = [0, 1, 2, 3, 4, 5, 600]
    least = sb.lower_bound(sb.Problem.bounded(sb.Graph.from_edges(7, []), math.inf, binary=True), rates[few], 0.05)
    assert 0.8 * least < bound < 3 * least
    plan = sb.plan(sb.Instance(problem, rates), 0.05, runs=0)
    assert plan.with_graph.lower_bound == pytest.approx(bound)
    assert plan.without_graph.lower_bound > 10 * bound
