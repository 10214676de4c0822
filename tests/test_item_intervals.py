"""Intervals for means and differences where trials share items: exact averages over all orders, formulas, coverage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spectralbai import Graph, Items, Problem, SpectralRace
from spectralbai.arrays import Matrix, Vector
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.item_intervals import item_differences, item_intervals
from spectralbai.evidence.list_bounds import reachable
from spectralbai.noise.unit import (
    CENTRE_SHARES,
    CENTRED_STAKES,
    CENTRES,
    STAKE_SHARES,
    centred_start,
    centred_wealth,
    least_centred_mean,
)
from spectralbai.policy import Differences, State
from verification.coverage import chance, least_rate

FREE = Graph.from_edges(3, [])
LIST = np.array([[0.9, 0.1, 0.5, 0.8, 0.0, 0.6], [0.7, 0.2, 0.4, 0.9, 0.3, 0.1], [0.0, 0.8, 0.2, 0.1, 1.0, 0.7]])
N = LIST.shape[1]
CLIQUE = Graph.from_edges(10, list(itertools.combinations(range(10), 2)))


def bounded(items: Items, n_arms: int = 3, graph: Graph | None = None, R: float = math.inf) -> Problem:
    return Problem.bounded(graph or Graph.from_edges(n_arms, []), R=R, items=items)


def tried(data: ItemData, table: Matrix, arms: list[int], draws: list[int], drawn: int | None = None) -> ItemData:
    """Returns the data after a block in which all these arms were tried on the columns `draws` of a table."""
    slots = [(arm, draw) for arm in arms for draw in draws]
    of, at = (np.array(values, dtype=np.intp) for values in zip(*slots, strict=True))
    before = data.drawn if drawn is None else drawn
    return data.after(Block(of, table[of, at], data, 0, items=at, draws=at, drawn=before))


def all_tried(table: Matrix, n: int, n_items: int | None) -> ItemData:
    arms = list(range(table.shape[0]))
    return tried(ItemData.none(len(arms), n_items), table, arms, list(range(n)))


# Lists: sums are compared with what was to be expected of the items that were left.


def adaptively(table: Matrix) -> ItemData:
    """Returns the data of a design that looks at all that it may: who is tried next, catches up, or ends depends on
    outcomes."""
    data = tried(ItemData.none(3, N), table, [0, 1, 2], [0])
    data = tried(data, table, [0, 1, 2] if table[2, 0] < 0.5 else [0, 2], [1, 2])
    if data.counts[1] == 1:
        if data.sums[2] < 1:
            return data
        data = tried(data, table, [1], [1, 2])
    if data.sums[0] < 1.4:
        data = tried(data, table, [0, 1], [3])
    return data if data.sums[1] > 1.5 else tried(data, table, [1, 2], [data.drawn]) if data.drawn == 3 else data


def averages(design: Callable[[Matrix], ItemData]) -> tuple[Vector, Matrix]:
    """Returns the averages over all orders of sums minus what was to be expected: of arms, and of pairs."""
    mu = LIST.mean(axis=1)
    runs = [design(LIST[:, order]) for order in itertools.permutations(range(N))]
    alone = [data.sums + np.diag(data.spent) - np.diag(data.weights) * mu for data in runs]
    apart = [
        (data.crossed + data.spent) - (data.crossed + data.spent).T - data.weights * np.subtract.outer(mu, mu)
        for data in runs
    ]
    return np.mean(alone, axis=0), np.mean(apart, axis=0)


def test_differences_exceed_what_was_expected_by_0_on_average_over_all_orders_whatever_the_design() -> None:
    """Theory 18.11: exactly 0 at the true means."""
    assert_allclose(averages(adaptively)[1], 0, atol=1e-12)


def test_sums_exceed_what_was_expected_by_0_on_average_over_all_orders() -> None:
    def stopping(table: Matrix) -> ItemData:
        data = all_tried(table, 1, N)
        while data.drawn < N and data.sums[0] < 1.3:
            data = tried(data, table, [0, 1, 2], [data.drawn])
        return data

    alone, apart = averages(stopping)
    assert_allclose(alone, 0, atol=1e-12)
    assert_allclose(apart, 0, atol=1e-12)


def test_blocks_of_any_size_give_the_same_data() -> None:
    whole = all_tried(LIST, N, N)
    steps = ItemData.none(3, N)
    for draws in ([0, 1], [2], [3, 4, 5]):
        steps = tried(steps, LIST, [0, 1, 2], draws)
    for name in ("sums", "crossed", "distances", "weights", "spent"):
        assert_allclose(getattr(steps, name), getattr(whole, name), atol=1e-12)
    assert_allclose(whole.distances, ((LIST[:, None] - LIST) ** 2).sum(axis=2))
    before = np.cumsum(LIST, axis=1) - LIST
    assert_allclose(whole.spent[1], (before[1] / (N - np.arange(N))).sum())
    assert_allclose(whole.weights, sum(N / (N - t) for t in range(N)))


def test_items_by_which_arms_catch_up_count_for_the_arms_but_not_for_pairs() -> None:
    """If they counted, a third arm's outcomes on them could decide whether they do."""
    data = tried(tried(ItemData.none(3, N), LIST, [0, 1, 2], [0]), LIST, [2], [1, 2])
    data = tried(data, LIST, [0, 1], [1, 2], drawn=3)
    assert data.counts.tolist() == [3, 3, 3]
    assert_allclose(data.sums, LIST[:, :3].sum(axis=1))
    assert data.together.tolist() == [[3, 1, 1], [1, 3, 1], [1, 1, 3]]
    assert_allclose(np.diag(data.spent), np.diag(all_tried(LIST, 3, N).spent))

    def counting(table: Matrix, together: bool) -> ItemData:
        data = tried(tried(ItemData.none(3, N), table, [0, 1, 2], [0]), table, [2], [1, 2])
        if data.sums[2] > 0.6:
            return tried(data, table, [0, 1], [1, 2], drawn=0 if together else 3)
        return tried(tried(data, table, [0], [1, 2]), table, [1], [1, 2])

    assert_allclose(averages(lambda table: counting(table, together=False))[1], 0, atol=1e-12)
    assert np.abs(averages(lambda table: counting(table, together=True))[1]).max() > 1e-3


