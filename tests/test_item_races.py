"""Items in a policy: lists that end, arms that come and go, and what is certain when a list is used up."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Items, Problem, SpectralRace, simulate
from spectralbai.arrays import Matrix
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.evidence.list_bounds import ListBounds
from spectralbai.policy import State
from spectralbai.sampling import item_race
from spectralbai.sampling.contract import View
from spectralbai.spectral.metric import Metric
from spectralbai.stopping.betting import Betting
from spectralbai.stopping.item_bets import ItemTable

SURE = 1e-9
"""A risk at which hardly any bet decides, so that answers come from a list that is used up."""


def listed(n_arms: int, n: int, tolerance: float = 0.0) -> Problem:
    graph = Graph.from_edges(n_arms, [])
    return Problem.bounded(graph, math.inf, tolerance=tolerance, items=Items.listed(n))


def finished(policy: SpectralRace, state: State, table: Matrix) -> State:
    """Returns the state at the decision, with outcomes from a table."""
    while not state.settled:
        arms, items = policy.ask_items(state, 1000)
        assert arms.size, "a list never stalls"
        state = policy.tell(state, arms, table[arms, items], items=items)
    return state


def random_table(rng: np.random.Generator) -> Matrix:
    """Returns outcomes of 2 to 5 arms on 1 to 12 items: some all different, some with ties."""
    shape = int(rng.integers(2, 6)), int(rng.integers(1, 13))
    kind = rng.integers(4)
    if kind == 0:
        return rng.random(shape)
    if kind == 1:
        return (rng.random(shape) < rng.random((shape[0], 1))).astype(float)
    if kind == 2:
        return np.round(4 * rng.random(shape)) / 4
    return np.tile(np.round(rng.random(shape[1])), (shape[0], 1))


def random_problem(rng: np.random.Generator, table: Matrix) -> Problem:
    n_arms, n = table.shape
    tolerance, mu = float(rng.choice([0.0, 0.01, 0.1, 0.5])), table.mean(axis=1)
    labels = rng.integers(3, size=n_arms).astype(str).tolist()
    path = Graph.from_edges(n_arms, [(a, a + 1) for a in range(n_arms - 1)])
    graph = [Graph.from_edges(n_arms, []), path, Graph.from_categories(labels)][int(rng.integers(3))]
    R: Any = math.inf if not graph.n_edges else max(graph.smoothness(mu), 1e-6) * (1 + 1e-9)
    if graph.n_edges and graph.n_components > 1:
        R = np.maximum(graph.roughness_by_component(mu), 1e-6) * (1 + 1e-9)
    return Problem.bounded(graph, R, tolerance=tolerance, items=Items.listed(n))


@pytest.mark.parametrize("seed", range(30))
def test_a_list_ends_with_a_right_answer_and_no_pair_tried_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results come in any order, blocks are opened ahead; the sums that bets use are those of all items before."""
    rng, sure = np.random.default_rng((seed, 1)), ItemTable._item_by_item
    table = random_table(rng)
    problem = random_problem(rng, table)
    policy = SpectralRace(problem, SURE)
    state = policy.init(seed=seed)
    pending: list[tuple[int, int]] = []
    tried: set[tuple[int, int]] = set()

    def checked(self: ItemTable, bets: Any, size: Any, panel: Any) -> Any:
        assert state.order is not None
        first = state.order[: panel.draws[0]]
        sums = (table[np.ix_(panel.arms, first)] - self.outlook.evidence.origin).sum(axis=1)
        np.testing.assert_allclose(self._sums_before(panel.arms), sums, atol=1e-12)
        return sure(self, bets, size, panel)

    monkeypatch.setattr(ItemTable, "_item_by_item", checked)
    while not state.settled:
        if rng.random() < 0.3 and len(state.blocks) < 4:
            state = policy.open(state)
        out = tuple(np.array([pair[k] for pair in pending], dtype=np.intp) for k in (0, 1))
        arms, items = policy.ask_items(state, int(rng.integers(1, 6)), (out[0], out[1]))
        new = list(zip(arms.tolist(), items.tolist(), strict=True))
        assert not tried & set(new), "no pair is tried twice"
        tried |= set(new)
        pending = [pending[k] for k in rng.permutation(len(pending))] + new
        assert pending, "a list never stalls"
        known, pending = pending[: 1 + len(pending) // 2], pending[1 + len(pending) // 2 :]
        arms, items = np.array(known).T
        state = policy.tell(state, arms, table[arms, items], items=items)
    mu, verdict = table.mean(axis=1), policy.verdict(state)
    assert verdict.decided and mu[verdict.arm] >= mu.max() - problem.tolerance - 2e-9


@pytest.mark.parametrize("seed", range(4))
def test_a_list_of_categories_ends_though_the_best_option_never_led(seed: int) -> None:
    """Once all is known, an option without an account may be the answer; in a catalogue it used to be overlooked."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        table = rng.random((3, 2))
        graph = Graph.from_categories(["a", "a", "b"])
        R = np.maximum(graph.roughness_by_component(table.mean(axis=1)), 1e-6) * 1.01
        problem = Problem.bounded(graph, R, tolerance=0.01, items=Items.listed(2))
        end = simulate.replay(SpectralRace(problem, SURE), table, seed=seed)
        assert end.status == "decided" and end.correct


def test_an_option_without_an_account_wins_if_bets_of_all_leaders_have_beaten_the_others() -> None:
    """Otherwise it would be the only one still needed, and a list would have nothing left to try."""
    problem, rng = listed(3, 50, tolerance=0.05), np.random.default_rng(0)
    x = 0.2 * rng.random((3, 10)) + np.array([[0.0], [0.0], [0.5]])
    draws, arms = np.tile(np.arange(10), 3), np.repeat(np.arange(3), 10)
    nothing = ItemData.none(3, 50)
    data = nothing.after(Block(arms, x.ravel(), nothing, 0, items=draws, draws=draws))
    memory = Betting().start(problem)
    assert memory.leaders is not None
    beaten = replace(memory, leaders=replace(memory.leaders, common=np.array([9.0, 9.0, -math.inf])))
    for accounts, wins in ((memory, False), (beaten, True)):
        reading = Betting().read(accounts, Evidence(problem, data, 2, 0.0))
        assert reading.recommended(0.05) == 2 and reading.decided(0.05) is wins
        needed = reading.needed(0.05)
        assert needed is not None and needed.tolist() == [not wins, not wins, True]


def test_the_best_option_of_a_used_up_list_can_be_withdrawn() -> None:
    """What is certain of a withdrawn option rules out no other."""
    table = np.array([[1.0] * 6, [0.2, 0.3] * 3, [0.1] * 6])
    policy = SpectralRace(listed(3, 6), SURE)
    state = finished(policy, policy.init(seed=1), table)
    assert policy.verdict(state).arm == 0
    state = policy.withdraw(state, 0)
    assert policy.verdict(state).consistent
    assert policy.verdict(finished(policy, state, table)).arm == 1


def test_only_certain_options_are_out() -> None:
    problem = listed(3, 4, tolerance=0.25)
    draws, arms = np.array([0, 1, 2, 3, 0, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1, 2, 2])
    x = (
        np.array([0.75, 0.75, 0.5, 0.5, 0.25, 0.0, 0.5, 0.5]) - 0.25
    )  # the means are .625, .0625 to .5625 and .25 to .75
    nothing = ItemData.none(3, 4)
    data = nothing.after(Block(arms, x, nothing, 0, items=draws, draws=draws))
    known = ListBounds.of(Evidence(problem, data, 0, 0.25))
    assert known is not None
    np.testing.assert_allclose(known.low + 0.25, [0.625, 0.0625, 0.25])
    np.testing.assert_allclose(known.high + 0.25, [0.625, 0.5625, 0.75])
    assert known.exact.tolist() == [True, False, False]
    assert known.out(np.array([True, True, True])).tolist() == [False, True, False]
    assert not known.out(np.array([False, True, True])).any()
    assert known.beaten(0, 0.125).tolist() == [True, True, True], "within the tolerance, counting equality"
    assert known.beaten(0, 0.12).tolist() == [True, True, False]


def test_blocks_of_a_list_stay_open_at_a_join_only_together_with_earlier_ones() -> None:
    """Without the first block arms would have skipped its items, and be bet on."""
    table = np.random.default_rng(2).random((3, 12))
    policy = SpectralRace(listed(2, 12), SURE)
    state = policy.open(policy.init(seed=1))
    assert [block.number for block in state.blocks] == [0, 1]
    policy = policy.joined(listed(3, 12))
    state = policy.join(state, kept={1})
    assert [block.number for block in state.blocks] == [2]
    assert [block.number for block in policy.join(SpectralRace(listed(2, 12), SURE).init(seed=1), kept={0}).blocks] == [
        0
    ]
    state = finished(policy, state, table)
    assert policy.verdict(state).arm == int(np.argmax(table.mean(axis=1)))


@pytest.mark.parametrize("n_edges", [0, 2])
def test_items_tried_with_one_arm_are_no_bets_on_contrasts(n_edges: int) -> None:
    """Bets on one arm cannot cancel the effect of the item."""

    def problem(n_arms: int) -> Problem:
        graph = Graph.from_edges(n_arms, [(0, 1), (1, 2)][: min(n_edges, n_arms - 1)])
        return Problem(graph, 1.0 if n_edges else math.inf, items=Items.fresh())

    rng, policy = np.random.default_rng(0), SpectralRace(problem(2), 0.05)
    state = policy.init(seed=1)
    for block in range(4):
        arms, items = policy.ask_items(state, 100)
        if block == 2:
            assert set(arms.tolist()) == {1}
        state = policy.tell(state, arms, rng.random(arms.size) + 10 * rng.random(), items=items)
        if block == 1:  # an open block loses one of its two arms, and the race goes on with another
            policy = policy.joined(problem(3))
            state = policy.withdraw(policy.join(state), 0)
    assert not state.settled


def test_a_list_without_a_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"must be Items\.fresh\(\) where outcomes have no range"):
        Problem(Graph.from_edges(2, []), math.inf, items=Items.listed(3))


def test_arms_that_stand_alone_are_compared_however_precise_their_estimates() -> None:
    problem = Problem.bounded(Graph.from_edges(4, [(2, 3)]), 0.1, items=Items.fresh())
    nu, arms = np.array([0.5, 0.4, 0.3, 0.2]), np.array([0, 1])
    bets = Metric(problem, arms, 1e-12 * np.eye(2)).compare(nu, 0, np.array([0.1]), 0.0)
    assert bets.value[1] == pytest.approx(0.1**2 / 2 / 2e-12, rel=1e-6)


def test_one_arm_with_equal_outcomes_leaves_the_correlation_of_the_others() -> None:
    """Rounding errors make the variance of equal outcomes slightly negative."""
    nothing, x = ItemData.none(3), np.array([[0.1, 0.5, 0.9], [0.15, 0.5, 0.85], [0.01, 0.01, 0.01]]) - 0.7
    draws, arms = np.tile(np.arange(3), 3), np.repeat(np.arange(3), 3)
    data = nothing.after(Block(arms, x.ravel(), nothing, 0, items=draws, draws=draws))
    assert data.squares[2] - data.sums[2] ** 2 / 3 < 0
    C = ItemOutlook(Evidence(listed(3, 60), data, 0, 0.7)).covariance
    assert C[0, 1] > 0.7 * math.sqrt(C[0, 0] * C[1, 1])


@pytest.mark.parametrize("offset", [0.0, 0.4, 0.9])
def test_a_mixed_block_has_shared_items_and_items_of_their_own(offset: float) -> None:
    omega, together = np.array([0.4, 0.2, 0.0, 0.3, 0.1]), np.array([True, True, False, False, False])
    plan = item_race.ItemPlan(omega, together, 20)
    arms, draws = item_race._mixed(plan, np.flatnonzero(together), offset, 7)
    on = {draw: sorted(arms[draws == draw].tolist()) for draw in set(draws.tolist())}
    shared = [draw for draw, those in on.items() if len(those) > 1]
    assert shared == list(range(7, 11)) and all(on[draw] == [0, 1] for draw in shared)
    assert sorted(on) == list(range(7, 7 + len(on))), "items are drawn one after the other"
    alone = np.bincount([on[draw][0] for draw in on if len(on[draw]) == 1], minlength=5)
    assert np.abs(alone - [4, 0, 0, 6, 2]).max() <= 1


def test_near_rivals_are_tried_with_the_leader_and_far_ones_are_not() -> None:
    """Where outcomes of an item go together; with independent outcomes all have items of their own."""
    rng, n_arms = np.random.default_rng(0), 12
    means = np.array([0.6, 0.58, *np.full(n_arms - 2, 0.3)])
    for shared, noise in ((0.12, 0.03), (0.0, 0.12)):
        x = means[:, None] + shared * rng.standard_normal(60) + noise * rng.standard_normal((n_arms, 60))
        x = np.clip(x, 0, 1)
        draws, arms = np.tile(np.arange(60), n_arms), np.repeat(np.arange(n_arms), 60)
        nothing = ItemData.none(n_arms)
        data = nothing.after(Block(arms, x.ravel(), nothing, 0, items=draws, draws=draws))
        problem = Problem.bounded(Graph.from_edges(n_arms, []), math.inf, items=Items.fresh())
        leader = int(np.argmax(data.means))
        needs = np.where(np.arange(n_arms) == leader, 0.0, 3.0)
        view = View(Evidence(problem, data, leader, 0.0), (0.05,), needs, (), np.ones(n_arms, dtype=bool))
        plan = item_race.ItemRacing().plan(item_race.ItemRacing().start(problem), view)
        assert bool(plan.together[[0, 1]].all()) is bool(shared) and not plan.together[2:].all()
