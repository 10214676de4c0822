"""The contract of a policy: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.checks import Indices, Vector, check_arm, check_delta, check_integer, check_interval, check_vector
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.evidence.blocks import Block, Data, fill, ranks_of
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.outlook import Outlook
from spectralbai.instance import Instance
from spectralbai.policy.state import State, Watch
from spectralbai.policy.views import Estimates, Verdict
from spectralbai.problem import Problem
from spectralbai.sampling import TIED, SamplingRule, View
from spectralbai.stopping import RULES, Reading, StoppingRule

GROWTH = 1.02
"""If pulls do not come in blocks, stopping rules are read at numbers of samples that grow by this factor."""
Readings = tuple[Verdict, ...]
"""The verdicts of all (rule, delta) pairs of a policy at one time."""


def next_reading(samples: int) -> int:
    """Returns the number of samples at which stopping rules are read next: one more at first, 2 % more later."""
    return max(samples + 1, int(samples * GROWTH))


@dataclass(frozen=True, eq=False)
class Policy:
    """A policy for one problem: a sampling rule, and one or several stopping rules.

    `init` makes a state, `ask` says which arms to pull, `tell` takes outcomes, `verdict` reads the answer. Outcomes may
    come late, in any order and in parts: a batch told at once or one by one gives the same state, bit for bit.

    With a rule that bets, pulls come in blocks. The pulls of a block are fixed when it is opened, and `ask` hands out
    its slots. Its results stay sealed until every slot has one; then they become seen, the rules are read, and the next
    block is opened. Other rules use every result when it arrives, and are read at times that grow by 2 %.
    """

    ignores_graph: ClassVar[bool] = False
    """Whether the policy ignores the graph: its problem is then changed to R = inf."""

    problem: Problem
    delta: float = 0.01
    """Risk of a wrong answer."""
    stopping: str | StoppingRule[Any] = "betting"
    """The stopping rule, or its name in `spectralbai.stopping.RULES`."""
    mean_range: tuple[float, float] | None = None
    """Interval that the means are known to lie in, if any, for the rule mixture; by default the range of
    `Problem.bounded`."""
    watching: tuple[tuple[str | StoppingRule[Any], float], ...] = ()
    """More (rule, delta) pairs that are read on the same pulls; pulling goes on until all have decided or found a
    contradiction."""
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
        if self.mean_range is not None:
            check_interval("mean_range", self.mean_range)
        for each in self._rules.values():
            each.check(self.problem)
        if self.in_blocks and self.sampling.most_at_once is not None:
            raise InvalidInput(
                f"`stopping` = {self.rules[0][0]} bets on blocks of pulls, and {type(self).__name__} looks at every "
                "result before the next pull; use mixture"
            )

    @property
    def uses_delta(self) -> bool:
        """Whether the pulls depend on delta; if not, one run can be read at several risks."""
        return self.sampling.uses_delta

    @cached_property
    def _watched(self) -> tuple[tuple[StoppingRule[Any], float], ...]:
        """All (rule, delta) pairs: first (`stopping`, `delta`), then those of `watching`."""

        def rule_of(given: str | StoppingRule[Any]) -> StoppingRule[Any]:
            return RULES[given] if isinstance(given, str) else given

        pairs = [(rule_of(given), delta) for given, delta in ((self.stopping, self.delta), *self.watching)]
        named: dict[str, StoppingRule[Any]] = {}
        for rule, _ in pairs:
            if named.setdefault(rule.name, rule) != rule:  # a state stores the memories of rules by name
                raise InvalidInput(f"`watching` must hold one rule of each name, got two of {rule.name}; rename one")
        if self.mean_range is not None:
            own = pairs[0][0]
            named[own.name] = own.knowing(self.mean_range)
        return tuple((named[rule.name], delta) for rule, delta in pairs)

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

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        """Returns the policy for an instance; only `OracleSampling` uses its means."""
        return cls(instance.problem, **settings)

    def init(self) -> State:
        """Returns the state before any result."""
        nothing = Data.none(self.problem.n_arms)
        state = State(
            data=nothing,
            origin=0.0,
            blocks=(),
            opened=0,
            informing=nothing,
            next_reading=1,
            best=0,
            sampling=self.sampling.start(self.problem),
            stopping={name: rule.start(self.problem) for name, rule in self._rules.items()},
            watches=tuple(Watch() for _ in self._watched),
        )
        return self.open(state) if self.in_blocks else state

    def open(self, state: State) -> State:
        """Returns the state with one more open block, planned from what is seen now.

        Use it to open a block ahead, when every slot of the open blocks is handed out and workers want more.
        """
        self._check_state(state)
        if not self.in_blocks or self._settled(state):
            return state
        if state.informing.samples:
            nothing = Data.none(self.problem.n_arms)
            state = replace(state, data=state.data + state.informing, informing=nothing)
            if self.has_estimate(state):
                evidence = self._weighed(state)
                own = self._watched[0][0]
                reading = own.read(self._memory(state, own.name), evidence)
                evidence = self._defended(evidence, reading)
                plan = self.sampling.plan(state.sampling, self._view(state, evidence, reading))
                state = replace(state, best=evidence.best, sampling=plan)
        issued = state.data.counts.copy()
        for block in state.blocks:
            issued[: block.n_arms] += block.counts
        arms = self._first_pulls(issued, state.withdrawn)
        if not arms.size:
            view = self._view(state, self._seen(state))
            size = self.sampling.block_size(state.sampling, view, int(issued.sum()))
            arms = self.sampling.pulls(state.sampling, view, issued, size)
        block = Block.opened(arms, state.data, state.best, state.opened)
        return replace(state, blocks=(*state.blocks, block), opened=state.opened + 1)

    def withdraw(self, state: State, arm: int) -> State:
        """Returns the state without an arm: it is never pulled again and never the answer; a decision for it is
        revoked.

        From then on the question is which of the other arms is best. Bets that relied on the arm are undone, and arms
        that they eliminated come back. Open blocks with a pull of the arm are cancelled: their results only inform. The
        decision to withdraw an arm must not depend on outcomes; then the risk of all answers together is at most 2
        delta (theory 12.15).
        """
        self._check_state(state)
        arm = check_arm("arm", arm, self.problem.n_arms)
        if not self.in_blocks:
            raise InvalidInput("this policy cannot go on without an arm; only a race with the rule betting can")
        if arm in state.withdrawn:
            return state
        if len(state.withdrawn) + 2 > self.problem.n_arms:
            raise InvalidInput(
                "all other arms are withdrawn; the last one must stay, since otherwise there would be nothing to find"
            )
        withdrawn = (*state.withdrawn, arm)
        left = np.delete(np.arange(self.problem.n_arms), withdrawn)
        mates = self.problem.components == self.problem.components[arm]
        if not mates[left].any() and not state.data.counts[mates].any():
            raise InvalidInput(
                "without the arm, its component would have no arm to try, and it has no result that is seen yet; tell "
                "the first trial of the arm before you withdraw it"
            )
        kept = tuple(block for block in state.blocks if arm not in block.arms)
        informing = state.informing
        for block in state.blocks:
            if arm in block.arms:
                informing = informing + block.results.padded(self.problem.n_arms)
        memories = {name: rule.withdraw(self._memory(state, name), arm) for name, rule in self._rules.items()}
        sampling = self.sampling.without(state.sampling, arm)
        best = state.best if state.best != arm else int(left[0])
        state = replace(
            state,
            blocks=kept,
            informing=informing,
            stopping=memories,
            sampling=sampling,
            withdrawn=withdrawn,
            best=best,
        )
        if self.has_estimate(state):
            standing = tuple(watch.settled and (watch.arm != arm or not watch.consistent) for watch in state.watches)
            state = self._reread(state, standing)
        else:
            others = (replace(watch, arm=best) if watch.arm == arm else watch for watch in state.watches)
            state = replace(state, watches=tuple(others))
        # The new leader may have joined after a block was opened, and then cannot be the leader of that block. The
        # first arm left can: a block that is kept has at least one arm that is not withdrawn, and that arm was there at
        # its opening.
        blocks = tuple(
            replace(block, best=state.best if state.best < block.n_arms else int(left[0]))
            if block.best == arm
            else block
            for block in state.blocks
        )
        return self._opened(replace(state, blocks=blocks))

    def joined(self, problem: Problem) -> Self:
        """Returns the policy after arms have joined. `problem` has all arms, the new ones last; its noise and tolerance
        must be the same as now, its graph and R may differ.

        Convert states to the new policy with its method `join`.
        """
        problem.check_extends(self.problem)
        return replace(self, problem=problem, earlier=(*self.earlier, self.problem))

    def join(self, state: State, kept: Collection[int] | None = None) -> State:
        """Returns a state of the policy before arms last joined, extended by these arms; the race goes on, even if it
        had decided.

        The accounts against new arms start at 1, the others go on. Eliminated arms stay out, since an arm that is
        better is still there. Bets on open blocks do not change. Of the open blocks, those whose numbers are in `kept`
        stay open (all if it is None); the results of the others only inform. Which arms join, and when, may depend on
        seen results but not on sealed ones. The best arm is eliminated with probability at most delta if this choice
        does not depend on results at all, and otherwise at most delta for each arm that was best at some time (theory
        12.16, 12.17).
        """
        n_arms = self.problem.n_arms
        if not self.earlier or state.n_arms != self.earlier[-1].n_arms:
            raise InvalidInput("`state` must belong to the policy whose method `joined` made this one")
        if any(watch.doubted or not watch.consistent for watch in state.watches):
            raise InvalidInput("the data contradict the hypotheses, so no arm can join; start a new run")
        memories = {
            name: rule.join(self._memory(state, name), self.problem, self.earlier[-1])
            for name, rule in self._rules.items()
        }
        informing = state.informing.padded(n_arms)
        blocks = []
        for block in state.blocks:
            if kept is None or block.number in kept:
                blocks.append(block)
            else:
                informing = informing + block.results.padded(n_arms)
        state = replace(
            state,
            data=state.data.padded(n_arms),
            informing=informing,
            blocks=tuple(blocks),
            sampling=self.sampling.join(state.sampling, n_arms),
            stopping=memories,
            watches=tuple(Watch(watch.arm) for watch in state.watches),
            joined=(*state.joined, state.n_arms),
        )
        if self.has_estimate(state):
            state = self._reread(state)
        return self._opened(state)

    def _reread(self, state: State, standing: Sequence[bool] | None = None) -> State:
        """Returns the state after its rules are read again because the set of arms changed. Watches marked in
        `standing`, if given, stay as they are."""
        evidence = self._weighed(state)
        readings = {name: rule.read(state.stopping[name], evidence) for name, rule in self._rules.items()}
        watches = tuple(
            watch if stands else self._look(readings[rule.name], delta, state.data.samples)
            for watch, stands, (rule, delta) in zip(
                state.watches, standing or [False] * len(state.watches), self._watched, strict=True
            )
        )
        own = readings[self.rules[0][0]]
        evidence = evidence.defending(own.recommended(self.delta))
        plan = self.sampling.plan(state.sampling, self._view(state, evidence, own))
        return replace(state, best=evidence.best, watches=watches, sampling=plan)

    def ask(
        self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: np.random.Generator | None = None
    ) -> Indices:
        """Returns the next arms to pull, at most n; none once all rules have stopped.

        If pulls come in blocks, these are free slots, and fewer than n if fewer are free: tell results first, or `open`
        a block ahead. `pending` (n_arms,) counts pulls that were handed out and whose results are not told yet, so that
        they are not handed out twice. Randomised policies need `rng`.
        """
        return self.ask_slots(state, n, pending, rng)[0]

    def ask_slots(
        self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: np.random.Generator | None = None
    ) -> tuple[Indices, Indices]:
        """Returns what `ask` returns, and the number of each pull's block; -1 if pulls do not come in blocks.

        If several blocks are open, pass these numbers to `tell`.
        """
        n = check_integer("n", n, 0)
        self._check_state(state)
        waiting = np.zeros(self.problem.n_arms)
        if pending is not None:
            waiting = check_vector("pending", pending, self.problem.n_arms)
            if (waiting < 0).any() or (waiting != np.floor(waiting)).any():
                raise InvalidInput(f"`pending` must hold whole non-negative numbers, got {pending!r}")
        if self._settled(state):
            nothing = np.empty(0, dtype=np.intp)
            return nothing, nothing
        if self.in_blocks:
            blocks = self._opened(state).blocks
            free = np.concatenate([block.arms[block.free] for block in blocks])
            numbers = np.repeat([block.number for block in blocks], [block.free.size for block in blocks])
            if not waiting.any():
                return free[:n], numbers[:n]
            # Pending pulls occupy the oldest free slots of their arms. A slot is available if more free slots of its
            # arm come before it than pulls of that arm are pending, or as many.
            unclaimed = np.flatnonzero(ranks_of(free) >= waiting[free])[:n]
            return free[unclaimed], numbers[unclaimed]
        issued = state.counts + waiting
        arms = self._first_pulls(issued)[:n]
        if arms.size < n:
            issued = issued + np.bincount(arms, minlength=issued.size)
            view = self._view(state, self._seen(state))
            more = self.sampling.pulls(state.sampling, view, issued, n - arms.size, rng)
            arms = np.concatenate([arms, more])
        return arms, np.full(arms.size, -1)

    def horizon(self, state: State) -> int:
        """Returns how many pulls can be asked for at once before new results would change the choice."""
        if self.in_blocks:
            return sum(block.free.size for block in self._opened(state).blocks)
        return self.sampling.most_at_once or state.next_reading - state.samples

    def tell(self, state: State, arms: ArrayLike, rewards: ArrayLike, blocks: ArrayLike | None = None) -> State:
        """Returns the state after the outcomes `rewards` of pulls of `arms`, in the order received.

        If pulls come in blocks, each result fills the oldest free slot of its arm. A result without a slot only
        informs: it becomes seen when the next block is opened, and no bet is settled by it. `blocks` gives the block
        number of each pull (from `ask_slots`), and -1 for results that were not asked for, which only inform. Give
        `blocks` if several blocks are open and results may arrive in another order, or if past results are told.
        Otherwise a slot may be filled by whichever result came first, or by results chosen by their values; bets on
        such slots are not fair, and the risk is no longer guaranteed (theory 12.1).
        """
        return self.advance(state, arms, rewards, blocks)[0]

    def advance(
        self, state: State, arms: ArrayLike, rewards: ArrayLike, blocks: ArrayLike | None = None
    ) -> tuple[State, tuple[Readings, ...]]:
        """Returns what `tell` returns, and the verdicts at each time that the rules were read meanwhile."""
        self._check_state(state)
        pulled, outcomes = self._check_results(arms, rewards)
        if not pulled.size:
            return state, ()
        if state.samples == 0:
            state = replace(state, origin=float(outcomes[0]))
        outcomes = outcomes - state.origin
        if not self.in_blocks:
            return self._count(state, pulled, outcomes)
        numbers = None
        if blocks is not None:
            numbers = np.atleast_1d(np.asarray(blocks))
            if numbers.dtype.kind not in "iu" or numbers.shape != pulled.shape:
                raise InvalidInput(
                    f"`blocks` must be one whole number per arm, got {blocks!r}; use the numbers that ask_slots returns"
                )
        return self._fill(state, pulled, outcomes, numbers)

    def _count(self, state: State, arms: Indices, outcomes: Vector) -> tuple[State, tuple[Readings, ...]]:
        """Returns the state after results without blocks; rules are read at the scheduled numbers of samples."""
        readings: list[Readings] = []
        done = 0
        while done < arms.size:
            take = min(arms.size - done, state.next_reading - state.samples)
            part = slice(done, done + take)
            state = replace(state, data=state.data.plus(arms[part], outcomes[part]))
            done += take
            if state.samples < state.next_reading:
                break
            samples = state.samples
            if not self.has_estimate(state):
                state = replace(state, next_reading=samples + 1)
                continue
            state = self._read(replace(state, next_reading=next_reading(samples)), None)
            readings.append(self._verdicts(state))
        return state, tuple(readings)

    def _fill(
        self, state: State, arms: Indices, outcomes: Vector, numbers: Indices | None
    ) -> tuple[State, tuple[Readings, ...]]:
        """Returns the state after results that fill slots of the open blocks; rules are read when a block closes."""
        readings: list[Readings] = []
        state = self._opened(state)
        done = 0
        while done < arms.size:
            blocks, taken, without_slot = fill(
                state.blocks, arms[done:], outcomes[done:], None if numbers is None else numbers[done:]
            )
            informing = state.informing
            if without_slot.any():
                late = slice(done, done + taken)
                informing = informing.plus(arms[late][without_slot], outcomes[late][without_slot])
            state = replace(state, blocks=blocks, informing=informing)
            done += taken
            while state.blocks and state.blocks[0].closed:
                first, *rest = state.blocks
                before = state.data
                data = before.plus(first.arms, first.outcomes)
                state = self._read(replace(state, data=data, blocks=tuple(rest)), first)
                if rest:
                    ahead = tuple(self._after_closing(block, first, before, state) for block in rest)
                    state = replace(state, blocks=ahead)
                readings.append(self._verdicts(state))
                if not state.blocks:
                    state = self.open(state)
        return state, tuple(readings)

    def _after_closing(self, block: Block, closed: Block, before: Data, state: State) -> Block:
        """Returns an open block after one that was opened earlier has closed; its bets may now use those results too.

        The bets stay fair, because the closed block was fixed before this one (theory 12.1). The pulls of the block do
        not change. `before` holds the results seen until now. If it has results that only inform and became seen after
        this block was opened, its bets must not use them: they may have been chosen by looking at its results.
        """
        if block.n_arms < state.n_arms:  # arms joined since: its leader must be one of the arms at its opening
            return replace(block, data=block.data.plus(closed.arms, closed.outcomes))
        if np.array_equal(block.data.counts, before.counts):
            return replace(block, data=state.data, best=state.best)
        data, best = block.data.plus(closed.arms, closed.outcomes), block.best
        known = replace(state, data=data, best=best)
        if self.has_estimate(known):
            evidence, own = self._weighed(known), self._watched[0][0]
            best = self._defended(evidence, own.read(self._memory(state, own.name), evidence)).best
        return replace(block, data=data, best=best)

    def _read(self, state: State, block: Block | None) -> State:
        """Returns the state after new results are seen: rules learn from them and are read, and pulls are planned.

        If arms have joined, rules are not read before every component has a result again.
        """
        evidence = self._weighed(state)
        then = evidence if block is None or block.n_arms == state.n_arms else self._when_opened(block, state)
        running = {
            rule.name for watch, (rule, _) in zip(state.watches, self._watched, strict=True) if not watch.settled
        }
        memories = dict(state.stopping)
        for name, rule in self._rules.items():
            memory = self._memory(state, name)
            memories[name] = rule.observe(memory, block, then, decided=name not in running)
        if not self.has_estimate(state):
            return replace(state, stopping=memories)
        readings = {name: self._rules[name].read(memories[name], evidence) for name in running}
        watches = tuple(
            self._doubted(watch, rule, memories[rule.name], evidence, delta)
            if watch.settled
            else self._look(readings[rule.name], delta, state.data.samples)
            for watch, (rule, delta) in zip(state.watches, self._watched, strict=True)
        )
        own = readings.get(self.rules[0][0])
        evidence = self._defended(evidence, own)
        plan = state.sampling
        if not all(watch.settled for watch in watches):
            plan = self.sampling.plan(plan, self._view(state, evidence, own))
        # After the decision results may still arrive, but no more pulls are planned.
        return replace(state, best=evidence.best, stopping=memories, watches=watches, sampling=plan)

    def _when_opened(self, block: Block, state: State) -> Evidence:
        """Returns the evidence for a block that was opened before arms joined, with the problem at its opening and with
        its results."""
        problem = next(each for each in self.earlier if each.n_arms == block.n_arms)
        return Evidence(problem, block.data.plus(block.arms, block.outcomes), block.best, state.origin)

    def _defended(self, evidence: Evidence, own: Reading | None) -> Evidence:
        """Returns the evidence with the leader: an arm that is not eliminated, if the pulls may depend on delta.

        If they may not, the leader must not depend on delta either, because one run is read at several risks.
        """
        if not self.in_blocks or not self.uses_delta or own is None:
            return evidence
        return evidence.defending(own.recommended(self.delta))

    def verdict(self, state: State, watch: int = 0) -> Verdict:
        """Returns the verdict of rule number `watch`; 0 is the rule `stopping`, later ones are those of `watching`."""
        return self._verdicts(state)[watch]

    def _verdicts(self, state: State) -> Readings:
        samples = state.samples
        return tuple(
            Verdict(
                seen.decided,
                seen.arm,
                seen.statistic,
                seen.threshold,
                samples,
                seen.stopped_at,
                seen.consistent,
                rule.proved,
                seen.candidates,
                seen.doubted,
                seen.lacking,
            )
            for seen, (rule, _) in zip(state.watches, self._watched, strict=True)
        )

    def estimates(self, state: State, watch: int = 0) -> Estimates:
        """Returns estimates of all means from the results received so far, with confidence intervals at the risk of
        rule number `watch`.

        With probability 1 - delta the intervals contain all means at all times. For a rule that bets, this risk comes
        in addition to the risk of its decisions, and the intervals start with the first result of a component (theory,
        section 14). They use all results received, also those that only inform; these must not have been chosen by
        their values. For other rules, intervals and decisions are right together with probability 1 - delta. There are
        no intervals for rules that are not proved, nor if the data contradict R.
        """
        self._check_state(state)
        seen, (rule, delta) = state.watches[watch], self._watched[watch]
        high = np.full(self.problem.n_arms, np.inf)
        mean, low = np.full(self.problem.n_arms, np.nan), -high
        consistent, ends = None, None
        received = state.received
        if not self._missing(received.counts).size:
            mean = estimate(self.problem, received.counts, received.means)
        if self.has_estimate(state):
            reading = rule.read(self._memory(state, rule.name), self._weighed(state))
            if reading.tests_R or not seen.consistent:
                consistent = seen.consistent and reading.consistent(delta)
            ends = reading.intervals(delta) if seen.consistent else None
        if rule.bets and consistent is not False:
            ends = pooled_intervals(self.problem, received, state.origin, delta)
        if ends is not None:
            # The means lie in the range of the outcomes, so the intervals are clipped to it.
            range_ = self.problem.outcome_range or (-np.inf, np.inf)
            low, high = (np.clip(each + state.origin, *range_) for each in ends)
        vectors = mean + state.origin, low, high
        for vector in vectors:
            vector.setflags(write=False)
        return Estimates(*vectors, consistent)

    def shares(self, state: State) -> Vector | None:
        """Returns the shares of the arms in future pulls, or in those so far; None before there is an estimate."""
        self._check_state(state)
        if not self.has_estimate(state) and not state.joined:
            return None
        return self.sampling.shares(state.sampling, self._view(state, self._weighed(state)))

    def remaining(self, state: State, watch: int = 0) -> float:
        """Returns a rough forecast of the number of trials still needed before rule number `watch` decides.

        For a rule with accounts, it is what the slowest account lacks divided by what a pull adds to it at the current
        estimate and plan. Both are noisy, so the forecast is moved towards the number of trials so far, by a factor of
        at most two: at a random moment, about half of a run is done (theory 13.6). For other rules, it is the distance
        of the statistic from its threshold divided by its gain per trial (theory 6.15). It is at least the number of
        results missing for the next reading; 0 once the rule has stopped, inf if the estimate is tied, and nan if there
        is no threshold yet or, as for intervals, no gain per trial.
        """
        self._check_state(state)
        seen, (rule, delta) = state.watches[watch], self._watched[watch]
        if seen.settled:
            return 0.0
        if not self.has_estimate(state):
            return math.nan
        evidence = self._weighed(state)
        shares = self.sampling.shares(state.sampling, self._view(state, evidence))
        reading = rule.read(self._memory(state, rule.name), evidence)
        due = float(self.horizon(state) if self.in_blocks else state.next_reading - state.samples)
        lacking = reading.lacking(delta)
        if lacking is not None:
            leader = reading.recommended(delta)
            growth = Outlook.on(evidence.defending(leader)).growth(leader, shares)
            racing = (lacking > 0) & (np.arange(lacking.size) != leader)
            if not racing.any():
                return due
            if growth[racing].min() <= TIED:
                return math.inf
            needed = float((lacking[racing] / growth[racing]).max())
            return max(needed * min(max(math.sqrt(evidence.samples / needed), 0.5), 2.0), due)
        statistic, threshold = reading.least_beaten(delta)
        gain = rule.growth(self.problem, evidence.mu_tilde, evidence.best, shares)
        if math.isinf(threshold) or math.isnan(gain):
            return math.nan
        if statistic > threshold:
            return due
        return max((threshold - statistic) / gain, due) if gain > TIED else math.inf

    def _opened(self, state: State) -> State:
        """Returns the state with at least one open block, unless all rules have stopped; states written by an earlier
        version have none."""
        return state if state.blocks else self.open(state)

    def _settled(self, state: State) -> bool:
        return all(watch.settled for watch in state.watches)

    def has_estimate(self, state: State) -> bool:
        """Whether every component has a result that is seen, which estimates need."""
        return not self._missing(state.data.counts).size

    def _missing(self, counts: Vector) -> Indices:
        """Returns the components whose counts are all 0."""
        if counts.all():
            return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.bincount(self.problem.components, counts) == 0)

    def _first_pulls(self, issued: Vector, withdrawn: tuple[int, ...] = ()) -> Indices:
        """Returns, for every component without a pull, its first arm that is not withdrawn."""
        components = self.problem.components
        if withdrawn:
            components = components.copy()
            components[list(withdrawn)] = -1
        missing = self._missing(issued)
        if not missing.size:
            return missing
        found, first = np.unique(components, return_index=True)
        return first[np.isin(found, missing)]

    def _memory(self, state: State, name: str) -> Memory:
        """Returns the memory of a rule; a new one if an earlier version wrote the state without this rule."""
        memory = state.stopping.get(name)
        return self._rules[name].start(self.problem) if memory is None else memory

    def _seen(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of the last reading."""
        return Evidence(self.problem, state.data, state.best, state.origin)

    def _weighed(self, state: State) -> Evidence:
        """Returns the evidence that rules look at, with the leader of now; every component must have a result.

        In a race it keeps the leader of the last reading: there the stopping rule chooses the new one (`_defended`).
        """
        if self.in_blocks and self.uses_delta:
            return self._seen(state)
        return Evidence.weighed(self.problem, state.data, state.origin, state.best)

    def _view(self, state: State, evidence: Evidence, reading: Reading | None = None) -> View:
        lacking = None if reading is None else reading.lacking(self.delta)
        return View(evidence, tuple(delta for _, delta in self._watched), lacking, state.withdrawn)

    def _check_state(self, state: State) -> None:
        found, expected = (state.data.counts.size, len(state.watches)), (self.problem.n_arms, len(self._watched))
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
        if values.dtype.kind not in "iu" or (
            values.size and not 0 <= values.min() <= values.max() < self.problem.n_arms
        ):
            for arm in values.tolist():
                check_arm("arms", arm, self.problem.n_arms)
        pulled = values.astype(np.intp)
        return pulled, self.problem.noise.check_outcomes("rewards", rewards)

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
