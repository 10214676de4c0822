"""A policy: settings, a sampling rule, stopping rules and a schedule behind init, ask, tell and verdict."""

from __future__ import annotations

import math
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from spectralbai.arrays import Indices, Vector, check_vector
from spectralbai.checks import check_arm, check_delta, check_integer
from spectralbai.errors import InvalidInput
from spectralbai.estimation import estimate
from spectralbai.evidence.blocks import Data, slot_keys
from spectralbai.evidence.intervals import pooled_intervals
from spectralbai.evidence.item_data import ItemData
from spectralbai.evidence.item_intervals import item_differences, item_intervals
from spectralbai.evidence.levels import BlockData
from spectralbai.evidence.outlook import Outlook
from spectralbai.instance import Instance
from spectralbai.policy.blocks import InBlocks
from spectralbai.policy.estimates import Differences, Estimates
from spectralbai.policy.every_result import EveryResult
from spectralbai.policy.first_pulls import empty_components
from spectralbai.policy.reader import RuleReader, Verdicts
from spectralbai.policy.results import Results, check_arms, check_items
from spectralbai.policy.state import State
from spectralbai.problem import Problem
from spectralbai.sampling import TIED, Rng, SamplingRule
from spectralbai.stopping import RULES, AgainstControl, Contrasts, StoppingRule
from spectralbai.tape import Tape
from spectralbai.verdict import Verdict


class Schedule(Protocol):
    """When pulls are fixed, when results become seen, and when rules are read."""

    def open(self, state: State) -> State:
        """Returns the state with one more open block, unless all rules have stopped."""

    def slots(self, state: State, n: int, pending: Vector, rng: Rng) -> tuple[Indices, Indices]:
        """Returns the next pulls, at most n, and the number of each one's block or -1; `pending` counts those out."""

    def pairs(self, state: State, n: int, pending: Indices) -> tuple[Indices, Indices]:
        """Returns the arms and items of the next trials, at most n, without the slots whose keys are `pending`."""

    def take(
        self, state: State, arms: Indices, outcomes: Vector, numbers: Indices | None, items: Indices | None = None
    ) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns the state after results, and the verdicts at each time that the rules were read meanwhile.

        `outcomes` are minus the origin; `numbers`, if given, names the block of each, and `items` its item.
        """

    def resume(self, state: State) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns the state, ready for pulls again after arms changed, and the verdicts at each closing of a block."""

    def horizon(self, state: State) -> int:
        """Returns how many pulls can be asked for at once before new results would change the choice."""

    def due(self, state: State) -> int:
        """Returns how many results are missing for the next reading of the rules."""


