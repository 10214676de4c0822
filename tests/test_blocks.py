"""The contract of policies whose pulls come in blocks: what is sealed, what informs, and when rules are read."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.noise import Binary, Bounded
from spectralbai.policy import LUCB, OracleSampling, Policy, SpectralRace, State, TrackAndStop, Uniform
from spectralbai.policy.reader import Verdicts
from spectralbai.stopping import RULES, Betting
from tests.states import accounts, written

JOINED = Graph.from_edges(3, [(1, 2, 1.0)])
PAPER = Problem(JOINED, R=0.01)
THREE_COMPONENTS = Problem(
    Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]), R=0.3, sigma=[1, 1, 2, 1, 0.5, 1]
)
PATH = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]), R=2.0, tolerance=0.3)
BOUNDED = Problem.bounded(JOINED, R=0.1)
BINARY = Problem.bounded(JOINED, R=0.1, tolerance=0.1, binary=True)
EDGELESS = Problem(Graph.from_edges(3, []), R=1.0, tolerance=0.2)

CASES: dict[str, tuple[Policy, list[float]]] = {
    "race": (SpectralRace(PAPER, 0.1), [0.9, 0.5, 0.6]),
    "race, three components": (SpectralRace(THREE_COMPONENTS, 0.1), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
    "race, tolerance": (SpectralRace(PATH, 0.1), [0.0, 0.5, 1.0, 1.0]),
    "race, bounded": (SpectralRace(BOUNDED, 0.1), [0.9, 0.2, 0.4]),
    "race, binary, tolerance": (SpectralRace(BINARY, 0.1), [0.9, 0.2, 0.4]),
    "race, no graph, tolerance": (SpectralRace(EDGELESS, 0.1), [1.0, 0.0, 0.2]),
    "tracking": (
        SpectralTaS(PAPER, 0.1, watching=(("betting", 0.01), ("paper", 0.1), ("gk16", 0.1))),
        [0.9, 0.5, 0.6],
    ),
    "tracking, tolerance": (SpectralTaS(PATH, 0.1), [0.0, 0.5, 1.0, 1.0]),
    "uniform, binary": (Uniform(replace(BINARY, tolerance=0.0), 0.1), [0.9, 0.2, 0.4]),
    "track-and-stop": (TrackAndStop(PAPER, 0.1), [0.9, 0.5, 0.6]),
    "oracle": (OracleSampling(PAPER, 0.1, mu=np.array([0.9, 0.5, 0.6])), [0.9, 0.5, 0.6]),
}
EVERY_CASE = pytest.mark.parametrize("case", CASES)


def draw(case: str, arms: Indices, rng: np.random.Generator) -> Vector:
    """Returns outcomes of arms that are closer to each other than in the case, so that nothing is decided soon."""
    policy, mu = CASES[case]
    return policy.problem.noise.draws(np.mean(mu) + 0.1 * (np.array(mu) - np.mean(mu)))(rng, arms)


def stream(case: str, n: int, seed: int = 0) -> tuple[Indices, Vector]:
    """Returns n pulls that nobody asked for in this order, and their outcomes: most fill slots, some have none."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(CASES[case][0].problem.n_arms, size=n)
    return arms, draw(case, arms, rng)


def follow(case: str, n: int, seed: int = 0, ahead: int = 0) -> State:
    """Returns the state after at least n samples of a run, with so many blocks opened ahead at all times."""
    policy, rng = CASES[case][0], np.random.default_rng(seed)
    state = policy.init()
    while state.samples < n:
        assert state.blocks, "nothing should be settled yet"
        for _ in range(ahead + 1 - len(state.blocks)):
            state = policy.open(state)
        arms = state.blocks[0].arms[state.blocks[0].free]
        state = policy.tell(state, arms, draw(case, arms, rng))
    return state


def bets(state: State) -> str:
    return json.dumps(accounts(state).as_dict())


def test_every_policy_that_can_bet_on_blocks_is_tested_by_the_contract() -> None:
    assert all(policy.in_blocks for policy, _ in CASES.values())
    assert {type(policy) for policy, _ in CASES.values()} == {
        SpectralRace,
        SpectralTaS,
        Uniform,
        TrackAndStop,
        OracleSampling,
    }


