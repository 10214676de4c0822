"""Intervals for all means from pools of arms: formulas against brute force, special cases, coverage."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from spectralbai import Graph, Problem, SpectralRace, SpectralTaS
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.intervals import pooled_intervals, pools_of
from spectralbai.noise import Drawing, Pools
from spectralbai.noise.unit import STAKES, TILTS, least_mean, spread_start, spread_wealth, tilted_wealth
from spectralbai.policy import Uniform
from tests.states import sums_only
from verification.coverage import chance, strayed

KITE = Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 0.5), (0, 2, 2.0), (2, 3, 0.3)])  # arms 4 and 5 are isolated
SIGMA = [1.0, 0.5, 2.0, 1.0, 3.0, 1.0]
SMOOTH = Problem(KITE, R=0.2, sigma=SIGMA)
COUNTS = np.array([3.0, 8.0, 0.0, 5.0, 2.0, 7.0])
MEANS = np.array([0.1, 0.3, 0.0, -0.2, 1.0, 2.0])


def data_of(counts: Vector, means: Vector) -> Data:
    return sums_only(counts, counts * means)


def ends_of(problem: Problem, counts: Vector = COUNTS, means: Vector = MEANS, delta: float = 0.1) -> np.ndarray:
    """Returns the ends, (2, n_arms)."""
    ends = pooled_intervals(problem, data_of(counts, means), 0.0, delta)
    assert ends is not None
    return np.array(ends)


def pool(members: list[int], share: float = 1.0) -> Pools:
    return Pools(np.array(members), np.array([0]), np.array([share]))


# Pools.


def test_pools_are_arms_neighbourhoods_and_components_and_each_kind_has_a_third_of_the_risk() -> None:
    pools = pools_of(SMOOTH)
    found = {tuple(members.tolist()): share for members, share in zip(pools, pools.shares.tolist(), strict=True)}
    # Neighbourhoods: those of arms 0 and 1 are one set, and those of the isolated arms are the arms.
    expected = {(a,): 1 / 18 for a in range(6)} | {(0, 1, 2): 1 / 15, (2, 3): 1 / 15}
    expected |= {(0, 1, 2, 3): 1 / 15 + 1 / 9, (4,): 1 / 18 + 1 / 15 + 1 / 9, (5,): 1 / 18 + 1 / 15 + 1 / 9}
    assert found == pytest.approx(expected)
    assert pools.shares.sum() == pytest.approx(1)
    np.testing.assert_array_equal(pools.sizes, [members.size for members in pools])


@pytest.mark.parametrize("problem", [Problem(KITE, math.inf, SIGMA), Problem(Graph.from_edges(6, []), 0.2, SIGMA)])
def test_without_a_graph_every_arm_is_by_itself_at_an_equal_share_of_the_risk(problem: Problem) -> None:
    assert [members.tolist() for members in pools_of(problem)] == [[arm] for arm in range(6)]
    low, high = ends_of(problem)
    for arm in range(6):
        own = problem.noise.pooled_ends(pool([arm], 1 / 6), COUNTS, COUNTS * MEANS, COUNTS, 0.0, 0.1)
        assert (low[arm], high[arm]) == pytest.approx((own[0][0], own[1][0]))
    assert (low[2], high[2]) == (-math.inf, math.inf)


# Sub-Gaussian outcomes.


def test_the_radius_of_a_pool_is_where_the_mixture_of_normals_is_worth_one_over_the_risk() -> None:
    """Theory 14.2, by quadrature."""
    members = [0, 1, 3]
    low, high = SMOOTH.noise.pooled_ends(pool(members, 0.3), COUNTS, COUNTS * MEANS, COUNTS, 0.0, 0.1)
    precision = 1 / np.array(SIGMA)[members] ** 2
    T, T0 = COUNTS[members] @ precision, 5 * precision.mean()
    assert (low[0] + high[0]) / 2 == pytest.approx(COUNTS[members] * precision @ MEANS[members] / T)
    noise = T * (high[0] - low[0]) / 2

    def payoff(y: float) -> float:
        return float(np.exp(y * noise - y**2 * T / 2) * norm.pdf(y, scale=1 / math.sqrt(T0)))

    peak = noise / (T + T0)
    assert quad(payoff, peak - 5, peak + 5, points=[peak])[0] == pytest.approx(1 / (0.1 * 0.3), rel=1e-6)


def farthest(problem: Problem, arm: int, members: list[int], weights: Vector) -> float:
    """Returns how far mu_arm can be from an average over a pool, by CVXPY."""
    mu = cp.Variable(problem.n_arms)
    a, b = problem.graph.pairs.T
    rough = cp.sum_squares(cp.multiply(np.sqrt(problem.graph.weights), mu[a] - mu[b]))
    task = cp.Problem(cp.Maximize(mu[arm] - weights @ mu[members]), [rough <= problem.R, mu[4:] == 0])
    task.solve(solver=cp.CLARABEL)
    return float(task.value)


def test_the_intervals_are_the_best_of_every_pool_widened_by_what_smooth_means_allow() -> None:
    """Theory 14.3 and 14.8, pool by pool with CVXPY."""
    expected = np.stack([np.full(6, -np.inf), np.full(6, np.inf)])
    pools = pools_of(SMOOTH)
    for members, share in zip(map(np.ndarray.tolist, pools), pools.shares.tolist(), strict=True):
        if not COUNTS[members].any():
            continue
        low, high = SMOOTH.noise.pooled_ends(pool(members, share), COUNTS, COUNTS * MEANS, COUNTS, 0.0, 0.1)
        weights = (COUNTS / SMOOTH.sigma**2)[members]
        for arm in members:
            bias = farthest(SMOOTH, arm, members, weights / weights.sum())
            expected[0, arm] = max(expected[0, arm], low[0] - bias)
            expected[1, arm] = min(expected[1, arm], high[0] + bias)
    np.testing.assert_allclose(ends_of(SMOOTH), expected, rtol=1e-5)


def test_intervals_do_not_depend_on_how_arms_are_numbered_nor_on_the_origin() -> None:
    order = np.random.default_rng(0).permutation(6)  # arm k of the other problem is arm order[k]
    position = np.argsort(order)
    edges = [
        (position[a], position[b], w) for (a, b), w in zip(KITE.pairs.tolist(), KITE.weights.tolist(), strict=True)
    ]
    other = Problem(Graph.from_edges(6, edges), 0.2, np.array(SIGMA)[order])
    np.testing.assert_allclose(ends_of(other, COUNTS[order], MEANS[order]), ends_of(SMOOTH)[:, order])
    np.testing.assert_allclose(ends_of(SMOOTH, means=MEANS + 7), ends_of(SMOOTH) + 7)


def test_components_without_results_are_unknown_and_one_result_says_something_of_all_its_component() -> None:
    assert np.isinf(ends_of(SMOOTH, np.zeros(6))).all()
    low, high = ends_of(SMOOTH, np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    assert np.isfinite([low[:4], high[:4]]).all() and np.isinf([low[4:], high[4:]]).all()
    assert (high - low)[2] < (high - low)[[0, 1, 3]].min()


def test_a_tiny_R_gives_all_arms_of_a_component_one_interval() -> None:
    low, high = ends_of(Problem(KITE, 1e-30, SIGMA))
    np.testing.assert_allclose([low[:4], high[:4]], [low[:1].repeat(4), high[:1].repeat(4)])
    assert high[0] - low[0] < (high - low)[4]


def test_means_too_rough_for_R_leave_no_interval() -> None:
    counts = np.full(6, 1000.0)
    assert pooled_intervals(SMOOTH, data_of(counts, np.array([0.0, 3.0, 0.0, 3.0, 0.0, 0.0])), 0.0, 0.1) is None


# Outcomes in a range.


def raw_wealth(outcomes: list[float], mean: float, stake: float) -> float:
    """Returns a term of W_2 by quadrature over the centre, from the outcomes themselves."""
    price = -math.log(1 - stake) - stake
    x = np.array(outcomes)
    gain = stake * float((x - mean).sum())
    return float(quad(lambda c: math.exp(gain - price * float(((x - c) ** 2).sum())), 0, 1)[0])


def moments(outcomes: list[float]) -> tuple[Vector, Vector, Vector]:
    x = np.array(outcomes)
    return np.array([float(x.size)]), np.array([x.sum()]), np.array([x.size * x.var()])


def test_both_mixtures_are_what_the_outcomes_themselves_give() -> None:
    """Theory 14.4 and 14.6, from raw outcomes."""
    x = [0.2, 0.9, 0.4, 0.45, 0.31]
    n, total, deviations = moments(x)
    for q in (0.05, 0.3, 0.8):
        tilted = np.mean([math.exp(y * sum(x)) / (1 + q * (math.exp(y) - 1)) ** 5 for y in TILTS])
        assert tilted_wealth(n, total, np.array([q]))[0] == pytest.approx(math.log(tilted))
        spread = np.mean([raw_wealth(x, q, stake) for stake in STAKES])
        assert spread_wealth(n, spread_start(n, total, deviations), np.array([q]))[0] == pytest.approx(math.log(spread))


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.2, 0.7)])
def test_the_expected_wealth_is_one_for_equal_rates_and_at_most_one_for_others_whatever_the_sampling(
    rates: tuple[float, float],
) -> None:
    """All sequences of seven binary outcomes; a click makes arm 1 the next, and the average mean follows."""
    tilted = spread = 0.0
    for x in itertools.product([0.0, 1.0], repeat=7):
        arms = [0, *(int(each) for each in x[:-1])]
        means = np.array([rates[arm] for arm in arms])
        chance = float(np.prod(np.where(np.array(x) == 1, means, 1 - means)))
        n, total, deviations = moments(list(x))
        q = means.mean(keepdims=True)
        tilted += chance * math.exp(tilted_wealth(n, total, q)[0])
        spread += chance * math.exp(spread_wealth(n, spread_start(n, total, deviations), q)[0])
    assert tilted == pytest.approx(1) if rates[0] == rates[1] else 0.5 < tilted < 1
    assert 0.5 < spread < 1


def test_the_least_mean_is_where_the_wealth_reaches_the_goal() -> None:
    n, total, deviations = np.array([40.0, 40.0, 5.0]), np.array([12.0, 30.0, 0.0]), np.array([0.02, 0.1, 0.0])
    goal = np.array([4.0, 6.0, 5.0])
    found = least_mean(n, total, None, goal)
    np.testing.assert_allclose(tilted_wealth(n, total, found)[:2], goal[:2], rtol=1e-9)
    assert found[2] == 0, "nothing but zeros refutes no small mean"
    both, start = least_mean(n, total, deviations, goal), spread_start(n, total, deviations)
    halves = (np.exp(tilted_wealth(n, total, both)) + np.exp(spread_wealth(n, start, both))) / 2
    np.testing.assert_allclose(np.log(halves)[:2], goal[:2], rtol=1e-9)
    assert both[1] > found[1], "a small spread helps"
    unknown = least_mean(n, total, np.full(3, np.nan), goal)
    np.testing.assert_array_equal(unknown, least_mean(n, total, None, goal + math.log(2)))


@pytest.mark.parametrize("binary", [False, True])
def test_both_ends_of_outcomes_in_a_range_share_the_risk_and_follow_its_units(binary: bool) -> None:
    problem = Problem.bounded(KITE, 0.2, low=-1.0, high=3.0, binary=binary)
    counts, highs = np.array([20.0, 30.0]), np.array([5.0, 3.0])
    sums, squares = 4 * highs - counts, 9 * highs + (counts - highs)

    def ends(pools: Pools, sums: Vector, squares: Vector, origin: float) -> tuple[Vector, Vector]:
        data = (np.append(each, np.zeros(4)) for each in (counts, sums, squares))
        return problem.noise.pooled_ends(pools, next(data), next(data), next(data), origin, 0.1)

    low, high = ends(pool([0, 1], 0.3), sums, squares, 0.0)
    n, total, deviations = moments([1.0] * 8 + [0.0] * 42)
    goal = np.array([math.log(2 / (0.1 * 0.3))])
    kept = None if binary else deviations
    assert low[0] == pytest.approx(-1 + 4 * least_mean(n, total, kept, goal)[0])
    assert high[0] == pytest.approx(3 - 4 * least_mean(n, n - total, kept, goal)[0])
    others = ends(pool([0, 1], 0.3), sums - 3 * counts, squares - 6 * sums + 9 * counts, 3.0)
    np.testing.assert_allclose(np.ravel(others) + 3, [low[0], high[0]])
    nothing = ends(pool([4, 5]), sums, squares, 0.0)
    assert (nothing[0][0], nothing[1][0]) == (-math.inf, math.inf)


def test_scores_that_spread_little_have_narrow_intervals() -> None:
    rng = np.random.default_rng(0)
    problem = Problem.bounded(Graph.from_edges(2, []), 1.0)
    arms, x = np.tile([0, 1], 500), 0.75 + rng.uniform(-0.03, 0.03, 1000)
    data = Data.none(2).plus(arms, x)
    low, high = np.array(pooled_intervals(problem, data, 0.0, 0.05))
    assert (high - low).max() / 2 < 0.025
    coarse = np.array(pooled_intervals(problem, sums_only(data.counts, data.sums), 0.0, 0.05))
    assert (coarse[1] - coarse[0]).min() / 2 > 0.06


def test_many_clicks_without_a_graph_are_as_narrow_as_a_bernoulli_bound_should_be() -> None:
    """At 1,000 views of 2 % the half-width of one of two arms is below .026; sigma = 1/2 gives .05."""
    problem = Problem.bounded(Graph.from_edges(2, []), 1.0, binary=True)
    clicks, views = np.array([20.0, 90.0]), np.full(2, 1000.0)
    low, high = np.array(pooled_intervals(problem, Data(views, clicks, clicks), 0.0, 0.05))
    assert (high - low)[0] / 2 < 0.02 and (high - low)[1] / 2 < 0.036


def test_neighbours_make_the_intervals_of_thirty_pages_narrower() -> None:
    """3,204 views, equally many of each page, 2.9 % clicks."""
    graph = Graph.from_features(np.random.default_rng(3).random((30, 3)), 4)
    views = np.append(np.full(24, 107), np.full(6, 106))
    clicks = np.random.default_rng(0).binomial(views, 0.029).astype(np.float64)
    data, halves = Data(views.astype(np.float64), clicks, clicks), []
    for R in (9e-5, 9e-3, math.inf):
        ends = pooled_intervals(Problem.bounded(graph, R, binary=True), data, 0.0, 0.05)
        assert ends is not None
        low, high = np.clip(ends, 0, 1)
        halves.append((high - low).max() / 2)
    assert halves[0] < 0.022 and halves[1] < 0.07 and halves[2] > 0.1


# Policies.


def strayed_in_a_race(problem: Problem, mu: Vector, seed: int, noise: Drawing | None = None) -> float:
    """Returns how far a mean is from the middle of its interval, in half-widths, at most at all closings of blocks of a
    race."""
    policy, rng = SpectralRace(problem, 0.1), np.random.default_rng(seed)
    draw, state = problem.noise.draws(mu, noise), policy.init()
    far = 0.0
    while state.samples < 150 and far <= 1 and not policy.verdict(state).stopped_at:
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, draw(rng, arms))
        found = policy.estimates(state)
        far = max(far, strayed(mu, found.low, found.high))
    return far


@pytest.mark.parametrize(
    ("problem", "mu"),
    [
        (Problem(Graph.from_edges(4, [(0, 1), (1, 2)]), R=0.08), np.array([0.0, 0.2, 0.4, 0.3])),
        (Problem.bounded(Graph.from_edges(3, [(1, 2)]), R=0.0025, binary=True), np.array([0.1, 0.05, 0.1])),
    ],
    ids=["Gaussian, S(mu) = R", "rates, S(mu) = R"],
)
def test_intervals_of_a_race_miss_with_probability_at_most_delta_and_much_narrower_ones_more_often(
    problem: Problem, mu: Vector
) -> None:
    far = [strayed_in_a_race(problem, mu, seed) for seed in range(20)]
    assert chance(sum(each > 1 for each in far), 20, 0.1) > 0.01
    assert chance(sum(each > 0.3 for each in far), 20, 0.1) < 0.01


def test_rules_that_bet_have_intervals_from_the_first_result_on_also_of_sealed_results() -> None:
    policy = SpectralTaS(SMOOTH, 0.1)
    assert np.isinf(policy.estimates(policy.init()).low).all()
    state = policy.tell(policy.init(), [0], [5.0])
    assert state.data.samples == 0, "the block is open"
    found = policy.estimates(state)
    expected = pooled_intervals(SMOOTH, state.received, state.origin, 0.1)
    assert expected is not None and np.isnan(found.mean).all()
    np.testing.assert_allclose([found.low, found.high], np.array(expected) + 5)
    assert np.isfinite(found.low[:4]).all() and np.isinf(found.low[4:]).all()


def test_each_risk_that_is_watched_has_its_intervals_and_other_rules_keep_theirs() -> None:
    policy = Uniform(SMOOTH, 0.1, watching=(("betting", 0.001), ("gk16", 0.1), ("graph-intervals", 0.1)))
    state = policy.init()
    for _ in range(5):
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, MEANS[arms])
    own, surer, unproved, other = (policy.estimates(state, watch) for watch in range(4))
    assert (surer.high - surer.low > own.high - own.low).all()
    assert np.isinf(unproved.low).all()
    assert np.isfinite(other.low).all() and (other.low != own.low).all()


def test_intervals_of_rules_that_bet_stay_within_the_range_of_the_outcomes() -> None:
    problem = Problem.bounded(KITE, 0.2, low=-1.0, high=3.0)
    policy = SpectralTaS(problem, 0.1)
    found = policy.estimates(policy.tell(policy.init(), [0], [2.5]))
    assert (found.low >= -1).all() and (found.high <= 3).all()
    assert (found.low[4], found.high[4]) == (-1, 3), "an arm of which nothing is known"
    state = policy.tell(policy.init(), [0] * 100, [2.5] * 100)
    found, expected = policy.estimates(state), pooled_intervals(problem, state.received, 2.5, 0.1)
    np.testing.assert_allclose([found.low, found.high], np.clip(np.array(expected) + 2.5, -1, 3))
    assert -1 < found.low[0] < 2.5 < found.high[0] < 3


def test_once_R_is_refuted_no_intervals_are_claimed() -> None:
    problem = Problem(Graph.from_edges(3, [(1, 2)]), R=0.01)
    policy, mu = SpectralRace(problem, 0.1), np.array([0.9, 0.0, 0.8])
    state = policy.init()
    while policy.verdict(state).consistent:
        assert state.samples < 5000
        arms = policy.ask(state, policy.horizon(state))
        state = policy.tell(state, arms, mu[arms])
    found = policy.estimates(state)
    assert np.isinf(found.low).all() and np.isinf(found.high).all() and found.consistent is False
