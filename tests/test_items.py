"""Tests of problems with items: how items are given, the race on them, and what a list guarantees."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.item_data import ItemData
from spectralbai.policy import State
from spectralbai.policy.first_pulls import FIRST_ITEMS
from spectralbai.policy.policies import LUCB
from spectralbai.tape import Tape

Outcomes = Callable[[Indices, Indices], Vector]
EDGELESS = sb.Graph.from_edges(3, [])
N = 40


def table(n_arms: int = 4, n_items: int = N, gap: float = 0.15, seed: int = 0) -> Matrix:
    """Outcomes in [0, 1] of items that are as hard for all arms; arm 1 is the best, and arm 0 is second."""
    rng = np.random.default_rng(seed)
    merit = -gap * np.r_[1.0, 0.0, 2.0 + np.arange(n_arms - 2)]
    free: Matrix = 0.75 + merit[:, None] + 0.2 * rng.random(n_items) + 0.1 * rng.random((n_arms, n_items))
    return np.clip(free, 0, 1)


def clicks(outcomes: Matrix, seed: int = 0) -> Matrix:
    """Returns outcomes 0 and 1 with these probabilities, drawn with one number an item for all arms."""
    return (outcomes > np.random.default_rng(seed).random(outcomes.shape[1])).astype(np.float64)


def race(
    n_arms: int = 4,
    items: sb.Items | None = None,
    tolerance: float = 0.0,
    graph: sb.Graph | None = None,
    R: Any = math.inf,
    binary: bool = False,
) -> sb.SpectralRace:
    graph = sb.Graph.from_edges(n_arms, []) if graph is None else graph
    items = sb.Items.listed(N) if items is None else items
    problem = sb.Problem.bounded(graph, R, 0, 1, tolerance=tolerance, binary=binary, items=items)
    return sb.SpectralRace(problem, delta=0.05)


def entries(outcomes: Matrix) -> Outcomes:
    return lambda arms, items: outcomes[arms, items % outcomes.shape[1]]


def on(policy: sb.SpectralRace, state: State, outcomes: Outcomes, steps: int = 1000, n: int = 6) -> State:
    """Returns the state after at most so many batches of n trials."""
    for _ in range(steps):
        arms, items = policy.ask_items(state, n)
        if not arms.size:
            break
        state = policy.tell(state, arms, outcomes(arms, items), items=items)
    return state


def written(state: State) -> str:
    return json.dumps(state.as_dict())


# How items are given


def test_items_are_fresh_or_a_list_and_say_so() -> None:
    assert (sb.Items.fresh().n, sb.Items.fresh().described()) == (None, "fresh items")
    assert (sb.Items.listed(1200).n, sb.Items.listed(1200).described()) == (1200, "a list of 1,200 items")


@pytest.mark.parametrize("items", [sb.Items.fresh(), sb.Items.listed(7)])
def test_items_go_through_json_and_through_instances(items: sb.Items) -> None:
    assert sb.Items.from_json(json.loads(json.dumps(items.as_json()))) == items
    instance = sb.Instance(sb.Problem.bounded(EDGELESS, math.inf, 0, 1, items=items))
    assert sb.Instance.from_dict(json.loads(json.dumps(instance.as_dict()))).problem.items == items


def test_an_instance_without_items_does_not_mention_them() -> None:
    assert "items" not in sb.Instance(sb.Problem(EDGELESS, math.inf)).as_dict()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            "listed",
            '$.items must be "fresh", {"fresh": number of items} or {"listed": number of items}, got \'listed\'',
        ),
        (None, '$.items must be "fresh", {"fresh": number of items} or {"listed": number of items}, got None'),
        (300, '$.items must be "fresh", {"fresh": number of items} or {"listed": number of items}, got 300'),
        ({}, '"listed"'),
        ({"listed": 3, "order": 1}, '"order"'),
        ({"listed": 0}, "$.items.listed must be"),
        ({"listed": 2.5}, "$.items.listed must be"),
    ],
)
def test_other_forms_of_items_are_refused_in_one_sentence(value: Any, message: str) -> None:
    document = sb.Instance(sb.Problem.bounded(EDGELESS, math.inf, 0, 1)).as_dict() | {"items": value}
    with pytest.raises(InvalidInput, match=re.escape(message)) as refusal:
        sb.Instance.from_dict(document)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sb.Items.listed(0), "`n` must be"),
        (lambda: sb.Items.listed(True), "`n` must be"),
        (
            lambda: sb.Problem(EDGELESS, 1.0, items=cast(Any, 300)),
            "`items` must be Items.fresh() or Items.listed(n), got 300",
        ),
        (
            lambda: sb.Problem(EDGELESS, 1.0, items=sb.Items.listed(9)),
            "`items` must be Items.fresh() where outcomes have no range, got a list of 9 items; use Problem.bounded",
        ),
        (lambda: sb.SpectralTaS(race().problem), "SpectralTaS cannot try options on items; use SpectralRace"),
        (lambda: LUCB(race().problem), "`stopping` must be betting where trials share items, got intervals"),
        (
            lambda: race().joined(race(5, sb.Items.listed(N + 1)).problem),
            f"`items` must stay Items.listed({N}) when arms join, got Items.listed({N + 1})",
        ),
    ],
)
def test_what_items_do_not_go_with_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        make()


# Asking and telling


def test_pulls_are_asked_for_with_their_items_just_where_there_are_items() -> None:
    policy, plain = race(), sb.SpectralRace(sb.Problem(EDGELESS, math.inf))
    state, other = policy.init(seed=0), plain.init()
    with pytest.raises(InvalidInput, match="the problem has items; use ask_items"):
        policy.ask(state)
    with pytest.raises(InvalidInput, match="the problem has no items; use ask, or give `items`"):
        plain.ask_items(other)
    with pytest.raises(InvalidInput, match="`items` must be given, the item of each result"):
        policy.tell(state, [0], [0.5])
    with pytest.raises(InvalidInput, match="`items` must be left out"):
        plain.tell(other, [0], [0.5], items=[0])


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([0.5], "`items` must be one whole number per arm"),
        ([0, 1], "`items` must be one whole number per arm"),
        ([-1], "`items` must be one whole number per arm"),
        ([2**31], "`items` must be one whole number per arm"),
        ([N], f"`items` must be below {N}, the number of items, got {N}"),
    ],
)
def test_items_that_cannot_be_are_refused(items: list[Any], message: str) -> None:
    policy = race()
    state = policy.init(seed=0)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        policy.tell(state, [0], [0.5], items=items)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        policy.ask_items(state, 1, pending=([0], items))


@pytest.mark.parametrize("items", [sb.Items.fresh(), sb.Items.listed(N)])
@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_results_may_come_in_any_split_and_order_and_through_files(items: sb.Items, tolerance: float) -> None:
    policy, outcomes, rng = race(items=items, tolerance=tolerance), entries(table(gap=0.06)), np.random.default_rng(1)
    state = other = policy.init(seed=3)
    while state.samples <= 50:
        first = policy.ask_items(state, 1)
        for each in (0, 1):  # the first result of all is the origin
            assert np.array_equal(first[each], policy.ask_items(other, 1)[each])
        arms, on_items = policy.ask_items(state, 1000)
        assert arms.size > 3
        state = policy.tell(state, arms, outcomes(arms, on_items), items=on_items)
        mixed = np.r_[0, np.arange(arms.size - 1, 0, -1)]
        for batch in np.array_split(mixed, rng.integers(1, arms.size + 1)):
            other = policy.tell(other, arms[batch], outcomes(arms, on_items)[batch], items=on_items[batch])
            other = State.from_dict(json.loads(written(other)))
        assert written(state) == written(other)


def test_pending_pairs_are_not_handed_out_twice() -> None:
    policy = race()
    state = policy.init(seed=0)
    everything = {(int(arm), int(item)) for arm, item in zip(*policy.ask_items(state, 1000), strict=True)}
    arms, items = policy.ask_items(state, 5)
    more, on_items = policy.ask_items(state, 1000, pending=(arms, items))
    rest = set(zip(more.tolist(), on_items.tolist(), strict=True))
    assert (
        rest == everything - set(zip(arms.tolist(), items.tolist(), strict=True)) and len(rest) == 4 * FIRST_ITEMS - 5
    )


@pytest.mark.parametrize("items", [sb.Items.fresh(), sb.Items.listed(N)])
def test_second_results_and_results_not_asked_for_count_as_trials_and_change_nothing_else(items: sb.Items) -> None:
    policy, outcomes = race(items=items, tolerance=0.02), entries(table(gap=0.06))
    state = on(policy, policy.init(seed=3), outcomes, steps=4)
    tried = state.blocks[0].items
    assert tried is not None
    again = (int(state.blocks[0].arms[0]), int(tried[0]))  # it may have a result or not
    plain = policy.tell(state, [again[0]], [0.5], items=[again[1]])
    later = int(np.setdiff1d(np.arange(N), tried)[-1])
    other = policy.tell(plain, [again[0], 2], [0.9, 0.1], items=[again[1], later])
    assert other.samples == plain.samples + 2
    plain, other = (on(policy, each, outcomes) for each in (plain, other))
    assert policy.verdict(other).decided and other.samples == plain.samples + 2
    for key in ("data", "stopping", "blocks", "best", "order", "sampling"):
        assert other.as_dict()[key] == plain.as_dict()[key]
    assert (other.counts - plain.counts).tolist() == [int(arm == again[0]) + int(arm == 2) for arm in range(4)]


def test_every_study_draws_an_order_of_its_own_unless_a_seed_is_given() -> None:
    policy = race()
    orders = [policy.init().order for _ in range(3)]
    assert len({tuple(order.tolist()) for order in orders if order is not None}) == 3
    assert all(sorted(order.tolist()) == list(range(N)) for order in orders if order is not None)
    assert written(policy.init(seed=3)) == written(policy.init(seed=3)) != written(policy.init(seed=4))
    state = policy.init(seed=3)
    assert state.order is not None and set(policy.ask_items(state, 1000)[1].tolist()) == set(
        state.order[:FIRST_ITEMS].tolist()
    )
    assert policy.init(seed=4).order.tolist() != state.order.tolist()  # type: ignore[union-attr]  # a list has one
    assert race(items=sb.Items.fresh()).init().order is None


def test_the_arms_of_an_item_come_in_a_random_order_one_item_after_the_other() -> None:
    policy = race(items=sb.Items.fresh())
    arms, items = policy.ask_items(policy.init(seed=0), 1000)
    assert items.tolist() == np.repeat(np.arange(FIRST_ITEMS), 4).tolist()
    by_item = arms.reshape(FIRST_ITEMS, 4)
    assert (np.sort(by_item, axis=1) == np.arange(4)).all() and len({tuple(row) for row in by_item.tolist()}) > 1


def test_a_simulated_replay_uses_an_outcome_of_the_list_once_and_knows_the_answer() -> None:
    run = sb.simulate.replay(race(), table(), seed=1)
    assert (run.status, run.arm, run.correct) == ("decided", 1, True) and max(run.counts) <= N
    short = sb.simulate.replay(race(), table(), seed=1, max_samples=10)
    assert (short.status, sum(short.counts)) == ("truncated", 10)
    with pytest.raises(InvalidInput, match=f"`table` must have {N} columns, a list of {N} items, got 41"):
        sb.simulate.replay(race(), table(n_items=41), seed=1)
    free = sb.simulate.replay(race(items=sb.Items.fresh()), table(n_items=9), seed=1)
    assert (free.arm, free.correct) == (1, True) and max(free.counts) > 9


def test_runs_on_fresh_items_have_outcomes_of_their_own_and_are_the_same_again() -> None:
    policy, mu = race(items=sb.Items.fresh()), [0.5, 0.9, 0.2, 0.1]
    run, again, other = (sb.simulate.run(policy, mu, seed) for seed in (1, 1, 2))
    assert (run.status, run.arm, run.correct, run.tau) == ("decided", 1, True, again.tau)
    assert run.counts.tolist() == again.counts.tolist() != other.counts.tolist()
    trace = sb.simulate.trace(policy, mu, 1)
    assert trace.verdict.decided and trace.counts[-1].tolist() == run.counts.tolist()
    by_arm = [trace.outcomes[trace.arms == arm] for arm in range(4)]
    tape = Tape(policy.problem.noise.draws(np.array(mu)), 4, 1)
    for arm, outcomes in enumerate(by_arm):
        assert outcomes.tolist() == tape.first(arm, outcomes.size).tolist()
    for seed in range(5):  # the order within an item depends on the seed, too
        few = sb.simulate.run(policy, mu, seed, max_samples=2).counts
        assert few.tolist() == sb.simulate.trace(policy, mu, seed, max_samples=2).counts[-1].tolist()


@pytest.mark.parametrize("simulated", [sb.simulate.run, sb.simulate.watch, sb.simulate.trace])
def test_outcomes_of_a_list_are_not_drawn_from_means(simulated: Callable[..., Any]) -> None:
    clue = (
        f"`items` must be Items.fresh() to draw outcomes from means, got a list of {N} items; use simulate.replay with"
    )
    with pytest.raises(InvalidInput, match=re.escape(clue)):
        simulated(race(), [0.5, 0.9, 0.2, 0.1], 1)


# A list


@pytest.mark.parametrize("tolerance", [0.0, 0.004])
@pytest.mark.parametrize("seed", range(4))
def test_a_list_ends_with_its_table_at_the_latest_and_with_the_exact_answer(seed: int, tolerance: float) -> None:
    outcomes = table(n_items=12, gap=0.003, seed=seed)  # too close for any bet
    policy = race(items=sb.Items.listed(12), tolerance=tolerance)
    state = on(policy, policy.init(seed=seed), entries(outcomes))
    verdict, means = policy.verdict(state), outcomes.mean(axis=1)
    assert verdict.decided and (state.counts <= 12).all()
    assert means[verdict.arm] >= means.max() - tolerance
    if tolerance == 0:
        assert verdict.arm == means.argmax() and state.samples == 48


@pytest.mark.parametrize("n_items", [1, 3, 12])
def test_either_of_two_equal_arms_of_a_list_is_right_even_without_a_tolerance(n_items: int) -> None:
    outcomes = table(n_items=n_items)
    outcomes[0] = outcomes[1][::-1]
    policy = race(items=sb.Items.listed(n_items))
    state = on(policy, policy.init(seed=0), entries(outcomes))
    assert policy.verdict(state).decided and policy.verdict(state).arm in (0, 1)
    assert state.counts[:2].tolist() == [n_items, n_items]


def test_arms_that_the_rest_of_the_list_cannot_save_are_out_for_certain() -> None:
    outcomes = np.array([np.ones(20), np.zeros(20)])
    policy = race(2, sb.Items.listed(20))
    state = on(policy, policy.init(seed=0), entries(outcomes), n=1)
    assert policy.verdict(state).decided and policy.verdict(state).arm == 0
    assert state.samples <= 2 * 12  # half of the list and the rest of a block


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_a_long_list_is_decided_by_bets_before_it_ends(tolerance: float, binary: bool) -> None:
    outcomes = table(n_items=400, gap=0.2)
    outcomes = clicks(outcomes) if binary else outcomes
    policy = race(items=sb.Items.listed(400), tolerance=tolerance, binary=binary)
    state = on(policy, policy.init(seed=0), entries(outcomes), n=50)
    assert policy.verdict(state).decided and policy.verdict(state).arm == outcomes.mean(axis=1).argmax() == 1
    assert state.samples < 0.3 * outcomes.size


# Fresh items


def bumpy(mu: list[float]) -> Outcomes:
    """Gaussian outcomes with a large effect of the item, the same for all arms."""

    def outcomes(arms: Indices, items: Indices) -> Vector:
        effect = [10 * np.random.default_rng((1, item)).standard_normal() for item in items.tolist()]
        noise = [np.random.default_rng((2, *pair)).standard_normal() for pair in zip(arms, items, strict=True)]
        answer: Vector = np.array(mu)[arms] + np.array(effect) + 0.3 * np.array(noise)
        return answer

    return outcomes


def free(n_arms: int = 4, tolerance: float = 0.0, **settings: Any) -> sb.SpectralRace:
    graph = settings.pop("graph", sb.Graph.from_edges(n_arms, []))
    R = settings.pop("R", math.inf)
    return sb.SpectralRace(sb.Problem(graph, R, sigma=0.3, tolerance=tolerance, items=sb.Items.fresh()), delta=0.05)


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_an_effect_of_the_item_that_is_far_larger_than_the_differences_does_no_harm(tolerance: float) -> None:
    policy = free(tolerance=tolerance)
    state = on(policy, policy.init(seed=0), bumpy([0.2, 0.6, 0.0, 0.1]), n=50)
    assert policy.verdict(state).decided and policy.verdict(state).arm == 1
    assert 4 < state.data.drawn <= 60  # type: ignore[attr-defined]  # data on items say how many were drawn


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_fresh_items_with_a_range_are_decided(tolerance: float, binary: bool) -> None:
    outcomes = table(n_items=400, gap=0.2)
    policy = race(items=sb.Items.fresh(), tolerance=tolerance, binary=binary)
    state = on(policy, policy.init(seed=0), entries(clicks(outcomes) if binary else outcomes), n=50)
    assert policy.verdict(state).decided and policy.verdict(state).arm == 1


# Graphs

PATHS = sb.Graph.from_edges(6, [(0, 2), (2, 4), (1, 3), (3, 5)])
CATEGORIES = sb.Graph.from_categories(["a", "b", "a", "b", "a", "b"])


@pytest.mark.parametrize("items", [sb.Items.fresh(), sb.Items.listed(60)])
@pytest.mark.parametrize(("graph", "R"), [(PATHS, [0.05, 0.4]), (CATEGORIES, [0.4, 0.2]), (CATEGORIES, 0.5)])
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_graphs_with_components_and_categories_work(graph: sb.Graph, R: Any, tolerance: float, items: sb.Items) -> None:
    merit = np.array([0.2, 0.7, 0.25, 0.4, 0.3, 0.5])  # smooth within each of the two components
    outcomes = merit[:, None] + 0.2 * table(6, 60, gap=0.0) - 0.1
    policy = race(6, items, tolerance, graph, R)
    assert policy.problem.smooth(outcomes.mean(axis=1))
    state = on(policy, policy.init(seed=0), entries(outcomes), n=50)
    assert policy.verdict(state).decided and policy.verdict(state).arm == 1


def test_a_graph_saves_trials() -> None:
    graph = sb.Graph.from_edges(6, [(a, b) for a in range(5) for b in range(a)])
    outcomes = bumpy([0.01, 0.0, 0.02, 0.01, 0.0, 0.2])
    samples = []
    for R in (0.002, math.inf):
        policy = free(6, graph=graph, R=R)
        state = on(policy, policy.init(seed=0), outcomes, n=50)
        assert policy.verdict(state).decided and policy.verdict(state).arm == 5
        samples.append(state.samples)
    assert samples[0] < samples[1]


# Blocks ahead, withdrawals and joins

KINDS: dict[str, tuple[Callable[..., sb.SpectralRace], Outcomes]] = {
    "list": (lambda n_arms=4, **settings: race(n_arms, **settings), entries(table(5, gap=0.1))),
    "fresh": (lambda n_arms=4, **settings: race(n_arms, sb.Items.fresh(), **settings), entries(table(5, gap=0.1))),
    "sub-Gaussian": (free, bumpy([0.7, 0.8, 0.5, 0.4, 0.3])),
}
kinds = pytest.mark.parametrize("kind", KINDS)
tolerances = pytest.mark.parametrize("tolerance", [0.0, 0.01])


def finish(policy: sb.SpectralRace, state: State, outcomes: Outcomes, best: int) -> State:
    """Returns the state at the decision, which must be right."""
    for _ in range(1000):
        arms, _ = policy.ask_items(state, 1)
        if not arms.size:
            break
        assert not np.isin(arms, state.withdrawn).any()
        if state.order is not None:
            check_sums(state, outcomes)
        state = on(policy, state, outcomes, steps=1, n=9)
    verdict = policy.verdict(state)
    assert verdict.decided and verdict.arm == best
    return state


def check_sums(state: State, outcomes: Outcomes) -> None:
    """Of a list, an arm that was tried n times was tried on the first n items in the order of drawing."""
    for arm, n in enumerate(state.data.counts.astype(int).tolist()):
        assert state.order is not None
        expected = (outcomes(np.full(n, arm), state.order[:n]) - state.origin).sum()
        assert state.data.sums[arm] == pytest.approx(expected, abs=1e-9)


@kinds
@tolerances
def test_blocks_can_be_opened_ahead(kind: str, tolerance: float) -> None:
    make, outcomes = KINDS[kind]
    policy = make(tolerance=tolerance)
    state = policy.init(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(4):
        state = policy.open(policy.open(state))
        assert len(state.blocks) > 2
        pairs = np.concatenate([block.keys for block in state.blocks])
        assert np.unique(pairs).size == pairs.size
        arms, items = policy.ask_items(state, 1000)
        mixed = rng.permutation(arms.size)[: arms.size // 2]
        state = policy.tell(state, arms[mixed], outcomes(arms, items)[mixed], items=items[mixed])
    finish(policy, state, outcomes, 1)


@kinds
@tolerances
@pytest.mark.parametrize("ahead", [0, 1])
def test_an_arm_in_open_blocks_is_withdrawn_and_the_blocks_go_on_without_it(
    kind: str, tolerance: float, ahead: int
) -> None:
    make, outcomes = KINDS[kind]
    policy = make(tolerance=tolerance)
    state = on(policy, policy.init(seed=0), outcomes, steps=3, n=7)
    for _ in range(ahead):
        state = policy.open(state)
    assert any(0 in block.arms for block in state.blocks)
    after = policy.withdraw(state, 0)
    assert after.samples == state.samples and [block.number for block in after.blocks] == [
        block.number for block in state.blocks
    ]
    assert not any(0 in block.arms for block in after.blocks)
    finish(policy, after, outcomes, 1)


@kinds
@tolerances
def test_the_leader_is_withdrawn_when_one_other_arm_is_left_in_its_block(kind: str, tolerance: float) -> None:
    make, outcomes = KINDS[kind]
    policy = make(tolerance=tolerance)
    state = policy.init(seed=0)
    while np.unique(state.blocks[0].arms).size > 2 or state.best != 1:
        state = on(policy, state, outcomes, steps=1, n=3)
    state = policy.withdraw(state, 1)
    assert np.unique(state.blocks[0].arms).size == 1
    finish(policy, state, outcomes, 0)


@kinds
@tolerances
@pytest.mark.parametrize("early", [True, False])
def test_the_last_arm_left_is_the_answer(kind: str, tolerance: float, early: bool) -> None:
    make, outcomes = KINDS[kind]
    path = sb.Graph.from_edges(4, [(0, 1), (1, 2), (2, 3)])
    policy = make(tolerance=tolerance, graph=path, R=1.0) if early else make(tolerance=tolerance)
    state = policy.init(seed=0)
    state = state if early else on(policy, state, outcomes, steps=2, n=10)
    for arm in (1, 0, 3):
        state = policy.withdraw(state, arm)
    finish(policy, state, outcomes, 2)
    with pytest.raises(InvalidInput, match="the last one must stay"):
        policy.withdraw(state, 2)


@kinds
@tolerances
def test_an_arm_joins_a_race_and_can_win_it(kind: str, tolerance: float) -> None:
    make, outcomes = KINDS[kind]
    swapped: Outcomes = lambda arms, items: outcomes((arms + 2) % 5, items)  # noqa: E731  # arm 4 is the best
    policy = make(tolerance=tolerance)
    state = on(policy, policy.init(seed=0), swapped, steps=3, n=7)
    drawn = state.drawn
    policy = policy.joined(make(5, tolerance=tolerance).problem)
    state = finish(policy, policy.join(state), swapped, 4)
    if kind == "list":
        assert state.counts.max() <= N and state.data.counts[4] > drawn


def test_blocks_of_a_list_that_stay_open_when_an_arm_joins_leave_no_item_out() -> None:
    make, outcomes = KINDS["list"]
    policy = make()
    state = on(policy, policy.init(seed=0), outcomes, steps=4, n=7)
    state = policy.open(policy.open(state))
    first, second, third = (block.number for block in state.blocks)
    policy = policy.joined(make(5).problem)
    for kept, stay in ([third], []), ([first, third], [first]), ([first, second], [first, second]):
        after = policy.join(state, kept)
        assert [block.number for block in after.blocks if block.number <= third] == stay
        assert after.samples == state.samples
        finish(policy, after, outcomes, 1)


def test_no_bet_is_made_on_an_arm_that_is_behind_until_it_has_caught_up() -> None:
    make, outcomes = KINDS["list"]
    policy = make(tolerance=0.0)
    state = on(policy, policy.init(seed=0), outcomes, steps=6, n=7)
    policy = policy.joined(make(5).problem)
    state = policy.join(state)
    assert isinstance(state.data, ItemData)
    while state.data.counts[4] < state.data.drawn:
        account = state.stopping["betting"].arms  # type: ignore[attr-defined]  # the memory of this rule
        assert np.allclose([account.peak[4], account.wealth[4]], 0.0, rtol=0, atol=1e-12)
        before = state.samples
        state = on(policy, state, outcomes, steps=1, n=3)
        assert state.samples > before, "the arm catches up before the race ends"


def test_what_knows_nothing_of_items_refuses_them_in_a_sentence() -> None:
    problem = race(items=sb.Items.fresh()).problem
    mu = np.arange(problem.n_arms) / 10
    with pytest.raises(InvalidInput, match="no optimal allocation is known for trials on fresh items"):
        sb.solve_allocation(problem, mu)
    binary = sb.Problem.bounded(problem.graph, math.inf, binary=True, items=sb.Items.listed(9))
    with pytest.raises(InvalidInput, match="no lower bound is known for trials on a list of 9 items"):
        sb.lower_bound(binary, mu, 0.05)
    with pytest.raises(InvalidInput, match="cannot try options on items; use SpectralRace"):
        sb.SpectralTaS(problem, 0.05)
    with pytest.raises(InvalidInput, match="`stopping` must be betting where trials share items, got gk16"):
        sb.SpectralTaS(problem, 0.05, stopping="gk16")


@pytest.mark.parametrize("items", [sb.Items.fresh(), sb.Items.listed(40)])
def test_states_of_many_options_are_short_and_go_through_json_exactly(items: sb.Items) -> None:
    policy, outcomes = race(60, items), entries(np.random.default_rng(0).random((60, 40)))
    state = on(policy, policy.init(seed=0), outcomes, steps=3, n=200)
    text = json.dumps(state.as_dict())
    assert len(text) < 150_000, "five matrices of numbers of 17 digits, for the state and the open block"
    again = State.from_dict(json.loads(text))
    assert again.as_dict() == state.as_dict() and again.blocks[0].data is again.data
    assert isinstance(state.data, ItemData) and isinstance(again.data, ItemData)
    assert np.array_equal(again.data.distances, state.data.distances)
    ends = [on(policy, start, outcomes, steps=3, n=200).as_dict() for start in (state, again)]
    assert ends[0] == ends[1]
    broken = state.as_dict()
    broken["data"]["distances"]["packed"] = broken["data"]["distances"]["packed"][:100]
    with pytest.raises(InvalidInput, match="broken entry"):
        State.from_dict(broken)
