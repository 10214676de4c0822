"""Accounts, leaders and readings of the betting rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from spectralbai import Problem, SpectralRace, simulate
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.outlook import Outlook, separable
from spectralbai.policy import State
from spectralbai.spectral import decompose
from spectralbai.stopping import Betting
from spectralbai.stopping.accounts import (
    COMMON,
    FED,
    INVESTED,
    MANY_ARMS,
    MOST_LEADERS,
    Account,
    Accounts,
    Leaders,
    feed,
)
from spectralbai.stopping.betting import EliminationReading, LeaderReading
from tests.graphs import GRAPHS

NOBODY = np.zeros(3, dtype=bool)
"""Nobody has led."""


def beliefs(mu: Sequence[float] = (0.0, 0.0, 0.0), chances: Sequence[float] = ()) -> Outlook:
    """Returns beliefs with this estimate and these probabilities of being best."""
    return cast(Outlook, SimpleNamespace(mu=np.array(mu), chances=np.array(chances)))


def test_a_tenth_of_the_cash_is_invested_at_every_block() -> None:
    account = Account.opened(3)
    assert account.wealth.tolist() == [0, 0, 0]
    one = account.settled(np.log([2.0, 0.5, 7.0]), idle=2)
    np.testing.assert_allclose(np.exp(one.cash), [1 - INVESTED, 1 - INVESTED, 1.0])
    np.testing.assert_allclose(np.exp(one.bets), [2 * INVESTED, 0.5 * INVESTED, 0.0])
    np.testing.assert_allclose(np.exp(one.wealth), [1.1, 0.95, 1.0])
    two = one.settled(np.log([0.1, 4.0, 3.0]))
    np.testing.assert_allclose(np.exp(two.bets), [0.1 * (0.2 + 0.09), 4 * (0.05 + 0.09), 3 * 0.1])
    np.testing.assert_allclose(np.exp(two.cash), [0.81, 0.81, 0.9])
    np.testing.assert_allclose(np.exp(two.peak), [1.1, 1.37, 1.2])
    assert account.cash.tolist() == [0, 0, 0], "the account before is left alone"


def test_fair_bets_leave_the_wealth_where_it_was() -> None:
    account = Account.opened(2)
    for k in range(50):
        account = account.settled(np.zeros(2), idle=k % 2)
        np.testing.assert_allclose(account.wealth, 0.0, atol=1e-12)
    np.testing.assert_allclose(account.peak, 0.0, atol=1e-12)


def test_leaders_never_hold_more_than_what_was_put_in() -> None:
    """C_i + W0_i + the sum of W_bi over all b stays 1 if every bet pays 0, whichever leaders get the stakes."""
    rng, leaders = np.random.default_rng(4), Leaders.opened(4)
    for _ in range(60):
        shares = feed(rng.dirichlet(np.full(4, 0.3)))
        leaders = leaders.joined(np.flatnonzero(shares))
        leaders = leaders.settled(shares, np.zeros(4), np.zeros((leaders.leaders.size, 4)))
        total = np.exp(leaders.cash) + np.exp(leaders.common) + np.exp(leaders.own).sum(axis=0)
        np.testing.assert_allclose(total, 1.0, rtol=1e-12)
        for b in range(4):
            now, peak = leaders.wealth(b)
            assert (now <= 1e-12).all() and (peak <= 1e-12).all()
    assert sorted(leaders.leaders.tolist()) == [0, 1, 2, 3] == sorted(set(leaders.leaders.tolist()))


def test_with_many_arms_few_leaders_keep_accounts_and_the_others_lose_their_money() -> None:
    n, most = MANY_ARMS + 88, MOST_LEADERS
    rng, leaders, payoffs = np.random.default_rng(5), Leaders.opened(n), np.zeros(n)
    for _ in range(40):
        shares = feed(rng.dirichlet(np.full(n, 0.002)))
        assert (shares > 0).sum() <= most and shares.sum() == pytest.approx(1 - COMMON)
        before = leaders
        leaders = leaders.joined(np.flatnonzero(shares))
        assert np.isin(np.flatnonzero(shares), leaders.leaders).all() and leaders.leaders.size <= most
        kept = np.isin(leaders.leaders, before.leaders)
        for b, own, peak in zip(
            leaders.leaders[kept], leaders.own[kept], leaders.peak[kept], strict=True
        ):  # those that stay have what they had
            row = before.leaders.tolist().index(b)
            np.testing.assert_array_equal(own, before.own[row])
            np.testing.assert_array_equal(peak, before.peak[row])
        assert (leaders.own[~kept] == -np.inf).all(), "also those that had accounts once"
        leaders = leaders.settled(shares, payoffs, np.zeros((leaders.leaders.size, n)))
        total = np.exp(leaders.cash) + np.exp(leaders.common) + np.exp(leaders.own).sum(axis=0)
        assert (total < 1 + 1e-12).all()
    assert total.max() < 0.9, "money was lost"
    assert (feed(np.full(n, 1 / n)) > 0).sum() == most


def test_the_leaders_that_have_won_least_lose_their_accounts() -> None:
    n = MANY_ARMS + 1
    leaders = Leaders.opened(n).joined(np.arange(MOST_LEADERS))
    shares = feed(np.full(n, 1 / n))
    won = np.arange(MOST_LEADERS, dtype=np.float64)[::-1, None] + np.zeros(n)
    after = leaders.settled(shares, np.zeros(n), won).joined(np.array([MOST_LEADERS - 1, 100, 200]))
    assert after.leaders.tolist() == [*range(MOST_LEADERS - 3), MOST_LEADERS - 1, 100, 200]


def _wrong_answers(returned: bool) -> float:
    """Returns how often some wrong leader beats a best arm, at delta = 0.2, while accounts are closed all the time.

    Every column is a best arm of its own. Bets of wrong leaders, the even arms, are just fair; those of right ones win.
    If `returned`, the money of closed accounts goes back into the cash box.
    """
    n, rng = 3000, np.random.default_rng(6)
    leaders, beaten = Leaders.opened(n), np.zeros(n, dtype=bool)
    for _ in range(150):
        shares = np.zeros(n)
        shares[rng.choice(60, MOST_LEADERS - 2, replace=False)] = (1 - COMMON) / (MOST_LEADERS - 2)
        before, leaders = leaders, leaders.joined(np.flatnonzero(shares))
        if returned:
            closed = before.own[~np.isin(before.leaders, leaders.leaders)]
            cash = np.logaddexp.reduce(np.vstack([leaders.cash, closed]), axis=0)
            leaders = replace(leaders, cash=cash)
        size = 0.5
        fair = size * rng.standard_normal((leaders.leaders.size, n)) - size**2 / 2
        wrong = leaders.leaders % 2 == 0
        common = size * rng.standard_normal(n) - size**2 / 2
        leaders = leaders.settled(shares, common, np.where(wrong[:, None], fair, size))
        beaten |= (leaders.peak[wrong] >= math.log(5)).any(axis=0)
    return float(beaten.mean())


def test_closing_the_accounts_of_leaders_does_not_make_wrong_answers_more_frequent() -> None:
    assert _wrong_answers(returned=False) < 0.2
    assert _wrong_answers(returned=True) > 0.24, "what right leaders win must not come back"


def test_what_a_leader_proved_holds_for_that_leader_only() -> None:
    leaders = Leaders.opened(3).joined(np.array([0, 1]))
    shares = np.array([0.4, 0.4, 0.0])
    rich = leaders.settled(shares, np.zeros(3), np.array([[0.0, 8.0, 8.0], [0.0, 0.0, 0.0]]))
    poor = rich.settled(np.array([0.0, 0.8, 0.0]), np.zeros(3), np.array([[0.0, -20.0, -20.0], [0.0, 0.0, 0.0]]))
    now, peak = poor.wealth(0)
    assert (now[1:] < 0.0).all() and (peak[1:] > math.log(50)).all(), "final, though the wealth is gone"
    assert poor.wealth(1)[1].max() < 1e-12 and poor.wealth(2)[1].max() < 1e-12

    accounts = Accounts(Account.opened(3), Account.opened(1), poor, NOBODY)
    everyone = np.ones((3, 3), dtype=bool)
    reading = LeaderReading(1, accounts, beliefs(chances=[0.1, 0.8, 0.1]), everyone)
    assert reading.decided(0.05) and reading.recommended(0.05) == 0, "the arm that beat all, not the most promising"
    assert not reading.decided(1e-6) and reading.recommended(1e-6) == 1
    assert reading.lacking(0.05) is not None
    assert reading.least_beaten(0.05)[0] == peak[1:].min()
    # A leader that appears later starts with the cash, not with what bets by other leaders have won.
    late = rich.joined(np.array([2]))
    np.testing.assert_array_equal(late.wealth(2)[1], np.logaddexp(rich.cash, rich.common))


def test_nobody_needs_to_beat_an_arm_that_cannot_be_better_by_the_tolerance() -> None:
    accounts = Accounts(Account.opened(3), Account.opened(1), Leaders.opened(3), NOBODY)
    possible = np.array([[True, False, True], [False, True, False], [True, True, True]])
    reading = LeaderReading(0, accounts, beliefs(chances=[0.5, 0.3, 0.2]), possible)
    assert reading.decided(0.1) and reading.recommended(0.1) == 1
    assert reading.least_beaten(0.1) == (math.inf, 0.0)


def test_of_several_right_answers_the_one_with_the_best_estimate_is_given_not_the_one_least_known() -> None:
    accounts = Accounts(Account.opened(3), Account.opened(1), Leaders.opened(3), NOBODY)
    nobody = np.zeros((3, 3), dtype=bool)
    reading = LeaderReading(0, accounts, beliefs(mu=[0.4, 0.6, 0.5], chances=[0.2, 0.1, 0.7]), nobody)
    assert reading.decided(0.1) and reading.recommended(0.1) == 1


def test_a_tolerance_that_smooth_means_just_reach_is_no_reason_to_go_on_for_ever() -> None:
    """Neighbours of neighbours differ by at most 1 here, up to rounding: nobody can bet against them any more."""
    problem = Problem(GRAPHS["path"], R=0.5, tolerance=1.0)
    assert not separable(problem)[0][2] and not separable(problem)[2][4]
    assert separable(problem)[0][3]
    run = simulate.run(SpectralRace(problem, 0.1), [0.0, 0.3, 0.6, 0.3, 0.0], 0, max_samples=100)
    assert (run.status, run.correct) == ("decided", True)


@pytest.mark.parametrize("graph", GRAPHS)
def test_arms_are_separable_where_there_is_a_best_response(graph: str) -> None:
    for R, tolerance in ((0.01, 0.15), (0.5, 0.6), (0.5, 0.99), (2.0, 1.1), (math.inf, 1.0), (0.5, 0.0)):
        problem = Problem(GRAPHS[graph], R, tolerance=tolerance)
        n_arms = problem.n_arms
        for b in range(n_arms):
            cost = decompose(problem, np.ones(n_arms)).respond(np.zeros(n_arms), b, np.array([R]), tolerance).cost
            others = np.arange(n_arms) != b
            np.testing.assert_array_equal(separable(problem)[b][others], np.isfinite(cost)[others])


def test_leaders_get_stakes_by_the_squares_of_their_chances_and_the_rest_is_shared_by_all() -> None:
    shares = feed(np.array([0.6, 0.3, FED - 0.001, 0.1 - FED + 0.001]))
    assert shares.sum() == pytest.approx(1 - COMMON)
    assert shares[2] == 0 and shares[0] == pytest.approx(4 * shares[1])
    many = feed(np.full(40, 1 / 40))
    np.testing.assert_allclose(many, (1 - COMMON) / 40)
    assert feed(np.append(np.full(45, 0.02), 0.1))[:45].max() == 0


def peaks(*wealth: float) -> Account:
    """Returns accounts whose largest wealth was this, and which have lost most of it since."""
    nothing = np.full(len(wealth), -np.inf)
    return Account(np.log(np.array(wealth)) - 1, nothing, np.log(np.array(wealth)), nothing)


def test_arms_not_eliminated_are_candidates_and_the_last_one_is_the_answer() -> None:
    fine = peaks(1.0)
    reading = EliminationReading(1, Accounts(peaks(3.0, 150.0, 20.0), fine, None, NOBODY), beliefs(mu=[0.0, 9.0, 1.0]))
    assert reading.candidates(0.01).tolist() == [0, 2]
    assert not reading.decided(0.01)
    assert reading.recommended(0.01) == 2, "an eliminated arm is not recommended, however good it looks"
    assert reading.candidates(0.05 * (1 + 1e-12)).tolist() == [0] and reading.decided(0.05 * (1 + 1e-12))
    assert reading.least_beaten(0.05) == pytest.approx((math.log(20), math.log(20)))
    np.testing.assert_allclose(reading.lacking(0.01), [math.log(100 / 3) + 1, 0, math.log(100 / 20) + 1])
    nobody = EliminationReading(1, Accounts(peaks(30.0, 30.0, 30.0), fine, None, NOBODY), beliefs())
    assert not nobody.consistent(0.1) and not nobody.decided(0.1) and nobody.recommended(0.1) == 1
    refuted = EliminationReading(0, Accounts(peaks(1.0, 30.0, 30.0), peaks(11.0), None, NOBODY), beliefs())
    assert refuted.consistent(0.05) and not refuted.consistent(0.1) and not refuted.decided(0.1)


def test_nothing_is_bet_on_a_block_opened_before_there_was_an_estimate() -> None:
    problem = Problem(GRAPHS["edgeless"], 1.0)
    rule, block = Betting(), Block(np.arange(4), np.arange(4.0), Data.none(4), 0)
    memory = rule.start(problem)
    assert rule.observe(memory, block, Evidence(problem, block.results, 3, 0.0)) is memory


def test_the_reading_shows_nothing_of_R_before_it_is_bet_against() -> None:
    joined = Problem(GRAPHS["path"], 1.0)
    policy = SpectralRace(joined, 0.1)
    state: State = policy.init()
    assert not policy.reader.rules["betting"].read(state.stopping["betting"], _seen(joined)).tests_R
    rng = np.random.default_rng(0)
    for _ in range(4):
        arms = policy.ask(state, 100)
        state = policy.tell(state, arms, rng.standard_normal(arms.size))
    assert policy.reader.rules["betting"].read(state.stopping["betting"], _seen(joined)).tests_R


def _seen(problem: Problem) -> Evidence:
    return Evidence(problem, Data.none(problem.n_arms).plus(np.arange(problem.n_arms), np.zeros(problem.n_arms)), 0, 0)
