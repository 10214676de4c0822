"""The allocation of binary outcomes: closed forms, invariances, edges and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from spectralbai import Allocation, Graph, InvalidInput, Problem, lower_bound, solve_allocation
from spectralbai.allocation.binary import BinaryGame, _solve_small, relative_entropy
from spectralbai.arrays import Vector
from spectralbai.responder import Responder

PATH = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
RATES = np.array([0.03, 0.05, 0.09, 0.06])


def clicks(graph: Graph = PATH, R: float = 0.004, tolerance: float = 0.0) -> Problem:
    return Problem.bounded(graph, R, tolerance=tolerance, binary=True)


def kl(p: float, q: float) -> float:
    """Returns the relative entropy of two coins, from its definition."""
    return sum(x * math.log(x / y) for x, y in ((p, q), (1 - p, 1 - q)) if x > 0)


def assert_certified(found: Allocation, tol: float = 1e-6) -> None:
    assert found.status == "certified" and found.solver == "binary"
    assert 0 < found.lower <= found.upper <= found.lower * (1 + tol)
    assert found.omega.min() >= 0 and found.omega.sum() == pytest.approx(1)


def assert_same(one: Allocation, other: Allocation) -> None:
    """Two certified intervals of one number meet."""
    assert one.lower <= other.upper and other.lower <= one.upper


def random_instance(seed: int) -> tuple[Problem, Vector]:
    """Returns instances on graphs with several components and isolated arms; rates of all sizes."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(3, 9))
    graph = Graph.from_edges(
        n_arms, [(a, b, rng.uniform(0.2, 3)) for a in range(n_arms) for b in range(a) if rng.random() < 0.4]
    )
    mu = rng.uniform(size=n_arms) ** (1 + seed % 4)
    room = float(rng.choice([1.0, 1.3, 5.0]))
    return clicks(graph, min(room * graph.smoothness(mu) + 1e-3, float(graph.weights.sum()))), mu


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.02, 0.5, 0.97, 1.0])
def test_the_relative_entropy_is_accurate_however_close_the_rates_are(p: float) -> None:
    for d in (1e-1, 1e-2, 2e-3, 1e-5, 1e-8, 1e-11):
        for q in (p + d, p - d, p + d * min(p, 1 - p), p - d * min(p, 1 - p)):
            if not 0 < q < 1 or q == p:
                continue
            # h(x) = x - log(1 + x) as the series of 2 atanh(x / (2 + x)), in exact arithmetic
            exact = Fraction(0)
            for rate, other in ((Fraction(p), Fraction(q)), (1 - Fraction(p), 1 - Fraction(q))):
                x = (other - rate) / rate if rate else Fraction(0)
                z = x / (2 + x)
                if abs(z) < Fraction(1, 3):
                    logarithm = 2 * sum(z**k / k for k in range(1, 60, 2))
                else:
                    logarithm = Fraction(math.log(float(1 + x)))
                exact += rate * (x - logarithm) if rate else other - rate
            found = relative_entropy(np.array([p]), np.array([q]))[0]
            assert found == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("rates", [(0.1, 0.04), (0.9, 0.5), (0.999, 0.99), (1e-4, 3e-5), (1.0, 0.6), (0.4, 0.0)])
@pytest.mark.parametrize("tolerance", [0.0, 0.003])
def test_two_arms_are_one_equation(rates: tuple[float, float], tolerance: float) -> None:
    def f(share: float) -> float:
        """Returns the least cost over lam = (x, x + tolerance), for the share of pulls of the first arm."""
        if tolerance == 0:
            middle = share * rates[0] + (1 - share) * rates[1]
            return share * kl(rates[0], middle) + (1 - share) * kl(rates[1], middle)
        cost = minimize_scalar(
            lambda x: share * kl(rates[0], x) + (1 - share) * kl(rates[1], x + tolerance),
            bounds=(1e-12, 1 - tolerance - 1e-12),
            method="bounded",
            options={"xatol": 1e-13},
        )
        return float(cost.fun)

    best = -minimize_scalar(lambda share: -f(share), bounds=(0, 1), method="bounded", options={"xatol": 1e-10}).fun
    found = solve_allocation(clicks(Graph.from_edges(2, []), math.inf, tolerance), rates)
    assert_certified(found)
    assert found.lower * (1 - 1e-7) <= best <= found.upper * (1 + 1e-7)


