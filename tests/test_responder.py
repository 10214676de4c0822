"""Best responses: what they must satisfy whatever the instance, and cases known in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spectralbai import Graph, InvalidInput, Problem, closest_alternative
from spectralbai.allocation.certificate import certified_lower
from spectralbai.arrays import Vector
from spectralbai.responder import Responder
from spectralbai.spectral import Responses

SEEDS = st.integers(0, 10**6)
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


@dataclass(frozen=True)
class Case:
    """One best-response question, arms in their own order."""

    problem: Problem
    mu: Vector
    omega: Vector
    best: int

    def respond(self) -> Answer:
        return Answer(self, Responder(self.problem, self.mu, self.best).respond(self.omega))


class Answer:
    """The responses to a case."""

    def __init__(self, case: Case, responses: Responses) -> None:
        self.challengers = [i for i in range(case.problem.n_arms) if i != case.best]
        self.cost = responses.cost
        self.gamma = responses.gamma[:, 0]
        self.nu = responses.nu
        self.gradient = responses.gradient
        self.lam = case.mu - responses.gap
        self.misfit = responses.misfit


def random_case(
    seed: int,
    decades: float = 2.0,
    zeros: float = 0.0,
    edge_decades: float = 0.5,
    sigma_decades: float = 0.0,
    relative_R: float | None = None,
    tolerance: float | None = None,
    n_components: int | None = None,
) -> Case:
    """Returns a random case; `relative_R` is R / S(mu), so that below 1 the means are outside M_R."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(3, 9))
    n_components = int(rng.integers(1, 3)) if n_components is None else n_components
    label = np.arange(n_arms) % n_components
    edges = []
    for b in range(n_components, n_arms):
        previous = [a for a in range(b) if label[a] == label[b]]
        joined = {previous[-1], *(a for a in previous if rng.random() < 0.4)}
        edges += [(a, b, float(10 ** rng.uniform(-edge_decades, edge_decades))) for a in joined]
    graph = Graph.from_edges(n_arms, edges)
    mu = rng.normal(size=n_arms)
    relative_R = float(rng.choice([0.01, 0.3, 0.9, 1.1, 3.0])) if relative_R is None else relative_R
    tolerance = float(rng.choice([0.0, 0.0, 0.05])) if tolerance is None else tolerance
    sigma = 10 ** rng.uniform(-sigma_decades, sigma_decades, n_arms)
    omega = 10 ** rng.uniform(-decades, 0, n_arms)
    omega[rng.random(n_arms) < zeros] = 0.0
    omega[int(rng.integers(n_arms))] = 1.0
    best = int(np.argmax(mu)) if rng.random() < 0.7 else int(rng.integers(n_arms))
    return Case(Problem(graph, relative_R * graph.smoothness(mu), sigma=sigma, tolerance=tolerance), mu, omega, best)


def cost_of(case: Case, lam: Vector) -> float:
    return float(case.omega @ ((case.mu - lam) / case.problem.sigma) ** 2 / 2)


HARD = [
    {"decades": 0.0},
    {"decades": 12.0},
    {"decades": 12.0, "zeros": 0.3},
    {"decades": 12.0, "zeros": 0.3, "edge_decades": 6.0},
    {"decades": 3.0, "sigma_decades": 3.0, "zeros": 0.2},
    {"decades": 2.0, "edge_decades": 6.0, "relative_R": 0.3},
    {"decades": 2.0, "relative_R": 1e-8},
    {"decades": 2.0, "relative_R": 1 + 1e-9},
    {"decades": 2.0, "zeros": 0.5, "n_components": 3},
]


@pytest.mark.parametrize("options", HARD, ids=str)
def test_every_alternative_is_feasible_and_costs_what_is_said(options: dict[str, float]) -> None:
    for seed in range(20):
        case = random_case(seed, **options)  # type: ignore[arg-type]  # n_components is an int
        answer = case.respond()
        for i in answer.challengers:
            if np.isfinite(answer.cost[i]):
                lam = answer.lam[i]
                assert case.problem.smoothness(lam) <= case.problem.R * (1 + 1e-9)
                assert lam[i] >= lam[case.best] + case.problem.tolerance - 1e-14
                assert answer.cost[i] == pytest.approx(cost_of(case, lam), rel=1e-12, abs=1e-28)
                assert answer.misfit <= answer.cost[i] * (1 + 1e-9) + 1e-20


