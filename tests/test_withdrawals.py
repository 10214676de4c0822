"""Accounts once arms are withdrawn, on a tight null: every arm is as good as the best, and every bet is fair.

The guarantee: the best of the arms left is eliminated at some time with probability 2 delta at most, whichever arms are
withdrawn and whoever leads, even if both are chosen by an adversary who sees all results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import spectralbai as sb
from spectralbai.arrays import Vector
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
        return Accounts(Account(cash, accounts.arms.bets, peak, accounts.arms.spared), accounts.R, None, accounts.led)

    failures = wrongly_eliminated(unhalved)
    assert chance(failures, RUNS, 2 * DELTA) < 1e-6


def started_anew(accounts: Accounts, arm: int) -> Accounts:
    """What would be wrong: accounts that relied on the arm start anew at 2^-withdrawals, whatever they had lost."""
    after = accounts.without(arm)
    if not accounts.led[arm]:
        return after
    start = np.where(after.arms.left, -HALF * after.withdrawals, OUT)
    nothing = np.full(ARMS, -np.inf)
    return replace(after, arms=Account(start, nothing, start, nothing))


class Adversary:
    """One who knows the order of the arms, 0 the best, and sees all results before the next leader and withdrawal.

    All bets are fair. Each account is driven towards the wealth that it needs to be too large still when its arm is the
    best left. If none gets there, the bets are lost; then the adversary wants the accounts to start anew.
    """

    PHASES, BLOCKS, DELTA = 4, 4, 0.1

    def __init__(self, withdraw: Callable[[Accounts, int], Accounts], seed: int) -> None:
        self.withdraw = withdraw
        self.rng = np.random.default_rng(seed)

    def wins(self, chosen: bool) -> bool:
        """Whether the best arm left is eliminated in a run. If `chosen`, withdrawals depend on results; otherwise the
        best arm is withdrawn after each phase, whatever came out, and only the leaders depend on results."""
        accounts, goal = fresh(), -math.log(self.DELTA)
        for _ in range(self.PHASES):
            left = np.flatnonzero(accounts.arms.left)
            goals = np.full(ARMS, np.inf)
            goals[left] = goal + HALF * np.arange(left.size)
            accounts = self._played(accounts, goals, left[[0, -1]].tolist(), chosen)
            reached = left[accounts.arms.peak[left] >= goals[left]]
            if chosen and reached.size:
                for arm in left[left < reached[0]].tolist():
                    accounts = self.withdraw(accounts, arm)
                return bool(accounts.arms.peak[reached[0]] >= goal - 1e-9)
            if accounts.arms.peak[left[0]] >= goal:
                return True
            accounts = self.withdraw(accounts, int(left[-1 if chosen else 0]))
        return False

    def _played(self, accounts: Accounts, goals: Vector, ends: list[int], chosen: bool) -> Accounts:
        """Returns the accounts after a phase, led by the worst arm; before it is withdrawn, the best arm leads a block
        if no account has reached its goal."""
        for block in range(self.BLOCKS):
            short = np.isfinite(goals) & (accounts.arms.peak < goals)
            last_chance = block == self.BLOCKS - 1 and short.sum() == accounts.arms.left.sum()
            leader = ends[0 if last_chance and not chosen else 1]
            staked = np.logaddexp(accounts.arms.bets, accounts.arms.cash - HALF)[short]
            needed = np.log(np.exp(goals[short]) - np.exp(accounts.arms.cash[short] - HALF)) - staked
            pay = np.zeros(ARMS)
            pay[short] = np.where(self.rng.random(needed.size) < np.exp(-needed), needed + 1e-9, -60.0)
            arms = accounts.arms.settled(pay, 0.5, leader)
            led = accounts.led | (np.arange(ARMS) == leader)
            accounts = Accounts(arms, accounts.R, None, led, accounts.withdrawals)
        return accounts


@pytest.mark.parametrize("chosen", [False, True], ids=["withdrawals are fixed", "withdrawals depend on results"])
def test_no_choice_of_leaders_and_withdrawals_makes_the_risk_more_than_two_delta(chosen: bool) -> None:
    runs = 1500
    proved, anew = Adversary(Accounts.without, 1), Adversary(started_anew, 1)
    failures = sum(proved.wins(chosen) for _ in range(runs))
    assert chance(failures, runs, 2 * Adversary.DELTA) > 0.01
    assert chance(failures, runs, Adversary.DELTA) < 1e-6, "delta is not enough"
    failures = sum(anew.wins(chosen) for _ in range(runs))
    assert chance(failures, runs, 2 * Adversary.DELTA) < 1e-5, "accounts that start anew err more often"


def test_closed_bets_leave_the_least_that_they_were_worth_with_the_money_moved_since() -> None:
    rng = np.random.default_rng(0)
    pays, shares = rng.normal(0, 1, (12, 2, ARMS)), np.where(np.arange(ARMS) == 4, 0.6, 0.0)

    def raced(stop: int) -> tuple[Account, Leaders]:
        """Returns the accounts with bets at tolerance 0 that paid nothing, nor lost, from a block on."""
        arms, leaders = Account.opened(ARMS), Leaders.opened(ARMS).joined(np.array([4]))
        for k, (pay, own) in enumerate(pays):
            fair = pay if k < stop else np.zeros(ARMS)
            arms, leaders = arms.settled(fair, idle=0), leaders.settled(shares, fair, own[None])
        return arms, leaders

    arms, leaders = raced(len(pays))
    stopped = [raced(stop) for stop in range(len(pays) + 1)]
    least = np.min([account.wealth for account, _ in stopped], axis=0)
    shared = np.min([accounts.beaten_by_all(np.arange(ARMS)) for _, accounts in stopped], axis=0)

    led = np.arange(ARMS) == 2
    before = Accounts(arms, Account.opened(1), leaders, led)
    closed, others = before.without(2), np.arange(ARMS) != 2
    assert (least[others] < arms.wealth[others]).any() and (least > arms.cash).any()
    np.testing.assert_allclose(closed.arms.wealth[others], least[others] - HALF)
    np.testing.assert_array_equal(closed.arms.peak[others], closed.arms.cash[others])
    assert closed.arms.peak[2] == OUT and closed.withdrawals == 1 and not closed.led.any()
    assert closed.leaders is not None and closed.leaders.leaders.tolist() == [4]
    now, peak = closed.leaders.wealth(4)
    np.testing.assert_allclose(now[others], np.logaddexp(shared, leaders.own[0])[others] - HALF)
    np.testing.assert_allclose(now[others], peak[others])
    assert peak[2] == OUT
    again = closed.without(3)
    assert again.arms.peak[2] == again.arms.peak[3] == OUT
    np.testing.assert_allclose(again.arms.wealth[4:], closed.arms.wealth[4:] - HALF)

    halved, others = before.without(4), np.arange(ARMS) != 4
    np.testing.assert_allclose(halved.arms.wealth[others], arms.wealth[others] - HALF)
    np.testing.assert_allclose(halved.arms.peak[others], arms.peak[others] - HALF)
    np.testing.assert_allclose(halved.without(2).arms.wealth[:2], least[:2] - 2 * HALF)
    assert halved.leaders is not None and not halved.leaders.leaders.size
    assert halved.led[2], "who has led is remembered"


def test_what_bets_spared_before_they_were_closed_does_not_count_when_they_are_closed_again() -> None:
    arms, leaders, won = Account.opened(ARMS), Leaders.opened(ARMS), np.ones(ARMS)
    for arm in range(3):
        arms = arms.settled(won).without(arm, relied=True)
        leaders = leaders.settled(np.zeros(ARMS), won, leaders.own).without(arm, relied=True)
        np.testing.assert_allclose(arms.wealth[3:], -HALF * (arm + 1), err_msg="what was moved, without what it won")
        np.testing.assert_allclose(leaders.cash[3:], -HALF * (arm + 1))


def test_the_bets_of_a_withdrawn_leader_leave_what_they_are_worth_but_not_more_than_they_were_given() -> None:
    shares = np.where(np.arange(ARMS) >= 4, 0.25, 0.0)
    leaders = Leaders.opened(ARMS).joined(np.arange(4, ARMS))
    for pay in (np.linspace(-3, 4, ARMS), np.linspace(3, -3.5, ARMS)):
        leaders = leaders.settled(shares, np.full(ARMS, -0.1), np.stack([pay, np.zeros(ARMS), -pay]))
    given = 0.25 * (0.1 + 0.09)
    won, worth = np.exp(leaders.own[0]) > given, np.minimum(np.exp(leaders.own[0]), given)
    assert 0 < won.sum() < ARMS
    after, others = leaders.without(4, relied=False), np.arange(ARMS) != 4
    assert after.leaders.tolist() == [5, 6]
    np.testing.assert_allclose(np.exp(after.cash[others]), (0.81 + worth)[others] / 2)
    np.testing.assert_allclose(np.exp(after.common), np.exp(leaders.common) / 2)
    np.testing.assert_allclose(after.own, leaders.own[1:] - HALF)
    for b in (5, 6):
        (now, peak), (_, before) = after.wealth(b), leaders.wealth(b)
        np.testing.assert_allclose(peak[others], np.maximum(now, before - HALF)[others])
    np.testing.assert_array_equal(leaders.without(0, relied=False).cash[1:], leaders.cash[1:] - HALF)
    later = leaders.without(0, relied=False).without(4, relied=False)
    np.testing.assert_allclose(later.cash[1:4], after.cash[1:4] - HALF, err_msg="what was given is halved, too")


@pytest.mark.parametrize("returned", ["what is left of the gift", "all winnings"])
def test_winnings_of_right_leaders_must_not_come_back_to_the_cash_box(returned: str) -> None:
    """Column i is a best arm of its own. Arm 0 is better, so that bets of it as a leader win; arms 1 to 4 are worse,
    with fair bets, as those of W0. Arms 0 and 1 are withdrawn half-way."""
    n, rng, size = 3000, np.random.default_rng(2), 0.6
    leaders = Leaders.opened(n).joined(np.arange(5))
    out = np.zeros(n, dtype=bool)
    for k in range(80):
        if k == 40:
            before = leaders
            for arm in (0, 1):
                leaders = leaders.without(arm, relied=False)
            if returned == "all winnings":
                cash = np.logaddexp.reduce(np.vstack([before.cash, before.own[:2]]), axis=0)
                leaders = replace(leaders, cash=cash - 2 * HALF)
        shares = np.zeros(n)
        shares[leaders.leaders] = 0.8 / leaders.leaders.size
        pays = rng.normal(-(size**2) / 2, size, (leaders.leaders.size, n))
        pays[leaders.leaders == 0] += size**2
        leaders = leaders.settled(shares, rng.normal(-(size**2) / 2, size, n), pays)
        out |= (leaders.peak[leaders.leaders > 0] >= GOAL - (2 * HALF if k >= 40 else 0)).any(axis=0)
    failures = int(out[5:].sum())
    assert (chance(failures, n - 5, DELTA) > 0.01) == (returned != "all winnings")


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