@pytest.mark.parametrize("mu", [[0.9, 0.5, 0.6], [0.02, 0.05, 0.04, 0.01], [0.98, 0.7, 0.97, 0.1, 0.9]])
def test_without_a_graph_the_value_is_that_of_garivier_and_kaufmann(mu: list[float]) -> None:
    best = max(mu)
    others = sorted(mu)[:-1]

    def ratio(rate: float, value: float) -> float:
        """Returns x with kl(best, m) + x kl(rate, m) = value, m being the mean rate for the weights 1 and x."""

        def excess(x: float) -> float:
            middle = (best + x * rate) / (1 + x)
            return kl(best, middle) + x * kl(rate, middle) - value

        return float(brentq(excess, 0, 1e6, xtol=1e-14))

    def excess(value: float) -> float:
        middles = [(best + x * rate) / (1 + x) for rate in others for x in [ratio(rate, value)]]
        return sum(kl(best, m) / kl(rate, m) for rate, m in zip(others, middles, strict=True)) - 1

    limit = kl(best, others[-1])
    value = brentq(excess, 1e-6 * limit, (1 - 1e-3) * limit, xtol=1e-16)
    exact = value / (1 + sum(ratio(rate, value) for rate in others))
    for problem in (clicks(Graph.from_edges(len(mu), []), 1.0), clicks(Graph.from_edges(len(mu), [(0, 1)]), math.inf)):
        found = solve_allocation(problem, mu)
        assert_certified(found)
        assert found.lower * (1 - 1e-9) <= exact <= found.upper * (1 + 1e-9)


@pytest.mark.parametrize("rate", [0.02, 0.3, 0.5, 0.95])
def test_close_rates_are_as_gaussian_outcomes_of_the_same_variance(rate: float) -> None:
    mu = rate + 1e-4 * np.array([0.3, 0.5, 1.0, 0.6])
    R = 1.3 * PATH.smoothness(mu)
    gaussian = solve_allocation(Problem(PATH, R, math.sqrt(rate * (1 - rate))), mu)
    found = solve_allocation(clicks(R=R), mu)
    assert_certified(found, 1e-5)
    assert found.lower == pytest.approx(gaussian.lower, rel=0.01)


@pytest.mark.parametrize("seed", range(12))
def test_random_instances_are_certified_and_renumbering_their_arms_changes_nothing(seed: int) -> None:
    problem, mu = random_instance(seed)
    new = np.random.default_rng(seed).permutation(problem.n_arms)  # arm a becomes arm new[a]
    edges = zip(problem.graph.pairs, problem.graph.weights, strict=True)
    graph = Graph.from_edges(problem.n_arms, [(int(new[a]), int(new[b]), float(w)) for (a, b), w in edges])
    moved = np.empty_like(mu)
    moved[new] = mu
    one, other = solve_allocation(problem, mu), solve_allocation(clicks(graph, float(problem.R)), moved)
    assert_certified(one)
    assert_certified(other)
    assert_same(one, other)
    assert other.best == new[one.best]


def test_where_each_component_has_its_R_the_value_lies_between_those_of_two_choices_of_one() -> None:
    tried = 0
    for seed in range(12):
        problem, mu = random_instance(seed)
        each = with_an_R_each(problem, mu)
        if not each.by_component:
            continue
        tried += 1
        R = float(each.radii.sum())
        found = solve_allocation(each, mu)
        assert_certified(found)
        shared, wide = (solve_allocation(replace(problem, R=given), mu) for given in (R, np.full(each.radii.size, R)))
        assert shared.lower <= found.upper and wide.lower <= shared.upper
    assert tried >= 5


@pytest.mark.parametrize("seed", range(8))
def test_the_time_grows_with_R_up_to_the_time_without_the_graph(seed: int) -> None:
    problem, mu = random_instance(seed)
    S = problem.smoothness(mu)
    times = [solve_allocation(replace(problem, R=R), mu) for R in (S + 1e-6, 1.2 * S + 1e-5, 4 * S + 1e-3, math.inf)]
    for smaller, larger in pairwise(times):
        assert_certified(smaller)
        assert 1 / smaller.upper <= 1 / larger.lower
    assert_same(solve_allocation(replace(problem, R=float(problem.graph.weights.sum())), mu), times[-1])