def test_fresh_items_have_no_weights_of_their_own() -> None:
    data = all_tried(LIST, 4, None)
    assert (data.weights == data.together).all() and not data.spent.any()
    later = data.padded(4)
    assert later.distances.shape == (4, 4) and later.n_items is None
    assert all_tried(LIST, 4, N).padded(4).n_items == N


# The bound.


def log_wealth(x: Vector, expected: Vector) -> float:
    """Returns the log wealth of all bets on outcomes between -1 and 1, factor by factor, as in the proof of 18.11."""
    total = 0.0
    for c, of_centre in zip(CENTRES.tolist(), CENTRE_SHARES.tolist(), strict=True):
        for part, of_stake in zip(CENTRED_STAKES.tolist(), STAKE_SHARES.tolist(), strict=True):
            y = part / (1 + c)
            price = (-math.log(1 - part) - part) / (1 + c) ** 2
            gains = y * (x - c) - price * (x - c) ** 2 - np.log(1 + y * (expected - c))
            total += of_centre * of_stake * math.exp(gains.sum())
    return math.log(total)


def test_shares_of_bets_sum_to_1() -> None:
    assert CENTRE_SHARES.sum() == pytest.approx(1) and STAKE_SHARES.sum() == pytest.approx(1)


def test_the_end_is_where_the_wealth_reaches_its_goal() -> None:
    for x in (np.array([0.1, 0.3, -0.2, 0.25]), np.full(30, 0.9), np.linspace(-1, 1, 50)):
        n, deviations = np.array([float(x.size)]), np.array([((x - x.mean()) ** 2).sum()])
        end = least_centred_mean(n, np.array([x.mean()]), deviations, np.array([3.0]))
        assert log_wealth(x, np.full(x.size, end[0])) == pytest.approx(3.0, abs=1e-6)


