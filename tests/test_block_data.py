"""Blocks, their slots and the results in them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.evidence.blocks import Block, Data, fill
from spectralbai.policy import SpectralRace, Uniform
from spectralbai.stopping import Betting

JOINED = Graph.from_edges(3, [(1, 2, 1.0)])
PAPER = Problem(JOINED, R=0.01)
BOUNDED = Problem.bounded(JOINED, R=0.1)
BINARY = Problem.bounded(JOINED, R=0.1, tolerance=0.1, binary=True)


def test_a_block_holds_each_result_in_a_slot() -> None:
    block = Block.opened(np.array([1, 0, 1]), Data.none(3), 0)
    assert block.free.tolist() == [0, 1, 2] and not block.closed
    (some,), taken, without_slot = fill((block,), np.array([1, 2]), np.array([5.0, 7.0]), None)
    assert (taken, without_slot.tolist()) == (2, [False, True])
    assert some.free.tolist() == [1, 2] and block.free.size == 3
    assert some.results.counts.tolist() == [0, 1, 0] and some.results.sums.tolist() == [0, 5, 0]
    assert some.counts.tolist() == [1, 2, 0]
    (full,), taken, _ = fill((some,), np.array([0, 1, 1]), np.array([0.0, 1.0, 9.0]), None)
    assert taken == 2, "what comes after the closing is for the next block"
    assert full.closed and full.results.squares.tolist() == [0, 26, 0]


def test_a_result_that_names_its_block_fills_a_slot_of_that_block_only() -> None:
    old, new = (Block.opened(np.array([1, 0]), Data.none(3), 0, number) for number in (4, 5))
    arms, outcomes = np.array([1, 1, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    blocks, taken, without_slot = fill((old, new), arms, outcomes, np.array([5, -1, 5, 3]))
    assert (taken, without_slot.tolist()) == (4, [False, True, False, True])
    assert blocks[0].free.size == 2 and blocks[1].outcomes.tolist() == [1.0, 3.0]


def overtaking(named: bool, seed: int) -> bool:
    """Returns whether one of two tied arms is eliminated, results of four open blocks arriving the good ones first for
    one arm and the bad ones first for the other."""
    policy = Uniform(Problem(Graph.from_edges(2, []), math.inf), 0.2)
    rng, state = np.random.default_rng(seed), policy.init()
    out: list[tuple[int, int, float]] = []
    while state.samples < 500 and policy.verdict(state).stopped_at is None:
        while len(state.blocks) < 4:
            state = policy.open(state)
        pending = np.bincount([arm for arm, _, _ in out], minlength=2)
        arms, numbers = policy.ask_slots(state, 100, pending)
        out += zip(arms.tolist(), numbers.tolist(), rng.standard_normal(arms.size).tolist(), strict=True)
        out.sort(key=lambda pull: pull[2] if pull[0] else -pull[2])  # high values of arm 0 and low ones of arm 1 first
        arm, number, value = out.pop(0)
        state = policy.tell(state, [arm], [value], [number] if named else None)
    return policy.verdict(state).candidates == (0,)


def test_the_order_of_arrival_may_depend_on_the_values_if_results_name_their_block() -> None:
    assert sum(overtaking(True, seed) for seed in range(15)) <= 7, "at risk .2, more of 15 has probability .004"
    assert sum(overtaking(False, seed) for seed in range(8)) >= 5, "without names the risk is far above"


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one rule of each name, got two of betting"):
        SpectralTaS(PAPER, 0.1, watching=((Betting(reference="another"), 0.1),))
    assert SpectralTaS(PAPER, 0.1, watching=((Betting(), 0.2), ("betting", 0.3))).rules[2] == ("betting", 0.3)


def test_data_add_up() -> None:
    first = Data.none(2).plus(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]))
    second = Data.none(2).plus(np.array([1]), np.array([5.0]))
    both = first + second
    assert (both.counts.tolist(), both.sums.tolist(), both.squares.tolist()) == ([2, 2], [3, 8], [5, 34])
    assert second.means.tolist() == [0, 5]


def test_weights_over_many_orders_of_magnitude_make_no_arm_a_winner_without_evidence() -> None:
    graph = Graph.from_edges(5, [(0, 1, 1e8), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1e-8)])
    run = simulate.run(SpectralRace(Problem(graph, 1.0, tolerance=100.0), 0.01), [0, 0, 0, 0, -1000.0], 0, 3000)
    assert run.status == "decided" and run.correct


@pytest.mark.parametrize("kind", [SpectralRace, SpectralTaS])
@pytest.mark.parametrize(
    ("edges", "R"), [([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], 0.25), ([(0, 1), (0, 2), (0, 3)], 0.25)]
)
def test_at_the_limit_where_arms_can_differ_by_the_tolerance_runs_end(
    kind: type[SpectralRace] | type[SpectralTaS], edges: list[tuple[int, int]], R: float
) -> None:
    problem = Problem(Graph.from_edges(4, edges), 2 * R, tolerance=math.sqrt(2 * R * 0.5))
    assert simulate.run(kind(problem, 0.1), [0.0] * 4, 1, max_samples=2000).status == "decided"


def test_a_wrong_decision_at_a_large_risk_does_not_keep_a_small_one_from_deciding() -> None:
    policy = Uniform(Problem(Graph.from_edges(2, []), math.inf), 0.45, watching=(("betting", 0.01),))
    large, small = simulate.watch(policy, [0.3, 0.0], 205, max_samples=5000)
    assert large.status == "decided" and not large.correct, "the seed should be one that goes wrong"
    alone = simulate.run(replace(policy, delta=0.01, watching=()), [0.3, 0.0], 205)
    assert (small.status, small.correct, small.tau) == ("decided", True, alone.tau)
