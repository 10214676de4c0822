"""One R for each component: best responses and estimates, whatever the instance (theory, section 16)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectralbai import Graph, Problem, closest_alternative, estimate
from spectralbai.arrays import Vector
from spectralbai.responder import Responder
from spectralbai.spectral import Components, Responses, decompose

SEEDS = st.integers(0, 10**6)
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Case:
    """One best-response question."""

    problem: Problem
    mu: Vector
    omega: Vector
    best: int

    def respond(self) -> Responses:
        return Responder(self.problem, self.mu, self.best).respond(self.omega)

    @property
    def u(self) -> Vector:
        return self.omega / self.problem.sigma**2


def random_case(
    seed: int,
    decades: float = 2.0,
    zeros: float = 0.0,
    edge_decades: float = 0.5,
    sigma_decades: float = 0.0,
    relative_R: tuple[float, ...] = (0.01, 0.3, 0.9, 1.1, 3.0, 1e3, math.inf),
    tolerance: float | None = None,
    dead: bool = False,
    n_arms: int | None = None,
) -> Case:
    """Returns a random case of two to four components; their R / S(mu) are drawn from `relative_R`, so that below 1 the
    means are too rough. `dead` takes all weight from one component."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 11)) if n_arms is None else n_arms
    n_components = int(rng.integers(2, 5))
    label = np.append(np.arange(n_components), rng.integers(0, n_components, n_arms - n_components))
    edges = []
    for b in range(n_arms):
        mates = [a for a in range(b) if label[a] == label[b]]
        joined = {*mates[-1:], *(a for a in mates if rng.random() < 0.4)}
        edges += [(a, b, float(10 ** rng.uniform(-edge_decades, edge_decades))) for a in joined]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.normal(size=n_arms)
    R = rng.choice(relative_R, n_components) * np.maximum(graph.roughness_by_component(mu), 1e-300)
    tolerance = float(rng.choice([0.0, 0.0, 0.05])) if tolerance is None else tolerance
    sigma = 10 ** rng.uniform(-sigma_decades, sigma_decades, n_arms)
    omega = 10 ** rng.uniform(-decades, 0, n_arms)
    omega[rng.random(n_arms) < zeros] = 0.0
    if dead:
        omega[graph.components == rng.integers(n_components)] = 0.0
    if not omega.any():
        omega[int(rng.integers(n_arms))] = 1.0
    best = int(np.argmax(mu)) if rng.random() < 0.7 else int(rng.integers(n_arms))
    return Case(Problem(graph, R, sigma, tolerance), mu, omega, best)


HARD: list[dict[str, Any]] = [
    {"decades": 0.0},
    {"decades": 12.0},
    {"decades": 12.0, "zeros": 0.3},
    {"decades": 12.0, "zeros": 0.3, "edge_decades": 4.0},
    {"decades": 3.0, "sigma_decades": 3.0, "zeros": 0.2},
    {"edge_decades": 6.0, "relative_R": (0.3,)},
    {"relative_R": (1e-8,)},
    {"relative_R": (1e-8, 1.0, 1e8)},
    {"relative_R": (1 + 1e-9,)},
    {"zeros": 0.5, "dead": True},
    {"zeros": 0.6, "relative_R": (1.0, 1.2)},
]


@pytest.mark.parametrize("options", HARD, ids=str)
def test_every_alternative_is_feasible_and_satisfies_the_optimality_conditions(options: dict[str, Any]) -> None:
    """u (lam - mu) + 2 gamma_c L lam + nu (e_b - e_i) = 0 in every component c, each multiplier with its constraint:
    enough for a convex problem."""
    binding = 0
    for seed in range(30):
        case = random_case(seed, **options)
        problem, best, found = case.problem, case.best, case.respond()
        laplacian, of_arm = problem.graph.laplacian.toarray(), problem.graph.components
        to = found.decomposition.components
        for i in found.challengers:
            lam, nu = case.mu - found.gap[i], found.nu[i]
            gamma = np.zeros(problem.radii.size)
            gamma[to.whole] = found.prices[i]
            rough = problem.roughness(lam)
            assert (rough <= problem.radii * (1 + 1e-9) + 1e-280).all()
            assert lam[i] >= lam[best] + problem.tolerance - 1e-13
            cost = float(case.u @ found.gap[i] ** 2 / 2)
            assert found.cost[i] == pytest.approx(cost, rel=1e-12, abs=1e-28)
            assert found.misfit <= found.cost[i] * (1 + 1e-9) + 1e-20
            assert (gamma >= 0).all() and nu >= 0
            apart = np.zeros(lam.size)
            apart[best], apart[i] = 1.0, -1.0
            level = np.array([lam[np.flatnonzero(of_arm == c)[0]] for c in range(gamma.size)])[of_arm]
            price = gamma[of_arm]
            residual = -case.u * found.gap[i] + 2 * price * (laplacian @ (lam - level)) + nu * apart
            scale = (
                case.u * (1 + np.abs(case.mu))
                + 2 * price * (np.abs(laplacian) @ (np.abs(lam - level) + 1e-7))
                + nu * np.abs(apart)
            )
            assert (np.abs(residual) <= 1e-6 * scale).all()
            bound = gamma > 0
            np.testing.assert_allclose(rough[bound], problem.radii[bound], rtol=1e-8)
            binding += int(bound.sum())
            if nu > 0:
                assert lam[i] == pytest.approx(lam[best] + problem.tolerance, abs=1e-13)
    assert binding > 0


