"""What every stopping rule does, whatever arms are pulled.

A rule in `spectralbai.stopping.RULES` is tested automatically. One from elsewhere joins by a class of its own:

    @pytest.mark.parametrize("rule", [MyRule()])
    class TestMyRule(StoppingRuleContract): ...
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from spectralbai import Graph, InvalidInput, Problem
from spectralbai.arrays import Indices, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.policy import Policy
from spectralbai.sampling import UniformSampling
from spectralbai.stopping import Reading, StoppingRule

Rule = StoppingRule[Any]
DELTAS = (0.2, 0.05, 0.001)
"""Risks at which readings are compared, from large to small."""
JOINED = Graph.from_edges(4, [(1, 2, 1.0), (2, 3, 0.5)])
SIGMA = np.array([1.0, 0.5, 2.0, 1.0])
PROBLEM = Problem(JOINED, R=1.0, sigma=SIGMA)
"""Two components, arms of unequal noise."""
CLEAR, EQUAL = np.array([3.0, 0.0, 0.3, 0.5]), np.zeros(4)
"""Means that are easy to tell apart, and equal means."""


class Moment(NamedTuple):
    """What a rule knows at one time."""

    memory: Any
    evidence: Evidence
    block: Block | None


def results(mu: Vector, sigma: Vector, blocks: int, seed: int) -> list[tuple[Indices, Vector]]:
    """Returns blocks of two pulls of each arm, then three and so on, and their outcomes."""
    rng = np.random.default_rng(seed)
    pulled = [np.repeat(np.arange(mu.size), 2 + number) for number in range(blocks)]
    return [(arms, mu[arms] + sigma[arms] * rng.standard_normal(arms.size)) for arms in pulled]


def follow(rule: Rule, problem: Problem, told: list[tuple[Indices, Vector]]) -> list[Moment]:
    """Returns what the rule knows after each block of results."""
    memory, data, best = rule.start(problem), Data.none(problem.n_arms), 0
    moments = []
    for arms, outcomes in told:
        block = Block(arms, outcomes, data, best) if rule.bets else None
        data = data.plus(arms, outcomes)
        evidence = Evidence.with_leader(problem, data, 0.0, best)
        best = evidence.best
        memory = rule.observe(memory, block, evidence)
        moments.append(Moment(memory, evidence, block))
    return moments


def course(rule: Rule, mu: Vector = CLEAR, blocks: int = 12, seed: int = 0, problem: Problem = PROBLEM) -> list[Moment]:
    return follow(rule, problem, results(mu, problem.sigma, blocks, seed))


def said(reading: Reading) -> list[Any]:
    """Returns all that a reading says, at every risk."""
    said: list[Any] = []
    for delta in DELTAS:
        candidates, lacking, ends = reading.candidates(delta), reading.lacking(delta), reading.intervals(delta)
        said += [reading.decided(delta), reading.consistent(delta), reading.recommended(delta)]
        said += [
            reading.least_beaten(delta),
            None if candidates is None else candidates.tolist(),
            None if lacking is None else lacking.tolist(),
            None if ends is None else [end.tolist() for end in ends],
        ]
    return said


def written(memory: Memory) -> str:
    return json.dumps(memory.as_dict(), allow_nan=False)


def loaded(memory: Memory) -> Any:
    return Memory.from_dict(json.loads(written(memory)))


def decided_at(rule: Rule, moments: list[Moment], delta: float) -> float:
    """Returns the number of the block at which the rule first decides; inf if it does not."""
    for number, (memory, evidence, _) in enumerate(moments):
        if rule.read(memory, evidence).decided(delta):
            return number
    return math.inf


def policy_of(rule: Rule, delta: float = 0.05) -> Policy:
    return Policy(PROBLEM, delta, rule, sampling=UniformSampling())


class StoppingRuleContract:
    """What every stopping rule does; `rule` is one that sub-Gaussian problems with one R can be given to."""

    # Settings, memory and reading.

    def test_it_is_settings_only_and_says_where_it_comes_from(self, rule: Rule) -> None:
        assert rule.name.strip() == rule.name != "" and rule.reference.strip()
        assert replace(rule) == rule, "rules of the same settings are the same rule"
        with pytest.raises(AttributeError):
            rule.name = "another"  # type: ignore[misc]  # what is tested is that it cannot be set

    def test_observing_and_reading_change_nothing_that_was_there(self, rule: Rule) -> None:
        moments = course(rule, blocks=6)
        before = [(written(memory), said(rule.read(memory, evidence))) for memory, evidence, _ in moments]
        for memory, evidence, block in moments:
            rule.observe(memory, block, evidence)
            rule.observe(memory, block, evidence, decided=True)
            rule.contradicts_R(memory, evidence, 0.1)
        assert [(written(memory), said(rule.read(memory, evidence))) for memory, evidence, _ in moments] == before

    def test_its_memory_survives_json_bit_for_bit_and_goes_on_identically(self, rule: Rule) -> None:
        start = rule.start(PROBLEM)
        assert written(loaded(start)) == written(start)
        moments = course(rule)
        for (memory, evidence, _), (after, later, block) in itertools.pairwise(moments):
            again = loaded(memory)
            assert type(again) is type(memory) and written(again) == written(memory)
            assert said(rule.read(again, evidence)) == said(rule.read(memory, evidence))
            assert written(rule.observe(again, block, later)) == written(after)

    def test_telling_a_batch_is_telling_its_parts(self, rule: Rule) -> None:
        policy, (arms, outcomes) = policy_of(rule), map(np.concatenate, zip(*results(EQUAL, SIGMA, 5, 1), strict=True))
        whole = policy.tell(policy.init(), arms, outcomes).as_dict()
        state, cuts = policy.init(), [0, 1, 3, 3, 40, arms.size]
        for low, high in itertools.pairwise(cuts):
            state = policy.tell(state, arms[low:high], outcomes[low:high])
        assert state.as_dict() == whole

    # Decisions.

    def test_the_best_arm_is_found_where_the_means_are_far_apart(self, rule: Rule) -> None:
        memory, evidence, _ = course(rule, blocks=30)[-1]
        reading = rule.read(memory, evidence)
        for delta in DELTAS:
            assert reading.decided(delta) and reading.recommended(delta) == 0
            statistic, threshold = reading.least_beaten(delta)
            assert statistic >= threshold

    def test_equal_means_are_hardly_ever_told_apart(self, rule: Rule) -> None:
        """Whichever arm is declared the best, others as good are declared worse; and none of them may be out."""
        wrong = 0
        for seed in range(12):
            readings = [rule.read(memory, evidence) for memory, evidence, _ in course(rule, EQUAL, 20, seed)]
            left = [reading.candidates(0.2) for reading in readings]
            wrong += any(reading.decided(0.2) for reading in readings) or any(
                arms is not None and 0 not in arms for arms in left
            )
        assert wrong <= 2

    def test_a_smaller_risk_never_decides_earlier(self, rule: Rule) -> None:
        for seed in range(3):
            for memory, evidence, _ in course(rule, seed=seed):
                reading = rule.read(memory, evidence)
                for larger, smaller in itertools.pairwise(DELTAS):
                    if reading.consistent(larger):
                        assert reading.decided(larger) or not reading.decided(smaller)
                    some, more = reading.candidates(larger), reading.candidates(smaller)
                    assert some is None or more is None or set(some.tolist()) <= set(more.tolist())
                    inner, outer = reading.intervals(larger), reading.intervals(smaller)
                    if inner is not None and outer is not None:
                        assert (outer[0] <= inner[0]).all() and (inner[1] <= outer[1]).all()

    def test_candidates_and_what_arms_lack_agree_with_the_decision(self, rule: Rule) -> None:
        for memory, evidence, _ in course(rule):
            reading = rule.read(memory, evidence)
            for delta in DELTAS:
                left, lacking = reading.candidates(delta), reading.lacking(delta)
                if left is not None and left.size:
                    assert reading.recommended(delta) in left
                if lacking is not None:
                    assert lacking.shape == (PROBLEM.n_arms,) and not np.isnan(lacking).any()
                    rivals = np.delete(lacking, reading.recommended(delta)) > 0
                    assert not (reading.decided(delta) and rivals.any())

    def test_a_decision_is_not_reversed(self, rule: Rule) -> None:
        policy, rng = policy_of(rule), np.random.default_rng(2)
        state = policy.init()
        while (arms := policy.ask(state, 8)).size and state.samples < 2000:
            state = policy.tell(state, arms, CLEAR[arms] + SIGMA[arms] * rng.standard_normal(arms.size))
        verdict = policy.verdict(state)
        assert verdict.decided and verdict.arm == 0
        later = policy.verdict(policy.tell(state, np.full(200, 1), np.full(200, 50.0)))
        assert (later.decided, later.arm, later.stopped_at) == (True, 0, verdict.stopped_at)

    # Symmetries.

    def test_renaming_the_arms_renames_the_answer(self, rule: Rule) -> None:
        name = np.array([2, 0, 3, 1])  # arm a becomes arm name[a]
        pairs = name[JOINED.pairs].tolist()
        graph = Graph.from_edges(4, [(a, b, w) for (a, b), w in zip(pairs, JOINED.weights.tolist(), strict=True)])
        renamed = Problem(graph, PROBLEM.R, SIGMA[np.argsort(name)])
        told = results(CLEAR, SIGMA, 10, 3)
        here, there = follow(rule, PROBLEM, told), follow(rule, renamed, [(name[arms], x) for arms, x in told])
        for one, other in zip(here[1:], there[1:], strict=True):
            first, second = rule.read(one.memory, one.evidence), rule.read(other.memory, other.evidence)
            for delta in DELTAS:
                assert second.recommended(delta) == name[first.recommended(delta)]
                assert second.decided(delta) == first.decided(delta)
                np.testing.assert_allclose(second.least_beaten(delta), first.least_beaten(delta), rtol=1e-6, atol=1e-9)

    def test_the_units_of_the_outcomes_change_no_decision(self, rule: Rule) -> None:
        told = results(CLEAR, SIGMA, 12, 4)
        for unit in (0.01, 30.0):
            other = Problem(JOINED, float(PROBLEM.R) * unit**2, SIGMA * unit)
            scaled = follow(rule, other, [(arms, x * unit) for arms, x in told])
            for delta in DELTAS:
                assert decided_at(rule, scaled, delta) == decided_at(rule, follow(rule, PROBLEM, told), delta)

    def test_the_same_results_prove_less_where_outcomes_are_noisier(self, rule: Rule) -> None:
        """Unequal sigma count: it is enough that the best arm and one other are noisier."""
        told = results(CLEAR, SIGMA, 30, 5)
        noisier = Problem(JOINED, PROBLEM.R, SIGMA * np.array([3.0, 3.0, 1.0, 1.0]))
        now, then = (decided_at(rule, follow(rule, problem, told), 0.001) for problem in (PROBLEM, noisier))
        assert now < then

    # R, forecasts, and arms that go and come.

    def test_means_as_smooth_as_R_do_not_contradict_it_and_a_forecast_is_not_negative(self, rule: Rule) -> None:
        memory, evidence, _ = course(rule)[-1]
        reading = rule.read(memory, evidence)
        assert reading.consistent(0.001) and reading.tests_R == rule.tests_R
        assert not rule.contradicts_R(memory, evidence, 0.001)
        growth = rule.growth(PROBLEM, CLEAR, 0, np.full(4, 0.25))
        assert math.isnan(growth) or growth > 0

    def test_intervals_hold_the_means(self, rule: Rule) -> None:
        for seed in range(3):
            for memory, evidence, _ in course(rule, seed=seed):
                ends = rule.read(memory, evidence).intervals(0.001)
                if ends is not None:
                    assert (ends[0] <= CLEAR).all() and (CLEAR <= ends[1]).all()

    def test_an_arm_can_go_or_come_or_this_is_refused(self, rule: Rule) -> None:
        memory, evidence, _ = course(rule, blocks=30)[-1]
        grown = Problem(Graph.from_edges(5, [(1, 2, 1.0), (2, 3, 0.5)]), PROBLEM.R, np.append(SIGMA, 1.0))
        try:
            without, joined = rule.withdraw(memory, 0), rule.join(memory, grown, PROBLEM)
        except InvalidInput as refusal:
            assert rule.name in str(refusal)
            return
        assert written(loaded(without)) == written(without) and written(loaded(joined)) == written(joined)
        left = rule.read(without, evidence).candidates(0.05)
        assert left is None or 0 not in left
        now = Evidence(grown, evidence.data.padded(5), 0, 0.0)
        after = rule.read(joined, replace(now, data=now.data.plus(np.array([4]), np.array([0.0]))))
        assert not after.decided(0.05), "nothing is known of the new arm"