@pytest.mark.parametrize("options", HARD, ids=str)
def test_every_alternative_satisfies_the_optimality_conditions(options: dict[str, float]) -> None:
    """u (lam - mu) + 2 gamma L lam + nu (e_b - e_i) = 0, each multiplier with its constraint: enough for a convex
    problem."""
    binding = 0
    for seed in range(20):
        case = random_case(seed, **options)  # type: ignore[arg-type]  # n_components is an int
        answer = case.respond()
        u = case.omega / case.problem.sigma**2
        laplacian = case.problem.graph.laplacian.toarray()
        for i in answer.challengers:
            if not np.isfinite(answer.cost[i]):
                continue
            lam, gamma, nu = answer.lam[i], answer.gamma[i], answer.nu[i]
            assert gamma >= 0 and nu >= 0
            apart = np.zeros(lam.size)
            apart[case.best], apart[i] = 1.0, -1.0
            level = lam[int(np.argmax(case.omega))]
            residual = u * (lam - case.mu) + 2 * gamma * laplacian @ (lam - level) + nu * apart
            scale = (
                u * (1 + np.abs(case.mu))
                + 2 * gamma * np.abs(laplacian) @ (np.abs(lam - level) + 1e-7)
                + nu * np.abs(apart)
            )
            assert (np.abs(residual) <= 1e-7 * scale).all()
            if gamma > 0:
                assert case.problem.smoothness(lam) == pytest.approx(case.problem.R, rel=1e-8)
            if nu > 0:
                assert lam[i] == pytest.approx(lam[case.best] + case.problem.tolerance, abs=1e-13)
            binding += gamma > 0
    assert binding > 0


@EXAMPLES
@given(SEEDS, st.floats(-6, 6))
def test_the_dual_value_bounds_the_cost_at_any_gamma(seed: int, exponent: float) -> None:
    case = random_case(seed)
    answer = case.respond()
    u = case.omega / case.problem.sigma**2
    laplacian = case.problem.graph.laplacian.toarray()

    def dual(i: int, gamma: float) -> float:
        inverse = np.linalg.inv(np.diag(u) + 2 * gamma * laplacian)
        apart = np.zeros(u.size)
        apart[case.best], apart[i] = 1.0, -1.0
        free = inverse @ (u * case.mu)
        nu = max(0.0, (apart @ free + case.problem.tolerance) / (apart @ inverse @ apart))
        lam = free - nu * inverse @ apart
        return cost_of(case, lam) + gamma * (case.problem.smoothness(lam) - float(case.problem.R))

    for i in answer.challengers:
        assert dual(i, 10**exponent) <= answer.cost[i] * (1 + 1e-9) + 1e-9
        if np.isfinite(answer.cost[i]):
            assert dual(i, answer.gamma[i]) == pytest.approx(answer.cost[i], rel=1e-8, abs=1e-12)


def test_the_gradient_is_that_of_the_cost_on_every_branch() -> None:
    branches = set()
    for seed in range(60):
        case = random_case(seed, decades=1.0, sigma_decades=0.3)
        answer = case.respond()
        for a in range(case.problem.n_arms):
            step = 1e-4 * case.omega[a] * (np.arange(case.problem.n_arms) == a)
            up = replace(case, omega=case.omega + step).respond()
            down = replace(case, omega=case.omega - step).respond()
            for i in answer.challengers:
                if np.isfinite(answer.cost[i]):
                    slope = (up.cost[i] - down.cost[i]) / (2 * step[a])
                    assert answer.gradient[i, a] == pytest.approx(
                        slope, rel=1e-5, abs=1e-6 * answer.cost[i] / case.omega[a] + 1e-10
                    )
                    branches.add((bool(answer.gamma[i] > 0), bool(answer.nu[i] > 0)))
    assert branches == {(False, False), (False, True), (True, False), (True, True)}


