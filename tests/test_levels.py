"""Beliefs where blocks differ by more than noise: results minus the levels of their blocks."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, Problem, SpectralRace, simulate
from spectralbai.arrays import Indices, Vector
from spectralbai.drift import Jump, Swing
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.levels import BlockData
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.outlook import CatalogueOutlook, Outlook
from spectralbai.policy import Policy, State

FIVE = Problem(Graph.from_edges(5, []), math.inf)
LEAD = np.array([0.5, 0.0, 0.0, 0.0, 0.0])
ONES = np.ones(5)
PARITY: Vector = np.arange(40.0) % 2


def blocks(levels: Vector, sizes: Indices, seed: int = 0, spread: float = 1.0) -> BlockData:
    """Returns data of blocks with these levels, in which arm 0 gets more and more of the pulls."""
    rng, data = np.random.default_rng(seed), BlockData.none(5)
    for k, (level, size) in enumerate(zip(levels, sizes, strict=True)):
        share = 0.2 + 0.6 * k / len(levels)
        arms = rng.choice(5, size=int(size), p=[share, *[(1 - share) / 4] * 4])
        outcomes = LEAD[arms] + level + spread * rng.standard_normal(arms.size)
        block = Block.opened(arms, data, 0)
        data = data.after(replace(block, outcomes=outcomes))
    return data


def test_without_noise_levels_are_subtracted_exactly() -> None:
    data = blocks(np.array([0.0, 3.0, -2.0, 7.0, 1.0]), np.full(5, 40), spread=0.0)
    means = data.levelled.means
    assert np.allclose(means - means[1], LEAD)
    assert np.abs(data.means - data.means[1] - LEAD).max() > 0.5, "averages over time are not comparable"
    assert np.array_equal(data.levelled.counts, data.counts)
    assert data.levelled.sums.sum() == pytest.approx(data.sums.sum()), "the average level stays"
    within = data.levelled.squares - data.levelled.sums**2 / data.counts
    assert np.allclose(within, 0.0, atol=1e-8), "and so do deviations within a block"


def test_counts_and_averages_over_time_are_those_of_other_data() -> None:
    data, plain, rng = BlockData.none(3), Data.none(3), np.random.default_rng(1)
    for _ in range(4):
        arms = rng.integers(3, size=7)
        block = replace(Block.opened(arms, data, 0), outcomes=rng.standard_normal(7))
        data, plain = data.after(block), plain.after(block)
    more = Data.none(3).plus(np.array([2, 2]), np.array([1.0, 4.0]))
    for one, other in ((data, plain), (data + more, plain + more), (data.padded(5), plain.padded(5))):
        for name in ("counts", "sums", "squares"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert isinstance(one, BlockData)
        back = Memory.from_dict(json.loads(json.dumps(one.as_dict())))
        assert isinstance(back, BlockData) and np.array_equal(back.level_sums, one.level_sums)
        assert (back.unrest, back.compared) == (one.unrest, one.compared)
    assert (data + more).compared == data.compared, "results of one arm say nothing of differences"
    assert np.array_equal((data + more).level_sums - data.level_sums, more.sums)
    several = more.plus(np.array([0]), np.array([2.0]))
    assert (data + several).compared == data.compared + 1, "results that only inform have a level of their own"


def test_blocks_differ_when_their_levels_do_and_hardly_ever_otherwise() -> None:
    sizes = np.full(40, 12)
    calm = [blocks(np.zeros(40), sizes, seed) for seed in range(400)]
    assert not any(data.differs(ONES) for data in calm)
    assert 39 * 0.7 < np.mean([data.unrest for data in calm]) < 39, "at most about chi-squared, and not far below"
    assert all(blocks(PARITY, sizes, seed).differs(ONES) for seed in range(50))
    assert not blocks(PARITY, sizes).differs(np.array([1.0, 1.0, 1.0, 1.0, 100.0])), "noise may be larger"
    assert not BlockData.none(5).differs(ONES)


def test_beliefs_use_results_minus_levels_only_where_blocks_differ() -> None:
    for level, differ in ((0.0, False), (4.0, True)):
        data = blocks(level * PARITY, np.full(40, 12))
        outlook = Outlook.on(Evidence(FIVE, data, 0, 0.0))
        assert outlook.levelled is differ
        assert outlook.evidence.data is (data.levelled if differ else data)
        assert np.abs(outlook.mu - outlook.mu[1:].mean() - LEAD).max() < 0.6


def runs(policy: Policy, mu: Vector, drift: Jump | None, plain: bool) -> list[simulate.Run]:
    """Returns ten runs; `plain` ones have the beliefs of averages over time."""
    done = []
    for seed in range(10):
        if plain:
            policy = replace(policy)
            policy.__dict__["init"] = lambda seed=None, policy=policy: _plain(policy)
        done.append(simulate.run(policy, mu, seed, max_samples=3000, drift=drift))
    return done


def _plain(policy: Policy) -> State:
    return policy.open(replace(type(policy).init(policy), data=Data.none(policy.problem.n_arms), blocks=(), opened=0))


def test_a_jump_of_all_means_costs_little_and_nothing_changes_without_it() -> None:
    race = SpectralRace(FIVE, 0.1)
    calm, old = runs(race, LEAD * 2, None, False), runs(race, LEAD * 2, None, True)
    assert [(run.tau, run.arm) for run in calm] == [(run.tau, run.arm) for run in old]
    jump = Jump(4.0, at=40)
    jumped, pooled = runs(race, LEAD * 2, jump, False), runs(race, LEAD * 2, jump, True)
    mean = [np.mean([run.tau for run in some]) for some in (calm, jumped, pooled)]
    assert mean[1] < 1.5 * mean[0] and mean[2] > 2 * mean[0], mean
    assert all(run.correct for run in jumped)


def test_catalogues_have_levels_too() -> None:
    mu, rng = np.repeat([0.0, 1.0, 2.5], 4), np.random.default_rng(0)
    problem, data = Problem(Graph.from_categories([str(a // 4) for a in range(12)]), [1.0] * 3), BlockData.none(12)
    for k in range(20):
        arms = rng.permutation(np.append(np.arange(12), np.full(2 * k, k % 12)))
        outcomes = mu[arms] + 5.0 * (k > 10) + rng.standard_normal(arms.size)
        data = data.after(replace(Block.opened(arms, data, 0), outcomes=outcomes))
    outlook = Outlook.on(Evidence(problem, data, 0, 0.0))
    assert isinstance(outlook, CatalogueOutlook) and outlook.levelled
    errors = [np.abs(means - means.mean() - mu + mu.mean()).max() for means in (outlook.mu, data.means)]
    assert errors[0] < 0.6 < 1.0 < errors[1], errors


def test_estimates_say_that_means_drift() -> None:
    policy = SpectralRace(FIVE, 0.1)
    for drift, drifting in ((None, False), (Swing(6.0), True)):
        state, rng = policy.init(), np.random.default_rng(0)
        assert not policy.estimates(state).drifting
        while state.samples < 100:
            arms, numbers = policy.ask_slots(state, 100)
            level = 0.0 if drift is None else drift.shift(arms, numbers, numbers, 0)
            state = policy.tell(state, arms, level + rng.standard_normal(arms.size))
        assert policy.estimates(state).drifting is drifting
        assert policy.estimates(State.from_dict(json.loads(json.dumps(state.as_dict())))).drifting is drifting
