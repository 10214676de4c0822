"""Policies on single cases, and what they refuse; what all of them do is in `tests/contracts/policies.py`."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem, SpectralTaS, simulate
from spectralbai.policy import POLICIES, Policy, Race, SpectralRace, State
from spectralbai.sampling.tracking import Tracked
from tests.contracts.policies import BOUNDED, CASES, PAPER, THREE_COMPONENTS, ask, outcomes_for


def test_every_policy_is_tested_by_the_contract() -> None:
    # The race bets on blocks, which have tests of their own.
    assert {type(policy) for policy, _ in CASES.values()} == set(POLICIES.values()) - {SpectralRace, Race}


def tracked(state: State) -> Tracked:
    """Returns the memory of the sampling rule, which tracks an allocation."""
    assert isinstance(state.sampling, Tracked)
    return state.sampling


def follow(policy: Policy, mu: list[float], seed: int, n: int) -> State:
    """Returns the state after n samples, or the end, of a run."""
    rng, state = np.random.default_rng(seed), policy.init()
    while state.samples < n and (arms := ask(policy, state)).size:
        state = policy.tell(
            state, arms, np.array(mu)[arms] + policy.problem.sigma[arms] * rng.standard_normal(arms.size)
        )
    return state


def test_several_risks_read_off_one_run_agree_with_policies_of_their_own() -> None:
    risks = (("gk16", 0.2), ("gk16", 0.01), ("intervals", 0.1), ("paper", 0.1), ("paper-printed", 0.2))
    for mu, problem in (
        ([1.9, 0.5, 0.6], PAPER),
        ([1.5, 0.4, 1.4], PAPER),
        ([0.0, 0.3, 0.6, 0.6, 0.5, 3.5], THREE_COMPONENTS),
    ):
        together = simulate.watch(SpectralTaS(problem, 0.1, watching=risks, stopping="gk16"), mu, 0, max_samples=500)
        for (rule, delta), run in zip((("gk16", 0.1), *risks), together, strict=True):
            alone = simulate.run(SpectralTaS(problem, delta, rule), mu, 0, max_samples=500)
            assert (run.rule, run.delta, run.proved) == (rule, delta, rule == "intervals")
            assert (run.status, run.tau, run.arm) == (alone.status, alone.tau, alone.arm)


@pytest.mark.parametrize("n", [30, 60, 150])
@pytest.mark.parametrize("case", ["paper", "three components", "no graph"])
def test_permuting_arms_permutes_the_answer(case: str, n: int) -> None:
    policy, _ = CASES[case]
    problem = policy.problem
    n_arms = problem.n_arms
    arms, rewards = outcomes_for(CASES[case], n, seed=6)
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
    np.testing.assert_allclose(tracked(there).omega[name], tracked(here).omega, atol=1e-7)


def test_results_may_come_late_out_of_order_and_in_part() -> None:
    """Three workers hold pulls; some come back late, some never. What was received counts, once."""
    policy, rng = SpectralTaS(THREE_COMPONENTS, 0.1, stopping="gk16"), np.random.default_rng(8)
    mu = np.array([0.0, 0.1, 0.2, 0.6, 0.5, 2.5])
    state = policy.init()
    pending: list[int] = []
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
    policy = SpectralTaS(THREE_COMPONENTS, 0.1, stopping="gk16")
    state = policy.tell(policy.init(), [0] * 50, [1.0] * 50)
    verdict = policy.verdict(state)
    assert not verdict.decided and verdict.threshold == math.inf
    assert set(policy.ask(state, 2)) == {3, 5}
    state = policy.tell(state, [3, 5], [0.0, 0.0])
    assert tracked(state).base == 52, "the reading comes with the result that was missing"


@pytest.mark.parametrize(
    "rewards", [[0.0, 0.0, 0.0], [1.0, 1.0 - 1e-16, 1.0], [1e-150, 0.0, 1e-160], [0.3, 0.1 + 0.2, 0.3], [1.0, 1.0, 0.0]]
)
@pytest.mark.parametrize("edges", [[], [(1, 2, 1.0)], [(0, 1, 1.0), (1, 2, 1.0)]])
def test_ties_exact_or_up_to_rounding_are_pulled_and_never_decided(
    rewards: list[float], edges: list[tuple[int, int, float]]
) -> None:
    policy = SpectralTaS(Problem(Graph.from_edges(3, edges), R=2.0), 0.1, stopping="gk16")
    state = policy.init()
    for _ in range(60):
        arms = policy.ask(state, 3)
        state = policy.tell(state, arms, np.array(rewards)[arms])
        omega = tracked(state).omega
        assert np.isfinite(omega).all() and omega.sum() == pytest.approx(1)
    assert not policy.verdict(state).decided
    assert (state.counts[np.array(rewards) >= max(rewards) - 1e-9] >= 40).all()


@pytest.mark.parametrize("R", [1e-12, 1e-16, 1e-30])
def test_almost_equal_arms_of_a_component_are_no_trouble(R: float) -> None:
    run = simulate.run(SpectralTaS(Problem(PAPER.graph, R), 0.1, stopping="gk16"), [1.5, 0.5, 0.5], seed=0)
    assert (run.status, run.arm) == ("decided", 0)


def test_with_a_tolerance_no_arm_can_exceed_the_answer_is_immediate() -> None:
    problem = Problem(Graph.from_edges(3, [(0, 1, 1.0), (1, 2, 1.0)]), R=0.01, tolerance=0.5)
    run = simulate.run(SpectralTaS(problem, 0.1, stopping="gk16"), [0.0, 0.05, 0.1], seed=0)
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
    policy = SpectralTaS(BOUNDED, stopping="gk16")
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
            "`stopping` must be a stopping rule or one of betting, paper, paper-printed, gk16, intervals, "
            "graph-intervals, got 'glrt'",
        ),
        ({"watching": (("gk16", 2.0),)}, "`delta` must be a risk between 0 and 1"),
        ({"watching": (("magic", 0.1),)}, "got 'magic'"),
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
    policy = SpectralTaS(PAPER, stopping="gk16")
    with pytest.raises(InvalidInput) as error:
        policy.ask(policy.init(), n, pending)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "broken", [{}, [], {"format": "spectralbai-state/0"}, {"format": "spectralbai-state/7", "counts": [1]}]
)
def test_a_broken_state_is_refused(broken: Any) -> None:
    with pytest.raises(InvalidInput, match="a state must"):
        State.from_dict(broken)


def test_telling_nothing_changes_nothing() -> None:
    policy = SpectralTaS(PAPER, stopping="gk16")
    assert policy.tell(policy.init(), [], []).as_dict() == policy.init().as_dict()
    assert policy.ask(policy.init(), 0).size == 0


@pytest.mark.parametrize("case", ["paper", "three components"])
def test_a_run_never_waits_for_more_than_the_schedule_says(case: str) -> None:
    policy, mu = CASES[case]
    policy = replace(policy, delta=1e-30)
    state = follow(policy, mu, seed=9, n=150)
    base = tracked(state).base
    assert base <= state.samples < state.next_reading <= max(base + 1, int(1.02 * base))


def test_after_the_decision_nothing_is_planned() -> None:
    """Each plan solves an allocation: a long batch of results told afterwards would wait for hundreds."""
    policy = SpectralTaS(PAPER, 0.1, stopping="gk16")
    arms = np.tile([0, 1, 2], 1000)
    state, outcomes = policy.init(), np.array([2.0, 0.5, 0.6])[arms]
    state = policy.tell(state, arms, outcomes)
    stopped_at = policy.verdict(state).stopped_at
    assert stopped_at is not None and stopped_at < 1000 and state.samples == 3000
    assert tracked(state).base < stopped_at, "the reading that decided planned nothing either"
    assert (
        state.as_dict()
        == policy.tell(policy.tell(policy.init(), arms[:700], outcomes[:700]), arms[700:], outcomes[700:]).as_dict()
    )


def test_a_state_of_another_policy_is_refused() -> None:
    two, three = (SpectralTaS(Problem(Graph.from_edges(n, []), 1.0), stopping="gk16") for n in (2, 3))
    for use in (lambda: three.ask(two.init()), lambda: three.tell(two.init(), [0], [1.0])):
        with pytest.raises(InvalidInput, match="3 arms and 1 stopping rules .gk16., got 2 and 1"):
            use()
    broken = three.init().as_dict() | {"informing": two.init().as_dict()["informing"]}
    with pytest.raises(InvalidInput, match=re.escape("vectors of one length, got lengths [2, 3]")):
        State.from_dict(broken)