@EXAMPLES
@given(SEEDS, SEEDS)
def test_permuting_the_arms_permutes_the_alternatives(seed: int, shuffle: int) -> None:
    case = random_case(seed, decades=6.0, zeros=0.2, sigma_decades=0.5)
    order = np.random.default_rng(shuffle).permutation(case.problem.n_arms)  # the new arm k is the old arm order[k]
    new = np.argsort(order)
    graph = case.problem.graph
    edges = [(int(new[a]), int(new[b]), w) for (a, b), w in zip(graph.pairs, graph.weights.tolist(), strict=True)]
    problem = replace(
        case.problem,
        graph=Graph.from_edges(graph.n_arms, edges),
        sigma=case.problem.sigma[order],  # type: ignore[call-arg]  # an argument that is no field
    )
    answer = case.respond()
    permuted = Case(problem, case.mu[order], case.omega[order], int(new[case.best])).respond()
    np.testing.assert_allclose(permuted.cost, answer.cost[order], rtol=1e-9, atol=1e-18)
    seen = case.omega[order] > 1e-3
    for i in answer.challengers:
        np.testing.assert_allclose(permuted.lam[new[i]][seen], answer.lam[i][order][seen], atol=1e-6)


@EXAMPLES
@given(SEEDS, st.sampled_from([-3.0, 1e4, -1e4]))
def test_a_constant_added_to_the_means_changes_nothing(seed: int, shift: float) -> None:
    case = random_case(seed, decades=6.0, zeros=0.2)
    case = replace(case, mu=np.round(case.mu * 2**30) / 2**30)  # so that the sum is exact
    answer, shifted = case.respond(), replace(case, mu=case.mu + shift).respond()
    np.testing.assert_allclose(shifted.cost, answer.cost, rtol=1e-12, atol=1e-30)
    np.testing.assert_allclose(shifted.gamma, answer.gamma, rtol=1e-7, atol=1e-20)


def test_a_shift_of_ten_thousand_costs_no_accuracy_at_weights_of_a_billionth() -> None:
    graph = Graph.from_edges(4, [(0, 1), (1, 2, 0.5), (2, 3), (0, 3, 2.0)])
    mu = np.array([1.0, 0.5, 0.25, 0.75])
    for omega in ([1e-9, 1.0, 1.0, 1e-9], [1e-9, 1e-9, 1.0, 1e-9], [1e-9, 1.0, 0.0, 1e-9]):
        for relative_R in (0.1, 0.5, 2.0):
            case = Case(Problem(graph, relative_R * graph.smoothness(mu)), mu, np.array(omega), 0)
            answer, shifted = case.respond(), replace(case, mu=mu + 1e4).respond()
            np.testing.assert_allclose(shifted.cost, answer.cost, rtol=1e-12, atol=1e-30)


@EXAMPLES
@given(SEEDS, st.floats(-5, 5))
def test_the_units_of_the_outcomes_do_not_matter(seed: int, exponent: float) -> None:
    case = random_case(seed, decades=6.0, zeros=0.2, sigma_decades=1.0)
    unit = 10**exponent
    p = case.problem
    scaled = replace(
        p,
        R=p.R * unit**2,
        sigma=p.sigma * unit,  # type: ignore[call-arg]  # an argument that is no field
        tolerance=p.tolerance * unit,
    )
    answer, other = case.respond(), replace(case, problem=scaled, mu=case.mu * unit).respond()
    np.testing.assert_allclose(other.cost, answer.cost, rtol=1e-9, atol=1e-18)
    assert other.misfit == pytest.approx(answer.misfit, rel=1e-9, abs=1e-18)


@EXAMPLES
@given(SEEDS, st.floats(-7, 7))
def test_the_cost_is_proportional_to_the_weights(seed: int, exponent: float) -> None:
    case = random_case(seed, decades=6.0, zeros=0.2)
    factor = 10**exponent
    answer, other = case.respond(), replace(case, omega=factor * case.omega).respond()
    np.testing.assert_allclose(other.cost, factor * answer.cost, rtol=1e-9, atol=1e-20 * factor)


@EXAMPLES
@given(SEEDS)
def test_an_edge_of_weight_zero_changes_nothing(seed: int) -> None:
    case = random_case(seed, n_components=2)
    graph = case.problem.graph
    edges = [(int(a), int(b), w) for (a, b), w in zip(graph.pairs, graph.weights.tolist(), strict=True)]
    problem = replace(case.problem, graph=Graph.from_edges(graph.n_arms, [*edges, (0, 1, 0.0)]))
    np.testing.assert_array_equal(replace(case, problem=problem).respond().cost, case.respond().cost)