def test_the_values_at_the_ends_of_the_range_do_not_matter() -> None:
    graph, rates = Graph.from_edges(3, [(1, 2)]), np.array([0.15, 0.05, 0.07])
    one = solve_allocation(clicks(graph, 5e-4), rates)
    assert one.lower > solve_allocation(clicks(graph, 5e-3), rates).upper  # R matters here
    scaled = Problem.bounded(graph, 0.05, low=-3.0, high=7.0, binary=True)
    assert_same(one, solve_allocation(scaled, -3 + 10 * rates))


def test_losses_are_gains_with_their_sign_changed() -> None:
    """Least rates of losses: negated outcomes lie at -1 and 0, and arms keep their distances."""
    losses = 1 - RATES
    problem = Problem(PATH, 0.004, noise=clicks().noise.negated())
    assert problem.outcome_range == (-1.0, 0.0)
    assert_same(solve_allocation(clicks(), RATES), solve_allocation(problem, -losses))


@pytest.mark.parametrize(
    ("mu", "tolerance"),
    [
        ([0.0, 0.1, 0.4, 0.2], 0.0),
        ([0.3, 0.6, 1.0, 0.7], 0.0),
        ([0.0, 0.0, 1.0, 0.0], 0.0),
        ([1e-7, 2e-7, 8e-7, 0.0], 0.0),
        ([0.999, 0.9999, 0.99999, 0.9998], 0.0),
        ([0.0, 0.0, 0.0, 0.0], 0.05),
        ([0.3, 0.99, 1.0, 0.9], 0.05),
        ([0.2, 0.3, 0.31, 0.1], 0.05),
    ],
)
@pytest.mark.parametrize("room", [1.0, 1 + 1e-9, 2.0, math.inf])
def test_rates_at_and_near_the_ends_are_certified(mu: list[float], tolerance: float, room: float) -> None:
    R = math.inf if room == math.inf else min(room * (PATH.smoothness(mu) or 1e-2), 3.0)
    found = solve_allocation(clicks(R=R, tolerance=tolerance), mu, tol=1e-4)
    assert_certified(found, 1e-4)


def test_with_a_tolerance_the_easiest_right_answer_is_found() -> None:
    mu = np.array([0.2, 0.32, 0.31, 0.1])
    problem = clicks(R=0.2, tolerance=0.05)
    found = solve_allocation(problem, mu)
    assert_certified(found)
    looser = solve_allocation(clicks(R=0.2, tolerance=0.06), mu)
    assert looser.lower > found.upper
    assert found.best in (1, 2)


def with_an_R_each(problem: Problem, mu: Vector) -> Problem:
    """Returns the problem with an R for each component, the first as rough as it may be."""
    rough = problem.graph.roughness_by_component(mu)
    return replace(problem, R=rough * np.append(1.0, np.full(rough.size - 1, 1.4)) + 1e-6 * (np.arange(rough.size) > 0))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("several", [False, True])
def test_every_alternative_behind_the_upper_bound_satisfies_its_constraints_exactly(seed: int, several: bool) -> None:
    problem, mu = random_instance(seed)
    problem = with_an_R_each(problem, mu) if several else problem
    game = BinaryGame.of(Responder(problem, mu, int(np.argmax(mu))).renumbered())
    responses = game.respond(np.full(mu.size, 1 / mu.size))
    lam = game.feasible(responses.lam)
    assert np.isfinite(lam).all()
    for row, i in zip(lam, game.challengers, strict=True):
        exact = [Fraction(x) for x in row.tolist()]
        for R, part in zip(game.radii.tolist(), game.parts.tolist(), strict=False):
            edges = zip(game.components.pairs.tolist(), game.components.weights.tolist(), strict=True)
            own = (Fraction(w) * (exact[a] - exact[b]) ** 2 for (a, b), w in edges if part[a])
            assert sum(own, Fraction(0)) <= Fraction(R)
        assert exact[i] >= exact[game.best] + Fraction(game.tolerance)
        assert 0 < min(exact) and max(exact) < 1


@pytest.mark.parametrize("fault", ["too rough", "challenger behind"])
def test_alternatives_outside_their_constraints_are_not_used(fault: str) -> None:
    game = BinaryGame.of(Responder(clicks(), RATES, 2))
    wrong = np.tile(RATES, (3, 1))
    if fault == "too rough":
        wrong = np.full((3, 4), 0.1)
        wrong[np.arange(3), game.challengers] = 0.1 + 1.2 * math.sqrt(game.radii[0])
    assert np.isnan(replace(game, slater=0.99 * wrong).feasible(wrong)).all()
    assert np.isfinite(game.feasible(wrong)).all()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("several", [False, True])