def test_every_value_is_possible_until_the_goal_is_within_reach() -> None:
    one = np.ones(1)
    assert least_centred_mean(one, 0.5 * one, 0 * one, 50 * one)[0] == pytest.approx(-1)


@pytest.mark.parametrize("arms", [(0,), (0, 2)])
def test_the_wealth_at_the_true_mean_is_not_expected_to_grow_in_any_order_of_a_list(arms: tuple[int, ...]) -> None:
    """Exact: over the next item, after every beginning of every order. The same with a constant mean is not fair."""
    x = 2 * LIST[0] - 1 if len(arms) == 1 else LIST[arms[0]] - LIST[arms[1]]
    worst, worst_constant = 0.0, 0.0
    for size in range(N):
        for begun in itertools.permutations(range(N), size):
            rest = np.delete(x, begun)
            for c in CENTRES[[0, 5, 8]]:
                for part in CENTRED_STAKES[[0, 2, 8]]:
                    y, price = part / (1 + c), (-math.log(1 - part) - part) / (1 + c) ** 2
                    pays = np.exp(y * (rest - c) - price * (rest - c) ** 2)
                    worst = max(worst, (pays / (1 + y * (rest.mean() - c))).mean())
                    worst_constant = max(worst_constant, (pays / (1 + y * (x.mean() - c))).mean())
    assert worst <= 1 + 1e-12
    assert worst_constant > 1.01


def test_the_interval_of_a_list_is_no_wider_than_the_bets_allow_and_holds_in_every_order() -> None:
    """Exact: no interval of a mean or a difference misses in more than delta of all orders, at any time."""
    problem, mu = bounded(Items.listed(N)), LIST.mean(axis=1)
    missed = 0
    orders = list(itertools.permutations(range(N)))[::9]
    for order in orders:
        table = LIST[:, order]
        ever = False
        for n in range(1, N + 1):
            data = all_tried(table, n, N)
            low, high = item_intervals(problem, data, 0.0, 0.5)
            least, most = item_differences(problem, data, 0.0, 0, 0.5)
            gap = mu[0] - mu
            ever |= bool(((mu < low - 1e-12) | (mu > high + 1e-12)).any())
            ever |= bool(((gap < least - 1e-12) | (gap > most + 1e-12)).any())
        missed += ever
    assert missed <= 2 * 0.5 * len(orders)
    assert_allclose((low, high), (mu, mu), atol=1e-12)
    assert_allclose((least, most), (gap, gap), atol=1e-12)


def test_the_end_for_a_list_is_where_bets_on_the_items_left_reach_their_goal() -> None:
    """The mean of a list by brute force: 18.11 with the means of what is left, and 18.12."""
    rng = np.random.default_rng(1)
    table = rng.random((3, 40)) * 0.2 + [[0.4], [0.3], [0.5]]
    data, problem = all_tried(table, 25, 40), bounded(Items.listed(40))
    low, high = item_intervals(problem, data, 0.0, 0.1)
    least, most = item_differences(problem, data, 0.0, 2, 0.1)
    left = 40 - np.arange(25)
    for arm in range(3):
        x = table[arm, :25]
        expected = (40 * low[arm] - (np.cumsum(x) - x)) / left
        mean = np.full(25, expected.mean())  # the average is what the bound allows for
        assert log_wealth(2 * x - 1, 2 * mean - 1) == pytest.approx(math.log(2 * 3 / 0.1), abs=1e-6)
    for arm in range(2):
        for sign, end in ((1, least[arm]), (-1, most[arm])):
            x = table[2, :25] - table[arm, :25]
            expected = (40 * end - (np.cumsum(x) - x)) / left
            assert log_wealth(sign * x, np.full(25, sign * expected.mean())) == pytest.approx(
                math.log(2 * 3 / 0.1), abs=1e-6
            )
    assert (high > low).all() and least[2] == most[2] == 0