@EXAMPLES
@given(SEEDS, st.floats(1.01, 100.0))
def test_a_larger_R_never_raises_the_cost(seed: int, factor: float) -> None:
    case = random_case(seed, decades=6.0, zeros=0.2)
    answer = case.respond()
    wider = replace(case, problem=replace(case.problem, R=case.problem.R * factor)).respond()
    unbound = replace(case, problem=replace(case.problem, R=math.inf)).respond()
    assert (wider.cost <= answer.cost * (1 + 1e-10) + 1e-20).all()
    assert (unbound.cost <= wider.cost * (1 + 1e-10) + 1e-20).all()


@EXAMPLES
@given(SEEDS, st.booleans())
def test_a_component_without_weight_is_free(seed: int, tolerant: bool) -> None:
    case = random_case(seed, tolerance=0.05 if tolerant else 0.0)
    graph, n_arms = case.problem.graph, case.problem.n_arms
    edges = [(int(a), int(b), w) for (a, b), w in zip(graph.pairs, graph.weights.tolist(), strict=True)]
    wider = Graph.from_edges(n_arms + 2, [*edges, (n_arms, n_arms + 1, 1.0)])
    problem = Problem(wider, case.problem.R, tolerance=case.problem.tolerance)
    case2 = Case(problem, np.append(case.mu, [-5.0, -6.0]), np.append(case.omega, [0.0, 0.0]), case.best)
    answer, split = case.respond(), case2.respond()
    np.testing.assert_allclose(split.cost[:n_arms], answer.cost, rtol=1e-9)
    np.testing.assert_allclose(split.cost[n_arms:], answer.misfit, rtol=1e-9, atol=1e-20)
    for i in (n_arms, n_arms + 1):
        assert split.lam[i][i] >= split.lam[i][case.best] + problem.tolerance - 1e-12
        assert np.ptp(split.lam[i][n_arms:]) <= 1e-12  # the least rough


@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_the_best_arm_may_lie_in_a_component_without_weight(tolerance: float) -> None:
    graph = Graph.from_edges(6, [(0, 1), (1, 2, 2.0), (3, 4)])
    resistance = 1.5  # between arms 0 and 2
    mu = np.array([3.0, 1.0, 0.0, 0.5, 0.4, -1.0])
    case = Case(Problem(graph, 0.4, tolerance=tolerance), mu, np.array([0, 0, 0, 1.0, 1.0, 0.0]), 0)
    answer = case.respond()
    np.testing.assert_allclose(answer.cost[1:], 0.0, atol=1e-30)
    for i in answer.challengers:
        lam = answer.lam[i]
        assert lam[i] >= lam[0] + tolerance - 1e-12
        inside = {1: tolerance**2, 2: tolerance**2 / resistance}.get(i, 0.0)  # the least rough: current from i to 0
        assert case.problem.smoothness(lam) == pytest.approx(inside + 0.01, abs=1e-12)


def test_arms_too_well_tied_for_the_tolerance_cannot_win() -> None:
    graph = Graph.from_edges(4, [(0, 1), (1, 2, 2.0), (0, 2, 4.0)])
    mu = np.array([1.0, 0.5, 0.25, 0.0])
    resistance = 1 / (1 + 1 / (1 / 2.0 + 1 / 4.0))  # edge 0-1 beside the path 0-2-1
    for omega in (np.ones(4), np.array([0.0, 0.0, 0.0, 1.0]), np.array([1e-9, 1.0, 0.0, 1.0])):
        for excess in (1e-9, 1e-3, 1.0):
            over = Case(
                Problem(graph, 0.3, tolerance=math.sqrt(0.3 * resistance) * (1 + excess)), mu, omega, 0
            ).respond()
            assert over.cost[1] == math.inf and np.isfinite(over.cost[3])
        for lack in (1e-9, 1e-3):
            problem = Problem(graph, 0.3, tolerance=math.sqrt(0.3 * resistance) * (1 - lack))
            under = Case(problem, mu, omega, 0).respond()
            assert np.isfinite(under.cost[1])
            assert problem.smoothness(under.lam[1]) <= 0.3 * (1 + 1e-9)
            assert under.lam[1][1] - under.lam[1][0] == pytest.approx(problem.tolerance, rel=1e-9)


