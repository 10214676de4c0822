"""The contract of a policy: ask, tell, verdict, and states that can be stored."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.checks import Indices, Vector
from spectralbai.policy import (
    GRUB,
    LUCB,
    POLICIES,
    OracleSampling,
    Policy,
    Race,
    SpectralRace,
    State,
    TopTwo,
    TrackAndStop,
    Uniform,
)

PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
THREE_COMPONENTS = Problem(
    Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]), R=0.3, sigma=[1, 1, 2, 1, 0.5, 1]
)
PATH = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]), R=2.0, tolerance=0.3)
EDGELESS = Problem(Graph.from_edges(3, [(0, 1, 1.0)]), R=math.inf)
BOUNDED = Problem.bounded(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.1)
EVERY_RULE = (("paper", 0.1), ("paper-printed", 0.1), ("gk16", 0.1), ("mixture", 0.01))

CASES = {
    "paper": (SpectralTaS(PAPER, 0.1, watching=EVERY_RULE, stopping="mixture"), [0.9, 0.5, 0.6]),
    "three components": (SpectralTaS(THREE_COMPONENTS, 0.1, stopping="mixture"), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
    "path with tolerance": (SpectralTaS(PATH, 0.1, stopping="mixture"), [0.0, 0.5, 1.0, 1.0]),
    "no graph": (SpectralTaS(EDGELESS, 0.1, stopping="mixture"), [1.0, 0.0, 0.2]),
    "bounded": (SpectralTaS(BOUNDED, 0.1, stopping="mixture"), [0.9, 0.2, 0.4]),
    "known range": (SpectralTaS(PAPER, 0.1, mean_range=(0.0, 1.0), stopping="mixture"), [0.9, 0.5, 0.6]),
    # The rest of POLICIES, a line each.
    "oracle": (OracleSampling(PAPER, 0.1, mu=np.array([0.9, 0.5, 0.6]), stopping="mixture"), [0.9, 0.5, 0.6]),
    "uniform": (Uniform(PAPER, 0.1, stopping="mixture"), [0.9, 0.5, 0.6]),
    "track-and-stop": (TrackAndStop(EDGELESS, 0.1, stopping="mixture"), [1.0, 0.0, 0.2]),
    "top-two": (TopTwo(EDGELESS, 0.1), [1.0, 0.0, 0.2]),
    "lucb": (LUCB(EDGELESS, 0.1), [1.0, 0.0, 0.2]),
    "grub": (GRUB(THREE_COMPONENTS, 0.1), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
}
EVERY_CASE = pytest.mark.parametrize("case", CASES)


def test_every_policy_is_put_to_the_contract() -> None:
    # The race bets on blocks, which have tests of their own.
    assert {type(policy) for policy, _ in CASES.values()} == set(POLICIES.values()) - {SpectralRace, Race}


def ask(policy: Policy, state: State, n: int = 1) -> Indices:
    """Asks with a fresh generator, which only randomised policies draw from."""
    return policy.ask(state, n, rng=np.random.default_rng(9))


def outcomes_for(case: str, n: int, seed: int = 0) -> tuple[Indices, Vector]:
    """Returns n pulls and outcomes; arms at random, so that no policy would have asked for them in this order."""
    policy, mu = CASES[case]
    rng = np.random.default_rng(seed)
    arms = rng.integers(policy.problem.n_arms, size=n)
    if policy.problem.outcome_range is not None:
        return arms, (rng.random(n) < np.array(mu)[arms]).astype(float)
    return arms, np.array(mu)[arms] + policy.problem.sigma[arms] * rng.standard_normal(n)


def tell_in_parts(policy: Policy, arms: Indices, rewards: Vector, cuts: list[int]) -> State:
    state = policy.init()
    for low, high in zip([0, *cuts], [*cuts, arms.size], strict=True):
        state = policy.tell(state, arms[low:high], rewards[low:high])
    return state


def follow(policy: Policy, mu: list[float], seed: int, n: int) -> State:
    """Returns the state after n samples, or the end, of a run."""
    rng, state = np.random.default_rng(seed), policy.init()
    while state.samples < n and (arms := ask(policy, state)).size:
        state = policy.tell(
            state, arms, np.array(mu)[arms] + policy.problem.sigma[arms] * rng.standard_normal(arms.size)
        )
    return state


@EVERY_CASE
def test_batches_of_any_size_give_the_same_state_bit_for_bit(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = outcomes_for(case, 160)
    whole = tell_in_parts(policy, arms, rewards, [])
    assert whole.watches[0].threshold < math.inf, "the case should get past the split"
    one_by_one = tell_in_parts(policy, arms, rewards, list(range(1, 160)))
    ragged = tell_in_parts(policy, arms, rewards, [0, 1, 3, 3, 90, 121, 159])
    assert whole.as_dict() == one_by_one.as_dict() == ragged.as_dict()


@EVERY_CASE
def test_a_state_stored_as_json_goes_on_identically(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = outcomes_for(case, 150, seed=1)
    for cut in (0, 1, 120):
        state = policy.tell(policy.init(), arms[:cut], rewards[:cut])
        stored = json.dumps(state.as_dict(), allow_nan=False)
        loaded = State.from_dict(json.loads(stored))
        assert loaded.as_dict() == state.as_dict()
        np.testing.assert_array_equal(ask(policy, loaded, 20), ask(policy, state, 20))
        assert policy.verdict(loaded) == policy.verdict(state)
        assert (
            policy.tell(loaded, arms[cut:], rewards[cut:]).as_dict()
            == policy.tell(state, arms[cut:], rewards[cut:]).as_dict()
        )


@EVERY_CASE
def test_no_observation_is_lost_or_counted_twice(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = outcomes_for(case, 137, seed=2)
    state = tell_in_parts(policy, arms, rewards, [5, 6, 70])
    n_arms = policy.problem.n_arms
    np.testing.assert_array_equal(state.counts, np.bincount(arms, minlength=n_arms))
    sums = state.data.sums + state.counts * state.origin
    np.testing.assert_allclose(sums, np.bincount(arms, rewards, n_arms), rtol=1e-12)
    assert state.samples == policy.verdict(state).samples == 137


@EVERY_CASE
def test_the_order_within_a_batch_changes_no_evidence_beyond_rounding(case: str) -> None:
    """Between two readings; across them the order received is part of the evidence: the split may fall elsewhere."""
    policy, _ = CASES[case]
    arms, rewards = outcomes_for(case, 400, seed=3)
    state = policy.tell(policy.init(), arms[:390], rewards[:390])
    room = state.next_reading - state.samples
    assert room >= 3
    tail = np.arange(390, 390 + room)
    forward = policy.tell(state, arms[tail], rewards[tail])
    backward = policy.tell(state, arms[tail[::-1]], rewards[tail[::-1]])
    np.testing.assert_array_equal(forward.counts, backward.counts)
    np.testing.assert_allclose(forward.data.sums, backward.data.sums, rtol=1e-12, atol=1e-12)
    for w in range(len(policy.rules)):
        one, other = policy.verdict(forward, w), policy.verdict(backward, w)
        assert one.statistic == pytest.approx(other.statistic, rel=1e-6)
        assert one.threshold == pytest.approx(other.threshold, rel=1e-9)


@EVERY_CASE
def test_telling_and_reading_leave_the_old_state_alone(case: str) -> None:
    policy, _ = CASES[case]
    arms, rewards = outcomes_for(case, 60)
    state = policy.tell(policy.init(), arms, rewards)
    before = json.dumps(state.as_dict())
    verdict = policy.verdict(state)
    policy.tell(state, arms, rewards)
    ask(policy, state, 7)
    assert policy.verdict(state) == verdict
    assert json.dumps(state.as_dict()) == before
    for vector in (state.data.counts, state.data.sums, state.data.squares):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 1.0


@EVERY_CASE
def test_a_decision_is_final_asks_for_nothing_and_still_takes_results(case: str) -> None:
    policy, mu = CASES[case]
    alone = replace(policy, watching=())
    rng, state = np.random.default_rng(4), alone.init()
    while not alone.verdict(state).decided and state.samples < 5000:
        arms = ask(alone, state, 5)
        low, high = alone.problem.outcome_range or (-math.inf, math.inf)
        state = alone.tell(state, arms, np.clip(np.array(mu)[arms] + 0.3 * rng.standard_normal(5), low, high))
    verdict = alone.verdict(state)
    assert verdict.decided and verdict.stopped_at is not None and verdict.stopped_at <= state.samples
    assert verdict.statistic > verdict.threshold
    assert ask(alone, state, 5).size == 0
    # Overwhelming evidence for another arm changes nothing.
    other = (verdict.arm + 1) % alone.problem.n_arms
    later = alone.tell(state, np.full(300, other), np.full(300, 1.0 if alone.problem.outcome_range else 50.0))
    after = alone.verdict(later)
    assert (after.decided, after.arm, after.stopped_at) == (True, verdict.arm, verdict.stopped_at)
    assert after.samples == state.samples + 300
    assert ask(alone, later, 5).size == 0


def test_several_risks_read_off_one_run_agree_with_policies_of_their_own() -> None:
    risks = (("mixture", 0.2), ("mixture", 0.01), ("gk16", 0.1), ("paper", 0.1), ("paper-printed", 0.2))
    for mu, problem in (
        ([1.9, 0.5, 0.6], PAPER),
        ([1.5, 0.4, 1.4], PAPER),
        ([0.0, 0.3, 0.6, 0.6, 0.5, 3.5], THREE_COMPONENTS),
    ):
        together = simulate.watch(SpectralTaS(problem, 0.1, watching=risks, stopping="mixture"), mu, 0, max_samples=500)
        for (rule, delta), run in zip((("mixture", 0.1), *risks), together, strict=True):
            alone = simulate.run(SpectralTaS(problem, delta, rule), mu, 0, max_samples=500)
            assert (run.rule, run.delta, run.proved) == (rule, delta, rule == "mixture")
            assert (run.status, run.tau, run.arm) == (alone.status, alone.tau, alone.arm)


@pytest.mark.parametrize("n", [30, 60, 150])
@pytest.mark.parametrize("case", ["paper", "three components", "no graph"])
def test_permuting_arms_permutes_the_answer(case: str, n: int) -> None:
    policy, _ = CASES[case]
    problem = policy.problem
    n_arms = problem.n_arms
    arms, rewards = outcomes_for(case, n, seed=6)
    name = np.random.default_rng(7).permutation(n_arms)  # arm a becomes arm name[a]
    pairs = zip(name[problem.graph.pairs].tolist(), problem.graph.weights.tolist(), strict=True)
    renamed = Problem(
        Graph.from_edges(n_arms, [(a, b, w) for (a, b), w in pairs]), problem.R, problem.sigma[np.argsort(name)]
    )
    other = replace(policy, problem=renamed)
    here, there = policy.tell(policy.init(), arms, rewards), other.tell(other.init(), name[arms], rewards)
    assert there.best == name[here.best]
    for w in range(len(policy.rules)):
        one, two = policy.verdict(here, w), other.verdict(there, w)
        assert two.arm == name[one.arm]
        assert two.statistic == pytest.approx(one.statistic, rel=1e-7, abs=1e-10)
        assert two.threshold == pytest.approx(one.threshold, rel=1e-9)
        assert (two.decided, two.stopped_at, two.consistent) == (one.decided, one.stopped_at, one.consistent)
    np.testing.assert_allclose(there.sampling.omega[name], here.sampling.omega, atol=1e-7)


def test_results_may_come_late_out_of_order_and_in_part() -> None:
    """Three workers hold pulls; some come back late, some never. What was received counts, once."""
    policy, rng = SpectralTaS(THREE_COMPONENTS, 0.1, stopping="mixture"), np.random.default_rng(8)
    mu = np.array([0.0, 0.1, 0.2, 0.6, 0.5, 2.5])
    state, pending = policy.init(), []
    received = np.zeros(6)
    for _ in range(400):
        pending += policy.ask(state, 3, pending=np.bincount(pending, minlength=6) if pending else None).tolist()
        rng.shuffle(pending)
        back, pending = pending[:2], pending[2:60]
        state = policy.tell(state, back, mu[back] + THREE_COMPONENTS.sigma[back] * rng.standard_normal(len(back)))
        received += np.bincount(back, minlength=6)
        if policy.verdict(state).decided:
            break
    np.testing.assert_array_equal(state.counts, received)
    assert policy.verdict(state).decided
    assert policy.verdict(state).arm == 5


def test_nothing_is_read_before_every_component_has_a_result() -> None:
    policy = SpectralTaS(THREE_COMPONENTS, 0.1, stopping="mixture")
    state = policy.tell(policy.init(), [0] * 50, [1.0] * 50)
    verdict = policy.verdict(state)
    assert not verdict.decided and verdict.threshold == math.inf
    assert set(policy.ask(state, 2)) == {3, 5}
    state = policy.tell(state, [3, 5], [0.0, 0.0])
    assert state.sampling.base == 52, "the reading comes with the result that was missing"


@pytest.mark.parametrize(
    "rewards", [[0.0, 0.0, 0.0], [1.0, 1.0 - 1e-16, 1.0], [1e-150, 0.0, 1e-160], [0.3, 0.1 + 0.2, 0.3], [1.0, 1.0, 0.0]]
)
@pytest.mark.parametrize("edges", [[], [(1, 2, 1.0)], [(0, 1, 1.0), (1, 2, 1.0)]])
def test_ties_exact_or_up_to_rounding_are_pulled_and_never_decided(
    rewards: list[float], edges: list[tuple[int, int, float]]
) -> None:
    policy = SpectralTaS(Problem(Graph.from_edges(3, edges), R=2.0), 0.1, stopping="mixture")
    state = policy.init()
    for _ in range(60):
        arms = policy.ask(state, 3)
        state = policy.tell(state, arms, np.array(rewards)[arms])
        assert np.isfinite(state.sampling.omega).all() and state.sampling.omega.sum() == pytest.approx(1)
    assert not policy.verdict(state).decided
    assert (state.counts[np.array(rewards) >= max(rewards) - 1e-9] >= 40).all()


@pytest.mark.parametrize("R", [1e-12, 1e-16, 1e-30])
def test_almost_equal_arms_of_a_component_are_no_trouble(R: float) -> None:
    run = simulate.run(SpectralTaS(Problem(PAPER.graph, R), 0.1, stopping="mixture"), [1.5, 0.5, 0.5], seed=0)
    assert (run.status, run.arm) == ("decided", 0)


def test_with_a_tolerance_no_arm_can_exceed_the_answer_is_immediate() -> None:
    problem = Problem(Graph.from_edges(3, [(0, 1, 1.0), (1, 2, 1.0)]), R=0.01, tolerance=0.5)
    run = simulate.run(SpectralTaS(problem, 0.1, stopping="mixture"), [0.0, 0.05, 0.1], seed=0)
    assert (run.status, run.tau, run.correct) == ("decided", 1, True)


# Bad input.


@pytest.mark.parametrize(
    ("arms", "rewards", "message"),
    [
        ([3], [0.5], "`arms` must be an arm between 0 and 2, got 3"),
        ([-1], [0.5], "`arms` must be an arm between 0 and 2, got -1"),
        ([1.0], [0.5], "`arms` must be an arm between 0 and 2, got 1.0"),
        (["a"], [0.5], "`arms` must be an arm between 0 and 2, got 'a'"),
        ([0, 1], [0.5], "`arms` and `rewards` must be two lists of one length, got shapes (2,) and (1,)"),
        ([[0]], [[0.5]], "`arms` and `rewards` must be two lists of one length"),
        ([0], [[1.0, 2.0], [3.0]], "`arms` and `rewards` must be two lists of one length"),
        ([0, 1], [0.5, math.nan], "`rewards` must be finite, got nan at position 1; leave missing results out"),
        ([0], [-math.inf], "`rewards` must be finite, got -inf at position 0"),
        ([0], ["0.5"], "`rewards` must be numbers, got ['0.5']"),
        ([0], [None], "`rewards` must be numbers, got [None]; leave missing results out"),
        ([0, 0], [0.5, 1.5], "`rewards` must lie in [0, 1], got 1.5 at position 1; correct it or widen the range"),
    ],
)
def test_bad_results_are_refused_with_the_reason(arms: Any, rewards: Any, message: str) -> None:
    policy = SpectralTaS(BOUNDED, stopping="mixture")
    state = policy.tell(policy.init(), [0, 1], [0.0, 1.0])
    with pytest.raises(InvalidInput) as error:
        policy.tell(state, arms, rewards)
    assert message in str(error.value)
    assert state.samples == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delta": 0.0}, "`delta` must be a risk between 0 and 1, such as 0.05, got 0.0"),
        ({"delta": 1.0}, "`delta` must be a risk between 0 and 1"),
        ({"delta": "5%"}, "`delta` must be a risk between 0 and 1"),
        (
            {"stopping": "glrt"},
            "`stopping` must be a stopping rule or one of betting, mixture, paper, paper-printed, gk16, intervals, "
            "graph-intervals, got 'glrt'",
        ),
        ({"watching": (("mixture", 2.0),)}, "`delta` must be a risk between 0 and 1"),
        ({"watching": (("magic", 0.1),)}, "got 'magic'"),
        ({"mean_range": (1.0, 0.0)}, "`low` must be below `high`"),
        ({"problem": Problem(PAPER.graph, R=0.0)}, "`R` must be positive, got 0"),
        ({"problem": PAPER.graph}, "`problem` must be a spectralbai.Problem, got Graph"),
    ],
)
def test_bad_settings_are_refused_with_the_reason(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        SpectralTaS(**{"problem": PAPER, **settings})
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("n", "pending", "message"),
    [
        (-1, None, "`n` must be a whole number of at least 0, got -1"),
        (1.5, None, "`n` must be a whole number"),
        (1, [1, 0], "`pending` must have shape (n_arms,) = (3,), got (2,)"),
        (1, [1, 0, -1], "`pending` must hold whole non-negative numbers"),
        (1, [0.5, 0, 0], "`pending` must hold whole non-negative numbers"),
    ],
)
def test_bad_questions_are_refused_with_the_reason(n: Any, pending: Any, message: str) -> None:
    policy = SpectralTaS(PAPER, stopping="mixture")
    with pytest.raises(InvalidInput) as error:
        policy.ask(policy.init(), n, pending)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "broken", [{}, [], {"format": "spectralbai-state/0"}, {"format": "spectralbai-state/1", "counts": [1]}]
)
def test_a_broken_state_is_refused(broken: Any) -> None:
    with pytest.raises(InvalidInput, match="a state must"):
        State.from_dict(broken)


def test_telling_nothing_changes_nothing() -> None:
    policy = SpectralTaS(PAPER, stopping="mixture")
    assert policy.tell(policy.init(), [], []).as_dict() == policy.init().as_dict()
    assert policy.ask(policy.init(), 0).size == 0


@pytest.mark.parametrize("case", ["paper", "three components"])
def test_a_run_never_waits_for_more_than_the_schedule_says(case: str) -> None:
    policy, mu = CASES[case]
    state = follow(policy, mu, seed=9, n=150)
    base = state.sampling.base
    assert base <= state.samples < state.next_reading <= max(base + 1, int(1.02 * base))


def test_after_the_decision_nothing_is_planned() -> None:
    """Each plan solves an allocation: a long batch of results told afterwards would wait for hundreds."""
    policy = SpectralTaS(PAPER, 0.1, stopping="mixture")
    arms = np.tile([0, 1, 2], 1000)
    state, outcomes = policy.init(), np.array([2.0, 0.5, 0.6])[arms]
    state = policy.tell(state, arms, outcomes)
    stopped_at = policy.verdict(state).stopped_at
    assert stopped_at is not None and stopped_at < 1000 and state.samples == 3000
    assert state.sampling.base < stopped_at, "the reading that decided planned nothing either"
    assert (
        state.as_dict()
        == policy.tell(policy.tell(policy.init(), arms[:700], outcomes[:700]), arms[700:], outcomes[700:]).as_dict()
    )


def test_a_state_of_another_policy_is_refused() -> None:
    two, three = (SpectralTaS(Problem(Graph.from_edges(n, []), 1.0), stopping="mixture") for n in (2, 3))
    for use in (lambda: three.ask(two.init()), lambda: three.tell(two.init(), [0], [1.0])):
        with pytest.raises(InvalidInput, match="3 arms and 1 stopping rules, got 2 and 1"):
            use()
    broken = three.init().as_dict() | {"informing": two.init().as_dict()["informing"]}
    with pytest.raises(InvalidInput, match=re.escape("vectors of one length, got lengths [2, 3]")):
        State.from_dict(broken)