def test_intervals_do_not_depend_on_origin_or_units() -> None:
    table = np.random.default_rng(3).random((3, 30))
    for items in (Items.fresh(), Items.listed(30)):
        one = bounded(items)
        other = Problem.bounded(FREE, R=math.inf, low=-10.0, high=40.0, items=items)
        here, there = (all_tried(values, 20, items.n) for values in (table, 50 * table - 10 - 7))
        ends, moved = item_intervals(one, here, 0.0, 0.1), item_intervals(other, there, 7.0, 0.1)
        assert_allclose(moved, 50 * np.array(ends) - 17, atol=1e-9)
        ends, moved = item_differences(one, here, 0.0, 1, 0.1), item_differences(other, there, 7.0, 1, 0.1)
        assert_allclose(moved, 50 * np.array(ends), atol=1e-9)


def test_differences_of_a_pair_are_the_same_from_either_side() -> None:
    data = all_tried(np.random.default_rng(3).random((3, 30)), 20, 30)
    for items in (Items.fresh(), Items.listed(30)):
        low, high = item_differences(bounded(items), data, 0.0, 0, 0.1)
        least, most = item_differences(bounded(items), data, 0.0, 2, 0.1)
        assert (least[0], most[0]) == pytest.approx((-high[2], -low[2]))


def test_what_is_certain_of_a_list_narrows_its_intervals() -> None:
    data, problem = all_tried(LIST, 5, N), bounded(Items.listed(N))
    low, high = item_intervals(problem, data, 0.0, 1e-9)
    assert_allclose((low, high), reachable(problem, data, 0.0))
    assert_allclose(high - low, 1 / N)


def test_ends_that_cross_leave_only_what_is_certain() -> None:
    table = np.vstack([np.ones(400), np.zeros(400)])
    alike = bounded(Items.fresh(), 2, Graph.from_edges(2, [(0, 1)]), R=1e-4)
    low, high = item_intervals(alike, all_tried(table, 400, None), 0.0, 0.1)
    assert low.tolist() == [0, 0] and high.tolist() == [1, 1]


def test_a_graph_carries_intervals_to_arms_that_were_not_tried() -> None:
    """Theory 18.13: |mu_a - mu_b| <= sqrt(R / w) along an edge of weight w, and twice that over two edges of a path."""
    graph = Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0)])
    problem = Problem.bounded(graph, R=0.01, items=Items.fresh())
    table = np.full((4, 500), 0.5) + 0.01 * np.random.default_rng(0).standard_normal((4, 500))
    data = tried(ItemData.none(4), table, [0, 3], list(range(500)))
    low, high = item_intervals(problem, data, 0.0, 0.1)
    assert low[1] == pytest.approx(low[0] - 0.1) and high[2] == pytest.approx(high[0] + 0.1 * math.sqrt(2))
    least, most = item_differences(problem, data, 0.0, 3, 0.1)
    assert most[1] == pytest.approx(most[0] + 0.1)
    least, most = item_differences(problem, data, 0.0, 0, 0.1)
    assert (least[1], most[2]) == pytest.approx((-0.1, 0.1 * math.sqrt(2)))
    partly = Problem.bounded(graph, R=[math.inf, 0.0], items=Items.fresh())
    low, high = item_intervals(partly, data, 0.0, 0.1)
    assert (low[1], high[2]) == (0, 1)