@EVERY_CASE
def test_batches_of_any_size_give_the_same_state_bit_for_bit(case: str) -> None:
    policy, _ = CASES[case]
    for ahead in (0, 2):
        start = policy.init()
        for _ in range(ahead):
            start = policy.open(start)
        arms, rewards = stream(case, 120)
        whole = policy.tell(start, arms, rewards)
        assert accounts(whole).arms.bets.max() > -math.inf, "some block should have closed with bets on it"
        for cuts in (range(1, 120), [0, 1, 3, 3, 60, 91, 119]):
            state = start
            for low, high in zip([0, *cuts], [*cuts, 120], strict=True):
                state = policy.tell(state, arms[low:high], rewards[low:high])
            assert written(state) == written(whole)


@EVERY_CASE
def test_results_of_a_block_may_come_in_any_order(case: str) -> None:
    """Between closings the order of the arms does not matter at all: a result goes to a slot, not to a time."""
    policy, _ = CASES[case]
    rng = np.random.default_rng(1)
    state = follow(case, 40)
    arms = policy.ask(state, 1000)
    outcomes = draw(case, arms, rng)
    by_arm = max((np.argsort(order * arms, kind="stable") for order in (-1, 1)), key=lambda by: (np.diff(by) < 0).sum())
    assert (np.diff(by_arm) < 0).any(), "the order should be another one"
    assert written(policy.tell(state, arms, outcomes)) == written(policy.tell(state, arms[by_arm], outcomes[by_arm]))


