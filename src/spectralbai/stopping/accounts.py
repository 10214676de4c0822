"""The accounts of the betting rule: play money that grows if a hypothesis is false, and refutes it at 1/delta.

All amounts are stored as logarithms. An account consists of cash and of what is in bets. It starts at 1 (log 0), all
in cash, and a part of the cash is moved into bets at every block.

Bets that relied on a leader which is withdrawn later are closed. What they leave must not be more than there was when
that leader led first: when that was is not stored, but the least that it can have been is (`spared`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from spectralbai.arrays import Indices, Mask, Matrix, Vector
from spectralbai.evidence.blocks import extended
from spectralbai.evidence.memory import Memory

INVESTED = 0.1
"""Part of the cash that is moved into bets at every block. Small: bets on a wrong early leader cost little."""
COMMON = 0.2
"""With a tolerance, the part of the moved cash that goes to bets at tolerance 0, which are valid for every leader."""
HALF = math.log(2)
"""What every account loses at a withdrawal: log 2, half of its money."""
OUT = 1e9
"""Logarithm of the wealth of the account against a withdrawn arm: so large that no bet can bring the arm back."""
FED = 0.05
"""With a tolerance, the posterior probability of being best from which on an arm gets money for bets as a leader."""

MANY_ARMS, MOST_LEADERS = 512, 24
"""With more arms than the first, at most the second number of leaders have accounts."""
ENOUGH = 10.0
"""More wealth than this, as a logarithm, does not count when leaders are compared."""


@dataclass(frozen=True, eq=False)
class Account(Memory):
    """One account for each of several hypotheses; every field has one entry per account."""

    kind: ClassVar[str] = "account"

    cash: Vector
    bets: Vector
    peak: Vector
    """Largest wealth so far: once it has reached 1/delta, the hypothesis stays refuted."""
    spared: Vector
    """The least that the bets would be worth if they had stopped at some time, with the money moved since at rest."""

    @classmethod
    def opened(cls, n: int) -> Self:
        return cls(np.zeros(n), np.full(n, -np.inf), np.zeros(n), np.full(n, -np.inf))

    @property
    def wealth(self) -> Vector:
        return np.logaddexp(self.cash, self.bets)

    def without(self, arm: int, relied: bool) -> Account:
        """Returns the accounts after an arm is withdrawn (theory 12.15).

        All accounts are halved. If their bets may have `relied` on the arm, these are closed, and only what they spared
        is left.
        """
        cash, bets, peak, spared = (amount - HALF for amount in (self.cash, self.bets, self.peak, self.spared))
        if relied:
            cash, bets = np.logaddexp(cash, spared), np.full(cash.size, -np.inf)
            peak, spared = cash, bets
        cash = np.where(np.arange(cash.size) == arm, OUT, cash)
        return Account(cash, bets, np.where(cash < OUT / 2, peak, OUT), spared)

    @property
    def left(self) -> Mask:
        """Which arms are not withdrawn."""
        return self.cash < OUT / 2

    def grown(self, n: int, withdrawals: int) -> Account:
        """Returns the accounts with new ones added, `n` in all; new ones start with 2^-withdrawals (theory 12.16)."""
        start = -HALF * withdrawals
        return Account(
            extended(self.cash, n, start),
            extended(self.bets, n, -np.inf),
            extended(self.peak, n, start),
            extended(self.spared, n, -np.inf),
        )

    def settled(self, pay: Vector, invested: float = INVESTED, idle: Mask | int | None = None) -> Account:
        """Returns the accounts after bets that paid exp(pay), to which a part of the cash was moved first.

        The accounts in `idle`, if given, made no bet.
        """
        cash, moved = _invested(self.cash, invested, idle)
        bets = np.logaddexp(self.bets, moved) + pay
        spared = np.minimum(np.logaddexp(self.spared, moved), bets)
        return Account(cash, bets, np.maximum(self.peak, np.logaddexp(cash, bets)), spared)


@dataclass(frozen=True, eq=False)
class Leaders(Memory):
    """Accounts of several leaders against every arm, used with a tolerance (theory 12.12)."""

    kind: ClassVar[str] = "leaders"

    cash: Vector
    """C_i: the cash box of each arm i, from which all leaders get their money."""
    common: Vector
    """W0_i: bets at tolerance 0, which are valid for every leader."""
    leaders: Indices
    """The arms that have led so far."""
    own: Matrix
    """W_bi: a row per leader b, a column per arm i."""
    peak: Matrix
    """Largest C_i + W0_i + W_bi so far: once it has reached 1/delta, arm i stays beaten by b."""
    spared: Vector
    """The least that W0_i would be if its bets had stopped at some time, as in `Account.spared`."""
    given: Matrix
    """The money that was moved into W_bi so far: as much of W_bi goes back to the cash box if b is withdrawn."""

    @classmethod
    def opened(cls, n_arms: int) -> Self:
        nobody, nothing = np.zeros((0, n_arms)), np.full(n_arms, -np.inf)
        return cls(np.zeros(n_arms), nothing, np.zeros(0, dtype=np.intp), nobody, nobody, nothing, nobody)

    def joined(self, arms: Indices) -> Leaders:
        """Returns the accounts with rows for new leaders.

        If there would be too many leaders, those that lead no more and have won least lose theirs. Their money is lost,
        which only lowers the sum that must not grow (theory 12.12).
        """
        new = np.setdiff1d(arms, self.leaders)
        if not new.size:
            return self
        rows = np.arange(self.leaders.size)
        if self.cash.size > MANY_ARMS and rows.size + new.size > MOST_LEADERS:
            won = np.minimum(self.peak, ENOUGH).mean(axis=1) + np.where(np.isin(self.leaders, arms), np.inf, 0.0)
            rows = np.sort(np.argsort(-won, kind="stable")[: MOST_LEADERS - new.size])
        shape = (new.size, self.cash.size)
        peak = np.broadcast_to(np.logaddexp(self.cash, self.common), shape)
        return replace(
            self,
            leaders=np.concatenate([self.leaders[rows], new]),
            own=np.vstack([self.own[rows], np.full(shape, -np.inf)]),
            given=np.vstack([self.given[rows], np.full(shape, -np.inf)]),
            peak=np.vstack([self.peak[rows], peak]),
        )

    def without(self, arm: int, relied: bool) -> Leaders:
        """Returns the accounts after an arm is withdrawn, as in `Account.without`.

        Its own bets as a leader are closed. What they leave goes back to the cash box, at most what they were given:
        more is not sure to be won in fair bets. W0 is closed too if it relied on the arm; other leaders' bets did not.
        """
        rows, cash, common, spared = self.leaders != arm, self.cash, self.common, self.spared
        left = np.logaddexp.reduce(np.minimum(self.own, self.given)[~rows], axis=0, initial=-np.inf)
        cash = np.logaddexp(cash, left)
        if relied:
            cash, common = np.logaddexp(cash, spared), np.full(cash.size, -np.inf)
            spared = common
        own = self.own[rows]
        peak = np.logaddexp(cash, own) if relied else self.peak[rows]
        peak = np.maximum(peak, np.logaddexp(np.logaddexp(cash, common), own)) - HALF
        cash = np.where(np.arange(cash.size) == arm, OUT, cash - HALF)
        peak[:, cash > OUT / 2] = OUT
        return Leaders(
            cash, common - HALF, self.leaders[rows], own - HALF, peak, spared - HALF, self.given[rows] - HALF
        )

    def grown(self, n_arms: int, withdrawals: int) -> Leaders:
        """Returns the accounts with new ones against arms that joined, as in `Account.grown`; these have never led."""
        start = -HALF * withdrawals
        return Leaders(
            extended(self.cash, n_arms, start),
            extended(self.common, n_arms, -np.inf),
            self.leaders,
            extended(self.own, n_arms, -np.inf),
            extended(self.peak, n_arms, start),
            extended(self.spared, n_arms, -np.inf),
            extended(self.given, n_arms, -np.inf),
        )

    def settled(
        self,
        shares: Vector,
        common_pay: Vector,
        own_pay: Matrix,
        invested: float = INVESTED,
        idle: Mask | None = None,
    ) -> Leaders:
        """Returns the accounts after bets, to which a part of the cash was moved first. `shares` (n_arms,) is the part
        of the moved cash that each leader gets; the rest goes to W0.

        `own_pay` has a row per leader. No bet was made against the arms in `idle`, if given.
        """
        cash, moved = _invested(self.cash, invested, idle)
        with np.errstate(divide="ignore"):
            to_common, to_own = np.log(max(1 - shares.sum(), 0.0)), np.log(shares[self.leaders])
        common = np.logaddexp(self.common, moved + to_common) + common_pay
        spared = np.minimum(np.logaddexp(self.spared, moved + to_common), common)
        own = np.logaddexp(self.own, moved + to_own[:, None]) + own_pay
        given = np.logaddexp(self.given, moved + to_own[:, None])
        wealth = np.logaddexp(np.logaddexp(cash, common), own)
        peak = np.maximum(self.peak, wealth)
        return replace(self, cash=cash, common=common, own=own, peak=peak, spared=spared, given=given)

    def beaten_by_all(self, arms: Indices) -> Vector:
        """Returns C_i + W0_i of these arms, which counts for every leader."""
        shared: Vector = np.logaddexp(self.cash[arms], self.common[arms])
        return shared

    def wealth(self, leader: int) -> tuple[Vector, Vector]:
        """Returns (C_i + W0_i + W_bi now, the largest value so far) for one leader b and all arms i."""
        shared = np.logaddexp(self.cash, self.common)
        row = np.flatnonzero(self.leaders == leader)
        if not row.size:
            return shared, shared
        return np.logaddexp(shared, self.own[row[0]]), self.peak[row[0]]


@dataclass(frozen=True, eq=False)
class Accounts(Memory):
    """Everything the betting rule remembers."""

    kind: ClassVar[str] = "accounts"

    arms: Account
    """One per arm, against "this arm is the best"."""
    R: Account
    """A single account, against mu' L mu <= R."""
    leaders: Leaders | None
    """The accounts of the leaders; None without a tolerance."""
    led: Mask
    """Which arms the bets at tolerance 0 rely on: those that led since the bets were last closed, alone or mixed."""
    withdrawals: int = 0
    """How many arms were withdrawn so far."""
    R_since: int = 0
    """The number of arms when the account against R last started anew: earlier blocks tested another R."""

    def without(self, arm: int) -> Accounts:
        """Returns the accounts after an arm is withdrawn."""
        relied = bool(self.led[arm])
        return replace(
            self,
            arms=self.arms.without(arm, relied),
            leaders=None if self.leaders is None else self.leaders.without(arm, relied),
            led=np.zeros(self.arms.cash.size, dtype=bool) if relied else self.led,
            withdrawals=self.withdrawals + 1,
        )

    def grown(self, n_arms: int, same_R: bool) -> Accounts:
        """Returns the accounts after arms have joined, `n_arms` in all; a new R gets a new account (theory 12.16)."""
        return Accounts(
            self.arms.grown(n_arms, self.withdrawals),
            self.R if same_R else Account.opened(1),
            None if self.leaders is None else self.leaders.grown(n_arms, self.withdrawals),
            extended(self.led, n_arms, False),
            self.withdrawals,
            self.R_since if same_R else n_arms,
        )


def _invested(cash: Vector, part: float, idle: Mask | int | None) -> tuple[Vector, Vector]:
    """Returns the cash that is kept and the cash that is moved into bets: none in the accounts in `idle`, if given."""
    kept, moved = cash + math.log1p(-part), cash + math.log(part)
    if idle is not None:
        kept[idle], moved[idle] = cash[idle], -np.inf
    return kept, moved


def feed(chances: Vector) -> Vector:
    """Returns the part of the moved cash that each leader gets, given each arm's probability to be best (theory 12.13).

    The parts are proportional to the squares of the probabilities, 0 for probabilities below `FED`, and sum to
    1 - `COMMON`. If arms are many, only the `MOST_LEADERS` most probable ones get a part.
    """
    weight = np.where(chances >= min(FED, chances.max()), chances, 0.0) ** 2
    if chances.size > MANY_ARMS:
        weight[np.argsort(-weight, kind="stable")[MOST_LEADERS:]] = 0.0
    shares: Vector = (1 - COMMON) * weight / weight.sum()
    return shares