def test_without_a_range_only_differences_are_bounded() -> None:
    problem = Problem(FREE, R=math.inf, sigma=[1.0, 2.0, 1.0], items=Items.fresh())
    rng = np.random.default_rng(0)
    table = rng.standard_normal((3, 100)) + 1000 * rng.standard_normal(100)
    data = tried(ItemData.none(3), table, [0, 1], list(range(100)))
    assert np.isinf(item_intervals(problem, data, 0.0, 0.1)).all()
    low, high = item_differences(problem, data, 0.0, 0, 0.1)
    apart = (table[0] - table[1]).mean()
    T, T0 = 100 / 5, 5 / 5
    radius = math.sqrt((T + T0) * (2 * math.log(3 / 0.1) + math.log((T + T0) / T0))) / T  # (14.2)
    assert (low[1], high[1]) == pytest.approx((apart - radius, apart + radius))
    assert np.isinf([low[2], high[2]]).all()


# Coverage.


def shared(rng: np.random.Generator, n_arms: int, n: int, correlation: float, spread: float = 0.2) -> Matrix:
    """Returns outcomes with a common part, all of mean 1/2."""
    common, own = rng.standard_normal(n), rng.standard_normal((n_arms, n))
    return np.clip(0.5 + spread * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own), 0, 1)


def test_pools_of_arms_would_miss_where_they_share_items_and_single_arms_do_not() -> None:
    """Ten alike arms on the same item are one result, not ten."""
    rng, runs, delta = np.random.default_rng(5), 80, 0.1
    alike = bounded(Items.fresh(), 10, CLIQUE, R=1e-8)
    pooled = single = 0
    for _ in range(runs):
        table = np.tile(np.where(rng.random(60) < 0.5, 1.0, 0.0), (10, 1))
        for n in (15, 30, 60):
            data = all_tried(table, n, None)
            ends = pooled_intervals(alike, data, 0.0, delta)
            if ends is None or (ends[0] > 0.5).any() or (ends[1] < 0.5).any():
                pooled += 1
                break
        low, high = item_intervals(alike, data, 0.0, delta)
        single += bool((low > 0.5).any() or (high < 0.5).any())
    assert least_rate(pooled, runs) > delta
    assert chance(single, runs, delta) > 1e-3


@pytest.mark.parametrize("kind", ["tight", "spread"])
@pytest.mark.parametrize("listed", [False, True])
def test_the_true_mean_is_refuted_at_some_time_with_probability_delta_at_most(listed: bool, kind: str) -> None:
    """Rows are runs. Where outcomes are tight, the inequalities of the proof nearly hold with equality."""
    rng, runs, delta, length = np.random.default_rng(11), 400, 0.2, 100
    n = np.arange(1.0, length)
    population = rng.uniform(-0.5, 0.5, length)
    if kind == "tight":
        population = np.where(np.arange(length) < 5, -1.0, 0.05)
    x = rng.permuted(np.tile(population, (runs, 1)), axis=1)
    if not listed:
        x = population[rng.integers(length, size=x.shape)]
    left = length - np.arange(length - 1.0)
    before = (np.cumsum(x, axis=1) - x)[:, :-1]
    expected = np.full(before.shape, population.mean())
    if listed:
        expected = (length * expected - before) / left
    centre = np.cumsum(expected, axis=1) / n
    average = np.cumsum(x, axis=1)[:, :-1] / n
    deviations = np.cumsum(x**2, axis=1)[:, :-1] - n * average**2
    at = np.flatnonzero(n % 4 == 0)
    size = np.tile(n[at], runs)
    start = centred_start(size, average[:, at].ravel(), deviations[:, at].ravel())
    wealth = centred_wealth(size, start, centre[:, at].ravel())[0].reshape(runs, -1)
    refuted = int((wealth.max(axis=1) >= -math.log(delta)).sum())
    assert chance(refuted, runs, delta) > 1e-3
    if kind == "tight":
        assert refuted > 0.1 * delta * runs, "the bound is tight enough to be tested"


def test_paired_differences_are_far_narrower_than_those_of_single_means() -> None:
    table = shared(np.random.default_rng(2), 5, 100, 0.9)
    for items in (Items.fresh(), Items.listed(300)):
        problem = bounded(items, 5)
        data = all_tried(table, 100, items.n)
        low, high = item_intervals(problem, data, 0.0, 0.05)
        least, most = item_differences(problem, data, 0.0, 0, 0.05)
        assert ((most - least)[1:] < 0.6 * ((high - low)[0] + (high - low)[1:])).all()