def test_the_merged_arms_weigh_the_sum_of_their_weights() -> None:
    # Arms 0 and 1, both tied to arm 2 by weight w, meet at x; then 2 w (x - y)^2 <= R binds. Pooling 0 and 1 gives mean
    # m and
    # weight omega_0 + omega_1, not omega_1 alone.
    mu, omega, w, R = np.array([1.0, 0.8, -2.0]), np.array([0.5, 0.2, 0.3]), 1.5, 0.4
    pooled = omega[0] + omega[1]
    m = (omega[0] * mu[0] + omega[1] * mu[1]) / pooled
    excess = m - mu[2] - math.sqrt(R / (2 * w))
    cost = (
        0.5 * omega[0] * omega[1] / pooled * (mu[0] - mu[1]) ** 2
        + 0.5 * pooled * omega[2] / (pooled + omega[2]) * excess**2
    )
    x = m - omega[2] / (pooled + omega[2]) * excess
    alternative = closest_alternative(Problem(Graph.from_edges(3, [(0, 2, w), (1, 2, w)]), R), mu, omega)
    assert alternative.challenger == 1
    assert alternative.cost == pytest.approx(cost, rel=1e-13)
    np.testing.assert_allclose(alternative.lam, [x, x, x - math.sqrt(R / (2 * w))], rtol=1e-13)


@pytest.mark.parametrize("R", [math.inf, 1e12])
def test_without_the_graph_the_two_arms_meet_halfway_by_precision(R: float) -> None:
    mu, omega, sigma = np.array([1.0, 0.2, 0.6]), np.array([0.2, 0.5, 0.3]), np.array([0.5, 1.0, 2.0])
    problem = Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), R, sigma=sigma, tolerance=0.1)
    u = omega / sigma**2
    alternative = closest_alternative(problem, mu, omega)
    costs = 0.5 * u[0] * u[1:] / (u[0] + u[1:]) * (mu[0] - mu[1:] + 0.1) ** 2
    assert alternative.challenger == 1 + np.argmin(costs)
    assert alternative.cost == pytest.approx(costs.min(), rel=1e-13)
    assert alternative.gamma == 0


def test_two_arms_are_enough_with_or_without_an_edge() -> None:
    mu, omega = np.array([0.0, 1.0]), np.array([3e6, 1e7])
    cost = 0.5 * 3e6 * 1e7 / 1.3e7
    for edges in ([], [(0, 1)]):
        alternative = closest_alternative(Problem(Graph.from_edges(2, edges), 0.5), mu, omega)
        assert alternative.challenger == 0
        assert alternative.cost == pytest.approx(cost, rel=1e-14)
        np.testing.assert_allclose(alternative.lam, 10 / 13, rtol=1e-14)


def test_a_smoothness_of_zero_leaves_one_level_per_component() -> None:
    graph = Graph.from_edges(4, [(0, 1), (2, 3)])
    mu, omega = np.array([1.0, 0.0, 0.2, 0.1]), np.array([0.3, 0.1, 0.2, 0.4])
    answer = Case(Problem(graph, 0.0), mu, omega, 0).respond()
    levels = np.array([0.3, (0.04 + 0.04) / 0.6])
    spread = 0.5 * omega @ (mu - levels.repeat(2) * [2.5, 2.5, 1.0, 1.0]) ** 2
    assert answer.cost[1] == pytest.approx(spread, rel=1e-13)
    gap = 0.75 - levels[1]
    np.testing.assert_allclose(answer.cost[2:], spread + 0.5 * 0.4 * 0.6 / 1.0 * gap**2, rtol=1e-13)
    assert answer.misfit == pytest.approx(spread, rel=1e-13)
    assert (np.ptp(answer.lam.reshape(4, 2, 2), axis=2) <= 1e-15).all()
    assert (answer.gamma == math.inf).all()
    assert Case(Problem(graph, 0.0, tolerance=0.1), mu, omega, 0).respond().cost[1] == math.inf


