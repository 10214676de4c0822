"""The race: what it plans, and how plans become pulls."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from spectralbai import Graph, InvalidInput, Problem, SpectralRace
from spectralbai.allocation.closed_form import balance
from spectralbai.allocation.interior_point import search
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook
from spectralbai.policy import State
from spectralbai.responder import Responder
from spectralbai.sampling import Racing, View
from spectralbai.sampling.contract import least_block
from spectralbai.sampling.race import AHEAD, FLOOR_SHARE, GOLDEN, OPTIMISM, RacePlan, aimed, spread
from spectralbai.sampling.tracking import floor

PATH = Graph.from_edges(5, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0)])
TWO = Graph.from_edges(6, [(0, 2, 1.0), (2, 4, 1.0), (1, 3, 1.0)])


# From shares to pulls.


@pytest.mark.parametrize("seed", range(30))
def test_each_arm_gets_its_share_rounded_up_or_down(seed: int) -> None:
    rng = np.random.default_rng(seed)
    omega = rng.dirichlet(np.full(rng.integers(2, 12), 0.4))
    omega[rng.random(omega.size) < 0.3] = 0.0
    omega[0] = max(omega[0], 0.01)
    scale = rng.choice([1.0, 7.0])
    for n in (1, 4, 17, 1000):
        arms = spread(scale * omega, n, float(rng.random()))
        counts = np.bincount(arms, minlength=omega.size)
        assert arms.size == n
        assert (np.abs(counts - n * omega / omega.sum()) < 1 + 1e-9).all()
        assert counts[omega == 0].sum() == 0


def test_shares_too_small_for_a_block_are_met_in_the_long_run() -> None:
    omega, counts, issued = np.array([0.71, 0.17, 0.12 - 1e-3, 1e-3]), np.zeros(4), 0
    for _ in range(4000):
        counts += np.bincount(spread(omega, 5, issued * GOLDEN % 1.0), minlength=4)
        issued += 5
    np.testing.assert_allclose(counts / issued, omega, atol=2e-4)


def test_pulls_of_an_arm_are_spread_over_the_block() -> None:
    arms = spread(np.array([0.5, 0.25, 0.25]), 16, 0.3)
    assert all(len(set(arms[k : k + 4].tolist())) >= 2 for k in range(0, 16, 4))
    assert (np.diff(np.flatnonzero(arms == 0)) <= 3).all()


# Where to aim.


def best_value(responder: Responder, needs: Vector) -> float:
    """Returns max over omega of min over racing arms of f_i(omega) / needs_i, by sequential quadratic programs."""
    racing, n_arms = np.flatnonzero(needs > 0), responder.mu.size
    scale = float((responder.respond(np.full(n_arms, 1 / n_arms)).cost[racing] / needs[racing]).min())

    def margin(x: Vector) -> Vector:
        omega = np.maximum(x[:-1], 1e-9)
        margins: Vector = responder.respond(omega / omega.sum()).cost[racing] / needs[racing] / scale - x[-1]
        return margins

    constraints = [{"type": "ineq", "fun": margin}, {"type": "eq", "fun": lambda x: x[:-1].sum() - 1}]
    best = 0.0
    for seed in range(3):
        start = np.append(np.random.default_rng(seed).dirichlet(np.full(n_arms, 3.0)), 0.5)
        found = minimize(
            lambda x: -x[-1], start, method="SLSQP", bounds=[(1e-6, 1)] * n_arms + [(0, None)], constraints=constraints
        )
        best = max(best, float((margin(found.x) + found.x[-1]).min()))
    return scale * best


NEEDS = ([0, 1, 2, 5, 3, 1], [0, 4, 4, 1, 1, 1], [0, 1, 0, 0, 7, 0])


@pytest.mark.parametrize("needs", NEEDS)
@pytest.mark.parametrize("tolerance", [0.0, 0.3])
@pytest.mark.parametrize("R", [1.0, math.inf])
def test_a_plan_fills_the_accounts_as_soon_as_an_optimiser_can(needs: list[int], tolerance: float, R: float) -> None:
    problem = Problem(TWO, R, sigma=[1, 2, 1, 0.7, 1, 1], tolerance=tolerance)
    responder, need = Responder(problem, np.array([1.0, 0.2, 0.5, 0.3, 0.1, -0.2]), 0), np.array(needs, dtype=float)
    racing = need > 0
    if problem.unstructured:
        omega, value = balance(responder, need)
    else:
        found = search(responder.renumbered(), 1e-4, 60, needs=responder.components.ordered(need))
        omega = responder.components.restored(found.best.omega)
        value = float((responder.components.restored(found.best.cost)[racing] / need[racing]).min())
        assert found.ceiling >= value * (1 - 1e-9)
        assert found.ceiling <= value * (1 + 2e-4)
    reached = responder.respond(omega).cost[racing] / need[racing]
    assert omega.min() >= 0 and omega.sum() == pytest.approx(1)
    assert reached.min() == pytest.approx(value, rel=1e-6)
    optimum = best_value(responder, need)
    assert value >= optimum * (1 - 2e-3)
    if problem.unstructured:
        assert value <= optimum * (1 + 1e-2)
        np.testing.assert_allclose(reached, value, rtol=1e-6, err_msg="all racing arms are filled at once")
        assert omega[(need == 0) & (np.arange(6) != 0)].sum() == 0, "and nobody else gets a pull"


def test_the_needs_matter() -> None:
    """With equal needs it is the optimal allocation; an arm that lacks more gets more."""
    responder = Responder(Problem(TWO, math.inf), np.array([1.0, 0.2, 0.5, 0.3, 0.1, -0.2]), 0)
    equal, _ = balance(responder, np.ones(6))
    more, _ = balance(responder, np.array([1.0, 9.0, 1.0, 1.0, 1.0, 1.0]))
    assert more[1] > 2 * equal[1]
    small, _ = balance(responder, np.full(6, 5.0))
    np.testing.assert_allclose(small, equal, rtol=1e-9)


# The plan.


def view(problem: Problem, means: list[float], lacking: list[float], per_arm: float, best: int = 0) -> View:
    counts = np.full(problem.n_arms, per_arm)
    data = Data(counts, counts * np.array(means), counts * (np.array(means) ** 2 + 1))
    return View(Evidence(problem, data, best, 0.0), (0.1,), np.array(lacking))


def plan(seen: View) -> RacePlan:
    return Racing().plan(Racing().start(seen.problem), seen)


MEANS = [1.5, 1.0, 0.5, 0.0, -0.5]


def test_every_arm_still_racing_gets_a_floor_and_eliminated_arms_nothing_without_a_graph() -> None:
    problem = Problem(PATH, math.inf)
    seen = view(problem, MEANS, [0, 2, 0, 3, -1], 300)
    omega = plan(seen).omega
    assert omega.sum() == pytest.approx(1)
    assert omega[[2, 4]].max() == 0
    assert omega[[0, 1, 3]].min() >= FLOOR_SHARE * floor(5, 1500) * (1 - 1e-9)


def test_with_a_graph_eliminated_arms_are_pulled_only_where_they_tell_of_others() -> None:
    problem = Problem(TWO, 0.0004, sigma=[1, 3, 1, 1, 1, 1])
    omega = plan(view(problem, [1.0, 0.2, 1.0, 0.21, 1.0, -0.2], [0, 3, 0, 0, 0, 0], 300)).omega
    assert omega[5] == pytest.approx(0, abs=1e-3), "a lone arm tells of nobody"
    assert omega[3] > 0.05, "a neighbour that is less noisy than the arm racing does"


def test_the_most_promising_rival_gets_its_part_as_long_as_it_could_be_best() -> None:
    problem = Problem(PATH, math.inf)
    near = view(problem, [1.0, 0.99, 0.2, 0.1, 0.0], [0, 2, 2, 2, 2], 20)
    outlook = Outlook(near.evidence)
    omega, _ = aimed(outlook, 0, np.array([0.0, 2, 2, 2, 2]))
    assert plan(near).omega[1] >= (1 - OPTIMISM) * omega[1] + OPTIMISM - 0.05
    # Far below, with so many results, no arm could be best: the plan is the aim but for the floor.
    far = view(problem, MEANS, [0, 2, 2, 2, 2], 1e6)
    omega, _ = aimed(Outlook(far.evidence), 0, np.array([0.0, 2, 2, 2, 2]))
    np.testing.assert_allclose(plan(far).omega, omega, atol=1e-3)
    # An arm that is out could not be best any more, whatever its upper bound.
    out = plan(view(problem, [1.0, 0.99, 0.2, 0.1, 0.0], [0, 0, 2, 2, 2], 20)).omega
    assert out[1] == 0


def test_blocks_grow_with_the_pulls_and_end_when_the_slowest_account_should_be_full() -> None:
    assert [least_block(3, 0), least_block(30, 0), least_block(3, 1000)] == [4, 10, 40]
    problem = Problem(PATH, math.inf)
    needy = view(problem, MEANS, [0, 1e3, 1e3, 1e3, 1e3], 2000)
    assert plan(needy).size == least_block(5, 10_000, 0.03) == 300
    almost = view(problem, MEANS, [0, 1, 1, 1, 1], 2000)
    _, gain = aimed(Outlook(almost.evidence), 0, np.array([0.0, 1, 1, 1, 1]))
    assert plan(almost).size == max(math.ceil(AHEAD / gain), 4) < 300
    tiny = view(problem, MEANS, [0, 1e-6, 1e-6, 1e-6, 1e-6], 2000)
    assert plan(tiny).size == plan(almost).size, "nobody lacks less than a nat"


def test_tied_arms_share_the_pulls() -> None:
    problem = Problem(PATH, math.inf)
    omega = plan(view(problem, [1.0, 1.0, 0.0, 0.0, 0.0], [0, 2, 2, 2, 2], 1e5)).omega
    assert omega[0] > 0.3 and omega[1] > 0.3


def test_a_rule_that_does_not_say_what_arms_lack_is_refused() -> None:
    seen = replace(view(Problem(PATH, 1.0), MEANS, [0, 1, 1, 1, 1], 5), lacking=None)
    with pytest.raises(InvalidInput, match="a rule that says what each arm lacks, such as betting"):
        plan(seen)


def test_a_race_neither_pulls_arms_that_are_out_nor_lets_them_lead() -> None:
    policy, rng = SpectralRace(Problem(PATH, math.inf), 0.1), np.random.default_rng(0)
    mu = np.array([2.0, 1.8, 0.0, -1.0, -1.5])
    state: State = policy.init()
    out_before = 0
    while (arms := policy.ask(state, 1000)).size and state.samples < 3000:
        left = policy.verdict(state).candidates
        if left is not None:
            out = [a for a in range(5) if a not in left]
            assert state.best in left and state.blocks[0].best in left
            assert not set(out) & set(arms.tolist())
            out_before = max(out_before, len(out))
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    assert out_before >= 3 and policy.verdict(state).arm == 0


def test_results_that_only_inform_bring_no_eliminated_arm_back() -> None:
    """However good they are: bets by an arm that is out would prove nothing about those that are left."""
    policy, rng = SpectralRace(Problem(Graph.from_edges(3, []), 1.0), 0.1), np.random.default_rng(0)
    mu = np.array([0.0, 2.0, 1.8])
    state = policy.init()
    while policy.verdict(state).candidates in (None, (0, 1, 2)):
        arms = policy.ask(state, 100)
        state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
    assert policy.verdict(state).candidates == (1, 2)
    arms = policy.ask(state, 100)
    assert 0 not in arms
    state = policy.tell(policy.tell(state, np.zeros(500, dtype=int), np.full(500, 4.0)), arms, mu[arms])
    assert state.data.means.argmax() == 0
    assert state.best != 0 and state.blocks[0].best == state.best
    assert 0 not in policy.ask(state, 100)


def test_an_offset_next_to_one_gives_no_pull_too_many() -> None:
    assert spread(np.array([0.2, 0.3, 0.5]), 10, 1 - 1e-16).size == 10
