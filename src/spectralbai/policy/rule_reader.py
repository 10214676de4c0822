"""The settings of a policy, and how its stopping rules are read on the results seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from spectralbai.checks import Indices, Vector, check_delta
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.policy.state import State, Watch
from spectralbai.policy.views import Verdict
from spectralbai.problem import Problem
from spectralbai.sampling import SamplingRule, View
from spectralbai.stopping import RULES, Reading, StoppingRule

Readings = tuple[Verdict, ...]
"""The verdicts of all (rule, delta) pairs of a policy at one time."""


@dataclass(frozen=True, eq=False)
class RuleReader:
    """The settings of a policy, and the methods that read its rules on the results seen."""

    ignores_graph: ClassVar[bool] = False
    """Whether the policy ignores the graph: its problem is then changed to R = inf."""

    problem: Problem
    delta: float = 0.01
    """Risk of a wrong answer."""
    stopping: str | StoppingRule[Any] = "betting"
    """The stopping rule, or its name in `spectralbai.stopping.RULES`."""
    watching: tuple[tuple[str | StoppingRule[Any], float], ...] = ()
    """More (rule, delta) pairs that are read on the same pulls; pulling goes on until all have stopped."""
    sampling: SamplingRule[Any] = field(kw_only=True)
    """The sampling rule."""
    earlier: tuple[Problem, ...] = field(default=(), kw_only=True)
    """The problems before each time that arms joined (`joined`). They are kept because the bets on a block belong to
    the problem at its opening."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InvalidInput(f"`problem` must be a spectralbai.Problem, got {type(self.problem).__name__}")
        if self.ignores_graph:
            object.__setattr__(self, "problem", self.problem.without_graph())
        if self.problem.rigid:
            raise InvalidInput(
                "`R` must be positive, got 0, which makes all means of a component equal; keep one arm of each "
                "component and set R = math.inf"
            )
        for rule, delta in ((self.stopping, self.delta), *self.watching):
            if not isinstance(rule, StoppingRule) and (not isinstance(rule, str) or rule not in RULES):
                raise InvalidInput(f"`stopping` must be a stopping rule or one of {', '.join(RULES)}, got {rule!r}")
            check_delta(delta)
        for each in self._rules.values():
            each.check(self.problem)
        self.sampling.check(self.problem)
        if self.in_blocks and self.sampling.most_at_once is not None:
            raise InvalidInput(
                f"`stopping` = {self.rules[0][0]} bets on blocks of pulls, and {type(self).__name__} looks at every "
                "result before the next pull; use intervals"
            )

    @property
    def uses_delta(self) -> bool:
        """Whether the pulls depend on delta; if not, one run can be read at several risks."""
        return self.sampling.uses_delta

    @cached_property
    def _watched(self) -> tuple[tuple[StoppingRule[Any], float], ...]:
        """All (rule, delta) pairs: first (`stopping`, `delta`), then those of `watching`."""
        pairs = [
            (RULES[given] if isinstance(given, str) else given, delta)
            for given, delta in ((self.stopping, self.delta), *self.watching)
        ]
        named: dict[str, StoppingRule[Any]] = {}
        for rule, _ in pairs:
            if named.setdefault(rule.name, rule) != rule:  # a state stores the memories of rules by name
                raise InvalidInput(f"`watching` must hold one rule of each name, got two of {rule.name}; rename one")
        return tuple(pairs)

    @property
    def rules(self) -> tuple[tuple[str, float], ...]:
        """All (name of the rule, delta) pairs: first those of `stopping` and `delta`, then those of `watching`."""
        return tuple((rule.name, delta) for rule, delta in self._watched)

    @cached_property
    def _rules(self) -> dict[str, StoppingRule[Any]]:
        return {rule.name: rule for rule, _ in self._watched}

    @cached_property
    def in_blocks(self) -> bool:
        """Whether pulls come in blocks: they do if some rule of the policy bets."""
        return any(rule.bets for rule in self._rules.values())

    def _read(self, state: State, block: Block | None) -> State:
        """Returns the state after new results are seen: rules learn from them and are read, and pulls are planned.

        If arms have joined, rules are not read before every component has a result again.
        """
        evidence = self._with_leader(state)
        then = evidence if block is None or block.n_arms == state.n_arms else self._when_opened(block, state)
        running = {
            rule.name for watch, (rule, _) in zip(state.watches, self._watched, strict=True) if not watch.settled
        }
        memories = {
            name: rule.observe(self._memory(state, name), block, then, decided=name not in running)
            for name, rule in self._rules.items()
        }
        stopping = {**state.stopping, **memories}
        if not self.has_estimate(state):
            return replace(state, stopping=stopping)
        readings = {name: self._rules[name].read(memories[name], evidence) for name in running}
        watches = tuple(
            self._doubted(watch, rule, memories[rule.name], evidence, delta)
            if watch.settled
            else self._look(readings[rule.name], delta, state.data.samples)
            for watch, (rule, delta) in zip(state.watches, self._watched, strict=True)
        )
        own = readings.get(self.rules[0][0])
        if all(watch.settled for watch in watches):  # results may still arrive, but no more pulls are planned
            return replace(state, best=self._defended(evidence, own).best, stopping=stopping, watches=watches)
        return self._planned(state, evidence, own, stopping=stopping, watches=watches)

    def _reread(self, state: State, standing: Sequence[bool] | None = None) -> State:
        """Returns the state after its rules are read again, since arms changed; watches marked in `standing` stay."""
        evidence = self._with_leader(state)
        readings = {name: rule.read(state.stopping[name], evidence) for name, rule in self._rules.items()}
        watches = tuple(
            watch if stands else self._look(readings[rule.name], delta, state.data.samples)
            for watch, stands, (rule, delta) in zip(
                state.watches, standing or [False] * len(state.watches), self._watched, strict=True
            )
        )
        own = readings[self.rules[0][0]]
        return self._planned(state, evidence.defending(own.recommended(self.delta)), own, watches=watches)

    def _planned(self, state: State, evidence: Evidence, own: Reading | None, **changes: Any) -> State:
        """Returns the state with a new leader, a new plan and other `changes`; `own` is what the first rule reads."""
        evidence = self._defended(evidence, own)
        plan = self.sampling.plan(state.sampling, self._view(state, evidence, own))
        return replace(state, best=evidence.best, sampling=plan, **changes)

    def _own_reading(self, state: State, evidence: Evidence) -> Reading:
        """Returns the reading of the policy's first rule."""
        name = self.rules[0][0]
        return self._rules[name].read(self._memory(state, name), evidence)

    def _when_opened(self, block: Block, state: State) -> Evidence:
        """Returns the evidence for a block opened before arms joined: its results, and the problem at its opening."""
        problem = next(each for each in self.earlier if each.n_arms == block.n_arms)
        return Evidence(problem, block.data.plus(block.arms, block.outcomes), block.best, state.origin)

    def _defended(self, evidence: Evidence, own: Reading | None) -> Evidence:
        """Returns the evidence with the leader: an arm that is not eliminated, if the pulls may depend on delta.

        If they may not, the leader must not depend on delta either, because one run is read at several risks.
        """
        if not self.in_blocks or not self.uses_delta or own is None:
            return evidence
        return evidence.defending(own.recommended(self.delta))

    def _verdicts(self, state: State) -> Readings:
        samples = state.samples
        return tuple(
            Verdict(decided=seen.decided, samples=samples, proved=rule.proved, **vars(seen))
            for seen, (rule, _) in zip(state.watches, self._watched, strict=True)
        )

    @staticmethod
    def _doubted(watch: Watch, rule: StoppingRule[Any], memory: Memory, evidence: Evidence, delta: float) -> Watch:
        """Returns the watch of a rule that has stopped: its decision stands, but a proved rule goes on testing R."""
        if watch.doubted or not watch.decided or not rule.proved or not rule.contradicts_R(memory, evidence, delta):
            return watch
        return replace(watch, doubted=True)

    @staticmethod
    def _look(reading: Reading, delta: float, samples: int) -> Watch:
        statistic, threshold = reading.least_beaten(delta)
        consistent = reading.consistent(delta)
        settled = reading.decided(delta) or not consistent
        left, lacking = reading.candidates(delta), reading.lacking(delta)
        return Watch(
            reading.recommended(delta),
            statistic,
            threshold,
            samples if settled else None,
            consistent,
            None if left is None else tuple(left.tolist()),
            lacking=None if lacking is None else tuple(lacking.tolist()),
        )

    def has_estimate(self, state: State) -> bool:
        """Whether every component has a result that is seen, which estimates need."""
        return not self._missing(state.data.counts).size

    def _missing(self, counts: Vector) -> Indices:
        """Returns the components whose counts are all 0."""
        if counts.all():
            return np.empty(0, dtype=np.intp)  # what follows takes longer
        return np.flatnonzero(np.bincount(self.problem.components, counts) == 0)

    def _settled(self, state: State) -> bool:
        return all(watch.settled for watch in state.watches)

    def _memory(self, state: State, name: str) -> Memory:
        """Returns the memory of a rule; a new one if an earlier version wrote the state without this rule."""
        memory = state.stopping.get(name)
        return self._rules[name].start(self.problem) if memory is None else memory

    def _seen(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of the last reading."""
        return Evidence(self.problem, state.data, state.best, state.origin)

    def _with_leader(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of now; every component must have a result.

        In a race it keeps the leader of the last reading: there the stopping rule chooses the new one (`_defended`).
        """
        if self.in_blocks and self.uses_delta:
            return self._seen(state)
        return Evidence.with_leader(self.problem, state.data, state.origin, state.best)

    def _view(self, state: State, evidence: Evidence, reading: Reading | None = None) -> View:
        lacking = None if reading is None else reading.lacking(self.delta)
        return View(evidence, tuple(delta for _, delta in self._watched), lacking, state.withdrawn)

    def _check_state(self, state: State) -> None:
        found, expected = (state.data.counts.size, len(state.watches)), (self.problem.n_arms, len(self._watched))
        if found != expected:
            raise InvalidInput(
                f"`state` must belong to this policy, with {expected[0]} arms and {expected[1]} stopping rules, "
                f"got {found[0]} and {found[1]}; start from policy.init()"
            )
