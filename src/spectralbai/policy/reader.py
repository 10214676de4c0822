"""How a policy reads its stopping rules on the results seen, and plans its pulls by what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from spectralbai.evidence.blocks import Block
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.levels import BlockData
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.outlook import Outlook
from spectralbai.policy.first_pulls import empty_components
from spectralbai.policy.state import State
from spectralbai.problem import Problem
from spectralbai.sampling import SamplingRule, View
from spectralbai.stopping import Reading, StoppingRule
from spectralbai.verdict import Verdict

Verdicts = tuple[Verdict, ...]
"""The verdicts of all (rule, delta) pairs of a policy at one time."""


@dataclass(frozen=True, eq=False)
class RuleReader:
    """Reads stopping rules at their risks on the results seen, and plans pulls by a sampling rule."""

    problem: Problem
    earlier: tuple[Problem, ...]
    """The problems before each time that arms joined."""
    pairs: tuple[tuple[StoppingRule[Any], float], ...]
    """(rule, delta); the first pair is the policy's own."""
    sampling: SamplingRule[Any]
    rule_leads: bool
    """Whether the first rule chooses the leader, among the arms that it has not eliminated. It does in a race. Where
    one run is read at several risks it must not, since the leader would depend on delta."""

    aside: tuple[StoppingRule[Any], ...] = ()
    """More rules that learn from the same blocks and stop nothing."""

    @cached_property
    def rules(self) -> dict[str, StoppingRule[Any]]:
        return {rule.name: rule for rule in (*(rule for rule, _ in self.pairs), *self.aside)}

    @property
    def _own(self) -> tuple[StoppingRule[Any], float]:
        return self.pairs[0]

    def has_estimate(self, state: State) -> bool:
        """Whether every component has a result that is seen, which estimates need."""
        return not empty_components(self.problem, state.data.counts).size

    def evidence(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of the last reading."""
        return Evidence(self.problem, state.data, state.best, state.origin)

    def evidence_now(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of now; every component must have a result.

        If the first rule chooses the leader, it is that of the last reading until the rule is read (`defended`).
        """
        if self.rule_leads:
            return self.evidence(state)
        evidence = Evidence.with_leader(self.problem, state.data, state.origin, state.best)
        believed = self._believed(evidence)
        if believed is evidence:
            return evidence
        return evidence.defending(Evidence.with_leader(self.problem, believed.data, state.origin, state.best).best)

    def _believed(self, evidence: Evidence) -> Evidence:
        """Returns the evidence or, where blocks differ by more than noise, that of results minus levels: to choose
        leaders and pulls by, while each rule reads the evidence as it is."""
        if not isinstance(evidence.data, BlockData):
            return evidence
        outlook = Outlook.on(evidence)
        return outlook.evidence if outlook.levelled else evidence

    def own_reading(self, state: State, evidence: Evidence) -> Reading:
        """Returns the reading of the policy's first rule."""
        rule, _ = self._own
        return rule.read(state.stopping[rule.name], evidence)

    def defended(self, evidence: Evidence, own: Reading | None) -> Evidence:
        """Returns the evidence with the leader that the reading `own` of the first rule chooses, if it chooses one."""
        if not self.rule_leads or own is None:
            return evidence
        return evidence.defending(own.recommended(self._own[1]))

    def view(self, state: State, evidence: Evidence, own: Reading | None = None) -> View:
        """Returns what the sampling rule may look at; `own` is what the first rule reads."""
        lacking = None if own is None else own.lacking(self._own[1])
        needed = None if own is None else own.needed(self._own[1])
        return View(self._believed(evidence), tuple(delta for _, delta in self.pairs), lacking, state.withdrawn, needed)

    def verdicts(self, state: State) -> Verdicts:
        """Returns the verdicts of a state, with the number of results received so far."""
        samples = state.samples
        return tuple(replace(verdict, samples=samples) for verdict in state.verdicts)

    def read(self, state: State, block: Block | None) -> State:
        """Returns the state after new results are seen: rules learn from them and are read, and pulls are planned.

        `block` holds these results, if they came in a block. If arms have joined, rules are not read before every
        component has a result again.
        """
        evidence = self.evidence_now(state)
        then = evidence if block is None or block.n_arms == state.n_arms else self._when_opened(block, state)
        running = {
            rule.name for verdict, (rule, _) in zip(state.verdicts, self.pairs, strict=True) if not verdict.settled
        }
        memories = {
            name: rule.observe(state.stopping[name], block, then, decided=name not in running)
            for name, rule in self.rules.items()
        }
        if not self.has_estimate(state):
            return replace(state, stopping=memories)
        readings = {name: self.rules[name].read(memories[name], evidence) for name in running}
        samples = state.samples
        verdicts = tuple(
            _after_stopping(verdict, rule, memories[rule.name], evidence, delta)
            if verdict.settled
            else _verdict(readings[rule.name], rule, delta, samples, state.data.samples)
            for verdict, (rule, delta) in zip(state.verdicts, self.pairs, strict=True)
        )
        own = readings.get(self._own[0].name)
        if all(verdict.settled for verdict in verdicts):  # results may still arrive, but no more pulls are planned
            return replace(state, best=self.defended(evidence, own).best, stopping=memories, verdicts=verdicts)
        return self.planned(state, evidence, own, stopping=memories, verdicts=verdicts)

    def reread(self, state: State, standing: Sequence[bool]) -> State:
        """Returns the state after its rules are read again, since arms changed; verdicts in `standing` stay."""
        evidence = self.evidence_now(state)
        readings = {rule.name: rule.read(state.stopping[rule.name], evidence) for rule, _ in self.pairs}
        samples = state.samples
        verdicts = tuple(
            verdict if stands else _verdict(readings[rule.name], rule, delta, samples, state.data.samples)
            for verdict, stands, (rule, delta) in zip(state.verdicts, standing, self.pairs, strict=True)
        )
        rule, delta = self._own
        own = readings[rule.name]
        return self.planned(state, evidence.defending(own.recommended(delta)), own, verdicts=verdicts)

    def planned(self, state: State, evidence: Evidence, own: Reading | None, **changes: Any) -> State:
        """Returns the state with a new leader, a new plan and other `changes`; `own` is what the first rule reads."""
        evidence = self.defended(evidence, own)
        plan = self.sampling.plan(state.sampling, self.view(state, evidence, own))
        return replace(state, best=evidence.best, sampling=plan, **changes)

    def _when_opened(self, block: Block, state: State) -> Evidence:
        """Returns the evidence for a block opened before arms joined: its results, and the problem at its opening."""
        problem = next(problem for problem in self.earlier if problem.n_arms == block.n_arms)
        return Evidence(problem, block.data.after(block), block.best, state.origin)


def _verdict(reading: Reading, rule: StoppingRule[Any], delta: float, received: int, seen: int) -> Verdict:
    """Returns what a reading says at risk delta, after so many results received and seen."""
    statistic, threshold = reading.least_beaten(delta)
    consistent = reading.consistent(delta)
    left, lacking = reading.candidates(delta), reading.lacking(delta)
    return Verdict(
        arm=reading.recommended(delta),
        statistic=statistic,
        threshold=threshold,
        samples=received,
        stopped_at=seen if reading.decided(delta) or not consistent else None,
        consistent=consistent,
        proved=rule.proved,
        candidates=None if left is None else tuple(left.tolist()),
        lacking=None if lacking is None else tuple(lacking.tolist()),
    )


def _after_stopping(
    verdict: Verdict, rule: StoppingRule[Any], memory: Memory, evidence: Evidence, delta: float
) -> Verdict:
    """Returns the verdict of a rule that has stopped: its decision stands, but a proved rule goes on testing R."""
    if verdict.doubted or not verdict.decided or not rule.proved or not rule.contradicts_R(memory, evidence, delta):
        return verdict
    return replace(verdict, doubted=True)