def test_the_lower_bound_holds_at_any_multipliers_and_any_guess(seed: int, several: bool) -> None:
    problem, mu = random_instance(seed)
    problem = with_an_R_each(problem, mu) if several else problem
    rng = np.random.default_rng(seed)
    game = BinaryGame.of(Responder(problem, mu, int(np.argmax(mu))).renumbered())
    omega = rng.dirichlet(np.ones(mu.size))
    responses = game.respond(omega)
    values = relative_entropy(game.rates, game.feasible(responses.lam)) @ omega  # reached, so never below the bound
    found = game.certified_lower(responses)
    assert found == pytest.approx(values.min(), rel=1e-8)
    for scale in (1e-6, 1e-2, 1.0):
        shaken = responses._replace(
            lam=np.clip(responses.lam + scale * rng.normal(size=responses.lam.shape), 1e-6, 1 - 1e-6),
            multipliers=responses.multipliers * np.exp(scale * rng.normal(size=responses.multipliers.shape)),
        )
        assert game.certified_lower(shaken) <= values.min()


def test_many_challengers_are_treated_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = solve_allocation(clicks(), RATES)
    monkeypatch.setattr("spectralbai.allocation.binary.LARGEST_STACK", 40)  # two challengers at a time
    assert_same(whole, solve_allocation(clicks(), RATES))


def test_a_start_and_a_limit_are_respected() -> None:
    full = solve_allocation(clicks(), RATES)
    assert_same(full, solve_allocation(clicks(), RATES, start=full.omega))
    short = solve_allocation(clicks(), RATES, max_iterations=2)
    assert (short.status, short.iterations) == ("unfinished", 2)
    assert short.lower <= full.upper and full.lower <= short.upper


def test_at_R_zero_a_component_is_one_arm() -> None:
    graph = Graph.from_edges(4, [(0, 1), (2, 3)])
    found = solve_allocation(clicks(graph, 0.0, 0.01), [0.2, 0.2, 0.1, 0.1])
    pair = solve_allocation(clicks(Graph.from_edges(2, []), math.inf, 0.01), [0.2, 0.1])
    assert_certified(found)
    assert found.lower == pair.lower


def test_the_bound_on_the_samples_is_that_of_relative_entropy() -> None:
    problem = clicks(Graph.from_edges(3, [(1, 2)]), 0.01)
    found = solve_allocation(problem, [0.15, 0.05, 0.07])
    assert found.characteristic_time == pytest.approx(146.157449, rel=1e-6)  # CVXPY: tests/reference
    assert lower_bound(problem, [0.15, 0.05, 0.07], 0.05) == pytest.approx(0.9 * math.log(19) / found.upper)


def test_scores_in_a_range_have_no_lower_bound() -> None:
    scores = Problem.bounded(PATH, 0.004)
    with pytest.raises(InvalidInput, match=r"no lower bound is known for outcomes in \[0, 1\].*binary=True"):
        lower_bound(scores, RATES, 0.05)
    surrogate = solve_allocation(scores, RATES)
    assert surrogate.lower == solve_allocation(Problem(PATH, 0.004, 0.5), RATES).lower


@pytest.mark.parametrize(
    ("problem", "mu", "arguments", "message"),
    [
        (clicks(), RATES, {"solver": "interior-point"}, "'interior-point' is for gaussian outcomes, got outcomes 0 or"),
        (Problem(PATH, 0.004), RATES, {"solver": "binary"}, "'binary' is for binary outcomes, got sigma 1; use"),
        (clicks(R=3.0), [0.1, 0.2, 1.2, 0.3], {}, r"`mu` must lie in \[0, 1\] as the outcomes do, got 1.2 at arm 2"),
        (clicks(R=0.01, tolerance=0.9), RATES, {}, "`tolerance` = 0.9 with R = 0.01 lets no other arm beat"),
    ],
)
def test_what_cannot_be_solved_is_refused(problem: Problem, mu: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        solve_allocation(problem, mu, **arguments)


def test_systems_of_constraints_with_parallel_normals_are_solved_too() -> None:
    regular, singular = np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones((2, 2))
    found = _solve_small(np.stack([regular, singular]), np.ones((2, 2)))
    np.testing.assert_allclose(found[0], [1 / 3, 1 / 3])
    np.testing.assert_allclose(singular @ found[1], [1.0, 1.0])
