"""SpectralTaS: track the optimal allocation of the current estimate, stop when a rule says so [KG20, Algorithm 1]."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.allocation.interior_point import search
from spectralbai.checks import Indices, Vector, check_arm, check_delta, check_integer, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.oracle import Oracle
from spectralbai.policy.state import State, Verdict, Watch
from spectralbai.problem import Problem
from spectralbai.stopping import RULES, Evidence, Mixture, Reading, StoppingRule
from spectralbai.tracking import floor, next_check, next_pulls, project_on_floor

TRACKING_TOL = 3e-2
"""Relative gap asked of the tracked allocations: the estimate they are for is never that good."""

TIED = 1e-18
"""Least 1/T worth an allocation: below it means are tied, or differ by rounding."""


@dataclass(frozen=True, eq=False)
class SpectralTaS:
    """A policy for one problem: C-tracking of omega*(mu_tilde), and one or several stopping rules.

    `init` makes a state, `ask` says which arms to pull, `tell` takes outcomes, `verdict` reads the answer. Outcomes
    may come late, in any order and in parts: work happens at its own schedule of received results, so that a batch
    told at once or one by one gives the same state, bit for bit.
    """

    problem: Problem
    delta: float = 0.01
    """Risk of a wrong answer."""
    stopping: str = "mixture"
    """Name of the stopping rule: mixture (proved), paper, paper-printed or gk16."""
    mean_range: tuple[float, float] | None = None
    """Interval known to hold the means, if any; that of `Problem.bounded` by default."""
    watching: tuple[tuple[str, float], ...] = ()
    """Further (rule, delta) pairs to read off the same pulls; pulling goes on until all are settled."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise InvalidInput(f"`problem` must be a spectralbai.Problem, got {type(self.problem).__name__}")
        if self.problem.R == 0:
            raise InvalidInput("`R` must be positive, got 0; the arms of a component are then equal: keep one of each, with R = math.inf")
        for name, delta in self.rules:
            if name not in RULES:
                raise InvalidInput(f"`stopping` must be one of {', '.join(RULES)}, got {name!r}")
            check_delta(delta)
        if self.mean_range is not None:
            replace(self.problem, outcome_range=self.mean_range)  # checks it

    @property
    def rules(self) -> tuple[tuple[str, float], ...]:
        """All (rule, delta) pairs watched; the policy's own is the first."""
        return ((self.stopping, self.delta), *self.watching)

    @property
    def _components(self) -> Indices:
        """The component of each arm; its own where the graph says nothing."""
        return np.arange(self.problem.n_arms) if self.problem.unstructured else self.problem.graph.components

    def init(self) -> State:
        """Returns the state before any result."""
        n_arms = self.problem.n_arms
        zeros, even = np.zeros(n_arms), np.full(n_arms, 1 / n_arms)
        for vector in (zeros, even):
            vector.setflags(write=False)
        watches = tuple(Watch() for _ in self.rules)
        return State(zeros, zeros, 0.0, zeros, 0, even, even, 1, 0, None, watches)

    def ask(self, state: State, n: int = 1, pending: ArrayLike | None = None) -> Indices:
        """Returns the next n arms to pull: none once everything is settled.

        `pending` (n_arms,) counts pulls handed out whose results have not been told: they count for tracking only.
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
        # First one arm of every component: an estimate needs it.
        components = self._components
        missing = np.flatnonzero(np.bincount(components, issued) == 0)[:n]
        first = np.array([np.argmax(components == c) for c in missing], dtype=np.intp)
        issued = issued + np.bincount(first, minlength=issued.size)
        targets = state.targets + (issued.sum() - state.base) * state.rate
        return np.concatenate([first, next_pulls(targets, state.rate, issued, n - first.size)])

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
            np.add.at(sums, pulled[done : done + take], outcomes[done : done + take] - state.origin)  # in order: batches change nothing
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
        return Verdict(seen.decided, seen.arm, seen.statistic, seen.threshold, state.samples, seen.stopped_at, seen.consistent, rule.proved)

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
        if given.dtype.kind not in "biuf":  # numpy would turn strings and None into numbers
            raise InvalidInput(f"`rewards` must be numbers, got {reprlib.repr(rewards)}; leave missing results out")
        outcomes = given.astype(np.float64)
        if values.ndim != 1 or values.shape != outcomes.shape:
            raise InvalidInput(f"`arms` and `rewards` must be two lists of one length, got shapes {values.shape} and {outcomes.shape}")
        pulled = np.array([check_arm("arms", arm, self.problem.n_arms) for arm in values.tolist()], dtype=np.intp)
        bad = np.flatnonzero(~np.isfinite(outcomes))
        if bad.size:
            raise InvalidInput(f"`rewards` must be finite, got {outcomes[bad[0]]} at position {bad[0]}; leave missing results out")
        if self.problem.outcome_range is not None:
            low, high = self.problem.outcome_range
            bad = np.flatnonzero((outcomes < low) | (outcomes > high))
            if bad.size:
                value, at = outcomes[bad[0]], bad[0]
                raise InvalidInput(f"`rewards` must lie in [{low:g}, {high:g}], got {value:g} at position {at}; widen the range")
        return pulled, outcomes

    def _check(self, state: State) -> State:
        """Returns the state after a check: new estimate, new allocation, stopping rules read."""
        problem, data, samples = self.problem, state.data, state.samples
        if (np.bincount(self._components, data.counts) == 0).any():
            return replace(state, next_check=samples + 1)
        mu_tilde = estimate(problem, data.counts, data.means)
        best = int(np.argmax(mu_tilde))
        if problem.tolerance > 0 and mu_tilde[state.best] >= mu_tilde[best] - 0.5 * problem.tolerance:
            best = state.best  # among right answers, changing one's mind only costs samples
        omega = self._allocation(mu_tilde, best)
        evidence = Evidence(problem, data, best, state.split, state.origin)
        split = data if state.split is None and evidence.splits_here else state.split
        rate = project_on_floor(omega, floor(problem.n_arms, samples))
        targets = state.targets + (samples - state.base) * state.rate
        for vector in (omega, rate, targets):
            vector.setflags(write=False)
        open_rules = {name for watch, (name, _) in zip(state.watches, self.rules, strict=True) if not watch.settled}
        readings = {name: self._rule(name).read(evidence) for name in open_rules}  # one serves every risk
        watches = tuple(
            watch if watch.settled else self._look(readings[name], delta, samples)
            for watch, (name, delta) in zip(state.watches, self.rules, strict=True)
        )
        later = next_check(samples)
        return replace(
            state, targets=targets, base=samples, omega=omega, rate=rate, next_check=later, best=best, split=split, watches=watches
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

    def _allocation(self, mu_tilde: Vector, best: int) -> Vector:
        """Returns the allocation to track: omega*(mu_tilde), or the tied arms in equal parts where there is none.

        A cold start, on purpose. Where many allocations are optimal it finds a balanced one, which also tests R; the
        last allocation as a start would keep whatever imbalance early noise left, at more samples and hardly less time.
        """
        oracle = Oracle(self.problem, mu_tilde, best)
        trial = oracle.respond(np.full(mu_tilde.size, 1 / mu_tilde.size))
        if TIED < trial.value < np.inf:
            return search(oracle, TRACKING_TOL, max_iterations=50).best.omega[oracle.blocks.position]
        tied = mu_tilde >= mu_tilde[best] - 1e-7 * self.problem.sigma.max() - self.problem.tolerance
        shares: Vector = tied / tied.sum()
        return shares