def test_means_rougher_than_R_by_rounding_alone_count_as_smooth() -> None:
    for seed in range(10):
        exact, rounded, rougher = (
            random_case(seed, relative_R=r, tolerance=0.0).respond() for r in (1.0, 1 - 5e-13, 1 - 2e-12)
        )
        np.testing.assert_array_equal(rounded.cost, exact.cost)
        np.testing.assert_array_equal(rounded.gamma, exact.gamma)
        assert rounded.misfit == exact.misfit <= 1e-29
        assert (rougher.gamma != exact.gamma).any()


def test_without_edges_smoothness_has_no_price_even_at_R_zero() -> None:
    alternative = closest_alternative(Problem(Graph.from_edges(3, []), 0.0), [0.9, 0.5, 0.6], [1, 1, 1])
    assert (alternative.challenger, alternative.gamma) == (2, 0.0)
    assert alternative.cost == pytest.approx(0.0225, rel=1e-13)


def test_equal_means_cost_nothing_to_confuse_and_the_tolerance_what_it_is() -> None:
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])
    omega = np.array([0.5, 0.3, 0.2])
    for level in (0.0, 0.1, 1e4 + 0.1):
        answer = Case(Problem(graph, 1.0), np.full(3, level), omega, 1).respond()
        np.testing.assert_array_equal(answer.cost[[0, 2]], 0.0)
        assert answer.misfit == 0
        answer = Case(Problem(graph, 1.0, tolerance=0.2), np.full(3, level), omega, 1).respond()
        np.testing.assert_allclose(answer.cost[[0, 2]], [0.5 * 0.15 / 0.8 * 0.04, 0.5 * 0.06 / 0.5 * 0.04], rtol=1e-11)


def test_an_arm_that_already_beats_the_one_named_best_costs_only_the_misfit() -> None:
    graph = Graph.from_edges(3, [(0, 1), (1, 2)])
    mu, omega = np.array([0.0, 1.0, 0.5]), np.array([0.2, 0.3, 0.5])
    inside = closest_alternative(Problem(graph, 2.0), mu, omega, best=0)
    assert inside.cost <= 1e-30
    np.testing.assert_allclose(inside.lam, mu, atol=1e-15)
    case = Case(Problem(graph, 0.3), mu, omega, 0)
    outside = case.respond()
    assert outside.misfit > 0
    np.testing.assert_allclose(outside.cost[1:], outside.misfit, rtol=1e-13)


def test_among_free_values_the_alternative_takes_the_least_rough() -> None:
    # Arm 3 is unseen between seen arms: its value is the weighted mean of its neighbours in every alternative.
    graph = Graph.from_edges(4, [(0, 3, 1.0), (1, 3, 2.0), (2, 3, 3.0)])
    for R in (0.05, 50.0):
        answer = Case(Problem(graph, R), np.array([1.0, 0.6, -0.3, 9.0]), np.array([0.5, 0.3, 0.2, 0.0]), 0).respond()
        for i in (1, 2):
            lam = answer.lam[i]
            assert lam[3] == pytest.approx((lam[0] + 2 * lam[1] + 3 * lam[2]) / 6, abs=1e-13)


def test_a_guess_of_gamma_changes_no_answer() -> None:
    for seed in range(30):
        case = random_case(seed, decades=4.0, zeros=0.2)
        responder = Responder(case.problem, case.mu, case.best)
        cold = responder.respond(case.omega)
        for start in (cold.gamma, cold.gamma * 1e-6, cold.gamma * 1e6, np.ones((case.omega.size, 2))):
            warm = responder.respond(case.omega, start)
            np.testing.assert_allclose(warm.cost, cold.cost, rtol=1e-11, atol=1e-20)
            np.testing.assert_allclose(warm.gamma, cold.gamma, rtol=1e-9, atol=1e-14)