@EVERY_CASE
def test_a_state_stored_as_json_goes_on_identically(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = stream(case, 90, seed=1)
    for cut in (0, 1, 7, 60):
        state = policy.open(policy.tell(policy.init(), arms[:cut], rewards[:cut]))
        loaded = State.from_dict(json.loads(written(state)))
        assert written(loaded) == written(state)
        np.testing.assert_array_equal(policy.ask(loaded, 20), policy.ask(state, 20))
        assert policy.verdict(loaded) == policy.verdict(state)
        assert written(policy.tell(loaded, arms[cut:], rewards[cut:])) == written(
            policy.tell(state, arms[cut:], rewards[cut:])
        )


@EVERY_CASE
def test_no_result_is_lost_or_counted_twice(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = stream(case, 101, seed=2)
    state = policy.tell(policy.init(), arms, rewards)
    n_arms = policy.problem.n_arms
    np.testing.assert_array_equal(state.counts, np.bincount(arms, minlength=n_arms))
    np.testing.assert_array_equal(state.received.counts, state.counts)
    np.testing.assert_allclose(
        state.received.sums + state.counts * state.origin, np.bincount(arms, rewards, n_arms), rtol=1e-12
    )
    assert state.samples == policy.verdict(state).samples == 101


@EVERY_CASE
def test_asking_only_reads_and_hands_out_each_free_slot_once(case: str) -> None:
    policy, _ = CASES[case]
    state = policy.open(follow(case, 30))
    arms = policy.ask(state, 2)
    state = policy.tell(state, arms, draw(case, arms, np.random.default_rng(0)))
    before = written(state)
    free = np.concatenate([block.arms[block.free] for block in state.blocks])
    assert policy.horizon(state) == free.size
    np.testing.assert_array_equal(policy.ask(state, 1000), free)
    pending = np.zeros(policy.problem.n_arms)
    handed: list[int] = []
    while True:
        n = len(handed) % 3 + 1
        got = policy.ask(state, n, pending=pending)
        assert got.size <= n
        if not got.size:
            break
        handed += got.tolist()
        pending += np.bincount(got, minlength=pending.size)
    assert handed == free.tolist()
    assert policy.ask(state, 0).size == 0
    assert policy.ask(state, 5, pending=pending + 3).size == 0, "pulls without a slot leave no slot either"
    assert written(state) == before


@EVERY_CASE
def test_a_result_without_a_slot_only_informs(case: str) -> None:
    policy, _ = CASES[case]
    state, rng = follow(case, 30), np.random.default_rng(3)
    block = state.blocks[-1]
    arms = block.arms[block.free]
    full = policy.tell(state, arms[:-1], draw(case, arms[:-1], rng))
    other = int(np.flatnonzero(np.bincount(full.blocks[0].arms[full.blocks[0].free], minlength=3)[:3] == 0)[0])
    informed = policy.tell(full, np.full(25, other), np.full(25, full.origin))
    assert written(replace(informed, informing=full.informing)) == written(full), "nothing else has changed"
    assert informed.informing.counts[other] == 25
    last = draw(case, arms[-1:], rng)
    closed, plain = policy.tell(informed, arms[-1:], last), policy.tell(full, arms[-1:], last)
    assert bets(closed) == bets(plain), "no account has seen them"
    assert closed.data.counts[other] == plain.data.counts[other] + 25, "seen at the next opening"
    assert closed.informing.samples == 0
    assert closed.blocks[0].data.counts[other] == closed.data.counts[other]


@EVERY_CASE
def test_sealed_results_change_the_pulls_of_a_block_opened_ahead_but_not_its_bets(case: str) -> None:
    policy, _ = CASES[case]
    low, high = policy.problem.outcome_range or (-20.0, 20.0)
    state = follow(case, 40)
    sealed, pulls = state.blocks[0].arms[:-1], policy.open(state).blocks[1].arms
    planned, opened, payoffs = [], [], []
    for value in (low, high):
        results = np.where(sealed == sealed[0], value, low + high - value)  # not a level that all arms share
        waiting = policy.tell(state, sealed, results)
        ahead = policy.open(waiting)
        assert len(ahead.blocks) == 2 and written(replace(ahead, blocks=ahead.blocks[:1])) == written(
            replace(waiting, opened=ahead.opened)
        ), "nothing but the block is new"
        planned.append(ahead.blocks[1].arms.tolist())
        block = replace(ahead.blocks[1], arms=pulls, outcomes=np.full(pulls.size, np.nan))
        opened.append(json.dumps(block.as_dict()))
        outcomes = draw(case, pulls, np.random.default_rng(4)) - state.origin
        evidence = policy.reader.evidence(replace(ahead, data=ahead.data.plus(sealed, results - state.origin)))
        told = replace(block, outcomes=outcomes)
        payoffs.append(Betting().observe(Betting().start(policy.problem), told, evidence).as_dict())
    if case == "race":  # elsewhere these results may not move the plan
        assert planned[0] != planned[1]
    assert opened[0] == opened[1]
    assert payoffs[0] == payoffs[1]


@EVERY_CASE
def test_blocks_opened_ahead_close_in_order_and_bets_on_them_know_those_before(case: str) -> None:
    policy, _ = CASES[case]
    state, rng = follow(case, 30), np.random.default_rng(5)
    state = policy.open(policy.open(state))
    first, second, third = state.blocks
    for block in (second, third):
        np.testing.assert_array_equal(block.data.counts, first.data.counts)
    # The second block is full, the first is not: nothing closes. Results go to the oldest slots of their arm, so the
    # first block is filled but for one arm, and that arm's slots in the second are filled by hand.
    arms = np.concatenate([first.arms, second.arms])
    last = int(first.arms[-1])
    rest = arms[arms != last]
    waiting = policy.tell(state, rest, draw(case, rest, rng))
    assert len(waiting.blocks) == 3 and waiting.data.samples == state.data.samples
    assert bets(waiting) == bets(state) and waiting.verdicts == state.verdicts
    mine = np.full((arms == last).sum(), last)
    done, readings = policy.advance(waiting, mine, draw(case, mine, rng))
    assert len(done.blocks) == 1 and len(readings) == 2
    np.testing.assert_array_equal(done.blocks[0].arms, third.arms)
    np.testing.assert_array_equal(done.blocks[0].data.counts, first.data.counts + first.counts + second.counts)


@EVERY_CASE
def test_decisions_fall_at_closings_only_and_are_final(case: str) -> None:
    policy, mu = CASES[case]
    alone = replace(policy, watching=())
    rng, state = np.random.default_rng(4), alone.init()
    low, high = alone.problem.outcome_range or (-math.inf, math.inf)
    while not alone.verdict(state).decided and state.samples < 5000:
        state = alone.open(state) if len(state.blocks) < 3 else state
        arms = alone.ask(state, 1)
        before, seen = state.verdicts, state.data.samples
        outcomes = np.clip(np.array(mu)[arms] + 0.3 * rng.standard_normal(1), low, high)
        outcomes = np.round(outcomes) if case.count("binary") else outcomes
        state, readings = alone.advance(state, arms, outcomes)
        assert bool(readings) == (state.data.samples > seen), "rules are read when blocks close"
        assert readings or state.verdicts == before
    verdict = alone.verdict(state)
    assert verdict.decided and verdict.stopped_at == state.data.samples
    assert verdict.arm == int(np.argmax(mu)) or alone.problem.tolerance > 0
    assert alone.ask(state, 5).size == 0
    assert alone.open(state) is state
    # Blocks opened ahead take their results, and so do others: nothing changes any more.
    assert state.blocks
    arms = np.concatenate([*(block.arms[block.free] for block in state.blocks), np.arange(3)])
    later = alone.tell(state, arms, np.full(arms.size, max(low, -5.0)))
    after = alone.verdict(later)
    assert (after.decided, after.arm, after.stopped_at) == (True, verdict.arm, verdict.stopped_at)
    assert after.samples == state.samples + arms.size
    assert not later.blocks and alone.ask(later, 5).size == 0 and alone.horizon(later) == 0


@EVERY_CASE
def test_what_rules_said_at_each_closing_comes_with_the_state(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = stream(case, 80, seed=6)
    whole, readings = policy.advance(policy.init(), arms, rewards)
    state, said = policy.init(), []
    for arm, reward in zip(arms, rewards, strict=True):
        state, some = policy.advance(state, [arm], [reward])
        assert len(some) <= 1
        said += [tuple((seen.decided, seen.arm, seen.statistic) for seen in each) for each in some]
    assert said == [tuple((seen.decided, seen.arm, seen.statistic) for seen in each) for each in readings]
    assert len(said) >= 5
    assert all(len(each) == len(policy.rules) for each in readings)
    assert written(state) == written(whole)
    assert policy.advance(state, [], []) == (state, ())


@EVERY_CASE
def test_a_common_shift_of_all_outcomes_changes_nothing(case: str) -> None:
    """But rounding; outcomes are multiples of 1/64 here, so that there is none."""
    policy, _ = CASES[case]
    problem = policy.problem
    arms, rewards = stream(case, 80, seed=7)
    rewards = np.round(rewards * 64) / 64
    shift = 1024.0
    if problem.outcome_range is None:
        shifted = policy
    else:
        assert isinstance(problem.noise, Bounded | Binary)
        moved = replace(problem.noise, low=shift, high=shift + 1.0)
        shifted = replace(policy, problem=replace(problem, noise=moved))
    here = policy.tell(policy.init(), arms, rewards)
    there = shifted.tell(shifted.init(), arms, rewards + shift)
    assert there.origin == here.origin + shift
    assert bets(there) == bets(here)
    np.testing.assert_array_equal(there.blocks[0].arms, here.blocks[0].arms)
    assert there.verdicts == here.verdicts


@pytest.mark.parametrize("case", ["race", "race, three components", "race, tolerance", "tracking"])
def test_other_units_change_nothing(case: str) -> None:
    """Outcomes, sigma and tolerance times 4, R times 16."""
    policy, _ = CASES[case]
    problem = policy.problem
    scaled = Problem(problem.graph, 16 * problem.R, 4 * problem.sigma, 4 * problem.tolerance)
    other = replace(policy, problem=scaled)
    arms, rewards = stream(case, 80, seed=8)
    here, there = policy.tell(policy.init(), arms, rewards), other.tell(other.init(), arms, 4 * rewards)
    np.testing.assert_allclose(accounts(there).arms.wealth, accounts(here).arms.wealth, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(accounts(there).R.wealth, accounts(here).R.wealth, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(there.blocks[0].arms, here.blocks[0].arms)
    assert [w.arm for w in there.verdicts] == [w.arm for w in here.verdicts]


@pytest.mark.parametrize("problem", [PAPER, THREE_COMPONENTS, PATH, EDGELESS], ids=["paper", "three", "path", "none"])
def test_permuting_arms_permutes_the_accounts(problem: Problem) -> None:
    """Given the same blocks; plans break ties by the number of the arm."""
    n_arms = problem.n_arms
    rng = np.random.default_rng(9)
    name = rng.permutation(n_arms)  # arm a becomes arm name[a]
    pairs = zip(name[problem.graph.pairs].tolist(), problem.graph.weights.tolist(), strict=True)
    renamed = Problem(
        Graph.from_edges(n_arms, [(a, b, w) for (a, b), w in pairs]),
        problem.R,
        problem.sigma[np.argsort(name)],
        problem.tolerance,
    )
    rule, data = Betting(), Data.none(n_arms).plus(np.arange(n_arms), rng.standard_normal(n_arms))
    here, there = rule.start(problem), rule.start(renamed)
    for k in range(12):
        arms = rng.integers(n_arms, size=8)
        block = Block(arms, rng.standard_normal(8), data, k % n_arms)
        moved = Data(*(vector[np.argsort(name)] for vector in (data.counts, data.sums, data.squares)))
        twin = Block(name[arms], block.outcomes, moved, int(name[k % n_arms]))
        shares = rng.dirichlet(np.ones(n_arms))  # the draws behind the chances go by coordinate, so they differ
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spectralbai.stopping.betting.feed", lambda chances, shares=shares: 0.8 * shares)
            here = rule.observe(here, block, _evidence(problem, data))
            patch.setattr(
                "spectralbai.stopping.betting.feed", lambda chances, shares=shares: 0.8 * shares[np.argsort(name)]
            )
            there = rule.observe(there, twin, _evidence(renamed, moved))
        data = data.plus(arms, block.outcomes)
    np.testing.assert_allclose(there.arms.wealth[name], here.arms.wealth, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(there.arms.peak[name], here.arms.peak, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(there.R.wealth, here.R.wealth, rtol=1e-6, atol=1e-7)
    if here.leaders is not None and there.leaders is not None:
        for b in range(n_arms):
            np.testing.assert_allclose(
                there.leaders.wealth(int(name[b]))[0][name], here.leaders.wealth(b)[0], rtol=1e-6, atol=1e-7
            )


def _evidence(problem: Problem, data: Data) -> Evidence:
    return Evidence(problem, data, 0, 0.0)


def test_several_risks_and_rules_read_off_one_run_agree_with_runs_of_their_own() -> None:
    """Blocks of SpectralTaS do not depend on delta; a rule that does not bet is read at the same closings."""
    for mu, problem in (([1.9, 0.5, 0.6], PAPER), ([1.5, 0.4, 1.4], PAPER), ([0.0, 0.5, 1.0, 1.4], PATH)):
        risks = (("betting", 0.2), ("betting", 0.001), (Betting(), 0.05))
        together = simulate.watch(SpectralTaS(problem, 0.1, watching=risks), mu, 0, max_samples=600)
        for delta, run in zip((0.1, 0.2, 0.001, 0.05), together, strict=True):
            alone = simulate.run(SpectralTaS(problem, delta), mu, 0, max_samples=600)
            assert (run.rule, run.delta, run.proved) == ("betting", delta, True)
            assert (run.status, run.tau, run.arm) == (alone.status, alone.tau, alone.arm)
    mixed = SpectralTaS(PAPER, 0.1, watching=(("gk16", 0.1),))
    state = mixed.init()
    readings: list[Verdicts] = []
    rng, mu_ = np.random.default_rng(0), np.array([1.9, 0.5, 0.6])
    while (arms := mixed.ask(state, 1000)).size:
        state, said = mixed.advance(state, arms, mu_[arms] + rng.standard_normal(arms.size))
        readings += said
    evidence = mixed.reader.evidence_now(state)
    assert mixed.verdict(state, 1).decided and mixed.verdict(state, 0).decided
    assert RULES["gk16"].read(state.stopping["gk16"], evidence).decided(0.1)
    assert [each[1].decided for each in readings].index(True) == len(readings) - 1 or mixed.verdict(state, 0).stopped_at


def test_a_rule_given_as_an_object_is_the_rule_of_that_name() -> None:
    for make in (SpectralRace, SpectralTaS):
        named, given = make(PAPER, 0.1), make(PAPER, 0.1, Betting())
        assert given.rules == named.rules == (("betting", 0.1),)
        one, other = (simulate.run(policy, [1.9, 0.5, 0.6], 1) for policy in (named, given))
        assert (one.status, one.tau, one.arm) == (other.status, other.tau, other.arm)


# Refusals.


def test_a_race_is_for_one_risk_and_a_rule_that_bets() -> None:
    with pytest.raises(InvalidInput, match=r"`watching` must be empty for a race, whose pulls depend on delta"):
        SpectralRace(PAPER, watching=(("betting", 0.1),))
    with pytest.raises(
        InvalidInput, match="`stopping` must be betting for a race, whose pulls follow from it, got gk16"
    ):
        SpectralRace(PAPER, stopping="gk16")


def test_a_policy_that_looks_at_every_result_refuses_to_bet_on_blocks() -> None:
    with pytest.raises(InvalidInput, match="betting bets on blocks of pulls, and LUCB looks at every"):
        LUCB(PAPER, stopping="betting")
    with pytest.raises(InvalidInput, match="looks at every result before the next pull"):
        LUCB(PAPER, watching=(("betting", 0.1),))
