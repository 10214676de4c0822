"""The contract of a policy: a sampling rule and stopping rules behind init, ask, tell and verdict."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Vector, check_vector
from spectralbai.checks import check_arm, check_integer
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.evidence.blocks import Block, Data, ranks_of
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.evidence.outlook import Outlook
from spectralbai.instance import Instance
from spectralbai.policy.rule_reader import Readings
from spectralbai.policy.schedule import Schedule
from spectralbai.policy.state import State, Watch
from spectralbai.policy.views import Estimates
from spectralbai.problem import Problem
from spectralbai.sampling import TIED, Rng
from spectralbai.verdict import Verdict


@dataclass(frozen=True, eq=False)
class Policy(Schedule):
    """A policy for one problem: a sampling rule, and one or several stopping rules.

    `init` makes a state, `ask` says which arms to pull, `tell` takes outcomes, `verdict` reads the answer. Outcomes may
    come late, in any order and in parts: a batch told at once or one by one gives the same state, bit for bit.

    With a rule that bets, pulls come in blocks. The pulls of a block are fixed when it is opened, and `ask` hands out
    its slots. Its results stay sealed until every slot has one; then they become seen, the rules are read, and the next
    block is opened. Other rules use every result when it arrives, and are read at times that grow by 2 %.
    """

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

    def withdraw(self, state: State, arm: int) -> State:
        """Returns the state without an arm: it is never pulled again and never the answer; a decision for it is
        revoked.

        From then on the question is which of the other arms is best. Bets that relied on the arm are undone, and arms
        that they eliminated come back. Open blocks with a pull of the arm are cancelled: their results only inform. The
        decision to withdraw an arm must not depend on outcomes; then the risk of all answers together is at most 2
        delta (theory 12.15).
        """
        return self.after_withdrawal(state, arm)[0]

    def after_withdrawal(self, state: State, arm: int) -> tuple[State, tuple[Readings, ...]]:
        """Returns what `withdraw` returns, and the verdicts at each closing of a block that waited only for those that
        were cancelled."""
        self._check_state(state)
        arm = check_arm("arm", arm, self.problem.n_arms)
        if not self.in_blocks:
            raise InvalidInput("this policy cannot go on without an arm; only a race with the rule betting can")
        if arm in state.withdrawn:
            return state, ()
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
        memories = {name: rule.withdraw(self._memory(state, name), arm) for name, rule in self._rules.items()}
        sampling = self.sampling.without(state.sampling, arm)
        best = state.best if state.best != arm else int(left[0])
        state = self._keeping(state, [block for block in state.blocks if arm not in block.arms])
        state = replace(state, stopping=memories, sampling=sampling, withdrawn=withdrawn, best=best)
        if self.has_estimate(state):
            standing = tuple(watch.settled and (watch.arm != arm or not watch.consistent) for watch in state.watches)
            state = self._reread(state, standing)
        else:
            others = (replace(watch, arm=best) if watch.arm == arm else watch for watch in state.watches)
            state = replace(state, watches=tuple(others))
        blocks = tuple(
            replace(block, best=self._leader_instead(state, block, int(left[0]))) if block.best == arm else block
            for block in state.blocks
        )
        return self._closed(self._opened(replace(state, blocks=blocks)))

    def _leader_instead(self, state: State, block: Block, first_left: int) -> int:
        """Returns the leader of the bets on an open block whose leader was withdrawn.

        It depends only on the data that these bets may use: results that became seen after the opening may have been
        chosen by looking at those of the block. An arm that joined after the opening cannot lead. The first arm left
        can: a block that is kept has at least one arm that is not withdrawn, and that arm was there at its opening.
        """
        known = replace(state, data=block.data.padded(self.problem.n_arms), best=first_left)
        if not self.has_estimate(known):
            return first_left
        best = self._own_reading(state, self._seen(known)).recommended(self.delta)
        return best if best < block.n_arms else first_left

    def joined(self, problem: Problem) -> Self:
        """Returns the policy after arms have joined. `problem` has all arms, the new ones last; its noise and tolerance
        must be the same as now, its graph and R may differ.

        Convert states to the new policy with its method `join`.
        """
        problem.check_extends(self.problem)
        return replace(self, problem=problem, earlier=(*self.earlier, self.problem))

    def join(self, state: State, kept: Collection[int] | None = None) -> State:
        """Returns a state of the policy before arms last joined, extended by them; the race goes on, even if decided.

        The accounts against new arms start at 1, the others go on. Eliminated arms stay out, since an arm that is
        better is still there. Bets on open blocks do not change. Of the open blocks, those whose numbers are in `kept`
        stay open (all if it is None); the results of the others only inform. Which arms join, and when, may depend on
        seen results but not on sealed ones. The best arm is eliminated with probability at most delta if this choice
        does not depend on results at all, and otherwise at most delta for each arm that was best at some time
        (theory 12.16, 12.17).
        """
        return self.after_join(state, kept)[0]

    def after_join(self, state: State, kept: Collection[int] | None = None) -> tuple[State, tuple[Readings, ...]]:
        """Returns what `join` returns, and the verdicts at each closing of a block that waited only for those that were
        not kept."""
        n_arms = self.problem.n_arms
        if not self.earlier or state.n_arms != self.earlier[-1].n_arms:
            raise InvalidInput("`state` must belong to the policy whose method `joined` made this one")
        if any(watch.doubted or not watch.consistent for watch in state.watches):
            raise InvalidInput("the data contradict the hypotheses, so no arm can join; start a new run")
        memories = {
            name: rule.join(self._memory(state, name), self.problem, self.earlier[-1])
            for name, rule in self._rules.items()
        }
        state = replace(
            self._keeping(state, [block for block in state.blocks if kept is None or block.number in kept]),
            data=state.data.padded(n_arms),
            sampling=self.sampling.join(state.sampling, n_arms),
            stopping=memories,
            watches=tuple(Watch(watch.arm) for watch in state.watches),
            joined=(*state.joined, state.n_arms),
        )
        if self.has_estimate(state):
            state = self._reread(state)
        return self._closed(self._opened(state))

    def _keeping(self, state: State, kept: list[Block]) -> State:
        """Returns the state in which only these open blocks stay open; the results of the others only inform."""
        informing = state.informing.padded(self.problem.n_arms)
        for block in state.blocks:
            if block not in kept:
                informing = informing + block.results.padded(self.problem.n_arms)
        return replace(state, informing=informing, blocks=tuple(kept))

    def ask(self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: Rng = None) -> Indices:
        """Returns the next arms to pull, at most n; none once all rules have stopped.

        If pulls come in blocks, these are free slots, and fewer than n if fewer are free: tell results first, or `open`
        a block ahead. `pending` (n_arms,) counts pulls that were handed out and whose results are not told yet, so that
        they are not handed out twice. Randomised policies need `rng`.
        """
        return self.ask_slots(state, n, pending, rng)[0]

    def ask_slots(
        self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: Rng = None
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
            return self._closed(state) if self.in_blocks else (state, ())
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

    def verdict(self, state: State, watch: int = 0) -> Verdict:
        """Returns the verdict of rule number `watch`; 0 is the rule `stopping`, later ones are those of `watching`."""
        return self._verdicts(state)[watch]

    def estimates(self, state: State, watch: int = 0) -> Estimates:
        """Returns estimates of all means from the results so far, with intervals at the risk of rule number `watch`.

        With probability 1 - delta the intervals contain all means at all times. For a rule that bets, this risk comes
        in addition to the risk of its decisions, and the intervals start with the first result of a component
        (theory, section 14). They use all results received, also those that only inform; these must not have been
        chosen by their values. For other rules, intervals and decisions are right together with probability 1 - delta.
        There are no intervals for rules that are not proved, nor if the data contradict R.
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
            reading = rule.read(self._memory(state, rule.name), self._with_leader(state))
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
        return self.sampling.shares(state.sampling, self._view(state, self._with_leader(state)))

    def remaining(self, state: State, watch: int = 0) -> float:
        """Returns a rough forecast of the number of trials still needed before rule number `watch` decides.

        For a rule with accounts, it is when the slowest account will probably be full, given what it lacks and what a
        pull adds to it at the current estimate and plan. Both are noisy, so the forecast lies between that and the
        number of trials so far: at a random moment, about half of a run is done (theory 13.6). For other rules, it is
        the distance of the statistic from its threshold divided by its gain per trial (theory 6.15). It is at least the
        number of results missing for the next reading; 0 once the rule has stopped, inf if the estimate is tied, and
        nan if there is no threshold yet or, as for intervals, no gain per trial.
        """
        self._check_state(state)
        seen, (rule, delta) = state.watches[watch], self._watched[watch]
        if seen.settled:
            return 0.0
        if not self.has_estimate(state):
            return math.nan
        evidence = self._with_leader(state)
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
            median = float((lacking[racing] / growth[racing] / np.sqrt(1 + 2 / lacking[racing])).max())
            return max(math.pow(median, 0.45) * math.pow(evidence.samples, 0.55), due)  # (13.6)
        statistic, threshold = reading.least_beaten(delta)
        gain = rule.growth(self.problem, evidence.mu_tilde, evidence.best, shares)
        if math.isinf(threshold) or math.isnan(gain):
            return math.nan
        if statistic > threshold:
            return due
        return max((threshold - statistic) / gain, due) if gain > TIED else math.inf

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