def by_arm(graph: Graph, values: Vector) -> Vector:
    """Returns the value of its component for each arm."""
    spread: Vector = np.asarray(values)[graph.components]
    return spread


def per_component(graph: Graph, of_arms: Vector) -> Vector:
    """Returns the value of the first arm of each component."""
    values: Vector = of_arms[np.unique(graph.components, return_index=True)[1]]
    return values


@EXAMPLES
@given(SEEDS)
def test_the_numbers_of_the_arms_do_not_matter(seed: int) -> None:
    case = random_case(seed, zeros=0.2)
    problem, graph = case.problem, case.problem.graph
    order = np.random.default_rng(seed).permutation(case.mu.size)
    new = np.argsort(order)
    moved = Graph.from_edges(
        graph.n_arms, [(*new[pair].tolist(), w) for pair, w in zip(graph.pairs, graph.weights, strict=True)]
    )
    radii = per_component(moved, by_arm(graph, problem.radii)[order])
    other = Problem(moved, radii, problem.sigma[order], problem.tolerance)
    there = Case(other, case.mu[order], case.omega[order], int(new[case.best])).respond()
    here = case.respond()
    np.testing.assert_allclose(there.cost, here.cost[order], rtol=1e-8, atol=1e-20)
    np.testing.assert_allclose(there.gamma, here.gamma[order], rtol=1e-6, atol=1e-12)


@EXAMPLES
@given(SEEDS, st.floats(0.01, 100), st.floats(-50, 50), st.floats(0.01, 100))
def test_units_a_common_level_and_the_size_of_omega_change_what_they_must(
    seed: int, unit: float, level: float, factor: float
) -> None:
    case = random_case(seed)
    p = case.problem
    scaled = Problem(p.graph, p.radii * unit**2, p.sigma * unit, p.tolerance * unit)
    other = Case(scaled, (case.mu + level) * unit, case.omega * factor, case.best).respond()
    np.testing.assert_allclose(other.cost, factor * case.respond().cost, rtol=1e-7, atol=1e-13 * factor)


@EXAMPLES
@given(SEEDS, st.floats(1, 100))
def test_a_larger_R_of_any_component_only_lowers_costs(seed: int, factor: float) -> None:
    case = random_case(seed)
    cost = case.respond().cost
    for c in range(case.problem.radii.size):
        radii = case.problem.radii.copy()
        radii[c] *= factor
        wider = replace(case, problem=replace(case.problem, R=radii)).respond().cost
        assert (wider <= cost * (1 + 1e-9) + 1e-20).all()


@EXAMPLES
@given(SEEDS)
def test_an_infinite_R_is_a_component_without_edges(seed: int) -> None:
    case = random_case(seed, zeros=0.2, relative_R=(0.3, 1.1, math.inf))
    p, graph = case.problem, case.problem.graph
    kept = np.isfinite(p.radii)[graph.components[graph.pairs[:, 0]]]
    bare = Graph.from_edges(
        graph.n_arms,
        [(*pair.tolist(), w) for pair, w in zip(graph.pairs[kept], graph.weights[kept], strict=True)],
    )
    radii = per_component(bare, np.where(np.isfinite(by_arm(graph, p.radii)), by_arm(graph, p.radii), 7.0))
    other = replace(case, problem=Problem(bare, radii, p.sigma, p.tolerance)).respond()
    np.testing.assert_array_equal(other.cost, case.respond().cost)


