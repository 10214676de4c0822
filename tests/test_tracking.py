"""Counts that follow a moving target."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from spectralbai import Graph, Problem, SpectralTaS
from spectralbai.arrays import Vector
from spectralbai.policy.every_result import next_reading
from spectralbai.sampling.tracking import Tracked, floor, next_pulls, project_on_floor


def random_allocation(seed: int) -> tuple[Vector, float]:
    """Returns an allocation, often with zeros, and an exploration floor at most 1/K."""
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 9))
    omega = rng.dirichlet(np.full(n_arms, 0.4))
    omega[rng.random(n_arms) < 0.3] = 0.0
    omega = omega / omega.sum() if omega.any() else np.full(n_arms, 1 / n_arms)
    return omega, float(rng.uniform(0, 1) / n_arms)


@pytest.mark.parametrize("seed", range(40))
def test_the_projection_is_as_close_in_sup_norm_as_a_linear_program_gets(seed: int) -> None:
    omega, epsilon = random_allocation(seed)
    n_arms = omega.size
    projected = project_on_floor(omega, epsilon)
    assert projected.sum() == pytest.approx(1, abs=1e-14)
    assert (projected >= epsilon * (1 - 1e-12)).all()
    # Variables (x, d): minimise d subject to |x - omega| <= d, x >= epsilon, sum x = 1.
    one = np.ones((n_arms, 1))
    above, below = np.hstack([np.eye(n_arms), -one]), np.hstack([-np.eye(n_arms), -one])
    best = linprog(
        np.append(np.zeros(n_arms), 1.0),
        np.vstack([above, below]),
        np.concatenate([omega, -omega]),
        np.append(np.ones(n_arms), 0.0)[None],
        [1.0],
        [(epsilon, None)] * n_arms + [(0, None)],
    ).fun
    assert np.abs(projected - omega).max() == pytest.approx(best, abs=1e-9)


def test_an_allocation_above_the_floor_is_left_alone_and_the_highest_floor_is_even() -> None:
    omega = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(project_on_floor(omega, 0.2), omega, rtol=1e-15)
    np.testing.assert_allclose(project_on_floor(np.array([1.0, 0.0, 0.0]), 1 / 3), 1 / 3, rtol=1e-15)


def test_the_floor_and_the_schedule_are_the_stated_ones() -> None:
    assert floor(3, 7) == 0.125
    assert floor(10, 0) == 0.05
    assert [next_reading(t) for t in (0, 1, 50, 99, 100, 1000)] == [1, 2, 51, 100, 102, 1020]


@pytest.mark.parametrize("seed", range(10))
def test_pulls_stay_within_k_minus_1_of_targets_that_move(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(2, 9))
    targets, counts = np.zeros(n_arms), np.zeros(n_arms)
    for _ in range(200):
        rate = project_on_floor(rng.dirichlet(np.full(n_arms, 0.3)), floor(n_arms, int(counts.sum())))
        n = int(rng.integers(1, 20))
        for k, arm in enumerate(next_pulls(targets, rate, counts, n)):
            counts[arm] += 1
            assert np.abs(counts - targets - (k + 1) * rate).max() <= n_arms - 1 + 1e-9
        targets = targets + n * rate


def policy_on_three_components() -> SpectralTaS:
    graph = Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)])
    return SpectralTaS(Problem(graph, R=0.1), delta=1e-9, stopping="gk16")


def test_counts_follow_the_cumulated_targets_along_a_run() -> None:
    """Within K - 1, and one more per component for the pulls that come first."""
    policy = policy_on_three_components()
    mu, rng = np.array([0.0, 0.1, 0.2, 0.6, 0.5, 1.0]), np.random.default_rng(5)
    state = policy.init()
    furthest = 0.0
    while state.samples < 800:
        arms = policy.ask(state, state.next_reading - state.samples)
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
        memory = state.sampling
        assert isinstance(memory, Tracked)
        targets = memory.targets + (state.samples - memory.base) * memory.rate
        assert targets.sum() == pytest.approx(state.samples, rel=1e-12)
        furthest = max(furthest, float(np.abs(state.counts - targets).max()))
    assert 0 < furthest <= 5 + 3
    assert (state.counts > 0.5 * np.sqrt(800) - 2 * 6).all()


def test_pending_pulls_count_for_tracking_only() -> None:
    policy = policy_on_three_components()
    rng = np.random.default_rng(2)
    arms = policy.ask(policy.init(), 40)
    state = policy.tell(policy.init(), arms, rng.standard_normal(40))
    together = policy.ask(state, 10)
    first = policy.ask(state, 4)
    pending = np.bincount(first, minlength=6)
    np.testing.assert_array_equal(np.concatenate([first, policy.ask(state, 6, pending=pending)]), together)
    assert policy.verdict(state).samples == 40


def test_pending_pulls_spare_a_component_its_first_pull() -> None:
    policy = policy_on_three_components()
    assert set(policy.ask(policy.init(), 3)) == {0, 3, 5}
    assert policy.ask(policy.init(), 1, pending=[0, 1, 0, 0, 1, 0]) == [5]


def test_asking_only_reads() -> None:
    policy = policy_on_three_components()
    state = policy.tell(policy.init(), [0, 3, 5], [0.1, 0.2, 0.3])
    before = state.as_dict()
    pending = np.array([1, 0, 0, 2, 0, 0])
    np.testing.assert_array_equal(policy.ask(state, 30, pending), policy.ask(state, 30, pending))
    assert state.as_dict() == before
    assert pending.tolist() == [1, 0, 0, 2, 0, 0]