def test_the_closest_alternative_is_the_cheapest_challengers() -> None:
    for seed in range(20):
        case = random_case(seed, sigma_decades=0.5, tolerance=0.01, n_components=2)
        answer = case.respond()
        alternative = closest_alternative(case.problem, case.mu, case.omega, case.best)
        assert alternative.challenger != case.best
        assert alternative.cost == answer.cost[alternative.challenger] == answer.cost.min()
        assert alternative.gamma == answer.gamma[alternative.challenger]
        np.testing.assert_array_equal(alternative.lam, answer.lam[alternative.challenger])
    mu = np.array([0.1, 0.9, 0.3])
    assert closest_alternative(Problem(Graph.from_edges(3, [(0, 1)]), 1.0), mu, [1, 1, 1]).challenger == 2


@pytest.mark.parametrize("seed", range(8))
def test_a_renumbered_responder_gives_the_same_answers_under_other_names(seed: int) -> None:
    case = random_case(seed, sigma_decades=0.5, n_components=3)
    responder = Responder(case.problem, case.mu, case.best)
    order = responder.components.order
    assert not responder.components.in_order
    here, there = responder.respond(case.omega), responder.renumbered().respond(case.omega[order])
    np.testing.assert_array_equal(there.cost, here.cost[order])
    np.testing.assert_array_equal(there.gap, here.gap[np.ix_(order, order)])
    np.testing.assert_array_equal(there.gradient, here.gradient[np.ix_(order, order)])
    np.testing.assert_array_equal(there.decomposition.basis, here.decomposition.basis[order])
    assert there.misfit == here.misfit
    assert certified_lower(there) == pytest.approx(certified_lower(here), rel=1e-12)


def test_an_responder_is_unbeatable_only_if_the_tolerance_empties_every_alternative() -> None:
    graph, mu = Graph.from_edges(3, [(0, 1), (1, 2)]), np.array([0.3, 0.2, 0.1])
    assert Responder(Problem(graph, 0.02, tolerance=0.3), mu, 0).unbeatable
    assert not Responder(Problem(graph, 0.02, tolerance=0.19), mu, 0).unbeatable  # arm 2: resistance 2
    assert not Responder(Problem(graph, 0.0), np.zeros(3), 0).unbeatable


PATH = Problem(Graph.from_edges(3, [(0, 1), (1, 2)]), 1.0)


@pytest.mark.parametrize(
    ("mu", "omega", "best", "message"),
    [
        ([0.1, 0.2], [1, 1, 1], None, r"`mu` must have shape \(n_arms,\) = \(3,\), got \(2,\)"),
        ([0.1, 0.2, math.nan], [1, 1, 1], None, "`mu` must be finite, got nan at arm 2"),
        (["a", "b", "c"], [1, 1, 1], None, "`mu` must hold one number per arm"),
        (
            [0.1, 0.2, 0.2],
            [1, 1, 1],
            None,
            "`mu` must have a unique best arm when tolerance is 0, got arms 1 and 2 tied at 0.2",
        ),
        ([0.1, 0.2, 0.3], [1, -1, 1], None, "`omega` must be non-negative, got -1.0 at arm 1"),
        ([0.1, 0.2, 0.3], [0, 0, 0], None, "`omega` must have a positive entry, got zeros only"),
        ([0.1, 0.2, 0.3], [1, 1e308, 1], None, "`omega` must have a finite sum, got 1e.308 at arm 1; lower it"),
        ([0.1, 0.2, 0.3], [1, 1], None, r"`omega` must have shape \(n_arms,\) = \(3,\), got \(2,\)"),
        ([0.1, 0.2, 0.3], [1, math.inf, 1], None, "`omega` must be finite, got inf at arm 1"),
        ([0.1, 0.2, 0.3], [1, 1, 1], 3, "`best` must be an arm between 0 and 2, got 3"),
        ([0.1, 0.2, 0.3], [1, 1, 1], True, "`best` must be an arm between 0 and 2, got True"),
    ],
)
def test_bad_input_is_refused_with_its_reason(
    mu: list[float], omega: list[float], best: int | None, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        closest_alternative(PATH, mu, omega, best)


def test_no_alternative_at_all_is_refused_with_the_remedy() -> None:
    problem = Problem(PATH.graph, 0.02, tolerance=0.3)
    with pytest.raises(
        InvalidInput,
        match=r"`tolerance` = 0.3 with R = 0.02 lets no other arm beat arm 0.*lower the tolerance or raise R",
    ):
        closest_alternative(problem, [0.3, 0.2, 0.1], [1, 1, 1])
