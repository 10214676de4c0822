"""The betting rule, the default: proved for any sampling in blocks; its threshold does not grow with the arms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.blocks import Block, extended
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.evidence.list_bounds import ListBounds
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.evidence.outlook import CatalogueOutlook, CategoryRivals, NetworkRivals, Outlook, separable
from spectralbai.problem import Problem
from spectralbai.stopping.accounts import Account, Accounts, Leaders, feed
from spectralbai.stopping.bets import BetTable
from spectralbai.stopping.category_bets import CategoryTable
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.item_bets import ItemTable
from spectralbai.stopping.network_bets import NetworkTable
from spectralbai.stopping.reading import Reading
from spectralbai.ties import first_largest


@dataclass(frozen=True)
class Betting(StoppingRule[Accounts]):
    """Bets against the claim "this arm is the best", for every arm, and eliminates an arm at wealth 1/delta.

    The wealth against the best arm is a non-negative supermartingale that starts at 1, whatever the sampling. By
    Ville's inequality the probability that it ever reaches 1/delta is at most delta (theory, section 12). This holds
    for sub-Gaussian, bounded and binary outcomes. One more account bets against R.
    """

    bets: ClassVar[bool] = True
    tests_R: ClassVar[bool] = True
    on_items: ClassVar[bool] = True

    name: str = "betting"
    reference: str = "Ville's inequality; docs/theory.md, section 12"
    proved: bool = True

    def start(self, problem: Problem) -> Accounts:
        n_arms = problem.n_arms
        return Accounts(
            Account.opened(n_arms),
            Account.opened(1),
            Leaders.opened(n_arms) if problem.tolerance > 0 else None,
            np.zeros(n_arms, dtype=bool),
        )

    def observe(self, memory: Accounts, block: Block | None, evidence: Evidence, decided: bool = False) -> Accounts:
        problem = evidence.problem
        assert block is not None, "a rule that bets is only used on blocks"
        if (np.bincount(problem.components, block.data.counts) == 0).any():
            return memory  # the block was opened before there was an estimate, so nothing was bet on it
        outlook = Outlook.on(Evidence(problem, block.data, block.best, evidence.origin))
        table = self.table(block, outlook)
        against_R, leaders = memory.R, memory.leaders
        if not problem.unstructured and block.n_arms >= memory.R_since:
            against_R = against_R.settled(np.array([table.against_R()]), table.invested)
        if decided:
            return replace(memory, R=against_R)
        # No bet was made against arms that joined after the block was opened.
        n_arms = memory.arms.cash.size
        absent = np.arange(n_arms) >= block.n_arms
        pay = extended(table.against_arms(block.best, 0.0), n_arms, 0.0)
        if leaders is not None:
            chances = extended(outlook.chances, n_arms, 0.0)
            chances[~memory.arms.left] = 0.0  # withdrawn arms do not lead
            if not chances.any():
                chances[block.best] = 1.0
            shares = feed(chances)
            leaders = leaders.joined(np.flatnonzero(shares))
            own = np.zeros((leaders.leaders.size, n_arms))
            for row, b in enumerate(leaders.leaders.tolist()):
                if not absent[b]:
                    own[row, : block.n_arms] = table.against_arms(b, problem.tolerance)
            leaders = leaders.settled(shares, pay, own, table.invested, absent)
        leads = np.arange(n_arms) == block.best
        led = memory.led | extended(table.leant_on, n_arms, False)
        arms = memory.arms.settled(pay, table.invested, absent | leads)
        return Accounts(arms, against_R, leaders, led, memory.withdrawals, memory.R_since)

    def table(self, block: Block, outlook: Outlook) -> BetTable:
        """Returns the bets on a closed block; rules that bet otherwise return a table of their own."""
        if isinstance(outlook, ItemOutlook):
            return ItemTable(block, outlook)
        if isinstance(outlook, NetworkOutlook):
            return NetworkTable(block, outlook)
        return CategoryTable(block, outlook) if isinstance(outlook, CatalogueOutlook) else BetTable(block, outlook)

    def withdraw(self, memory: Accounts, arm: int) -> Accounts:
        return memory.without(arm)

    def join(self, memory: Accounts, problem: Problem, before: Problem) -> Accounts:
        return memory.grown(problem.n_arms, problem.implies(before))

    def contradicts_R(self, memory: Accounts, evidence: Evidence, delta: float) -> bool:
        return bool(memory.R.peak[0] >= -math.log(delta))

    def read(self, memory: Accounts, evidence: Evidence) -> Reading:
        outlook, known = Outlook.on(evidence), ListBounds.of(evidence)
        if evidence.problem.tolerance == 0:
            return EliminationReading(evidence.best, memory, outlook, known=known)
        return LeaderReading(evidence.best, memory, outlook, separable(evidence.problem), known=known)


@dataclass(frozen=True, eq=False)
class BettingReading(Reading):
    """What the accounts say at one time."""

    arm: int
    accounts: Accounts
    outlook: Outlook
    known: ListBounds | None = field(default=None, kw_only=True)
    """What is certain of the means of a list; None without one."""

    @property
    def promise(self) -> Vector:
        """How good each arm looks: the estimate or, with a tolerance, the probability of being best."""
        return self.outlook.mu if self.accounts.leaders is None else self.outlook.chances

    @cached_property
    def out(self) -> Mask:
        """Which arms are certainly not the best, whatever the rest of a list brings; none without a list."""
        arms = self.accounts.arms
        return np.zeros(arms.left.size, dtype=bool) if self.known is None else self.known.out(arms.left)

    @property
    def tests_R(self) -> bool:
        return bool(self.accounts.R.bets[0] > -np.inf)

    def consistent(self, delta: float) -> bool:
        """Whether R is not refuted and a candidate is left; if R holds, each fails at risk delta."""
        goal = -math.log(delta)
        return bool(self.accounts.R.peak[0] < goal) and self.candidates(delta).size > 0

    def candidates(self, delta: float) -> Indices:
        return np.flatnonzero((self.accounts.arms.peak < -math.log(delta)) & ~self.out)

    def recommended(self, delta: float) -> int:
        """Returns the most promising candidate."""
        left = self.candidates(delta)
        return int(left[first_largest(self.promise[left])]) if left.size else self.arm


@dataclass(frozen=True, eq=False)
class EliminationReading(BettingReading):
    """The reading without a tolerance: decided when one candidate is left."""

    def decided(self, delta: float) -> bool:
        if not self.consistent(delta):
            return False
        left = self.candidates(delta)
        # The best of a list that is used up are equal, and each is a right answer.
        return left.size == 1 or (self.known is not None and bool(self.known.exact[left].all()))

    def needed(self, delta: float) -> Mask:
        return np.isin(np.arange(self.outlook.problem.n_arms), self.candidates(delta))

    def least_beaten(self, delta: float) -> tuple[float, float]:
        others = np.where(self.out, np.inf, self.accounts.arms.peak)
        others[self.recommended(delta)] = np.inf
        return float(others.min()), -math.log(delta)

    def lacking(self, delta: float) -> Vector:
        goal, arms = -math.log(delta), self.accounts.arms
        return np.where((arms.peak < goal) & ~self.out, goal - arms.wealth, 0.0)


@dataclass(frozen=True, eq=False)
class LeaderReading(BettingReading):
    """The reading with a tolerance: decided when some arm has beaten every arm that could be better."""

    separable: Mask | CategoryRivals | NetworkRivals
    """For each leader, which arms could be better by the tolerance under smooth means."""

    @property
    def _leaders(self) -> Leaders:
        assert self.accounts.leaders is not None, "with a tolerance, leaders have accounts"
        return self.accounts.leaders

    def decided(self, delta: float) -> bool:
        return self.consistent(delta) and self._winner(delta) is not None

    def recommended(self, delta: float) -> int:
        winner = self._winner(delta)
        return super().recommended(delta) if winner is None else winner

    def least_beaten(self, delta: float) -> tuple[float, float]:
        leader = self.recommended(delta)
        rivals = self._rivals(leader)
        if not rivals.any():
            return math.inf, 0.0
        return float(self._leaders.wealth(leader)[1][rivals].min()), -math.log(delta)

    def lacking(self, delta: float) -> Vector:
        goal, leader = -math.log(delta), self.recommended(delta)
        now, peak = self._leaders.wealth(leader)
        return np.where((peak < goal) & self._rivals(leader), goal - now, 0.0)

    def _rivals(self, leader: int) -> Mask:
        """Returns a mask of the arms that could be better than the leader by the tolerance."""
        rivals: Mask = self.separable[leader] & self.accounts.arms.left
        rivals[leader] = False
        if self.known is not None:
            rivals &= ~self.known.beaten(leader, self.outlook.problem.tolerance)
        return rivals

    def needed(self, delta: float) -> Mask:
        """Returns the leaders that have accounts, and the arms that one of them has not beaten."""
        chances = np.where(self.accounts.arms.left, self.outlook.chances, 0.0)
        chances[self.recommended(delta)] += 0.0 if chances.any() else 1.0
        needed = feed(chances) > 0
        for leader in np.flatnonzero(needed).tolist():
            needed |= self._unbeaten(leader, delta)
        return needed

    def _unbeaten(self, leader: int, delta: float) -> Mask:
        """Returns a mask of the rivals that a leader has not beaten."""
        unbeaten: Mask = (self._leaders.wealth(leader)[1] < -math.log(delta)) & self._rivals(leader)
        return unbeaten

    def _able(self, left: Indices, delta: float) -> Indices:
        """Returns the arms of `left` that may have beaten all others, among them all that have.

        An arm that never led has beaten the arms that are beaten whoever leads; of the others none may be its rival.
        """
        rivals, leaders = self.separable, self._leaders.leaders
        if self.known is not None or isinstance(rivals, np.ndarray):
            return left  # outcomes of a list may rule out rivals
        if isinstance(rivals, CategoryRivals):
            return leaders if (rivals.of_arm[left] != rivals.of_arm[left[0]]).any() else left
        unbeaten = left[self._leaders.beaten_by_all(left) < -math.log(delta)]
        if not unbeaten.size:
            return left
        near = left[~rivals[int(unbeaten[0])][left]]
        return np.union1d(np.union1d(leaders, near), unbeaten[:1])

    def _winner(self, delta: float) -> int | None:
        """Returns the arm with the best estimate of those that have beaten all others, if there are any.

        The probability of being best would favour arms about which little is known.
        """
        left = np.flatnonzero(self.accounts.arms.left)
        winners = [b for b in self._able(left, delta).tolist() if not self._unbeaten(b, delta).any()]
        return winners[first_largest(self.outlook.mu[winners])] if winners else None
