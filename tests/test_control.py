"""Bets on the difference from a control: fair whatever the guesses, and wide enough for all arms at once."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralbai as sb
from spectralbai.arrays import Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.policy import Policy, State
from spectralbai.report.comparison import Comparison
from spectralbai.stopping import AgainstControl, Contrasts
from spectralbai.stopping.against_control import STAKES
from spectralbai.tape import Tape
from verification.control import kinds, misses

RULE = AgainstControl(control=0, delta=0.05)
PAGES = sb.Problem.bounded(sb.Graph.from_edges(3, []), math.inf, binary=True, tolerance=0.01)
MU = np.array([0.2, 0.45, 0.38])


def after(problem: sb.Problem, arms: list[int], outcomes: Any, data: Data | None = None) -> Contrasts:
    """What one block leads to."""
    data = Data.none(problem.n_arms) if data is None else data
    block = replace(Block.opened(np.array(arms), data, 0), outcomes=np.array(outcomes, dtype=float))
    return RULE.observe(RULE.start(problem), block, Evidence(problem, data.after(block), 0, 0.0))


rates = st.floats(0, 1)


@settings(max_examples=25, deadline=None)
@given(st.tuples(rates, rates), st.tuples(rates, rates), st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 9]))
def test_the_expected_wealth_of_every_stake_is_at_most_1_at_the_true_difference(
    mu: tuple[float, float], guesses: tuple[float, float], n: int, m: int, seen: int
) -> None:
    problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), math.inf)
    counts = np.full(2, float(seen))
    data = Data(counts, counts * guesses, counts * np.square(guesses))
    arms = [0] * n + [1] * m
    expected: Matrix = np.zeros((2, STAKES.size))
    for outcomes in itertools.product((0.0, 1.0), repeat=n + m):
        chance = math.prod(mu[arm] if x else 1 - mu[arm] for arm, x in zip(arms, outcomes, strict=True))
        found = after(problem, arms, outcomes, data)
        shift = STAKES * found.weight[1] * (mu[1] - mu[0])
        expected += chance * np.exp([found.up[:, 1] - shift, found.down[:, 1] + shift])
    assert found.weight[1] == pytest.approx(n * m / (n + m))
    assert (expected <= 1 + 1e-12).all()
    assert (expected >= math.exp(-0.9 * (n + m))).all(), "a bet that is not placed would have 1"


def test_without_a_range_the_weighted_differences_have_the_variance_that_the_bound_assumes() -> None:
    problem = sb.Problem(sb.Graph.from_edges(2, []), math.inf, sigma=[0.5, 2.0])
    rng, arms = np.random.default_rng(0), [0] * 3 + [1] * 5
    draws = np.array([0.3] * 3 + [1.0] * 5) + np.array([0.5] * 3 + [2.0] * 5) * rng.standard_normal((4000, 8))
    found = [after(problem, arms, row) for row in draws]
    weight = 1 / (0.25 / 3 + 4 / 5)
    assert found[0].weight[1] == pytest.approx(weight)
    centred = np.array([each.up[0, 1] for each in found]) - weight * 0.7
    assert abs(centred.mean()) < 4 * math.sqrt(weight / 4000)
    assert centred.var() == pytest.approx(weight, rel=0.1)
    first, total = 5 / 4.25, found[0].weight[1]
    radius = math.sqrt((total + first) * (2 * math.log(2 / 0.05) + math.log1p(total / first))) / total
    assert (found[0].high[1] - found[0].low[1]) / 2 == pytest.approx(radius)


def test_no_smaller_difference_is_refuted_by_less_wealth_and_none_within_the_interval_by_enough() -> None:
    rng = np.random.default_rng(1)
    problem = sb.Problem.bounded(sb.Graph.from_edges(2, []), math.inf, 2, 4)
    arms = np.repeat([0, 1], 400)
    found = after(problem, arms.tolist(), rng.choice([2.0, 4.0], 800, p=[0.8, 0.2]) * (arms == 0) + (arms == 1) * 3.9)

    def wealth(rows: Vector, difference: float) -> float:
        return float(np.logaddexp.reduce(rows - STAKES * found.weight[1] * difference / 2) - math.log(STAKES.size))

    goal = math.log(2 * 2 / 0.05)
    assert wealth(found.up[:, 1], found.low[1]) == pytest.approx(goal)
    assert wealth(found.down[:, 1], -found.high[1]) == pytest.approx(goal)
    assert 0 < found.low[1] < 1.5 < found.high[1]
    assert found.low[0] == -math.inf and found.high[0] == math.inf


@pytest.mark.parametrize("kind", kinds()[1:2], ids=lambda kind: kind.name)
def test_intervals_miss_no_more_often_than_promised(kind: Any) -> None:
    assert sum(misses(kind, seed) for seed in range(20)) <= 9, "at most 0.2 of the runs: more has a chance of 0.003"


def played(policy: Policy, seed: int = 0, most: int = 100_000) -> State:
    return policy.play(Tape.of(policy.problem, MU, seed), most)


def test_the_control_gets_pulls_after_it_is_out_and_the_winner_is_known_to_be_better() -> None:
    with_control, without = sb.SpectralRace(PAGES, 0.05, control=0), sb.SpectralRace(PAGES, 0.05)
    state, plain = played(with_control), played(without)
    share = [each.counts[0] / each.counts.sum() for each in (state, plain)]
    assert share[0] > share[1]
    found = with_control.estimates(state, reference=0).differences
    assert with_control.verdict(state).arm == 1 and found.high[1] < 0, "the control minus the winner"
    assert found.low[1] <= MU[0] - MU[1] <= found.high[1] and found.base is not None
    assert found.base[0] < MU[0] < found.base[1]
    others = with_control.estimates(state, reference=1).differences
    assert others.base is None, "other references have the intervals of the means"
    widest = without.estimates(state_of(without, state), reference=0).differences
    assert found.high[1] - found.low[1] < widest.high[1] - widest.low[1]


def state_of(policy: Policy, state: State) -> State:
    """The same results without a control."""
    return replace(state, stopping={name: state.stopping[name] for name in policy.reader.rules})


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_control_gets_the_share_asked_for(share: float) -> None:
    state = played(sb.SpectralRace(PAGES, 0.05, control=0, control_share=share))
    assert state.counts[0] / state.counts.sum() >= share - 0.03


def test_a_state_with_a_control_goes_on_from_json_and_through_joins_and_withdrawals() -> None:
    policy = sb.SpectralRace(PAGES, 0.05, control=0)
    state = played(policy, most=60)
    again = State.from_dict(json.loads(json.dumps(state.as_dict())))
    assert again.as_dict() == state.as_dict()
    more = policy.joined(sb.Problem.bounded(sb.Graph.from_edges(4, []), math.inf, binary=True, tolerance=0.01))
    larger = more.join(again)
    memory = larger.stopping["against-control"]
    assert isinstance(memory, Contrasts) and memory.weight.size == 4 and memory.weight[3] == 0
    old = state.stopping["against-control"]
    assert isinstance(old, Contrasts)
    assert (memory.low[:3] <= old.low).all() and (memory.high[:3] >= old.high).all(), "more share the risk"
    gone = more.withdraw(larger, 0)
    assert 0 not in np.concatenate([block.arms for block in gone.blocks]), "a withdrawn control is not tried"


def test_where_ends_cross_nothing_is_claimed() -> None:
    memory = replace(RULE.start(PAGES), low=np.array([0.0, 0.2, 0.1]), high=np.array([0.0, 0.1, 0.3]))
    low, high = memory.ends
    assert (low[1], high[1], low[2], high[2]) == (-math.inf, math.inf, 0.1, 0.3)


def test_the_limits_of_the_lift_are_those_of_all_means_that_agree_with_the_intervals() -> None:
    for low, high in ((0.01, 0.03), (-0.01, 0.02), (-0.03, -0.01)):
        found = Comparison.by((0.01, low, high), (0.05, 0.04, 0.06))
        lifts = [d / base for d in (low, high) for base in (0.04, 0.06)]
        assert found.lift_low == pytest.approx(min(lifts)) and found.lift_high == pytest.approx(max(lifts))
    assert Comparison.by((0.05, 0.01, 0.03), (0.05, 0.0, 0.06)).lift is None
    assert Comparison.by((0.05, 0.01, 0.03), (0.05, 0.0, 0.06)).difference == 0.03, "the estimate lies in the interval"


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"control": 3}, "`control` must be an arm between 0 and 2"),
        ({"control_share": 0.1}, "`control_share` is that of the control; give `control` too"),
        ({"control": 0, "control_share": 1.0}, "`control_share` must be a share between 0 and 1"),
        ({"control": 0, "control_share": 20}, "`control_share` must be a share between 0 and 1"),
    ],
)
def test_a_control_that_cannot_be_is_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(sb.InvalidInput, match=message):
        sb.SpectralRace(PAGES, 0.05, **chosen)


def test_trials_on_items_need_no_control() -> None:
    with pytest.raises(sb.InvalidInput, match="compared on the same items anyway"):
        sb.SpectralRace(replace(PAGES, items=sb.Items.fresh()), 0.05, control=0)
    with pytest.raises(sb.InvalidInput, match="needs a rule that bets, got gk16"):
        sb.SpectralTaS(sb.Problem(PAGES.graph, math.inf), 0.05, "gk16", control=0)