class Trials(NamedTuple):
    """Trials that a policy asks for."""

    arms: Indices
    blocks: Indices | None
    """The numbers of their blocks, -1 if pulls do not come in blocks; None on items."""
    items: Indices | None
    """Their items; None if the problem has none."""


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
    watching: tuple[tuple[str | StoppingRule[Any], float], ...] = ()
    """More (rule, delta) pairs that are read on the same pulls; pulling goes on until all have stopped."""
    sampling: SamplingRule[Any] = field(kw_only=True)
    """The sampling rule."""
    control: int | None = field(default=None, kw_only=True)
    """An arm that every arm is compared with, by bets on the difference (theory, section 20); its intervals have a risk
    delta of their own."""
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
        if self.control is not None:
            self._check_control(self.control)
        for rule in self.reader.rules.values():
            rule.check(self.problem)
        self.sampling.check(self.problem)
        if self.problem.items is not None:
            for rule in self.reader.rules.values():
                if not rule.on_items:
                    raise InvalidInput(
                        f"`stopping` must be betting where trials share items, got {rule.name}; without `items` every "
                        "trial stands for itself"
                    )
            if not self.sampling.on_items:
                raise InvalidInput(
                    f"{type(self).__name__} cannot try options on items; use SpectralRace, or leave out `items`"
                )
        if self.in_blocks and self.sampling.most_at_once is not None:
            raise InvalidInput(
                f"`stopping` = {self.rules[0][0]} bets on blocks of pulls, and {type(self).__name__} looks at every "
                "result before the next pull; use intervals"
            )

    def _check_control(self, control: int) -> None:
        check_arm("control", control, self.problem.n_arms)
        if self.problem.items is not None:
            raise InvalidInput(
                "`control` must be None where trials share items: options are compared on the same items anyway, with "
                "any of them"
            )
        if not self.in_blocks:
            raise InvalidInput(f"`control` needs a rule that bets, got {self.rules[0][0]}; use betting")

    @classmethod
    def on(cls, instance: Instance, **settings: Any) -> Self:
        """Returns the policy for an instance; only `OracleSampling` uses its means."""
        return cls(instance.problem, **settings)

    @cached_property
    def _pairs(self) -> tuple[tuple[StoppingRule[Any], float], ...]:
        """All (rule, delta) pairs: first (`stopping`, `delta`), then those of `watching`."""
        pairs: list[tuple[StoppingRule[Any], float]] = []
        named: dict[str, StoppingRule[Any]] = {}
        for given, delta in ((self.stopping, self.delta), *self.watching):
            rule = RULES.get(given) if isinstance(given, str) else given
            if not isinstance(rule, StoppingRule):
                raise InvalidInput(f"`stopping` must be a stopping rule or one of {', '.join(RULES)}, got {given!r}")
            if named.setdefault(rule.name, rule) != rule:  # a state stores the memories of rules by name
                raise InvalidInput(f"`watching` must hold one rule of each name, got two of {rule.name}; rename one")
            pairs.append((rule, check_delta(delta)))
        return tuple(pairs)

    @property
    def rules(self) -> tuple[tuple[str, float], ...]:
        """All (name of the rule, delta) pairs: first those of `stopping` and `delta`, then those of `watching`."""
        return tuple((rule.name, delta) for rule, delta in self._pairs)

    @property
    def uses_delta(self) -> bool:
        """Whether the pulls depend on delta; if not, one run can be read at several risks."""
        return self.sampling.uses_delta

    @property
    def in_blocks(self) -> bool:
        """Whether pulls come in blocks: they do if some rule of the policy bets."""
        return any(rule.bets for rule, _ in self._pairs)

    @cached_property
    def reader(self) -> RuleReader:
        """The part that reads the stopping rules."""
        leads = self.in_blocks and self.uses_delta
        aside = () if self._against is None else (self._against,)
        return RuleReader(self.problem, self.earlier, self._pairs, self.sampling, leads, aside)

    @cached_property
    def _against(self) -> AgainstControl | None:
        """What compares the arms with the control, if there is one."""
        return None if self.control is None else AgainstControl(control=self.control, delta=self.delta)

    @cached_property
    def schedule(self) -> Schedule:
        """The part that says when pulls are fixed and when results become seen."""
        return InBlocks(self.reader) if self.in_blocks else EveryResult(self.reader)

    def init(self, seed: int | None = None, order: ArrayLike | None = None) -> State:
        """Returns the state before any result.

        `seed` fixes the order in which slots of a block are handed out, and the order of a list of items. That of a
        list must be new for every study, since options may have been tuned on the items that came first before: give
        a seed in simulations only. Without one, a list has an order that nobody can foresee. `order`, if given, is that
        of a list, drawn elsewhere.
        """
        items = self.problem.items
        if seed is None:
            seed = 0 if items is None else secrets.randbits(62)
        seed = check_integer("seed", seed, 0)
        nothing = Data.none(self.problem.n_arms)
        empty = nothing
        if self.in_blocks:
            empty = (
                BlockData.none(nothing.counts.size) if items is None else ItemData.none(nothing.counts.size, items.n)
            )
        state = State(
            data=empty,
            origin=0.0,
            blocks=(),
            opened=0,
            informing=nothing,
            next_reading=1,
            best=0,
            seed=seed,
            order=self._drawn_order(seed, order),
            sampling=self.sampling.start(self.problem),
            stopping={name: rule.start(self.problem) for name, rule in self.reader.rules.items()},
            verdicts=tuple(Verdict(proved=rule.proved) for rule, _ in self._pairs),
        )
        return self.open(state)

    def _drawn_order(self, seed: int, order: ArrayLike | None) -> Indices | None:
        """Returns the items of the list in the order of drawing; None without a list."""
        n = None if self.problem.items is None else self.problem.items.n
        if order is None:
            return None if n is None else np.random.default_rng(seed).permutation(n)
        given = np.asarray(order)
        if n is None or given.dtype.kind not in "iu" or not np.array_equal(np.sort(given, axis=None), np.arange(n)):
            raise InvalidInput(f"`order` must hold each number of an item of a list once, got {order!r}")
        return given.astype(np.intp)

    def open(self, state: State) -> State:
        """Returns the state with one more open block, planned from what is known now, if pulls come in blocks.

        Use it to open a block ahead, when every slot of the open blocks is handed out and workers want more. Its pulls
        may depend on the results that open blocks have so far, because these come from blocks opened earlier (theory
        12.1); the bets on it still wait until those blocks are closed.
        """
        self._check_state(state)
        return self.schedule.open(state)

    def horizon(self, state: State) -> int:
        """Returns how many pulls can be asked for at once before new results would change the choice."""
        return self.schedule.horizon(state)

    def ask(self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: Rng = None) -> Indices:
        """Returns the next arms to pull, at most n; none once all rules have stopped.

        If pulls come in blocks, these are free slots, and fewer than n if fewer are free: tell results first, or `open`
        a block ahead. `pending` (n_arms,) counts pulls that were handed out and whose results are not told yet, so that
        they are not handed out twice. Randomised policies need `rng`.
        """
        return self.ask_slots(state, n, pending, rng)[0]

    def ask_items(
        self, state: State, n: int = 1, pending: tuple[ArrayLike, ArrayLike] | None = None
    ) -> tuple[Indices, Indices]:
        """Returns the arms and items of the next trials, at most n, if the problem has items; none once decided.

        Items of a list are numbers below its length; fresh ones are numbered in the order of drawing. `pending` holds
        the (arms, items) that were handed out and whose results are not told yet.
        """
        n = check_integer("n", n, 0)
        self._check_state(state)
        if self.problem.items is None:
            raise InvalidInput("the problem has no items; use ask, or give `items` to the problem")
        if state.settled or not state.blocks:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
        waiting = np.empty(0, dtype=np.intp)
        if pending is not None:
            arms, items = pending
            waiting = slot_keys(check_arms(self.problem, arms), check_items(self.problem, items, np.size(arms)))
        return self.schedule.pairs(state, n, waiting)

    def ask_slots(
        self, state: State, n: int = 1, pending: ArrayLike | None = None, rng: Rng = None
    ) -> tuple[Indices, Indices]:
        """Returns what `ask` returns, and the number of each pull's block; -1 if pulls do not come in blocks.

        If several blocks are open, pass these numbers to `tell`.
        """
        n = check_integer("n", n, 0)
        self._check_state(state)
        if self.problem.items is not None:
            raise InvalidInput("the problem has items; use ask_items, which says what to try each arm on")
        waiting = np.zeros(self.problem.n_arms)
        if pending is not None:
            waiting = check_vector("pending", pending, self.problem.n_arms)
            if (waiting < 0).any() or (waiting != np.floor(waiting)).any():
                raise InvalidInput(f"`pending` must hold whole non-negative numbers, got {pending!r}")
        if state.settled:
            nothing = np.empty(0, dtype=np.intp)
            return nothing, nothing
        return self.schedule.slots(state, n, waiting, rng)

    def tell(
        self,
        state: State,
        arms: ArrayLike,
        rewards: ArrayLike,
        blocks: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> State:
        """Returns the state after the outcomes `rewards` of pulls of `arms`, in the order received.

        If pulls come in blocks, each result fills the oldest free slot of its arm. A result without a slot only
        informs: it becomes seen when the next block is opened, and no bet is settled by it. `blocks` gives the block
        number of each pull (from `ask_slots`), and -1 for results that were not asked for, which only inform. Give
        `blocks` if several blocks are open and results may arrive in another order, or if past results are told.
        Otherwise a slot may be filled by whichever result came first, or by results chosen by their values; bets on
        such slots are not fair, and the risk is no longer guaranteed (theory 12.1).

        `items` (from `ask_items`) gives the item of each result, if the problem has items. A result of a pair that was
        not asked for, or that has a result already, only counts as a trial.
        """
        return self.advance(state, arms, rewards, blocks, items)[0]

    def advance(
        self,
        state: State,
        arms: ArrayLike,
        rewards: ArrayLike,
        blocks: ArrayLike | None = None,
        items: ArrayLike | None = None,
    ) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns what `tell` returns, and the verdicts at each time that the rules were read meanwhile."""
        self._check_state(state)
        told = Results.checked(self.problem, arms, rewards, blocks, items)
        if told.arms.size and state.samples == 0:
            state = replace(state, origin=float(told.outcomes[0]))
        return self.schedule.take(state, told.arms, told.outcomes - state.origin, told.blocks, told.items)

    def play(self, tape: Tape, max_samples: int, rng: Rng = None) -> State:
        """Returns the state at the end of a simulated run on the outcomes of a tape, or after `max_samples` results."""
        state = self.init(None if self.problem.items is None else tape.seed)
        while state.samples < max_samples:
            arms, blocks, items = self.next_trials(state, max_samples - state.samples, rng)
            if not arms.size:
                break
            state = self.tell(state, arms, tape.read(arms, blocks, items), items=items)
        return state

    def next_trials(self, state: State, most: int, rng: Rng = None) -> Trials:
        """Returns the next trials, at most so many, before new results would change the choice."""
        n = min(self.horizon(state), most)
        if self.problem.items is None:
            return Trials(*self.ask_slots(state, n, rng=rng), None)
        arms, items = self.ask_items(state, n)
        return Trials(arms, None, items)

    def verdict(self, state: State, watch: int = 0) -> Verdict:
        """Returns the verdict of rule number `watch`; 0 is the rule `stopping`, later ones are those of `watching`."""
        return replace(state.verdicts[watch], samples=state.samples)

    def withdraw(self, state: State, arm: int) -> State:
        """Returns the state without an arm: it is never pulled again and never the answer; a decision for it is
        revoked.

        From then on the question is which of the other arms is best. Bets that relied on the arm are closed, and arms
        that they eliminated come back. Open blocks with a pull of the arm are cancelled: their results only inform.
        Which arms are withdrawn, and when, may depend on seen results but not on sealed ones; then the risk of all
        answers together is at most 2 delta (theory 12.15).
        """
        return self.after_withdrawal(state, arm)[0]

    def after_withdrawal(self, state: State, arm: int) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns what `withdraw` returns, and the verdicts at each closing of a block that waited only for those that
        were cancelled."""
        self._check_state(state)
        problem, reader = self.problem, self.reader
        arm = check_arm("arm", arm, problem.n_arms)
        if arm in state.withdrawn:
            return state, ()
        memories = {name: rule.withdraw(state.stopping[name], arm) for name, rule in reader.rules.items()}
        sampling = self.sampling.without(state.sampling, arm)
        if len(state.withdrawn) + 2 > problem.n_arms:
            raise InvalidInput(
                "all other arms are withdrawn; the last one must stay, since otherwise there would be nothing to find"
            )
        withdrawn = (*state.withdrawn, arm)
        left = np.delete(np.arange(problem.n_arms), withdrawn)
        mates = problem.components == problem.components[arm]
        if not mates[left].any() and not state.data.counts[mates].any():
            raise InvalidInput(
                "without the arm, its component would have no arm to try, and it has no result that is seen yet; tell "
                "the first trial of the arm before you withdraw it"
            )
        best = state.best if state.best != arm else int(left[0])
        if problem.items is None:
            state = state.keeping(tuple(block for block in state.blocks if arm not in block.arms), problem.n_arms)
        else:
            state = state.relieved(arm)
        state = replace(state, stopping=memories, sampling=sampling, withdrawn=withdrawn, best=best)
        if reader.has_estimate(state):
            standing = [
                verdict.settled and (verdict.arm != arm or not verdict.consistent) for verdict in state.verdicts
            ]
            state = reader.reread(state, standing)
        else:
            others = (replace(verdict, arm=best) if verdict.arm == arm else verdict for verdict in state.verdicts)
            state = replace(state, verdicts=tuple(others))
        return self.schedule.resume(state)

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
        stay open (all if it is None; with a list, none after the first that does not, since its items are tried in
        their order); the results of the others only inform. Which arms join, and when, may depend on seen results but
        not on sealed ones. The best arm is eliminated with probability at most delta if this choice does not depend on
        results at all, and otherwise at most delta for each arm that was best at some time (theory 12.16, 12.17).
        """
        return self.after_join(state, kept)[0]

    def after_join(self, state: State, kept: Collection[int] | None = None) -> tuple[State, tuple[Verdicts, ...]]:
        """Returns what `join` returns, and the verdicts at each closing of a block that waited only for those that were
        not kept."""
        problem, reader = self.problem, self.reader
        if not self.earlier or state.n_arms != self.earlier[-1].n_arms:
            raise InvalidInput("`state` must belong to the policy whose method `joined` made this one")
        if any(verdict.doubted or not verdict.consistent for verdict in state.verdicts):
            raise InvalidInput("the data contradict the hypotheses, so no arm can join; start a new run")
        blocks = tuple(block for block in state.blocks if kept is None or block.number in kept)
        if state.order is not None:  # arms must have been tried on every item of a list that was drawn before
            blocks = tuple(block for block, old in zip(blocks, state.blocks, strict=False) if block is old)
        state = replace(
            state.keeping(blocks, problem.n_arms),
            data=state.data.padded(problem.n_arms),
            sampling=self.sampling.join(state.sampling, problem.n_arms),
            stopping={
                name: rule.join(state.stopping[name], problem, self.earlier[-1]) for name, rule in reader.rules.items()
            },
            verdicts=tuple(Verdict(verdict.arm, proved=verdict.proved) for verdict in state.verdicts),
            joined=(*state.joined, state.n_arms),
        )
        if reader.has_estimate(state):
            state = reader.reread(state, [False] * len(state.verdicts))
        return self.schedule.resume(state)

    def has_estimate(self, state: State) -> bool:
        """Whether every component has a result that is seen, which estimates need."""
        return self.reader.has_estimate(state)

    def estimates(self, state: State, watch: int = 0, reference: int | None = None) -> Estimates:
        """Returns estimates of all means from the results so far, with intervals at the risk of rule number `watch`,
        and of the differences between the mean of the arm `reference` (that recommended, if None) and all means.

        With probability 1 - delta the intervals contain all means at all times. For a rule that bets, this risk comes
        in addition to the risk of its decisions, and the intervals start with the first result of a component
        (theory, section 14). They use all results received, also those that only inform; these must not have been
        chosen by their values. With items they use the results of closed blocks, and the intervals of differences,
        paired by item, have a risk delta of their own (theory 18.10 to 18.13). For other rules, intervals and decisions
        are right together with probability 1 - delta. There are no intervals for rules that are not proved, nor if the
        data contradict R.
        """
        self._check_state(state)
        verdict, (rule, delta) = state.verdicts[watch], self._pairs[watch]
        reference = verdict.arm if reference is None else check_arm("reference", reference, self.problem.n_arms)
        mean, consistent, ends, drifting = np.full(self.problem.n_arms, np.nan), None, None, False
        if self.has_estimate(state):
            evidence = self.reader.evidence_now(state)
            reading, drifting = rule.read(state.stopping[rule.name], evidence), Outlook.on(evidence).levelled
            if reading.tests_R or not verdict.consistent:
                consistent = verdict.consistent and reading.consistent(delta)
            ends = reading.intervals(delta) if verdict.consistent else None
        apart = None
        if self.problem.items is not None:
            assert isinstance(state.data, ItemData), "problems with items have data on items"
            if self.has_estimate(state):
                mean = Outlook.on(self.reader.evidence_now(state)).mu
            if consistent is not False:
                ends = item_intervals(self.problem, state.data, state.origin, delta)
                apart = item_differences(self.problem, state.data, state.origin, reference, delta)
        else:
            received = state.received
            if not empty_components(self.problem, received.counts).size:
                mean = estimate(self.problem, received.counts, received.means)
            if rule.bets and consistent is not False:
                ends = pooled_intervals(self.problem, received, state.origin, delta)
        low, high = np.full(self.problem.n_arms, -np.inf), np.full(self.problem.n_arms, np.inf)
        if ends is not None:
            # The means lie in the range of the outcomes, so the intervals are clipped to it.
            range_ = self.problem.outcome_range or (-np.inf, np.inf)
            low, high = (np.clip(each + state.origin, *range_) for each in ends)
        base = None
        if apart is None and self._against is not None and reference == self.control and consistent is not False:
            apart, base = self._contrasts(self._against, state)
        least, most = (low[reference] - high, high[reference] - low) if apart is None else apart
        least[reference] = most[reference] = 0.0
        vectors = mean + state.origin, low, high
        differences = mean[reference] - mean, least, most
        for vector in (*vectors, *differences):
            vector.setflags(write=False)
        return Estimates(*vectors, Differences(reference, *differences, base), consistent, drifting)

    def _contrasts(
        self, against: AgainstControl, state: State
    ) -> tuple[tuple[Vector, Vector], tuple[float, float] | None]:
        """Returns the ends of intervals for the mean of the control minus that of each arm, and of one for the mean of
        the control, at the same risk."""
        memory = state.stopping[against.name]
        assert isinstance(memory, Contrasts), "the memory of this rule"
        low, high = memory.ends
        base = None
        if state.data.counts[against.control]:
            ends = against.base(self.reader.evidence(state))
            base = ends[0] + state.origin, ends[1] + state.origin
        return (-high, -low), base

    def shares(self, state: State) -> Vector | None:
        """Returns the shares of the arms in future pulls, or in those so far; None before there is an estimate."""
        self._check_state(state)
        if not self.has_estimate(state) and not state.joined:
            return None
        return self.sampling.shares(state.sampling, self.reader.view(state, self.reader.evidence_now(state)))

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
        verdict, (rule, delta) = state.verdicts[watch], self._pairs[watch]
        if verdict.settled:
            return 0.0
        if not self.has_estimate(state):
            return math.nan
        evidence = self.reader.evidence_now(state)
        shares = self.sampling.shares(state.sampling, self.reader.view(state, evidence))
        reading = rule.read(state.stopping[rule.name], evidence)
        due = float(self.schedule.due(state))
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

    def _check_state(self, state: State) -> None:
        given, own = (state.n_arms, len(state.verdicts)), (self.problem.n_arms, len(self._pairs))
        if given != own or state.stopping.keys() != self.reader.rules.keys():
            raise InvalidInput(
                f"`state` must belong to this policy, with {own[0]} arms and {own[1]} stopping rules "
                f"({', '.join(self.reader.rules)}), got {given[0]} and {given[1]} ({', '.join(state.stopping)}); start "
                "from policy.init()"
            )
