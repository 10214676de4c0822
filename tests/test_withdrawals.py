"""Accounts once arms are withdrawn, on a tight null: every arm is as good as the best, and every bet is fair.

The designated best arm is withdrawn again and again. The guarantee: the best of the arms left is never eliminated, in
all epochs together, with probability 2 delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.evidence.blocks import Block
from spectralbai.stopping.accounts import HALF, OUT, Account, Accounts, Leaders
from verification.coverage import chance

DELTA, RUNS, ARMS, EPOCH, SPREAD = 0.2, 1500, 7, 14, 0.9
GOAL = -math.log(DELTA)


def fresh(leaders: bool = False) -> Accounts:
    return Accounts(
        Account.opened(ARMS),
        Account.opened(1),
        Leaders.opened(ARMS) if leaders else None,
        np.zeros(ARMS, dtype=bool),
    )


def wrongly_eliminated(withdraw: Callable[[Accounts, int], Accounts], seed: int = 0) -> int:
    """Returns in how many runs the best of the arms left is eliminated in some epoch.

    The last arm leads throughout; arms 0, 1, ... are withdrawn in turn, whatever came out.
    """
    rng = np.random.default_rng(seed)
    failures = 0
    for _ in range(RUNS):
        accounts = fresh()
        wrong = False
        for epoch in range(ARMS - 1):
            for pay in rng.normal(-(SPREAD**2) / 2, SPREAD, (EPOCH, ARMS)):
                accounts = Accounts(accounts.arms.settled(pay, idle=ARMS - 1), accounts.R, None, accounts.led)
                accounts = Accounts(accounts.arms, accounts.R, None, accounts.led, epoch)
            wrong |= bool(accounts.arms.peak[epoch] >= GOAL)
            accounts = withdraw(accounts, epoch)
        failures += wrong
    return failures


def test_the_best_arm_left_is_eliminated_with_probability_two_delta_at_most_in_all_epochs_together() -> None:
    failures = wrongly_eliminated(Accounts.without)
    assert chance(failures, RUNS, 2 * DELTA) > 0.01
    assert failures > 0.1 * RUNS, "the null should be tight: a loose one shows no mistake"


def test_accounts_that_keep_their_wealth_at_a_withdrawal_would_err_more_often() -> None:
    def unhalved(accounts: Accounts, arm: int) -> Accounts:
        cash, peak = accounts.arms.cash.copy(), accounts.arms.peak.copy()
        cash[arm] = peak[arm] = OUT
        return Accounts(Account(cash, accounts.arms.bets, peak), accounts.R, None, accounts.led)

    failures = wrongly_eliminated(unhalved)
    assert chance(failures, RUNS, 2 * DELTA) < 1e-6


def test_bets_that_depended_on_a_withdrawn_leader_are_undone() -> None:
    accounts = fresh(leaders=True)
    assert accounts.leaders is not None
    grown = Account(np.full(ARMS, -1.0), np.full(ARMS, 9.0), np.full(ARMS, 9.0))
    led = np.arange(ARMS) == 2
    leaders = accounts.leaders.joined(np.array([2, 4]))
    leaders = leaders.settled(np.where(np.arange(ARMS) >= 4, 0.2, 0.0), np.zeros(ARMS), np.full((2, ARMS), 8.0))
    before = Accounts(grown, accounts.R, leaders, led)

    undone = before.without(2)
    others = np.arange(ARMS) != 2
    assert (undone.arms.wealth[others] == -HALF).all() and (undone.arms.peak[others] == -HALF).all()
    assert undone.arms.peak[2] == OUT and undone.withdrawals == 1 and not undone.led.any()
    assert undone.leaders is not None and undone.leaders.leaders.tolist() == [4]
    np.testing.assert_allclose(undone.leaders.wealth(4)[0][others], -HALF)
    again = undone.without(3)
    assert again.arms.peak[2] == again.arms.peak[3] == OUT and (again.arms.wealth[4:] == -2 * HALF).all()

    halved = before.without(4)
    others = np.arange(ARMS) != 4
    np.testing.assert_allclose(halved.arms.wealth[others], grown.wealth[others] - HALF)
    assert halved.leaders is not None and halved.leaders.leaders.tolist() == [2]
    np.testing.assert_allclose(halved.leaders.wealth(2)[0][others], leaders.wealth(2)[0][others] - HALF)
    assert halved.led[2], "who has led is remembered"


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_a_race_goes_on_without_an_arm_and_never_pulls_it(tolerance: float) -> None:
    mu = np.array([0.9, 0.1, 0.5, -0.4, -0.3])
    problem = sb.Problem(sb.Graph.from_edges(5, [(1, 2), (3, 4)]), 0.3, 0.5, tolerance)
    policy, rng = sb.SpectralRace(problem, 0.05), np.random.default_rng(1)
    state = policy.init()
    for time in range(2000):
        if policy.verdict(state).stopped_at is not None:
            break
        if time == 9:
            state = policy.withdraw(state, 0)
            assert policy.verdict(state).arm != 0 and type(state).from_dict(state.as_dict()).withdrawn == (0,)
        arms = policy.ask(state, 4)
        assert arms.size and (time < 9 or 0 not in arms)
        state = policy.tell(state, arms, mu[arms] + 0.5 * rng.standard_normal(arms.size))
    assert policy.verdict(state).decided and mu[policy.verdict(state).arm] >= 0.5 - tolerance
    assert policy.withdraw(state, 0) is state
    with pytest.raises(sb.InvalidInput, match="must be an arm"):
        policy.withdraw(state, 9)


def test_an_arm_that_was_to_have_all_pulls_can_be_withdrawn() -> None:
    """After a decision the winner is all that a plan aims at."""
    mu = np.array([9.0, 0.0, 1.0, 2.0])
    for labels in (None, list("aabb")):
        graph = sb.Graph.from_edges(4, [(0, 1)]) if labels is None else sb.Graph.from_categories(labels)
        policy = sb.SpectralRace(sb.Problem(graph, 100.0 if labels is None else [100.0, 1.0]), 0.05)
        state = policy.init()
        while not policy.verdict(state).decided:
            arms = policy.ask(state, 100)
            state = policy.tell(state, arms, mu[arms])
        for arm in (1, 0):
            state = policy.withdraw(state, arm)
        assert set(policy.ask(state, 100).tolist()) <= {2, 3}


def test_the_only_arm_of_a_component_needs_a_result_first() -> None:
    policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(3, []), 1.0), 0.05)
    with pytest.raises(sb.InvalidInput, match="its component would have no arm to try"):
        policy.withdraw(policy.init(), 1)
    other = sb.SpectralTaS(sb.Problem(sb.Graph.from_edges(3, []), 1.0), 0.05)
    with pytest.raises(sb.InvalidInput, match="cannot go on without an arm"):
        other.withdraw(other.tell(other.init(), [0, 1, 2], [0.0, 0.0, 0.0]), 1)


def test_results_that_became_seen_after_the_opening_do_not_choose_the_new_leader_of_a_block() -> None:
    problem = sb.Problem(sb.Graph.from_edges(4, []), math.inf)
    policy = sb.SpectralRace(problem, 0.05)
    state = policy.init()
    state = policy.tell(state, range(4), [0.9, 0.3, 0.2, 0.1])
    assert state.best == 0
    kept = Block.opened(np.array([1, 2, 2, 3]), state.data, 0, state.opened)
    state = replace(state, blocks=(kept,), opened=state.opened + 1)
    leaders = set()
    for told in (1, 2):  # history that may have been chosen by looking at the results of the open block
        later = policy.tell(state, [told] * 9, [5.0] * 9, blocks=[-1] * 9)
        later = policy.withdraw(policy.open(later), 0)
        assert later.best == told
        leaders.add(later.blocks[0].best)
    assert leaders == {1}, "the second-best arm in the data that the block was opened on"


@pytest.mark.parametrize("joining", [False, True])
def test_a_block_that_waited_only_for_a_cancelled_one_closes_at_once(joining: bool) -> None:
    policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(4, []), math.inf), 0.05)
    state = policy.init()
    state = policy.tell(state, policy.ask(state, 4), [0.9, 0.3, 0.2, 0.1])
    first, second = (Block.opened(np.array(arms), state.data, 0, state.opened + i) for i, arms in enumerate([[3], [1]]))
    state = replace(state, blocks=(first, second), opened=state.opened + 2)
    state = policy.tell(state, [1], [0.4], blocks=[second.number])
    assert state.data.samples == 4, "it waits for the first block"
    if joining:
        policy = policy.joined(sb.Problem(sb.Graph.from_edges(5, []), math.inf))
        state = policy.join(state, kept=[second.number])
    else:
        state = policy.withdraw(state, 3)
    assert state.data.samples == 5 and policy.ask(state, 1).size == 1


def test_a_complete_block_that_is_the_oldest_closes_even_if_nothing_more_is_told() -> None:
    policy = sb.SpectralRace(sb.Problem(sb.Graph.from_edges(4, []), math.inf), 0.05)
    state = policy.init()
    complete = replace(state.blocks[0], outcomes=np.zeros(4))
    later, readings = policy.advance(replace(state, blocks=(complete,)), [], [])
    assert later.data.samples == 4 and len(readings) == 1 and policy.ask(later, 1).size == 1
