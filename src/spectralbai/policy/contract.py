"""The contract of a policy: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Vector, check_arm, check_delta, check_integer, check_interval, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.instance import Instance
from spectralbai.policy.state import Estimates, State, Verdict, Watch
from spectralbai.problem import Problem
from spectralbai.stopping import RULES, Evidence, Mixture, Reading, StoppingRule
from spectralbai.tracking import next_check

TIED = 1e-18
"""Least evidence per trial worth speaking of: below it means are tied, or differ by rounding."""


@dataclass(frozen=True, eq=False)
class Policy(ABC):
    """A policy for one problem: a sampling rule, and one or several stopping rules.

    `init` makes a state, `ask` says which arms to pull, `tell` takes outcomes, `verdict` reads the answer. Outcomes
    may come late, in any order and in parts: work happens at its own schedule of received results, so that a batch
    told at once or one by one gives the same state, bit for bit.
    """

    uses_delta: ClassVar[bool] = False
    """Whether the pulls depend on delta; if not, several risks can be read off one run."""
    ignores_graph: ClassVar[bool] = False
    """Whether the policy knows no graph: the problem it is given then has R = inf."""

    problem: Problem
    delta: float = 0.01
    """Risk of a wrong answer."""
    stopping: str = "mixture"
    """Name of the stopping rule, in `spectralbai.stopping.RULES`; mixture is proved and the best of them."""
    mean_range: tuple[float, float] | None = None
    """Interval known to hold the means, if any; that of `Problem.bounded` by default."""
    watching: tuple[tuple[str, float], ...] = ()
    """Further (rule, delta) pairs to read off the same pulls; pulling goes on until all are settled."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InvalidInput(f"`problem` must be a spectralbai.Problem, got {type(self.problem).__name__}")
        if self.ignores_graph:
            object.__setattr__(self, "problem", replace(self.problem, R=math.inf))
        if self.problem.R == 0:
            raise InvalidInput(
                "`R` must be positive, got 0; the arms of a component are then equal: keep one of each, with R = "
                "math.inf"
            )
        for name, delta in self.rules:
            if not isinstance(name, str) or name not in RULES:
                raise InvalidInput(f"`stopping` must be one of {', '.join(RULES)}, got {name!r}")
            check_delta(delta)
        if self.mean_range is not None:
            check_interval("mean_range", self.mean_range)

    @property
    def rules(self) -> tuple[tuple[str, float], ...]:
        """All (rule, delta) pairs watched; the policy's own is the first."""
        return ((self.stopping, self.delta), *self.watching)

    def init(self) -> State:
        """Returns the state before any result."""
        n_arms = self.problem.n_arms
        zeros, even = np.zeros(n_arms), np.full(n_arms, 1 / n_arms)
        for vector in (zeros, even):
            vector.setflags(write=False)
        watches = tuple(Watch() for _ in self.rules)
        return State(zeros, zeros, 0.0, zeros, 0, even, even, 1, 0, None, watches)

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        """Returns the policy for an instance; only the oracle looks at its means."""
        return cls(instance.problem, **settings)

    def ask(
        self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: np.random.Generator | None = None
    ) -> Indices:
        """Returns the next n arms to pull: none once everything is settled.

        `pending` (n_arms,) counts pulls handed out whose results have not been told: they count as pulls, never as
        evidence. Randomised policies need `rng`.
        """
        n = check_integer("n", n, 0)
        self._check_state(state)
        if all(watch.settled for watch in state.watches):
            return np.empty(0, dtype=np.intp)
        issued = state.counts
        if pending is not None:
            waiting = check_vector("pending", pending, self.problem.n_arms)
            if (waiting < 0).any() or (waiting != np.floor(waiting)).any():
                raise InvalidInput(f"`pending` must hold whole non-negative numbers, got {pending!r}")
            issued = issued + waiting
        # First one arm of every component.
        components = self.problem.components
        first = np.array([np.argmax(components == c) for c in self._missing(issued)[:n]], dtype=np.intp)
        if first.size == n:
            return first
        issued = issued + np.bincount(first, minlength=issued.size)
        return np.concatenate([first, self._pulls(state, issued, n - first.size, rng)])

    def horizon(self, state: State) -> int:
        """Returns how many pulls can be asked for at once before results would change them."""
        return state.next_check - state.samples

    @abstractmethod
    def _pulls(self, state: State, issued: Vector, n: int, rng: np.random.Generator | None) -> Indices:
        """Returns the next n arms after the pulls `issued`, which hold one of every component."""

    def _plan(self, state: State, mu_tilde: Vector) -> State:
        """Returns the state with what the sampling rule wants to remember of a check."""
        return state

    def tell(self, state: State, arms: ArrayLike, rewards: ArrayLike) -> State:
        """Returns the state after the outcomes `rewards` of pulls of `arms`, in the order received."""
        self._check_state(state)
        pulled, outcomes = self._check_results(arms, rewards)
        if not pulled.size:
            return state
        if state.samples == 0:
            state = replace(state, origin=float(outcomes[0]))
        done = 0
        while done < pulled.size:
            take = min(pulled.size - done, state.next_check - state.samples)
            counts, sums = state.counts.copy(), state.sums.copy()
            np.add.at(counts, pulled[done : done + take], 1.0)
            np.add.at(
                sums, pulled[done : done + take], outcomes[done : done + take] - state.origin
            )  # in order: batches change nothing
            for vector in (counts, sums):
                vector.setflags(write=False)
            state = replace(state, counts=counts, sums=sums)
            done += take
            if state.samples == state.next_check:
                state = self._check(state)
        return state

    def verdict(self, state: State, watch: int = 0) -> Verdict:
        """Returns what the rule number `watch` says; 0 is the policy's own."""
        seen = state.watches[watch]
        rule = RULES[self.rules[watch][0]]
        return Verdict(
            seen.decided,
            seen.arm,
            seen.statistic,
            seen.threshold,
            state.samples,
            seen.stopped_at,
            seen.consistent,
            rule.proved,
        )

    def estimates(self, state: State, watch: int = 0) -> Estimates:
        """Returns estimates of all means from the results received so far, with confidence intervals by rule number
        `watch`.

        The intervals rest on the event that the risk of the rule does: with probability 1 - delta they hold all means
        at all times, and the answer is right. Rules that are not proved have none, nor have data that contradict R.
        """
        self._check_state(state)
        seen, (name, delta) = state.watches[watch], self.rules[watch]
        high = np.full(self.problem.n_arms, np.inf)
        mean, low = np.full(self.problem.n_arms, np.nan), -high
        consistent = None
        if not self._missing(state.counts).size:
            evidence, mean = self._evidence(state)
            reading = self._rule(name).read(evidence)
            if reading.tests_R or not seen.consistent:
                consistent = seen.consistent and reading.consistent(delta)
            ends = reading.intervals(delta) if seen.consistent else None
            if ends is not None:
                # That means lie in the range of the outcomes is as sure as sigma, which comes of it.
                range_ = self.problem.outcome_range or (-np.inf, np.inf)
                low, high = (np.clip(each + state.origin, *range_) for each in ends)
        vectors = mean + state.origin, low, high
        for vector in vectors:
            vector.setflags(write=False)
        return Estimates(*vectors, consistent)

    def remaining(self, state: State, watch: int = 0) -> float:
        """Returns a forecast of the trials still to come before rule number `watch` decides; no more than a forecast.

        What its statistic lacks of its threshold, over what it gains per trial at the current estimate and allocation
        (theory 6.15), and at least the results missing for the next check. 0 once settled, inf where the estimate is
        tied, nan where there is no threshold yet or, as for intervals, no rate.
        """
        self._check_state(state)
        seen, (name, delta) = state.watches[watch], self.rules[watch]
        if seen.settled:
            return 0.0
        if self._missing(state.counts).size:
            return math.nan
        evidence, mu_tilde = self._evidence(state)
        rule = self._rule(name)
        statistic, threshold = rule.read(evidence).least_beaten(delta)
        growth = rule.growth(self.problem, mu_tilde, evidence.best, self._current_allocation(state))
        if math.isinf(threshold) or math.isnan(growth):
            return math.nan
        due = float(state.next_check - state.samples)
        if statistic > threshold:
            return due
        return max((threshold - statistic) / growth, due) if growth > TIED else math.inf

    def _current_allocation(self, state: State) -> Vector:
        """Returns the shares of the arms in the pulls to come, as far as they are known: those of the results so
        far."""
        return state.counts / state.samples

    def _missing(self, counts: Vector) -> Indices:
        """Returns the components without a pull, or result: an estimate needs one in each."""
        return np.flatnonzero(np.bincount(self.problem.components, counts) == 0)

    def _evidence(self, state: State) -> tuple[Evidence, Vector]:
        """Returns what stopping rules look at, and the estimate; every component has a result."""
        problem, data = self.problem, state.data
        mu_tilde = estimate(problem, data.counts, data.means)
        best = int(np.argmax(mu_tilde))
        if problem.tolerance > 0 and mu_tilde[state.best] >= mu_tilde[best] - 0.5 * problem.tolerance:
            best = state.best  # among right answers, changing one's mind only costs samples
        return Evidence(problem, data, best, state.split, state.origin), mu_tilde

    def _check_state(self, state: State) -> None:
        found, expected = (state.counts.size, len(state.watches)), (self.problem.n_arms, len(self.rules))
        if found != expected:
            raise InvalidInput(
                f"`state` must be of this policy, with {expected[0]} arms and {expected[1]} stopping rules, "
                f"got {found[0]} and {found[1]}; start from policy.init()"
            )

    def _check_results(self, arms: ArrayLike, rewards: ArrayLike) -> tuple[Indices, Vector]:
        try:
            values, given = (np.atleast_1d(np.asarray(each)) for each in (arms, rewards))
        except (TypeError, ValueError):  # ragged
            raise InvalidInput("`arms` and `rewards` must be two lists of one length, got lists within lists") from None
        if values.ndim != 1 or values.shape != given.shape:
            raise InvalidInput(
                f"`arms` and `rewards` must be two lists of one length, got shapes {values.shape} and {given.shape}"
            )
        pulled = np.array([check_arm("arms", arm, self.problem.n_arms) for arm in values.tolist()], dtype=np.intp)
        return pulled, self.problem.noise.check_outcomes("rewards", rewards)

    def _check(self, state: State) -> State:
        """Returns the state after a check: new estimate, stopping rules read, pulls planned."""
        samples = state.samples
        if self._missing(state.counts).size:
            return replace(state, next_check=samples + 1)
        evidence, mu_tilde = self._evidence(state)
        split = state.data if state.split is None and evidence.splits_here else state.split
        open_rules = {name for watch, (name, _) in zip(state.watches, self.rules, strict=True) if not watch.settled}
        readings = {name: self._rule(name).read(evidence) for name in open_rules}  # one serves every risk
        watches = tuple(
            watch if watch.settled else self._look(readings[name], delta, samples)
            for watch, (name, delta) in zip(state.watches, self.rules, strict=True)
        )
        return self._plan(
            replace(state, next_check=next_check(samples), best=evidence.best, split=split, watches=watches), mu_tilde
        )

    def _rule(self, name: str) -> StoppingRule:
        rule = RULES[name]
        known = self.mean_range or self.problem.outcome_range
        return replace(rule, mean_range=known) if isinstance(rule, Mixture) and known else rule

    @staticmethod
    def _look(reading: Reading, delta: float, samples: int) -> Watch:
        statistic, threshold = reading.least_beaten(delta)
        consistent = reading.consistent(delta)
        settled = reading.decided(delta) or not consistent
        return Watch(reading.arm, statistic, threshold, samples if settled else None, consistent)
