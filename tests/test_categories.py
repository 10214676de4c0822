"""Arms in categories: closed forms against a conic solver and dense matrices, and the guarantee of their bets.

The null at the end is tight: an arm that was never pulled lies above its category by exactly what its R allows, and
level with the leader. Bets against it are then fair, and any smaller charge makes them win.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import spectralbai as sb
from spectralbai import Graph, Problem, SpectralRace, simulate
from spectralbai.arrays import Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import graph_precision, pooled_intervals, pools_of
from spectralbai.evidence.outlook import CatalogueOutlook, Outlook
from spectralbai.inputs.history import roughness_from
from spectralbai.planning import plan
from spectralbai.policy import State
from spectralbai.sampling.contract import View
from spectralbai.sampling.race import HOPEFUL, OPTIMISM, Racing
from spectralbai.spectral import Catalogue, Duels, categories
from spectralbai.stopping.accounts import Accounts
from spectralbai.stopping.category_bets import CategoryTable

KINDS = ["aaaabbbc", "aabbccdd", "aaaaaaaa", "abcdefgh", "abababcc"]


def catalogue_of(problem: Problem) -> Catalogue:
    found = Catalogue.of(problem)
    assert found is not None
    return found


def drawn(kind: str, rng: np.random.Generator, slack: float = 1.5, **more: Any) -> tuple[Problem, Vector]:
    """Returns a problem with categories of the letters of `kind`, and means that it allows."""
    graph = Graph.from_categories(list(kind), float(rng.uniform(0.1, 3)))
    mu = rng.uniform(0, 1, graph.n_components)[graph.components] + 0.2 * rng.standard_normal(graph.n_arms)
    return Problem(graph, slack * graph.roughness_by_component(mu) + 1e-6, **more), mu


def weights_of(problem: Problem, rng: np.random.Generator) -> Vector:
    """Returns weights with zeros, but not in all of a category."""
    weights = rng.integers(0, 3, problem.n_arms) * 10.0 ** rng.uniform(-3, 3, problem.n_arms)
    first = np.unique(problem.components, return_index=True)[1]
    weights[first] += 0.5
    return weights


def smooth(problem: Problem, x: Any) -> list[Any]:
    """Returns the hypothesis as constraints of a conic solver."""
    laplacian, components = problem.graph.laplacian.toarray(), problem.graph.components
    parts = [np.flatnonzero(components == c) for c in range(problem.graph.n_components)]
    return [
        cp.quad_form(x[arms], cp.psd_wrap(laplacian[np.ix_(arms, arms)])) <= R
        for arms, R in zip(parts, problem.radii, strict=True)
        if arms.size > 1
    ]


# Closed forms.


@pytest.mark.parametrize("kind", KINDS)
def test_the_closest_smooth_means_are_those_of_a_conic_solver(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(4):
        problem, _ = drawn(kind, rng, slack=0.5)
        counts, means = np.round(weights_of(problem, rng) + 0.4), rng.normal(5, 1, problem.n_arms)
        lam = sb.estimate(problem, counts, means)
        x = cp.Variable(problem.n_arms)
        cost = cp.sum(cp.multiply(counts, cp.square(x - means)))
        best = cp.Problem(cp.Minimize(cost), smooth(problem, x)).solve(solver="CLARABEL")
        assert counts @ (lam - means) ** 2 == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert (problem.roughness(lam) <= problem.radii * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_posterior_is_that_of_the_dense_matrix(kind: str) -> None:
    rng = np.random.default_rng(1)
    problem, means = drawn(kind, rng)
    u = weights_of(problem, rng)
    precision, sizes = np.diag(u), problem.graph.sizes
    for c, R in enumerate(problem.radii):
        inside = problem.graph.components == c
        if sizes[c] > 1:
            precision += (sizes[c] - 1) / R * np.where(np.outer(inside, inside), problem.graph.laplacian.toarray(), 0)
    covariance = np.linalg.inv(precision)
    mean, variance = catalogue_of(problem).posterior(u, means)
    np.testing.assert_allclose(mean, covariance @ (u * means), rtol=1e-6)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-6)
    draws = np.array(list(catalogue_of(problem).draws(u, means, 4000)))
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.2 * variance.max())
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1 * math.sqrt(variance.max()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_duel_promises_no_more_than_the_closest_means_under_which_the_arm_is_best_cost(kind: str) -> None:
    """The value of any bet is a lower bound of that cost, and that of a good bet is near it."""
    rng, reached = np.random.default_rng(2), []
    for _ in range(2):
        problem, mu = drawn(kind, rng)
        leader = int(np.argmax(mu))
        v = weights_of(problem, rng) + (np.arange(mu.size) == leader)
        found = catalogue_of(problem).duels(v, mu, leader, 0.0, catalogue_of(problem).room)
        assert found.value[leader] == 0.0
        for i in np.flatnonzero(np.arange(mu.size) != leader):
            x = cp.Variable(mu.size)
            cost = cp.sum(cp.multiply(v, cp.square(x - mu))) / 2
            best = cp.Problem(cp.Minimize(cost), [x[i] >= x, *smooth(problem, x)]).solve(solver="CLARABEL")
            assert found.value[i] <= best * (1 + 1e-5) + 1e-6
            reached.append(found.value[i] / max(best, 1e-9))
    assert np.median(reached) > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_no_smooth_means_that_agree_with_the_results_put_an_arm_above_its_upper_bound(kind: str) -> None:
    rng = np.random.default_rng(8)
    problem, mu = drawn(kind, rng)
    catalogue, u = catalogue_of(problem), weights_of(problem, rng)
    means = np.where(u > 0, mu, 0.0)
    found = catalogue.highest(u, means, catalogue.room, nats=8.0)
    x = cp.Variable(8)
    agree = [cp.sum_squares(cp.multiply(np.sqrt(u), means - x)) <= 2 * 8.0, *smooth(problem, x)]
    most = np.array([cp.Problem(cp.Maximize(x[i]), agree).solve() for i in range(8)])
    assert (found >= most - 1e-5 * (1 + np.abs(most))).all()
    # An arm on its own has no other bound.
    alone = np.bincount(problem.components)[problem.components] == 1
    np.testing.assert_allclose(found[alone], most[alone], rtol=1e-4, atol=1e-4)


def test_without_a_graph_a_duel_is_that_of_two_arms() -> None:
    problem = Problem(Graph.from_categories(list("abcd")), math.inf)
    mu, v = np.array([0.9, 0.5, 0.7, 0.1]), np.array([4.0, 2.0, 1.0, 8.0])
    found = catalogue_of(problem).duels(v, mu, 0, 0.0, np.zeros(4))
    np.testing.assert_allclose(found.value[1:], (0.9 - mu[1:]) ** 2 / (2 * (1 / 4 + 1 / v[1:])), rtol=1e-12)


def test_a_duel_does_not_depend_on_the_order_of_the_arms_or_a_common_level() -> None:
    rng = np.random.default_rng(3)
    problem, mu = drawn("abababcc", rng)
    v, order = weights_of(problem, rng), rng.permutation(8)
    kind = np.array(list("abababcc"))[order]
    shuffled = Graph.from_categories(kind.tolist(), problem.graph.weight)  # type: ignore[attr-defined]
    first = {name: R for name, R in zip("abc", problem.radii, strict=True)}
    other = Problem(shuffled, [first[name] for name in shuffled.categories])
    one = catalogue_of(problem).duels(v, mu, 3, 0.1, catalogue_of(problem).room)
    two = catalogue_of(other).duels(v[order], mu[order] + 7, int(np.argmax(order == 3)), 0.1, catalogue_of(other).room)
    np.testing.assert_allclose(two.value, one.value[order], rtol=1e-9)


def test_intervals_of_a_catalogue_are_those_of_the_same_graph_with_edges() -> None:
    """With one category both forms of R say the same, and the same pools share the risk."""
    rng = np.random.default_rng(4)
    graph = Graph.from_categories(["a"] * 5, 2.0)
    listed = Graph.from_edges(5, [(a, b, 2.0) for a in range(5) for b in range(a + 1, 5)])
    data = Data.none(5).plus(rng.integers(4, size=30), rng.normal(0, 1, 30))
    one, other = (pooled_intervals(Problem(each, 0.3), data, 0.0, 0.05) for each in (graph, listed))
    assert one is not None and other is not None
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert pools_of(Problem(graph, 0.3)).shares.sum() == pytest.approx(1.0)


# What is charged.


class Recorded(CategoryTable):
    """A table that keeps what it settles."""

    def _settle(self, lam: Matrix, gap: Matrix, size: Vector, slack: Vector, arms: Any = None) -> Vector:
        self.__dict__.setdefault("rows", []).append((lam, gap, size, slack, arms))
        return super()._settle(lam, gap, size, slack, arms)


def random_table(
    kind: str, tolerance: float, rng: np.random.Generator, slack: float = 1.0, bounded: bool = False
) -> Recorded:
    """Returns a block with arms without a pull, on random results, by a random leader."""
    problem, mu = drawn(kind, rng, slack=slack, tolerance=tolerance, sigma=rng.uniform(0.3, 2.0, len(kind)))
    if bounded:
        problem = Problem.bounded(problem.graph, problem.R, -20, 20, tolerance=tolerance)
    first = np.unique(problem.components, return_index=True)[1]
    more = rng.integers(mu.size, size=10)
    data = Data.none(mu.size).plus(first, mu[first]).plus(more, mu[more] + 0.3 * rng.standard_normal(10))
    arms = rng.choice(rng.permutation(mu.size)[: rng.integers(2, mu.size + 1)], 9)
    leader = int(rng.choice(arms))
    block = Block(arms, rng.normal(0, 2, arms.size), data, leader)
    outlook = Outlook.on(Evidence(problem, data, leader, 0.0))
    assert isinstance(outlook, CatalogueOutlook)
    return Recorded(block, outlook)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_bets_against_an_arm_gain_nothing_on_average_under_means_where_it_is_best(kind: str, tolerance: float) -> None:
    """max over these means of sum_a n_a h_a (mu_a - lam_a), by a conic solver, is at most what is charged."""
    rng, checked = np.random.default_rng(5), 0
    for _ in range(10):
        table = random_table(kind, tolerance, rng, bounded=True)
        problem, leader = table.problem, table.block.best
        table.against_arms(leader, tolerance)
        found = table.outlook.duels(table.block.counts, leader, tolerance)
        rows = np.flatnonzero((table.outlook.strength(leader, tolerance) > 0) & (found.value > 0))
        if not rows.size:
            continue
        lam, gap, size, slack, arms = (np.concatenate(each) for each in zip(*table.__dict__["rows"], strict=True))
        n = table.block.counts[arms] / table.outlook.variances[arms]
        for row in rng.permutation(rows.size)[:2]:
            i, z = rows[row], n * gap[row]
            x = cp.Variable(problem.n_arms)
            best = [x[i] >= x] if tolerance == 0 else [x[i] >= x[leader] + tolerance]
            gain = cp.Problem(cp.Maximize(z @ (x[arms] - lam[row])), [*best, x[0] == 0.5, *smooth(problem, x)])
            gain.solve(solver="CLARABEL")
            assert gain.value <= max(slack[row], 0.0) + 1e-5 * np.abs(z).sum()
            assert slack[row] < 1e-9 * max(np.abs(z).max(), 1)
            checked += 1
    assert checked >= 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_gaussian_bets_against_the_best_arm_are_fair_at_best(kind: str, tolerance: float) -> None:
    """The log payoff is affine in the results, so its expectation under any means is known; the largest, over means
    under which the arm is best, is 1 at most, and 1 where nothing is given away."""
    rng, checked = np.random.default_rng(5), 0
    for _ in range(6):
        table = random_table(kind, tolerance, rng)
        problem, leader, block = table.problem, table.block.best, table.block

        def pay(outcomes: Vector, table: CategoryTable = table) -> Vector:
            block = replace(table.block, outcomes=outcomes)
            return CategoryTable(block, table.outlook).against_arms(table.block.best, tolerance)

        base = pay(np.zeros(block.arms.size))
        slopes = np.array([pay((block.arms == a).astype(np.float64)) - base for a in range(problem.n_arms)])
        np.testing.assert_allclose(table.against_arms(leader, tolerance), base + table._sums / np.maximum(
            block.counts, 1) @ slopes, atol=1e-9)  # fmt: skip
        noise = np.divide(problem.sigma**2, block.counts, out=np.zeros(problem.n_arms), where=block.counts > 0)
        for i in rng.permutation(np.flatnonzero(base))[:2]:
            x = cp.Variable(problem.n_arms)
            best = [x[i] >= x] if tolerance == 0 else [x[i] >= x[leader] + tolerance]
            most = cp.Problem(cp.Maximize(slopes[:, i] @ x), [*best, x[0] == 0.5, *smooth(problem, x)])
            most.solve(solver="CLARABEL")
            assert most.value + base[i] + 0.5 * noise @ slopes[:, i] ** 2 <= 1e-5 * np.abs(slopes[:, i]).sum()
            checked += 1
    assert checked >= 4


@pytest.mark.parametrize("kind", KINDS[:3])
def test_bets_against_R_gain_nothing_on_average_under_smooth_means(kind: str) -> None:
    rng, checked = np.random.default_rng(6), 0
    while checked < 5:
        table = random_table(kind, 0.0, rng, slack=0.01)
        if table.outlook.misfit <= table.outlook.freedom / 2:
            assert table.against_R() == 0.0, "no reason to doubt R, and no bet"
            continue
        table.against_R()
        ((lam,), (gap,), _, (slack,), arms) = table.__dict__["rows"][-1]
        z = table.block.counts[arms] * gap / table.outlook.variances[arms]
        x = cp.Variable(table.problem.n_arms)
        gain = cp.Problem(cp.Maximize(z @ (x[arms] - lam)), [x[0] == 0.5, *smooth(table.problem, x)])
        gain.solve(solver="CLARABEL")
        assert gain.value <= max(slack, 0.0) + 1e-5 * max(np.abs(z).sum(), 1)
        checked += 1


def test_arms_that_stood_in_for_the_leader_have_led() -> None:
    """Without one of them the bets need not be fair: at its withdrawal the bets of all accounts are closed."""
    graph = Graph.from_categories(["home"] * 5 + ["away"] * 3)
    problem = Problem(graph, [1e-4, 1e-4])
    counts = np.array([9.0, 9, 9, 9, 0, 9, 9, 0])
    data = Data(counts, counts * np.repeat([1.0, 0.0], [5, 3]), counts)
    block = Block(np.array([0, 1, 2, 5, 6]), np.array([9.0, 9, 9, -9, -9]), data, 0)
    rule = sb.stopping.RULES["betting"]
    after = rule.observe(rule.start(problem), block, Evidence(problem, data, 0, 0.0))
    assert isinstance(after, Accounts)
    assert np.flatnonzero(after.led).tolist() == [0, 1, 2], "the arms of its category that the block pulled"
    assert after.arms.peak[7] > 2.0
    undone = after.without(1)
    assert (undone.arms.peak[[0, 2, 3, 4, 5, 6, 7]] == -math.log(2)).all()
    assert after.without(3).arms.peak[7] > 1.0, "no bet leant on an arm that was not pulled"

    lone = Block(np.array([0, 5, 6]), np.array([9.0, -9, -9]), data, 0)
    after = rule.observe(rule.start(problem), lone, Evidence(problem, data, 0, 0.0))
    assert isinstance(after, Accounts) and np.flatnonzero(after.led).tolist() == [0]


# The tight null.

DELTA, ALARM, RUNS, BLOCKS = 0.2, 0.24, 3000, 150
SIZE, RISE = 6, 0.3
LABELS = ["home"] * 4 + ["away"] * SIZE
UNSEEN = len(LABELS) - 1
MEANS = np.array([RISE, 0.0, 0.0, 0.0, *[0.0] * (SIZE - 1), RISE])
"""The leader, arm 0, and an arm that is never pulled are level; the others are below them by RISE."""


def crossings(binary: bool) -> int:
    """Returns in how many runs the wealth against the arm that is never pulled reaches 1/delta.

    The bets are those of one block, of full size, on an estimate that favours the leader.
    """
    graph = Graph.from_categories(LABELS)
    room = RISE**2 * (1 - 1 / SIZE)
    radii = [1.0, SIZE * room]
    problem = Problem.bounded(graph, radii, -2, 2, binary=True) if binary else Problem(graph, radii)
    nu = np.where(MEANS > 0, MEANS + 0.1, MEANS - 0.1)
    counts = np.array([1.0] * UNSEEN + [0.0]) * 1e6
    data = Data(counts, counts * nu, counts * (4.0 if binary else nu**2 + 1))
    arms = np.repeat(np.arange(UNSEEN), [8, 1, 1, 1, *[2] * (SIZE - 1)])
    outlook = Outlook.on(Evidence(problem, data, 0, 0.0))
    assert isinstance(outlook, CatalogueOutlook)

    def pay(outcomes: Vector) -> float:
        return float(CategoryTable(Block(arms, outcomes, data, 0), outlook).against_arms(0, 0.0)[UNSEEN])

    # The log payoff is affine in how often each outcome came, so what single results add tells it.
    low, high = (-2.0, 2.0) if binary else (0.0, 1.0)
    base = pay(np.full(arms.size, low))
    slopes = np.zeros(UNSEEN)
    for a in range(UNSEEN):
        slopes[a] = pay(np.where(np.arange(arms.size) == np.argmax(arms == a), high, low)) - base
    rng, wealth, peak = np.random.default_rng(0), np.zeros(RUNS), np.zeros(RUNS)
    for _ in range(BLOCKS):
        if binary:
            results = (rng.random((RUNS, arms.size)) < (MEANS[arms] + 2) / 4).astype(np.float64)
        else:
            results = MEANS[arms] + rng.standard_normal((RUNS, arms.size))
        wealth += base + results @ slopes[arms]
        peak = np.maximum(peak, wealth)
    return int((peak >= -math.log(DELTA)).sum())


@pytest.mark.parametrize("binary", [False, True])
def test_the_wealth_against_an_arm_never_pulled_crosses_about_as_often_as_it_may(binary: bool) -> None:
    crossed = crossings(binary)
    assert 0.1 * RUNS < crossed < ALARM * RUNS


def changed(monkeypatch: pytest.MonkeyPatch, margin: float) -> None:
    """Lets arms be charged with another part of what they can be above their category."""
    honest = Catalogue.duels

    def duels(self: Catalogue, v: Vector, nu: Vector, leader: int, tolerance: float, room: Vector) -> Duels:
        return honest(self, v, nu, leader, tolerance, margin**2 * room)

    monkeypatch.setattr(Catalogue, "duels", duels)


def test_charging_the_mean_of_a_category_instead_of_the_arm_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, 1 / SIZE)
    assert crossings(False) > ALARM * RUNS


def test_charging_a_little_less_than_the_arm_can_be_above_its_category_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changed(monkeypatch, 0.9)
    assert crossings(False) > ALARM * RUNS


def test_a_leader_mixture_with_a_negative_weight_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "MIXTURES", (-1.0,))
    assert crossings(False) > ALARM * RUNS


# The race.


def accounts(state: State) -> Accounts:
    found = state.stopping["betting"]
    assert isinstance(found, Accounts)
    return found


def shop(sizes: tuple[int, ...], spread: float, inside: bool = False, seed: int = 0) -> tuple[Problem, Vector]:
    """Returns categories of these sizes and a best arm at .9: on its own, or inside the first category."""
    rng = np.random.default_rng(seed)
    labels = [f"category {c}" for c, size in enumerate(sizes) for _ in range(size)]
    level = np.repeat(rng.uniform(0.2, 0.6, len(sizes)), sizes)
    mu = level + spread * rng.standard_normal(level.size)
    if inside:
        mu[3] = 0.9
    else:
        labels, mu = [*labels, "the best"], np.append(mu, 0.9)
    graph = Graph.from_categories(labels)
    return Problem(graph, 1.5 * graph.roughness_by_component(mu)), mu


@pytest.mark.parametrize(
    ("sizes", "inside"), [((40, 40, 40), False), ((15, 15, 15), True), ((1,) * 300, False), ((12, 3, 1, 1), True)]
)
def test_the_best_of_a_catalogue_is_found(sizes: tuple[int, ...], inside: bool) -> None:
    problem, mu = shop(sizes, 0.01, inside)
    for seed in range(2):
        run = simulate.run(SpectralRace(problem, 0.01), mu, seed)
        assert run.status == "decided" and run.correct


def test_the_race_looks_for_best_arms_that_use_all_the_room_of_their_category() -> None:
    # Twenty arms of the second category have no results, and each of them alone may be above the first category.
    problem = Problem(Graph.from_categories(["a"] * 50 + ["b"] * 50), [1e-4, 50 * 0.15])
    counts, means, unseen = np.full(100, 400.0), np.repeat([0.3, 0.0], 50), np.arange(60, 80)
    counts[unseen] = 0.0
    view = View(Evidence(problem, Data(counts, counts * means, counts), 0, 0.0), (0.01,), np.full(100, 4.0))
    rule = Racing()
    omega = rule.plan(rule.start(problem), view).omega
    sought = omega[unseen] > omega[unseen].min() + 0.9 * OPTIMISM / HOPEFUL
    assert sought.sum() == HOPEFUL > 1
    assert omega[unseen[sought]].sum() >= OPTIMISM


def test_an_arm_with_few_results_has_the_variance_of_its_category() -> None:
    counts = np.array([10.0, *[1.0] * 40, 1.0])
    highs = np.zeros(42)
    highs[[1, 2, 41]] = 1.0  # 2 of 40 results of the category, and the only one of the lone arm

    def believed(labels: list[str]) -> Vector:
        graph = Graph.from_categories(labels)
        problem = Problem.bounded(graph, [1.0] * graph.n_components, 0, 1, binary=True)
        return Outlook.on(Evidence(problem, Data(counts, highs, highs), 0, 0.0)).variances

    together = believed(["leader", *["category"] * 40, "alone"])
    apart = believed(["leader", *map(str, range(40)), "alone"])
    assert together[1] < 0.5 * apart[1], "its success is one of few in its category"
    assert together[3] == pytest.approx(together[1], rel=0.5)
    assert together[41] == pytest.approx(apart[41], rel=0.2), "an arm on its own borrows nothing"


def test_most_arms_of_a_large_catalogue_are_never_pulled() -> None:
    problem, mu = shop((1000,) * 5, 0.001)
    run = simulate.run(SpectralRace(problem, 0.05), mu, seed=0)
    assert run.correct and (run.counts > 0).sum() < 500


def test_arms_never_pulled_share_one_account_until_one_of_them_is() -> None:
    problem, mu = shop((50, 50), 0.01)
    policy, rng = SpectralRace(problem, 0.01), np.random.default_rng(0)
    state = policy.init()
    for _ in range(10):
        arms = policy.ask(state, 10_000)
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    never = state.data.counts == 0
    for c in (0, 1):
        group = never & (problem.components == c)
        assert group.sum() > 5 and len(set(accounts(state).arms.wealth[group])) == 1


def test_a_state_of_a_large_catalogue_is_short_and_reads_back_exactly() -> None:
    problem, mu = shop((3000, 3000), 0.001)
    policy, rng = SpectralRace(problem, 0.05), np.random.default_rng(0)
    state = policy.init()
    for _ in range(5):
        arms = policy.ask(state, 10_000)
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    written = state.as_dict()
    assert len(str(written)) < 60_000
    read = State.from_dict(written)
    assert read.as_dict() == written
    arms = policy.ask(state, 10_000)
    outcomes = rng.standard_normal(arms.size)
    assert policy.tell(read, arms, outcomes).as_dict() == policy.tell(state, arms, outcomes).as_dict()


def test_a_tolerance_in_a_catalogue_needs_less() -> None:
    problem, mu = shop((15, 15, 15), 0.01, inside=True)
    strict = simulate.run(SpectralRace(problem, 0.05), mu, seed=1)
    loose = simulate.run(SpectralRace(replace(problem, tolerance=0.3), 0.05), mu, seed=1)
    assert loose.correct and loose.tau < strict.tau


@pytest.mark.parametrize(
    ("weight", "R"), [(1e-320, 1.0), (1e300, 1e-20), (1e-308, 1e10), (1.0, 1e-320), (1.0, 1e308), (1e-150, 1e-150)]
)
@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_numbers_at_the_end_of_their_range_do_no_harm(weight: float, R: float, tolerance: float) -> None:
    problem = Problem(Graph.from_categories(list("aaab"), weight), [R, 0.0], tolerance=tolerance)
    policy, rng = SpectralRace(problem, 0.05), np.random.default_rng(0)
    state = policy.init()
    for _ in range(20):
        arms = policy.ask(state, 100)
        state = policy.tell(state, arms, np.array([0.5, 0.4, 0.6, 0.0])[arms] + rng.standard_normal(arms.size))
        assert not np.isnan(accounts(state).arms.wealth).any() and np.isfinite(policy.estimates(state).mean).all()
        assert not math.isnan(policy.remaining(state))
    mean, variance = catalogue_of(problem).posterior(np.array([1.0, 2.0, 0.0, 1.0]), np.zeros(4))
    assert (mean == 0).all() and (variance[:3] >= 1 / 3 * (1 - 1e-9)).all()


def test_a_wrong_R_of_a_category_is_refuted() -> None:
    problem, mu = shop((6, 6), 0.5)
    wrong = replace(problem, R=problem.radii * 1e-4)
    ended = [simulate.run(SpectralRace(wrong, 0.01), mu, seed, max_samples=20_000).status for seed in range(10)]
    assert ended.count("inconsistent") >= 7


def test_matrices_that_do_not_fit_in_memory_are_refused_at_once() -> None:
    n = 400_000
    problem, start = Problem(Graph.from_edges(n, []), math.inf), np.zeros(n)
    start[0] = 1.0
    remedy = "of memory, and this machine has .* GB; put the arms in categories, with an R for each, and use the race"
    with pytest.raises(sb.InvalidInput, match=f"the matrices of 400,000 arms would need about 16,000.0 GB {remedy}"):
        sb.closest_alternative(problem, start, np.ones(n))
    with pytest.raises(sb.InvalidInput, match=f"would need about 8,000.0 GB {remedy}"):
        graph_precision(problem, np.ones(n))
    pair = Graph.from_edges(n, [(0, 1)])
    with pytest.raises(sb.InvalidInput, match="an estimate of the roughness of 400,000 options would need .*; give R"):
        roughness_from(pair, 1.0, np.ones(n), start)


@pytest.mark.parametrize("kind", ["edges", "weights", "features", "networkx", "one R for all categories"])
def test_a_graph_that_does_not_fit_in_memory_is_refused_before_any_trial(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nx = pytest.importorskip("networkx")
    n = 300
    pairs = [(a, a + 1) for a in range(n - 1)]
    build: dict[str, Callable[[], Graph]] = {
        "edges": lambda: Graph.from_edges(n, pairs),
        "weights": lambda: Graph.from_weights(np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)),
        "features": lambda: Graph.from_features(np.arange(n)[:, None]),
        "networkx": lambda: Graph.from_networkx(nx.path_graph(n)),
        "one R for all categories": lambda: Graph.from_categories([str(a % 9) for a in range(n)]),
    }
    graph = build[kind]()
    mu = np.zeros(n)
    mu[7] = 0.1
    made = sb.Instance(Problem(graph, 10.0), mu)
    assert sb.Instance.from_dict(made.as_dict()).problem.n_arms == n  # files are read as such
    monkeypatch.setattr("spectralbai.checks.os.sysconf", lambda name: 1000 if name == "SC_PAGE_SIZE" else 17_000)
    storage = f"sqlite:///{tmp_path}/studies.db"
    for refused in (
        lambda: SpectralRace(made.problem, 0.05),
        lambda: sb.SpectralTaS(made.problem, 0.05),
        lambda: sb.solve_allocation(made.problem, mu),
        lambda: plan(made, 0.05, runs=0),
        lambda: sb.Study.create("large", made, delta=0.05, storage=storage),
    ):
        with pytest.raises(sb.InvalidInput, match=r"the matrices of 300 arms would need about 0\.0 GB"):
            refused()
    assert not list(tmp_path.iterdir())


def test_a_catalogue_of_any_size_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = shop((100, 100), 0.1)
    monkeypatch.setattr("spectralbai.checks.os.sysconf", lambda name: 1000)
    assert SpectralRace(problem, 0.05).init() is not None
    with pytest.raises(sb.InvalidInput, match="the matrices of 201 arms"):
        sb.SpectralTaS(problem, 0.05)