@EXAMPLES
@given(SEEDS)
def test_where_one_component_has_edges_an_R_for_each_is_one_R_for_all(seed: int) -> None:
    case = random_case(seed, zeros=0.2, relative_R=(0.3, 0.9, 1.1, 3.0))
    p, graph = case.problem, case.problem.graph
    kept = graph.components[graph.pairs[:, 0]] == graph.components[graph.pairs[0, 0]] if graph.n_edges else []
    edges = [(*pair.tolist(), w) for pair, w in zip(graph.pairs[kept], graph.weights[kept], strict=True)]
    bare = Graph.from_edges(graph.n_arms, edges)
    R = max(float(bare.roughness_by_component(case.mu).max()), 1e-3) * 0.7
    here, there = (
        replace(case, problem=Problem(bare, each, p.sigma, p.tolerance)).respond()
        for each in (np.full(bare.n_components, R), R)
    )
    np.testing.assert_allclose(here.cost, there.cost, rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(here.nu, there.nu, rtol=1e-6, atol=1e-12)
    assert here.misfit == pytest.approx(there.misfit, rel=1e-9, abs=1e-20)


@EXAMPLES
@given(SEEDS)
def test_one_R_for_all_lies_between_two_choices_of_one_for_each(seed: int) -> None:
    # sum S_c <= R implies S_c <= R for every c, and follows from S_c <= R_c with sum R_c = R
    case = random_case(seed, relative_R=(0.3, 1.1, 3.0))
    p = case.problem
    R = float(p.radii.sum())
    tight, shared, loose = (
        replace(case, problem=replace(p, R=each)).respond().cost for each in (p.radii, R, np.full(p.radii.size, R))
    )
    assert (loose <= shared * (1 + 1e-9) + 1e-18).all() and (shared <= tight * (1 + 1e-9) + 1e-18).all()


@EXAMPLES
@given(SEEDS)
def test_each_component_is_estimated_as_if_it_were_alone(seed: int) -> None:
    case = random_case(seed, zeros=0.3, relative_R=(0.01, 0.3, 1.1))
    p, graph, mu = case.problem, case.problem.graph, case.mu
    counts = case.omega.copy()
    counts[np.unique(graph.components, return_index=True)[1]] += 1.0
    together = estimate(p, counts, mu)
    assert p.smooth(together)
    for c in np.flatnonzero(graph.sizes > 1):
        arms = np.flatnonzero(graph.components == c)
        own = graph.components[graph.pairs[:, 0]] == c
        edges = [
            (*np.searchsorted(arms, pair).tolist(), w)
            for pair, w in zip(graph.pairs[own], graph.weights[own], strict=True)
        ]
        alone = Problem(Graph.from_edges(arms.size, edges), float(p.radii[c]), p.sigma[arms])
        np.testing.assert_allclose(together[arms], estimate(alone, counts[arms], mu[arms]), rtol=0, atol=1e-11)
        found, radii = decompose(p, counts), Components.from_problem(p).radii
        assert found.misfit(mu, radii) == pytest.approx(float(counts @ ((mu - together) / p.sigma) ** 2 / 2), rel=1e-8)
        np.testing.assert_allclose(
            found.project(mu, found.roughness(mu, radii) * (1 + 1e-12))[counts > 0], mu[counts > 0]
        )


def test_guesses_of_the_prices_change_no_answer() -> None:
    for seed in range(30):
        case = random_case(seed, decades=4.0, zeros=0.2, relative_R=(0.01, 0.3, 0.9, 1.1, 3.0))
        if case.problem.unstructured:
            continue  # there are no prices
        responder = Responder(case.problem, case.mu, case.best)
        cold = responder.respond(case.omega)
        for start in (cold.gamma, cold.gamma * 1e-6, cold.gamma * 1e6, np.ones((case.omega.size, 2))):
            warm = responder.respond(case.omega, start)
            np.testing.assert_allclose(warm.cost, cold.cost, rtol=1e-10, atol=1e-20)
            np.testing.assert_allclose(warm.gamma, cold.gamma, rtol=1e-8, atol=1e-14)


TWO_PATHS = Graph.from_edges(7, [(0, 1), (1, 2), (3, 4), (4, 5)])


def test_arms_without_weight_move_for_free_as_far_as_R_lets_them() -> None:
    mu, omega = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.3]), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    # Arms 0 and 3 hang on one edge each: with S <= R they move by sqrt(R).
    free = Case(Problem(TWO_PATHS, [0.25, 0.26, 0.0]), mu, omega, 0).respond()
    assert free.cost[3] == 0 and free.nu[3] == 0
    lam = mu - free.gap[3]
    assert lam[3] == pytest.approx(lam[0], abs=1e-14) and Problem(TWO_PATHS, [0.25, 0.26, 0.0]).smooth(lam)
    tight = Case(Problem(TWO_PATHS, [0.25, 0.16, 0.0]), mu, omega, 0).respond()
    # A tenth is missing: less than what it would cost to move two arms down and two up by a twentieth each
    assert 0.1 * 4 * 0.05**2 / 2 < tight.cost[3] < 4 * 0.05**2 / 2 and tight.nu[3] > 0
    lam = mu - tight.gap[3]
    np.testing.assert_allclose(Problem(TWO_PATHS, 1.0).graph.roughness_by_component(lam)[:2], [0.25, 0.16])