# Estimates of a policy.


def played(items: Items | None, table: Matrix, blocks: int) -> tuple[SpectralRace, State]:
    policy = SpectralRace(
        Problem.bounded(Graph.from_edges(len(table), []), R=math.inf, tolerance=0.05, items=items), delta=0.05
    )
    state = policy.init(seed=3)
    for _ in range(blocks):
        if items is None:
            arms = policy.ask(state, policy.horizon(state))
            state = policy.tell(state, arms, table[arms, np.arange(arms.size) % table.shape[1]])
            continue
        arms, at = policy.ask_items(state, policy.horizon(state))
        if arms.size:
            state = policy.tell(state, arms, table[arms, at], items=at)
    return policy, state


@pytest.mark.parametrize("items", [Items.fresh(), Items.listed(300)])
def test_a_policy_says_how_much_better_the_recommended_arm_is(items: Items) -> None:
    table = shared(np.random.default_rng(4), 4, 300, 0.9) + np.array([[0.0], [0.1], [0.0], [-0.1]])
    policy, state = played(items, np.clip(table, 0, 1), 12)
    seen = policy.estimates(state)
    assert isinstance(seen.differences, Differences)
    assert seen.differences.reference == policy.verdict(state).arm == 1
    assert isinstance(state.data, ItemData)
    assert_allclose(
        (seen.differences.low, seen.differences.high),
        item_differences(policy.problem, state.data, state.origin, 1, 0.05),
    )
    low, high = item_intervals(policy.problem, state.data, state.origin, 0.05)
    assert_allclose((seen.low, seen.high), (low + state.origin, high + state.origin))
    assert_allclose(seen.differences.mean, seen.mean[1] - seen.mean)
    assert ((seen.low < seen.mean) & (seen.mean < seen.high)).all()
    assert policy.estimates(state, reference=3).differences.reference == 3
    again = policy.estimates(State.from_dict(state.as_dict()))
    assert (again.differences.low == seen.differences.low).all()


def test_a_block_that_is_open_tells_nothing_with_items() -> None:
    table = shared(np.random.default_rng(4), 3, 300, 0.9)
    policy, state = played(Items.listed(300), table, 3)
    before = policy.estimates(state)
    arms, at = policy.ask_items(state, 4)
    after = policy.estimates(policy.tell(state, arms, table[arms, at], items=at))
    assert (after.low == before.low).all() and (after.mean == before.mean).all()


def test_nothing_is_known_before_the_first_block_closes() -> None:
    policy, state = played(Items.fresh(), LIST, 0)
    seen = policy.estimates(state)
    assert np.isnan(seen.mean).all() and (seen.low == 0).all() and (seen.high == 1).all()
    assert seen.differences.low.tolist() == [0, -1, -1] and seen.differences.high.tolist() == [0, 1, 1]


def test_without_items_differences_follow_from_the_intervals_of_the_means() -> None:
    policy, state = played(None, shared(np.random.default_rng(4), 3, 300, 0.9), 5)
    seen = policy.estimates(state, reference=2)
    assert_allclose(seen.differences.low[:2], seen.low[2] - seen.high[:2])
    assert_allclose(seen.differences.high[:2], seen.high[2] - seen.low[:2])
    assert seen.differences.low[2] == seen.differences.high[2] == 0


def test_a_list_that_is_used_up_has_intervals_of_width_0() -> None:
    table = np.random.default_rng(8).random((3, 8))
    policy, state = played(Items.listed(8), table, 20)
    seen, whole = policy.estimates(state), state.data.counts == 8
    assert whole.sum() >= 2
    assert_allclose(seen.low[whole], table.mean(axis=1)[whole])
    assert_allclose(seen.high[whole], table.mean(axis=1)[whole])
