"""What every sampling rule does, whatever comes out.

The rules of the policies in `spectralbai.policy.POLICIES` are tested automatically. One from elsewhere joins by a class
of its own:

    @pytest.mark.parametrize("sampling", [MyRule()])
    class TestMyRule(SamplingRuleContract): ...
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from spectralbai import Graph, Instance, Problem, simulate
from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.policy import POLICIES, Policy, State
from spectralbai.sampling import SamplingRule, View
from spectralbai.stopping import RULES

Rule = SamplingRule[Any]
PROBLEM = Problem(Graph.from_edges(6, [(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]), R=0.3, sigma=[1, 1, 2, 1, 0.5, 1])
"""Three components, arms of unequal noise."""
MU = np.array([0.0, 0.1, 0.2, 0.6, 0.5, 1.5])
SAMPLING_RULES: dict[str, Rule] = {name: policy.on(Instance(PROBLEM, MU)).sampling for name, policy in POLICIES.items()}


def policy_of(sampling: Rule, problem: Problem = PROBLEM) -> Policy:
    """Returns a policy that pulls by the rule: in blocks, unless the rule must see every result."""
    stopping = "betting" if sampling.most_at_once is None else "intervals"
    return Policy(problem, 0.1, stopping, sampling=sampling)


def ask(policy: Policy, state: State, n: int) -> Indices:
    """Asks with a fresh generator, which only randomised rules draw from."""
    return policy.ask(state, n, rng=np.random.default_rng(9))


def after(policy: Policy, n: int, seed: int = 0) -> State:
    """Returns the state after at least n results that say nothing about the arms, so that nothing is decided."""
    rng, choices, state = np.random.default_rng(seed), np.random.default_rng(8), policy.init()
    while state.samples < n:
        arms = policy.ask(state, policy.horizon(state), rng=choices)
        state = policy.tell(state, arms, 0.1 * rng.standard_normal(arms.size))
    return state


def view_of(policy: Policy, state: State) -> View:
    """Returns what the rule may look at."""
    evidence = Evidence.with_leader(policy.problem, state.data, state.origin, state.best)
    (name, delta), *_ = policy.rules
    reading = RULES[name].read(state.stopping[name], evidence)
    return View(evidence, (delta,), reading.lacking(delta))


def pulls(sampling: Rule, memory: Memory, view: View, n: int, issued: Vector | None = None) -> Indices:
    counts = view.evidence.data.counts if issued is None else issued
    return sampling.pulls(memory, view, counts.copy(), n, np.random.default_rng(5))


def written(memory: Memory) -> str:
    return json.dumps(memory.as_dict(), allow_nan=False)


class SamplingRuleContract:
    """What every sampling rule does; `sampling` is one that fits six arms in three components."""

    def test_it_is_settings_only(self, sampling: Rule) -> None:
        with pytest.raises(AttributeError):
            sampling.most_at_once = 7  # type: ignore[misc]  # what is tested is that it cannot be set

    def test_pulls_are_arms_and_as_many_as_asked_for(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        for n in (3, 40, 150):
            state = after(policy, n)
            for wanted in (1, 7, 50):
                arms = pulls(sampling, state.sampling, view_of(policy, state), wanted)
                assert arms.shape == (wanted,) and arms.dtype.kind == "i"
                assert (arms >= 0).all() and (arms < PROBLEM.n_arms).all()

    def test_it_is_deterministic_and_changes_nothing_that_was_there(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        state = after(policy, 60)
        view, before, issued = view_of(policy, state), written(state.sampling), state.data.counts.copy()
        first = pulls(sampling, state.sampling, view, 30, issued).tolist()
        plan = written(sampling.plan(state.sampling, view))
        assert pulls(sampling, state.sampling, view, 30, issued).tolist() == first
        assert written(sampling.plan(state.sampling, view)) == plan
        assert written(state.sampling) == before and issued.tolist() == state.data.counts.tolist()
        assert written(after(policy, 60).sampling) == before, "the same results give the same memory"

    def test_its_memory_survives_json_bit_for_bit_and_goes_on_identically(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        for state in (policy.init(), after(policy, 50)):
            memory = state.sampling
            again = Memory.from_dict(json.loads(written(memory)))
            assert type(again) is type(memory) and written(again) == written(memory)
            loaded = State.from_dict(json.loads(json.dumps(state.as_dict(), allow_nan=False)))
            assert ask(policy, loaded, 20).tolist() == ask(policy, state, 20).tolist()
            if state.samples:
                view = view_of(policy, state)
                assert pulls(sampling, again, view, 30).tolist() == pulls(sampling, memory, view, 30).tolist()
                assert written(sampling.plan(again, view)) == written(sampling.plan(memory, view))

    def test_every_component_is_pulled(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        assert set(PROBLEM.components[ask(policy, policy.init(), 3)]) == {0, 1, 2}
        counts = after(policy, 300).counts
        assert (np.bincount(PROBLEM.components, counts) >= 10).all(), (
            "results that are alike should starve no component"
        )

    def test_the_pulls_of_a_block_are_fixed_before_its_results(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        if not policy.in_blocks:
            assert sampling.most_at_once is not None, "a rule that must see every result says so"
            return
        state = policy.open(after(policy, 40))
        arms, ahead = (block.arms for block in state.blocks)
        for outcome in (-5.0, 5.0):
            told = state
            for arm in arms[:-1].tolist():
                told = policy.tell(told, [arm], [outcome])
                assert [block.arms.tolist() for block in told.blocks] == [arms.tolist(), ahead.tolist()]

    def test_blocks_hold_a_whole_number_of_pulls_and_shares_are_an_allocation(self, sampling: Rule) -> None:
        policy = policy_of(sampling)
        state = after(policy, 80)
        view = view_of(policy, state)
        size = sampling.block_size(state.sampling, view, state.samples)
        assert isinstance(size, int) and size >= 1
        shares = sampling.shares(state.sampling, view)
        assert shares.shape == (PROBLEM.n_arms,) and (shares >= 0).all() and shares.sum() == pytest.approx(1)

    def test_arms_that_are_pending_count_as_pulled(self, sampling: Rule) -> None:
        """What is asked for while pulls are out is what would have been asked for at once."""
        policy = policy_of(sampling)
        state = after(policy, 60)
        n = min(6, policy.horizon(state))
        rng, one_by_one, pending = np.random.default_rng(9), [], np.zeros(PROBLEM.n_arms)
        for _ in range(n):
            (arm,) = policy.ask(state, 1, pending=pending, rng=rng)
            one_by_one.append(int(arm))
            pending[arm] += 1
        assert one_by_one == ask(policy, state, n).tolist()

    def test_a_run_finds_the_best_arm(self, sampling: Rule) -> None:
        problem = Problem(PROBLEM.graph, R=2.0, sigma=0.5)
        run = simulate.run(policy_of(sampling, problem), MU, seed=1, max_samples=5000)
        assert (run.status, run.arm) == ("decided", 5)