def test_a_component_without_weight_moves_for_free() -> None:
    mu, omega = np.array([1.0, 0.9, 0.8, 0.0, 0.1, 0.2, 0.5]), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0])
    problem = Problem(TWO_PATHS, [0.1, 0.001, 0.0])
    away = Case(problem, mu, omega, 0).respond()
    assert away.cost[3:6] == pytest.approx([0.0] * 3, abs=1e-30) and away.cost[6] > 0.05
    home = Case(problem, mu, omega, 4).respond()
    assert np.delete(home.cost, 4) == pytest.approx([0.0] * 6, abs=1e-30)
    assert problem.smooth(mu - away.gap[3]) and problem.smooth(mu - home.gap[0])


def test_components_of_R_zero_move_as_one_arm() -> None:
    mu, omega = np.array([1.0, 0.9, 0.8, 0.2, 0.2, 0.2, 0.5]), np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 1.0])
    found = Case(Problem(TWO_PATHS, [math.inf, 0.0, 0.0]), mu, omega, 0).respond()
    assert found.cost[3:6] == pytest.approx([0.5 * (1 * 6 / 7) * 0.8**2] * 3)
    assert found.cost[6] == pytest.approx(0.5 * 0.5 * 0.5**2)
    np.testing.assert_array_equal(found.gap[3, 3:6], np.full(3, found.gap[3, 3]))
    inside = Case(Problem(TWO_PATHS, [math.inf, 0.0, 0.0], tolerance=0.1), mu, omega, 4).respond()
    assert np.isinf(inside.cost[3:6]).all() and np.isfinite(inside.cost[[0, 1, 2, 6]]).all()


def test_a_tolerance_excludes_arms_of_the_best_arms_component_only() -> None:
    mu, omega = np.array([1.0, 0.9, 0.8, 0.0, 0.1, 0.2, 0.5]), np.ones(7)
    found = Case(Problem(TWO_PATHS, [0.1, 0.1, 0.0], tolerance=0.4), mu, omega, 0).respond()
    assert np.isinf(found.cost).tolist() == [True, True, False, False, False, False, False]  # sqrt(0.1 * 2) = 0.447
    found = Case(Problem(TWO_PATHS, [0.05, 10.0, 0.0], tolerance=0.4), mu, omega, 0).respond()
    assert np.isinf(found.cost).tolist() == [True, True, True, False, False, False, False]


def test_the_closest_alternative_has_a_price_for_each_component() -> None:
    mu, tolerance = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, -5.0]), 0.5  # more than arms of one component can differ by
    found = closest_alternative(Problem(TWO_PATHS, [0.02, 0.03, 0.0], tolerance=tolerance), mu, np.ones(7), best=1)
    assert found.challenger in (3, 5) and (np.asarray(found.gamma) > 0).tolist() == [True, True, False]
    assert found.lam[found.challenger] == pytest.approx(found.lam[1] + tolerance, abs=1e-14)
    np.testing.assert_allclose(TWO_PATHS.roughness_by_component(found.lam), [0.02, 0.03, 0.0], rtol=1e-12)
    free = closest_alternative(Problem(TWO_PATHS, [0.02, math.inf, 0.0], tolerance=tolerance), mu, np.ones(7), best=1)
    assert (np.asarray(free.gamma) > 0).tolist() == [True, False, False] and free.cost < found.cost
