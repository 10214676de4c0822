"""Arms that join a race: their accounts on a tight null, and what becomes of blocks, decisions and R.

On the null every bet is fair, and the arm that joined last is the best: the account against it must reach 1/delta with
probability delta at most while it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import spectralbai as sb
from spectralbai.arrays import Vector
from spectralbai.policy.state import State
from spectralbai.stopping.accounts import HALF, Account, Accounts, Leaders
from verification.coverage import chance

DELTA, RUNS, SETS, BLOCKS, SPREAD, GAIN = 0.2, 2000, 3, 400, 0.15, 0.02
GOAL = -math.log(DELTA)


def fresh(n_arms: int, leaders: bool = False) -> Accounts:
    opened = Leaders.opened(n_arms) if leaders else None
    return Accounts(Account.opened(n_arms), Account.opened(1), opened, np.zeros(n_arms, dtype=bool))


def settled(accounts: Accounts, pay: Vector) -> Accounts:
    """Returns the accounts after bets of arm 0, which leads."""
    leaders = accounts.leaders
    if leaders is not None:
        shares = np.where(np.arange(pay.size) == 0, 0.8, 0.0)
        leaders = leaders.joined(np.array([0])).settled(shares, pay, pay[None, :])
    return replace(accounts, arms=accounts.arms.settled(pay, idle=0), leaders=leaders)


def wrongly_eliminated(grow: Callable[[Accounts], Accounts], tolerance: bool) -> list[int]:
    """Returns in how many runs the best arm is eliminated, or beaten by the leader, while the first set is there, the
    second, and so on.

    The accounts of all runs stand side by side: arm 0 leads throughout and is wrong; each run has an arm that is worse
    still, and the best one, which joined last. Bets against the best are fair, those against others gain.
    """
    rng = np.random.default_rng(0)
    accounts = fresh(1 + 2 * RUNS, tolerance)
    failures = []
    for _ in range(SETS):
        n_arms = accounts.arms.cash.size
        for _ in range(BLOCKS):
            pay = rng.normal(GAIN, SPREAD, n_arms)
            pay[-RUNS:] -= GAIN + SPREAD**2 / 2
            accounts = settled(accounts, pay)
        peak = accounts.arms.peak if accounts.leaders is None else accounts.leaders.wealth(0)[1]
        failures.append(int((peak[-RUNS:] >= GOAL).sum()))
        accounts = grow(accounts)
    return failures


def grown(accounts: Accounts) -> Accounts:
    return accounts.grown(accounts.arms.cash.size + RUNS, True)


@pytest.mark.parametrize("tolerance", [False, True])
def test_the_best_arm_of_each_set_is_eliminated_with_probability_delta_at_most(tolerance: bool) -> None:
    for failures in wrongly_eliminated(grown, tolerance):
        assert chance(failures, RUNS, DELTA) > 0.01
        assert failures > 0.7 * DELTA * RUNS, "the null should be tight: a loose one shows no mistake"


@pytest.mark.parametrize("tolerance", [False, True])
def test_arms_that_inherited_the_wealth_against_another_would_be_eliminated_too_often(tolerance: bool) -> None:
    def inherited(accounts: Accounts) -> Accounts:
        def copied(memory: Account | Leaders, *names: str) -> dict[str, Any]:
            """Returns fields in which each new arm inherits what the account against the worse arm of its run has."""
            values = {name: getattr(memory, name) for name in names}
            return {
                name: np.concatenate([each[..., :-RUNS], each[..., 1 : RUNS + 1]], -1) for name, each in values.items()
            }

        new = grown(accounts)
        arms = replace(new.arms, **copied(new.arms, "cash", "bets"))
        leaders = new.leaders
        if leaders is not None:
            leaders = replace(leaders, **copied(leaders, "cash", "common", "own"))
        return replace(new, arms=arms, leaders=leaders)

    first, *others = wrongly_eliminated(inherited, tolerance)
    assert chance(first, RUNS, DELTA) > 0.01, "nobody has joined yet"
    assert all(chance(each, RUNS, DELTA) < 1e-6 for each in others)


def test_joins_that_depend_on_results_cost_delta_for_each_arm_that_was_the_best() -> None:
    """A better arm joins unless the best one is out, wrongly; then a worse one does."""
    rng = np.random.default_rng(1)
    accounts = fresh(1 + RUNS)
    for _ in range(BLOCKS):
        accounts = settled(accounts, rng.normal(-(SPREAD**2) / 2, SPREAD, 1 + RUNS))
    kept = accounts.arms.peak[1:] >= GOAL
    accounts = grown(accounts)
    for _ in range(BLOCKS):
        accounts = settled(accounts, rng.normal(-(SPREAD**2) / 2, SPREAD, 1 + 2 * RUNS))
    out = accounts.arms.peak >= GOAL
    failures = int(np.where(kept, out[1 : RUNS + 1], out[RUNS + 1 :]).sum())
    assert chance(failures, RUNS, 2 * DELTA) > 0.01
    assert chance(failures, RUNS, DELTA) < 1e-6, "delta is not enough"


def test_new_accounts_start_at_what_withdrawals_have_left_of_1_and_the_others_go_on() -> None:
    leaders = Leaders.opened(3).joined(np.array([0, 2]))
    leaders = leaders.settled(np.array([0.4, 0.0, 0.4]), np.full(3, 0.5), np.full((2, 3), 2.0))
    before = Accounts(
        Account(np.zeros(3), np.full(3, 1.0), np.full(3, 4.0), np.full(3, -np.inf)),
        Account.opened(1),
        leaders,
        np.ones(3) > 0,
    )
    after = before.grown(5, True)
    np.testing.assert_array_equal(after.arms.wealth[:3], before.arms.wealth)
    np.testing.assert_array_equal(after.arms.peak, [4, 4, 4, 0, 0])
    assert (after.arms.wealth[3:] == 0).all() and after.led.tolist() == [True] * 3 + [False] * 2
    assert after.leaders is not None
    for leader in (0, 2, 4):
        now, peak = after.leaders.wealth(leader)
        np.testing.assert_array_equal(now[:3], leaders.wealth(leader)[0])
        assert (now[3:] == 0).all() and (peak[3:] == 0).all()
    later = before.without(1).grown(5, True)
    assert later.arms.spared[3:].tolist() == [-np.inf] * 2
    assert (later.arms.wealth[3:] == -HALF).all() and (later.arms.peak[3:] == -HALF).all()
    assert later.leaders is not None and (later.leaders.peak[:, 3:] == -HALF).all()


RACES = 50
NULLS = {
    "alone": (sb.Problem(sb.Graph.from_edges(3, []), 1.0), sb.Problem(sb.Graph.from_edges(4, []), 1.0)),
    "categories": (
        sb.Problem(sb.Graph.from_categories(["x", "y", "y"]), [0.0, 0.5]),
        sb.Problem(sb.Graph.from_categories(["x", "y", "y", "y"]), [0.0, 5.0]),
    ),
}


def races_lost(kind: str) -> tuple[int, int]:
    """Returns in how many races arm 0 is eliminated before arm 3 joins, and arm 3, which ties with it, afterwards."""
    rng = np.random.default_rng(3)
    mu = np.array([0.0, -1.5, -1.5, 0.0])
    old, new = NULLS[kind]
    lost = [0, 0]
    for _ in range(RACES):
        policy = sb.SpectralRace(old, DELTA)
        state = policy.init()
        for k, best in enumerate((0, 3)):
            if k:
                policy = policy.joined(new)
                state = policy.join(state)
            for _ in range(12):
                arms = policy.ask(state, policy.horizon(state))
                if not arms.size:
                    break  # decided
                state = policy.tell(state, arms, mu[arms] + rng.standard_normal(arms.size))
            lost[k] += best not in (policy.verdict(state).candidates or ())
    return lost[0], lost[1]


@pytest.mark.parametrize("kind", NULLS)
def test_races_lose_the_best_arm_of_each_set_with_probability_delta_at_most(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lost in races_lost(kind):
        assert chance(lost, RACES, DELTA) > 0.01

    def inherited(accounts: Accounts, n_arms: int, same_R: bool) -> Accounts:
        """The new arm inherits what the account against arm 2, a worse arm, has."""
        arms = accounts.arms
        longer = [np.append(each, each[2]) for each in (arms.cash, arms.bets, arms.peak, arms.spared)]
        return Accounts(Account(*longer), accounts.R, None, np.zeros(n_arms, dtype=bool))

    monkeypatch.setattr(Accounts, "grown", inherited)
    assert chance(races_lost(kind)[1], RACES, DELTA) < 1e-6


MU = np.array([0.5, 0.1, 0.4, -0.4, -0.3, 0.9, 0.45])
OLD: dict[str, tuple[sb.Graph, ArrayLike]] = {
    "alone": (sb.Graph.from_edges(5, [(0, 2), (3, 4)]), 0.3),
    "edges": (sb.Graph.from_edges(5, [(0, 2), (3, 4)]), 0.3),
    "categories": (sb.Graph.from_categories(list("aabbc")), [0.3, 0.8, 0.0]),
}
NEW: dict[str, tuple[sb.Graph, ArrayLike]] = {
    "alone": (sb.Graph.from_edges(7, [(0, 2), (3, 4)]), 0.3),
    "edges": (sb.Graph.from_edges(7, [(0, 2), (3, 4), (0, 6), (5, 6)]), 0.8),
    "categories": (sb.Graph.from_categories(list("aabbcda")), [1.0, 0.8, 0.0, 0.0]),
}


def pull(policy: sb.policy.Policy, state: State, rng: np.random.Generator, n: int) -> State:
    arms, blocks = policy.ask_slots(state, n)
    return policy.tell(state, arms, MU[arms] + 0.5 * rng.standard_normal(arms.size), blocks)


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
@pytest.mark.parametrize("kind", OLD)
@pytest.mark.parametrize("time", [0, 6, None])
def test_a_race_goes_on_with_arms_that_join_and_finds_the_best_of_all(
    kind: str, tolerance: float, time: int | None
) -> None:
    rng = np.random.default_rng(1)
    policy = sb.SpectralRace(sb.Problem(*OLD[kind], 0.5, tolerance), 0.05)
    state = policy.init()
    for _ in range(10_000 if time is None else time):
        if policy.verdict(state).stopped_at is not None:
            break
        state = pull(policy, state, rng, 3)
    assert policy.verdict(state).decided == (time is None)
    before = policy.open(state)
    eliminated = set(range(5)) - set(policy.verdict(before).candidates or range(5))
    policy = policy.joined(sb.Problem(*NEW[kind], 0.5, tolerance))
    state = policy.join(before)
    assert [block.n_arms for block in state.blocks[: len(before.blocks)]] == [5] * len(before.blocks)
    assert State.from_dict(state.as_dict()).as_dict() == state.as_dict()
    assert not policy.verdict(state).decided and policy.ask(state, 100).size
    while policy.verdict(state).stopped_at is None:
        state = pull(policy, state, rng, 3)
        assert not eliminated & set(policy.verdict(state).candidates or ()), "what is out stays out"
    assert policy.verdict(state).decided and MU[policy.verdict(state).arm] >= 0.9 - tolerance


@pytest.mark.parametrize("kind", ["alone", "edges"])
def test_nothing_is_bet_on_an_open_block_against_arms_that_joined_since(kind: str) -> None:
    rng = np.random.default_rng(2)
    plain = sb.SpectralRace(sb.Problem(*OLD[kind], 0.5), 1e-6)
    state = plain.init()
    for _ in range(8):
        state = pull(plain, state, rng, 100)
    state = plain.open(state)
    joined = plain.joined(sb.Problem(*NEW[kind], 0.5))
    other = joined.join(state)
    first = state.blocks[0]
    rewards = MU[first.arms] + 0.5 * rng.standard_normal(first.arms.size)
    numbers = np.full(first.arms.size, first.number)
    alone = plain.tell(state, first.arms, rewards, numbers).stopping["betting"]
    beside = joined.tell(other, first.arms, rewards, numbers).stopping["betting"]
    assert isinstance(alone, Accounts) and isinstance(beside, Accounts)
    np.testing.assert_array_equal(beside.arms.wealth[:5], alone.arms.wealth)
    assert (beside.arms.cash[5:] == 0).all() and (beside.arms.bets[5:] == -np.inf).all()
    if kind == "alone":
        np.testing.assert_array_equal(beside.R.cash, alone.R.cash)
    else:
        assert beside.R.cash == [0.0], "the block tests another R"


def test_the_account_against_R_goes_on_where_the_new_problem_implies_the_old_one() -> None:
    graph, R = OLD["alone"]
    old = sb.Problem(graph, R)
    lone, edges = sb.Problem(*NEW["alone"]), sb.Problem(*NEW["edges"])
    assert lone.implies(old) and not edges.implies(old) and not old.implies(sb.Problem(graph, 0.2))
    assert sb.Problem(NEW["edges"][0], 0.3).implies(old), "further edges only make the means smoother"
    assert not sb.Problem(sb.Graph.from_edges(7, [(0, 2, 2.0), (3, 4)]), 0.3).implies(old)
    assert edges.implies(sb.Problem(graph, math.inf)) and not sb.Problem(NEW["alone"][0], math.inf).implies(old)
    categories = sb.Problem(*OLD["categories"])
    assert sb.Problem(NEW["categories"][0], [0.3, 0.8, 0.0, 0.0]).implies(categories)
    assert not sb.Problem(*NEW["categories"]).implies(categories), "a larger R"
    assert not sb.Problem(NEW["categories"][0], [0.2, 0.2, 0.0, 0.0]).implies(sb.Problem(OLD["categories"][0], 0.3))

    memory = Accounts(Account.opened(5), Account(*np.ones((4, 1))), None, np.zeros(5, dtype=bool))
    rule = sb.stopping.RULES["betting"]
    assert rule.join(memory, lone, old).R is memory.R and rule.join(memory, lone, old).R_since == 0
    anew = rule.join(memory, edges, old)
    assert anew.R.wealth.tolist() == [0.0] and anew.R_since == 7


def test_a_join_that_cannot_be_is_refused() -> None:
    graph, R = OLD["alone"]
    policy = sb.SpectralRace(sb.Problem(graph, R, 0.5), 0.05)
    larger = NEW["alone"][0]
    for problem, words in (
        (sb.Problem(graph, R, 0.5), "more than the present 5 arms"),
        (sb.Problem(larger, R, 0.5, 0.1), "`tolerance` must stay 0 when arms join"),
        (
            sb.Problem(larger, R, [0.5, 0.6, 0.5, 0.5, 0.5, 0.5, 0.5]),
            "sigma must stay as it is when arms join, 0.5 at arm 1",
        ),
        (sb.Problem.bounded(larger, R), "the noise must stay as it is"),
    ):
        with pytest.raises(sb.InvalidInput, match=words):
            policy.joined(problem)
    new = policy.joined(sb.Problem(larger, R, 0.5))
    with pytest.raises(sb.InvalidInput, match="must belong to the policy whose method `joined`"):
        new.join(new.init())
    with pytest.raises(sb.InvalidInput, match="must belong to the policy whose method `joined`"):
        policy.join(policy.init())
    other = sb.SpectralTaS(sb.Problem(graph, R, 0.5), 0.05, "gk16")
    with pytest.raises(sb.InvalidInput, match="only in a race"):
        other.joined(sb.Problem(larger, R, 0.5)).join(other.init())
