"""Bets on items are fair, by exact averages: over all orders of a list, or over all outcomes of fresh items.

Nothing here is taken from the package. A bet h on an item pays 1 + sum_a h_a (x_a - m_a). On a list of N items that
were drawn in an order chosen at random, m_a is the mean that option a would have on the items not drawn yet if its mean
over the list were lam_a. The broken variants are as close to the fair ones as the mistakes that code may make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[np.float64]
EXACT = 1e-12
BROKEN = 1e-4
"""How far from 1 the average payoff of a broken bet has to be, at least."""


# ------------------------------------------------------------------------------------------------------------- lists


@dataclass(frozen=True)
class Past:
    """What is known before an item of a list is tried."""

    closed: Array
    """Outcomes on the items of the blocks before this one, in the order of drawing: (n_options, items); nan where an
    option skipped an item."""
    drawn: Array
    """The same, with the items of this block that were tried before: what bets are compared with may depend on it."""
    n_items: int
    lam: Array
    """The means over the list that the bet is against."""


Bettor = Callable[[Past], Array]
"""Returns the stakes h on the next item: (n_options,)."""
Centre = Callable[[Past], Array]
"""Returns what the outcomes on the next item are compared with: (n_options,)."""
Design = Callable[[Past], Sequence[int]]
"""Returns the options that are tried on the items of the next block."""
CatchUp = Callable[[int], Sequence[int]]
"""Returns the options that are tried on all items they skipped, after the block that ends with this many items."""


def of_the_rest(past: Past) -> Array:
    """Returns the conditional means of the next item: m_a = (N lam_a - sum of its t outcomes) / (N - t)."""
    return rest(past, past.drawn)


def rest(past: Past, results: Array) -> Array:
    """Returns the means over the items that are not in `results`; an option that skipped some has those it tried."""
    known = ~np.isnan(results)
    means: Array = (past.n_items * past.lam - np.where(known, results, 0.0).sum(axis=1)) / (
        past.n_items - known.sum(axis=1)
    )
    return means


def everything(past: Past) -> Sequence[int]:
    return range(len(past.lam))


def nothing(t: int) -> Sequence[int]:
    return ()


def average_over_orders(
    table: Array,
    bettor: Bettor,
    centre: Centre = of_the_rest,
    blocks: Sequence[int] = (1, 1, 1, 1, 1),
    design: Design = everything,
    catch_up: CatchUp = nothing,
    lam: Array | None = None,
) -> float:
    """Returns the average, over all orders of the items of a table, of the product of the factors of a bettor.

    After the items that are drawn, every item that is left comes next equally often.
    """
    n_options, n_items = table.shape
    against = table.mean(axis=1) if lam is None else lam
    ends = [0, *np.cumsum(blocks).tolist()]
    assert ends[-1] == n_items

    def from_here(drawn: tuple[int, ...], results: Array) -> float:
        t = len(drawn)
        if t in ends:
            late = [*catch_up(t)]
            results = results.copy()
            results[late] = table[np.ix_(late, drawn)]
        if t == n_items:
            return 1.0
        closed = results[:, : max(end for end in ends if end <= t)]
        tried = [*design(Past(closed, closed, n_items, against))]
        past = Past(closed, results, n_items, against)
        h, m = bettor(past), centre(past)
        left = [item for item in range(n_items) if item not in drawn]
        total = 0.0
        for item in left:
            factor = 1 + sum(float(h[a] * (table[a, item] - m[a])) for a in tried)
            after = np.full((n_options, t + 1), math.nan)
            after[:, :t] = results
            after[tried, t] = table[tried, item]
            total += factor * from_here((*drawn, item), after)
        return total / len(left)

    return from_here((), np.zeros((n_options, 0)))


def fixed(past: Past) -> Array:
    """Returns the same bet on every item."""
    return np.array([0.8, -0.5, 0.3])[: len(past.lam)]


def while_behind(past: Past) -> Array:
    """Returns a bet for option 0 against option 1, but only while option 0 is behind."""
    h = np.zeros(len(past.lam))
    if past.closed.size and (past.closed[0] - past.closed[1]).sum() < 0:
        h[:2] = 0.9, -0.9
    return h


def by_differences(past: Past) -> Array:
    """Returns a bet on what differed from the mean of an item before, the larger the more it did."""
    if not past.closed.size:
        return np.array([0.5, 0.0, 0.0])[: len(past.lam)]
    known = ~np.isnan(past.closed)
    results = np.where(known, past.closed, 0.0)
    h: Array = 0.9 * np.where(known, results - results.sum(axis=0) / known.sum(axis=0), 0.0).mean(axis=1)
    return h


def limited(past: Past) -> Array:
    """Returns a bet that is too large, scaled item by item so that it pays at least a tenth for outcomes in [0, 1]."""
    h: Array = 5.0 * by_differences(past)
    m = of_the_rest(past)
    worst = float(np.maximum(h * m, -h * (1 - m)).sum())
    if worst > 0:
        h *= min(1.0, 0.9 / worst)
    return h


BETTORS = (fixed, while_behind, by_differences, limited)
TWO = np.array([[0.9, 0.1, 0.4, 0.0, 0.7], [0.2, 0.3, 1.0, 0.1, 0.5]])
THREE = np.array([[0.0, 1.0, 0.2, 0.6, 0.9], [0.1, 0.8, 0.4, 0.6, 0.5], [1.0, 0.0, 0.3, 0.7, 0.2]])
ALIKE = np.array([[0.95, 0.1, 0.6, 0.3, 0.8], [0.9, 0.0, 0.7, 0.2, 0.9]])
"""Items are easy or hard for both."""
TABLES = {"two": TWO, "three": THREE, "binary": np.array([[1.0, 0, 0, 1, 0], [1.0, 1, 0, 0, 1]])}


@pytest.mark.parametrize("bettor", BETTORS)
@pytest.mark.parametrize("blocks", [(1, 1, 1, 1, 1), (2, 3), (5,)], ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_a_list_pays_one_on_average_over_all_orders(name: str, blocks: tuple[int, ...], bettor: Bettor) -> None:
    assert average_over_orders(TABLES[name], bettor, blocks=blocks) == pytest.approx(1.0, abs=EXACT)


def test_a_longer_list_does_too() -> None:
    table = np.vstack([np.linspace(0, 1, 6) ** 2, [0.3, 0.1, 0.9, 0.2, 0.8, 0.7]])
    assert average_over_orders(table, while_behind, blocks=(2, 2, 2)) == pytest.approx(1.0, abs=EXACT)


def test_an_item_of_a_list_weighs_more_the_fewer_are_left() -> None:
    """The expected factor is 1 + N/(N - t) h.(mu - lam), whatever came before."""
    h, lam = np.array([0.3, -0.2]), np.array([0.5, 0.45])
    gain = float(h @ (TWO.mean(axis=1) - lam))
    for t in range(5):

        def once(past: Past, t: int = t) -> Array:
            return h if past.closed.shape[1] == t else 0 * h

        assert average_over_orders(TWO, once, lam=lam) == pytest.approx(1 + 5 / (5 - t) * gain, abs=EXACT)


def once_after_an_item(past: Past) -> Array:
    """Returns a bet on option 1 on the second item only, the opposite way to what option 0 did on the first."""
    h = np.zeros(len(past.lam))
    if past.closed.shape[1] == 1:
        h[1] = 0.9 if past.closed[0, 0] < past.lam[0] else -0.9
    return h


def skips_the_first(past: Past) -> Sequence[int]:
    """Returns that option 1 is not tried on the first item."""
    return (0,) if past.closed.shape[1] == 0 else (0, 1)


def test_an_option_that_caught_up_may_be_bet_on_again() -> None:
    """Option 1 skips the first item; its result there comes after the second, and is not bet on."""

    def later(past: Past) -> Array:
        return by_differences(past) if past.closed.shape[1] >= 2 else np.array([0.7, 0.0])

    def late(t: int) -> Sequence[int]:
        return (1,) if t == 2 else ()

    assert average_over_orders(ALIKE, later, design=skips_the_first, catch_up=late) == pytest.approx(1.0, abs=EXACT)


def uncentred(past: Past) -> Array:
    return past.lam


def all_items(past: Past) -> Array:
    """Returns N where N - t belongs."""
    means: Array = (past.n_items * past.lam - past.drawn.sum(axis=1)) / past.n_items
    return means


def before_the_block(past: Past) -> Array:
    """Returns sums and counts that miss the items of the same block."""
    return rest(past, past.closed)


def sums_before_the_block(past: Past) -> Array:
    """Returns sums that miss the items of the same block, with counts that have them."""
    means: Array = (past.n_items * past.lam - past.closed.sum(axis=1)) / (past.n_items - past.drawn.shape[1])
    return means


def first_pair_twice(past: Past) -> Array:
    """Returns sums in which the first result of option 0 counts twice, as if it had come again."""
    again = past.drawn[:, :1] * [[1.0], [0.0]] if past.drawn.size else np.zeros((len(past.lam), 1))
    means: Array = (past.n_items * past.lam - past.drawn.sum(axis=1) - again[:, 0]) / (
        past.n_items - past.drawn.shape[1]
    )
    return means


def first_pair_twice_in_both(past: Past) -> Array:
    """Returns the same with a count that is one more, too."""
    t = past.drawn.shape[1]
    left = past.n_items - t - np.array([1.0 if 0 < t < past.n_items - 1 else 0.0, 0.0])
    means: Array = (first_pair_twice(past) * (past.n_items - t)) / left
    return means


@pytest.mark.parametrize("bettor", [fixed, while_behind, by_differences])
@pytest.mark.parametrize(
    "centre",
    [uncentred, all_items, before_the_block, sums_before_the_block, first_pair_twice, first_pair_twice_in_both],
)
def test_a_list_centred_otherwise_does_not_pay_one(centre: Centre, bettor: Bettor) -> None:
    payoffs = [average_over_orders(table, bettor, centre, blocks=(2, 3)) for table in (TWO, TABLES["binary"])]
    assert all(abs(payoff - 1) > BROKEN for payoff in payoffs)


def there_and_back(past: Past) -> Array:
    """Returns a bet for option 0 on every other item, and against it on those between."""
    return np.array([-0.5 if past.drawn.shape[1] % 2 else 0.5, 0.0])


@pytest.mark.parametrize("centre", [uncentred, all_items, before_the_block, first_pair_twice])
def test_some_bettor_gains_by_each_wrong_centre(centre: Centre) -> None:
    """So these mistakes do not only waste money: they break the guarantee."""
    gains = [average_over_orders(TWO, each, centre, blocks=(2, 3)) for each in (there_and_back, while_behind, fixed)]
    assert max(gains) > 1 + BROKEN


def test_an_option_must_not_be_bet_on_after_it_skipped_items() -> None:
    """What an option would have done on an item it skipped is like what others did there."""
    fair = average_over_orders(ALIKE, once_after_an_item)
    unfair = average_over_orders(ALIKE, once_after_an_item, design=skips_the_first)
    assert fair == pytest.approx(1.0, abs=EXACT)
    assert unfair > 1 + BROKEN


def own_orders(table: Array, same: bool) -> float:
    """Returns the average of products over single results, where every option has an order of its own, or the same."""
    n_items = table.shape[1]
    lam, total, count = table.mean(axis=1), 0.0, 0
    orders = [*permutations(range(n_items))]
    for pair in [(order, order) for order in orders] if same else product(orders, orders):
        wealth = 1.0
        rows = [table[a, list(order)] for a, order in enumerate(pair)]
        for t in range(n_items):
            left = n_items - t
            h = (0.7, -0.6) if t == 0 or rows[0][:t].sum() < rows[1][:t].sum() else (0.4, -0.9)
            for row, stake, mean in zip(rows, h, lam.tolist(), strict=True):
                wealth *= 1 + stake * (row[t] - (n_items * mean - row[:t].sum()) / left)
        total, count = total + wealth, count + 1
    return total / count


def test_products_over_single_results_need_an_order_for_every_option() -> None:
    table = ALIKE[:, :4]
    assert own_orders(table, same=False) == pytest.approx(1.0, abs=EXACT)
    assert abs(own_orders(table, same=True) - 1) > BROKEN


# ------------------------------------------------------------------------------------------------------- fresh items

Joint = Sequence[tuple[float, tuple[float, ...]]]
"""The probabilities of the outcomes of one item: (probability, outcomes of all options)."""


def pair(same: float) -> Joint:
    """Returns two options, each 0 or 1 with probability a half, that agree with probability `same`."""
    return [(same / 2, (0.0, 0.0)), (same / 2, (1.0, 1.0)), ((1 - same) / 2, (0.0, 1.0)), ((1 - same) / 2, (1.0, 0.0))]


JOINTS: dict[str, Joint] = {
    "independent": pair(0.5),
    "shared": pair(0.995),
    "opposed": pair(0.05),
    "one item in thirty decides": [(29 / 30, (0.5, 0.5)), (1 / 30, (1.0, 0.0))],
    "three outcomes": [(0.2, (0.0, 0.3)), (0.5, (0.6, 0.4)), (0.3, (1.0, 0.1))],
}
Stakes = Callable[[Sequence[tuple[float, ...]]], Array]
"""Returns the stakes on the next item from the outcomes on the items before it."""
Factor = Callable[[Array, Array], float]
"""Returns what one item pays, from its stakes and the outcomes minus lam."""


def means(joint: Joint) -> Array:
    return np.array([sum(p * x[a] for p, x in joint) for a in range(len(joint[0][1]))])


def expected(joint: Joint, stakes: Stakes, factor: Factor, lam: Array, n_items: int = 3) -> float:
    """Returns the expectation of the product of the factors of so many independent items."""
    total = 0.0
    for drawn in product(joint, repeat=n_items):
        wealth = 1.0
        for j, (p, x) in enumerate(drawn):
            wealth *= p * factor(stakes([outcomes for _, outcomes in drawn[:j]]), np.array(x) - lam)
        total += wealth
    return total


def one_factor(h: Array, away: Array) -> float:
    return 1 + float(h @ away)


def single_results(h: Array, away: Array) -> float:
    """Returns the product of a factor for each result, as for trials that share no item."""
    return float(np.prod(1 + h * away))


def constant(past: Sequence[tuple[float, ...]]) -> Array:
    return np.array([0.6, -0.6])


def follows(past: Sequence[tuple[float, ...]]) -> Array:
    """Returns a bet on the option that was ahead on the items before."""
    ahead = sum(x[0] - x[1] for x in past)
    return np.array([0.7, -0.4]) if ahead >= 0 else np.array([-0.5, 0.6])


@pytest.mark.parametrize("stakes", [constant, follows])
@pytest.mark.parametrize("name", JOINTS)
def test_one_factor_an_item_is_fair_however_outcomes_depend_on_each_other(name: str, stakes: Stakes) -> None:
    joint = JOINTS[name]
    assert expected(joint, stakes, one_factor, means(joint)) == pytest.approx(1.0, abs=EXACT)


def test_products_over_the_results_of_one_item_are_not() -> None:
    payoffs = {name: expected(joint, constant, single_results, means(joint)) for name, joint in JOINTS.items()}
    assert payoffs["independent"] == pytest.approx(1.0, abs=EXACT)  # where the mistake does not show
    assert payoffs["opposed"] > 1.1 and payoffs["one item in thirty decides"] > 1 + BROKEN
    assert payoffs["shared"] < 0.9


def test_options_must_be_chosen_before_the_first_result_of_an_item() -> None:
    """Option 1 is tried only where option 0 did badly: where items are shared, it does badly there, too."""

    def chosen_late(h: Array, away: Array) -> float:
        return 1 + float(h[0] * away[0] + (h[1] * away[1] if away[0] < 0 else 0.0))

    joint = JOINTS["shared"]
    assert expected(joint, constant, chosen_late, means(joint)) > 1.1


# Blocks whose items are tried with different options. The claim to refute is "option 1 is at least as good as option
# 0", A = {mu: mu_0 <= mu_1}; nu says that it is worse. Bets are fair against all of A if z = sum_j P_j' h_j points out
# of A at lam, the point of A next to nu in the metric U = sum_j P_j' G_j P_j.

NU = np.array([0.7, 0.3])
SLOTS: tuple[tuple[int, ...], ...] = ((0, 1), (0,), (1,), (0,))
BELIEFS: tuple[Array, ...] = (
    np.array([[3.0, -2.0], [-2.0, 4.0]]),
    np.array([[1.0]]),
    np.array([[2.0]]),
    np.array([[1.5]]),
)
GRID = [np.array(mu) for mu in product(np.linspace(0, 1, 21), repeat=2) if mu[0] <= mu[1]]


def rows_of(slots: Sequence[tuple[int, ...]], beliefs: Sequence[Array], size: float) -> tuple[Array, Array]:
    """Returns (lam, rows): the stakes of every item, 0 for options that are not tried on it."""
    U = np.zeros((2, 2))
    for tried, G in zip(slots, beliefs, strict=True):
        U[np.ix_(tried, tried)] += G
    d = np.array([1.0, -1.0])
    towards = np.linalg.solve(U, d)
    lam = NU - towards * float(d @ NU) / float(d @ towards)
    rows = np.zeros((len(slots), 2))
    for row, tried, G in zip(rows, slots, beliefs, strict=True):
        row[list(tried)] = size * G @ (NU - lam)[list(tried)]
    np.testing.assert_allclose(rows.sum(axis=0), size * U @ (NU - lam), atol=1e-12)
    return lam, rows


def largest(rows: Array, lam: Array) -> float:
    """Returns the largest expected payoff of a block over A: its items are independent, so it is the product of the
    expected factors, which depend on the means only."""
    return max(float(np.prod(1 + rows @ (mu - lam))) for mu in GRID)


def limits(rows: Array, lam: Array) -> Array:
    """Returns for every row by how much it may be multiplied to pay at least a tenth for outcomes in [0, 1]."""
    worst = np.maximum(rows * lam, -rows * (1 - lam)).sum(axis=1)
    bounds: Array = 0.9 / worst
    return bounds


def test_a_block_with_different_options_is_fair_if_one_factor_scales_it() -> None:
    lam, rows = rows_of(SLOTS, BELIEFS, 1.0)
    least = limits(rows, lam).min()
    assert 1 - 1e-3 < largest(rows * least, lam) <= 1 + EXACT


def test_rows_scaled_one_by_one_are_not_fair_with_different_options() -> None:
    lam, rows = rows_of(SLOTS, BELIEFS, 1.0)
    assert largest(rows * limits(rows, lam)[:, None], lam) > 1.05


def test_rows_scaled_one_by_one_are_fair_if_options_and_beliefs_are_the_same() -> None:
    lam, rows = rows_of(((0, 1),) * 3, BELIEFS[:1] * 3, 1.0)
    assert largest(rows * np.array([[0.1], [1.0], [0.4]]), lam) <= 1 + EXACT
    other = (BELIEFS[0], np.diag([0.2, 5.0]), BELIEFS[0])
    lam, rows = rows_of(((0, 1),) * 3, other, 0.1)
    assert largest(rows * np.array([[0.1], [5.0], [0.1]]), lam) > 1 + BROKEN


def test_a_void_slot_voids_its_row_not_its_entry() -> None:
    """Option 1 is withdrawn before the last item of a block in which every item is tried with both."""
    lam, rows = rows_of(((0, 1),) * 3, BELIEFS[:1] * 3, 0.2)
    without_row, without_entry = rows.copy(), rows.copy()
    without_row[2] = 0.0
    without_entry[2, 1] = 0.0
    assert largest(without_row, lam) <= 1 + EXACT
    assert largest(without_entry, lam) > 1.05


def test_a_void_slot_voids_the_whole_block_with_different_options() -> None:
    lam, rows = rows_of(SLOTS, BELIEFS, 0.2)
    without_row = rows.copy()
    without_row[2] = 0.0
    assert largest(rows, lam) <= 1 + EXACT
    assert largest(without_row, lam) > 1 + BROKEN


def test_a_row_must_be_voided_without_looking_at_its_outcome() -> None:
    def when_it_loses(h: Array, away: Array) -> float:
        return max(1.0, one_factor(h, away))

    joint = JOINTS["three outcomes"]
    assert expected(joint, constant, when_it_loses, means(joint)) > 1.05


# ---------------------------------------------------------------------------------------------- sub-Gaussian outcomes


def contrast(
    h: tuple[float, float], correlation: float, charge: float, effects: Sequence[float] = (-4.0, 4.0)
) -> float:
    """Returns the expectation of exp(h.(x - mu) - charge) for outcomes that are the effect of an item, one of
    `effects`, plus own noises of -1 or 1, whose sigma is 1, with a correlation."""
    total = 0.0
    for effect, one, other in product(effects, (-1, 1), (-1, 1)):
        chance = (1 + correlation * one * other) / 4 / len(effects)
        total += chance * math.exp(h[0] * (effect + one) + h[1] * (effect + other) - charge)
    return total


SIZES = (0.1, 0.5, 1.0)


@pytest.mark.parametrize("size", SIZES)
def test_contrasts_are_fair_if_what_is_left_is_independent(size: float) -> None:
    """The charge is sum_a sigma_a^2 h_a^2 / 2. Whatever an item adds to all its outcomes cancels."""
    assert contrast((size, -size), 0.0, size**2) <= 1 + EXACT
    assert contrast((size, -size / 2), 0.0, (1 + 1 / 4) * size**2 / 2) > 1 + BROKEN  # it does not cancel here


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("correlation", [-0.3, -0.9])
def test_contrasts_charged_as_if_independent_are_not_fair_otherwise(size: float, correlation: float) -> None:
    assert contrast((size, -size), correlation, size**2) > 1 + BROKEN


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("correlation", [-1.0, -0.9, -0.3, 0.0, 0.9])
def test_the_charge_for_any_dependence_is_enough(size: float, correlation: float) -> None:
    """It is (sum_a |h_a| sigma_a)^2 / 2."""
    assert contrast((size, -size), correlation, (2 * size) ** 2 / 2) <= 1 + EXACT
