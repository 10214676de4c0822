"""What every policy does, as far as it does not bet: ask, tell, verdict, and states that can be stored.

Policies that bet have their results in blocks, whose contract is in `tests/test_blocks.py`. A new policy joins by a
line in `CASES`. One from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("case", [(MyPolicy(problem, 0.1, stopping="gk16"), [0.9, 0.5, 0.6])])
    class TestMyPolicy(PolicyContract): ...
"""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from spectralbai import Graph, Problem, SpectralTaS
from spectralbai.arrays import Indices, Vector
from spectralbai.policy import LUCB, GraphElimination, OracleSampling, Policy, State, TopTwo, TrackAndStop, Uniform

Case = tuple[Policy, list[float]]
"""A policy, and means to draw outcomes with."""
PAPER = Problem(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.01)
THREE_COMPONENTS = Problem(
    Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]), R=0.3, sigma=[1, 1, 2, 1, 0.5, 1]
)
PATH = Problem(Graph.from_edges(4, [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]), R=2.0, tolerance=0.3)
EDGELESS = Problem(Graph.from_edges(3, [(0, 1, 1.0)]), R=math.inf)
BOUNDED = Problem.bounded(Graph.from_edges(3, [(1, 2, 1.0)]), R=0.1)
EVERY_RULE = (("paper", 0.1), ("paper-printed", 0.1), ("gk16", 0.01))

CASES: dict[str, Case] = {
    "paper": (SpectralTaS(PAPER, 0.1, watching=EVERY_RULE, stopping="gk16"), [0.9, 0.5, 0.6]),
    "three components": (SpectralTaS(THREE_COMPONENTS, 0.1, stopping="gk16"), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
    "path with tolerance": (SpectralTaS(PATH, 0.1, stopping="gk16"), [0.0, 0.5, 1.0, 1.0]),
    "no graph": (SpectralTaS(EDGELESS, 0.1, stopping="gk16"), [1.0, 0.0, 0.2]),
    "bounded": (SpectralTaS(BOUNDED, 0.1, stopping="gk16"), [0.9, 0.2, 0.4]),
    # The rest of POLICIES, a line each.
    "oracle": (OracleSampling(PAPER, 0.1, mu=np.array([0.9, 0.5, 0.6]), stopping="gk16"), [0.9, 0.5, 0.6]),
    "as printed": (SpectralTaS.as_printed(PAPER, 0.1), [0.9, 0.5, 0.6]),
    "uniform": (Uniform(PAPER, 0.1, stopping="gk16"), [0.9, 0.5, 0.6]),
    "track-and-stop": (TrackAndStop(EDGELESS, 0.1, stopping="gk16"), [1.0, 0.0, 0.2]),
    "top-two": (TopTwo(EDGELESS, 0.1, stopping="gk16"), [1.0, 0.0, 0.2]),
    "lucb": (LUCB(EDGELESS, 0.1), [1.0, 0.0, 0.2]),
    "graph-elimination": (GraphElimination(THREE_COMPONENTS, 0.1), [0.0, 0.1, 0.2, 0.6, 0.5, 1.5]),
}


def ask(policy: Policy, state: State, n: int = 1) -> Indices:
    """Asks with a fresh generator, which only randomised policies draw from."""
    return policy.ask(state, n, rng=np.random.default_rng(9))


def outcomes_for(case: Case, n: int, seed: int = 0) -> tuple[Indices, Vector]:
    """Returns n pulls and outcomes; arms at random, so that no policy would have asked for them in this order."""
    policy, mu = case
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


class PolicyContract:
    """What every policy does whose pulls do not come in blocks."""

    def test_batches_of_any_size_give_the_same_state_bit_for_bit(self, case: Case) -> None:
        policy, _ = case
        arms, rewards = outcomes_for(case, 160)
        whole = tell_in_parts(policy, arms, rewards, [])
        assert whole.verdicts[0].threshold < math.inf, "the case should get past its first reading"
        one_by_one = tell_in_parts(policy, arms, rewards, list(range(1, 160)))
        ragged = tell_in_parts(policy, arms, rewards, [0, 1, 3, 3, 90, 121, 159])
        assert whole.as_dict() == one_by_one.as_dict() == ragged.as_dict()

    def test_a_state_stored_as_json_goes_on_identically(self, case: Case) -> None:
        policy, _ = case
        arms, rewards = outcomes_for(case, 150, seed=1)
        for cut in (0, 1, 120):
            state = policy.tell(policy.init(), arms[:cut], rewards[:cut])
            stored = json.dumps(state.as_dict(), allow_nan=False)
            loaded = State.from_dict(json.loads(stored))
            assert loaded.as_dict() == state.as_dict()
            np.testing.assert_array_equal(ask(policy, loaded, 20), ask(policy, state, 20))
            assert policy.verdict(loaded) == policy.verdict(state)
            more = slice(cut, cut + 30)
            assert (
                policy.tell(loaded, arms[more], rewards[more]).as_dict()
                == policy.tell(state, arms[more], rewards[more]).as_dict()
            )

    def test_no_observation_is_lost_or_counted_twice(self, case: Case) -> None:
        policy, _ = case
        arms, rewards = outcomes_for(case, 137, seed=2)
        state = tell_in_parts(policy, arms, rewards, [5, 6, 70])
        n_arms = policy.problem.n_arms
        np.testing.assert_array_equal(state.counts, np.bincount(arms, minlength=n_arms))
        sums = state.data.sums + state.counts * state.origin
        np.testing.assert_allclose(sums, np.bincount(arms, rewards, n_arms), rtol=1e-12)
        assert state.samples == policy.verdict(state).samples == 137

    def test_the_order_within_a_batch_changes_no_evidence_beyond_rounding(self, case: Case) -> None:
        """Between two readings; across them the order received is part of the evidence."""
        policy, _ = case
        arms, rewards = outcomes_for(case, 400, seed=3)
        state = policy.tell(policy.init(), arms[:390], rewards[:390])
        room = state.next_reading - state.samples
        assert room >= 3 or policy.sampling.reads_every_result
        tail = np.arange(390, 390 + room)
        forward = policy.tell(state, arms[tail], rewards[tail])
        backward = policy.tell(state, arms[tail[::-1]], rewards[tail[::-1]])
        np.testing.assert_array_equal(forward.counts, backward.counts)
        np.testing.assert_allclose(forward.data.sums, backward.data.sums, rtol=1e-12, atol=1e-12)
        for w in range(len(policy.rules)):
            one, other = policy.verdict(forward, w), policy.verdict(backward, w)
            assert one.statistic == pytest.approx(other.statistic, rel=1e-6)
            assert one.threshold == pytest.approx(other.threshold, rel=1e-9)

    def test_telling_and_reading_leave_the_old_state_alone(self, case: Case) -> None:
        policy, _ = case
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

    def test_a_decision_is_final_asks_for_nothing_and_still_takes_results(self, case: Case) -> None:
        policy, mu = case
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
