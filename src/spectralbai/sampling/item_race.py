"""The race on items: which options are tried on which items next (theory, section 18)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.blocks import extended
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.evidence.item_rows import LEAST_PAYOFF, least
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.outlook import Outlook
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View, least_block
from spectralbai.sampling.race import GOLDEN, RACE_SHARE, explored, spread

LEAST_ITEMS, ITEM_SHARE = 2, 0.06
"""If all arms are tried on the same items, a block has the larger of two numbers of items: a minimum, and a part of all
items before."""
LEARNT, TEACHING = 4, 0.8
"""Until a rival was tried together with the leader on the first number of items, trials on the same items may promise
to be more by the second: they teach how outcomes of an item go together, and without them the run would never learn
it."""
TIMES = (1.0, 2.0, 4.0, 8.0)
"""How many times as often as a rival on items of its own the leader is tried: what is compared."""
PLAIN = 0.9
"""What it promises to try all on the same items is multiplied by this: it has to learn less, and no leader is wrong."""


@dataclass(frozen=True, eq=False)
class ItemPlan(Memory):
    """How the next items are tried: some arms on the same items, the others each on items of its own."""

    kind: ClassVar[str] = "item plan"

    omega: Vector
    """Shares of the arms in the trials."""
    together: Mask
    """The arms that are tried on the same items. All have the same share in these trials, the least of their shares."""
    size: int
    """Number of trials of the next block; if all arms are tried together, it has a number of items instead."""

    @property
    def shared(self) -> float:
        """The share of every arm in trials on the same items."""
        return float(self.omega[self.together].min()) if self.together.any() else 0.0

    @property
    def alone(self) -> Vector:
        """Shares of the arms in trials on items of their own."""
        return np.maximum(self.omega - self.shared * self.together, 0.0)


@dataclass(frozen=True)
class ItemRacing(SamplingRule[ItemPlan]):
    """Tries the arms that are still needed: the leaders that have accounts, and those that one of them has not beaten.

    With fresh items the leader is tried together with those rivals, and the other rivals on items of their own, that
    promise to take the fewest trials in all. On a list all are tried on the same items: its bets need arms that were
    tried on every item so far (theory 18.4).
    """

    uses_delta: ClassVar[bool] = True
    on_items: ClassVar[bool] = True

    def start(self, problem: Problem) -> ItemPlan:
        return _all(np.ones(problem.n_arms, dtype=bool))

    def plan(self, memory: ItemPlan, view: View) -> ItemPlan:
        assert view.needed is not None and view.lacking is not None, "a race has a rule that says what it needs"
        outlook, leader = Outlook.on(view.evidence), view.evidence.best
        assert isinstance(outlook, ItemOutlook), "problems with items have beliefs about items"
        needed = view.needed.copy()
        needed[list(view.withdrawn)] = False
        needs = np.where(view.lacking > 0, np.maximum(view.lacking, 1.0), 0.0)
        needs[leader] = 0.0
        alone = view.problem.outcome_range is not None  # otherwise bets must cancel the effect of an item
        if view.problem.items is None or view.problem.items.n is not None or not alone or not needs.any():
            return _all(needed)
        offer = min(_offers(outlook, leader, needs), key=lambda offer: offer.trials)
        apart = (needs > 0) & ~offer.together
        if not apart.any() or math.isinf(offer.trials):
            return _all(needed)
        omega = explored(offer.omega, outlook, leader, apart, view.evidence.samples)
        omega[list(view.withdrawn)] = 0.0
        size = least_block(omega.size, view.evidence.samples, RACE_SHARE)
        return ItemPlan(omega / omega.sum(), offer.together, size)

    def trials(self, memory: ItemPlan, view: View, issued: Vector, drawn: int) -> tuple[Indices, Indices]:
        items = view.problem.items
        assert items is not None, "only called where the problem has items"
        arms = np.flatnonzero(memory.together)
        if memory.alone.any():
            return _mixed(memory, arms, float(issued.sum()) * GOLDEN % 1.0, drawn)
        # Where arms were tried on items of their own, a part of all items would be most of the trials so far.
        size = max(LEAST_ITEMS, math.ceil(ITEM_SHARE * min(drawn, float(issued.sum()) / arms.size)))
        if items.n is None:
            return _crossed(arms, np.arange(drawn, drawn + size))
        # Of a list, only arms that were tried on every item drawn so far can be bet on (theory 18.4).
        complete = arms[issued[arms] == drawn]
        if complete.size > 1 and drawn < items.n:
            return _crossed(complete, np.arange(drawn, min(drawn + size, items.n)))
        behind = arms[issued[arms] < drawn]
        draws = [np.arange(int(issued[arm]), drawn) for arm in behind.tolist()]
        return np.repeat(behind, [len(those) for those in draws]), np.concatenate([np.empty(0, dtype=np.intp), *draws])

    def pulls(self, memory: ItemPlan, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        raise NotImplementedError("trials on items come from `trials`")

    def without(self, memory: ItemPlan, arm: int) -> ItemPlan:
        omega, together = memory.omega.copy(), memory.together.copy()
        omega[arm], together[arm] = 0.0, False
        return ItemPlan(omega / omega.sum() if omega.any() else omega, together, memory.size)

    def join(self, memory: ItemPlan, n_arms: int) -> ItemPlan:
        omega = extended(memory.omega * (memory.omega.size / n_arms), n_arms, 1 / n_arms)
        return ItemPlan(omega, np.ones(n_arms, dtype=bool), memory.size)

    def shares(self, memory: ItemPlan, view: View) -> Vector:
        return memory.omega


def _all(arms: Mask) -> ItemPlan:
    """Returns the plan by which these arms are tried on the same items."""
    return ItemPlan(_even(arms), arms, 0)


def _even(arms: Mask) -> Vector:
    """Returns the same share for each of these arms."""
    shares = arms.astype(np.float64)
    even: Vector = shares / max(shares.sum(), 1.0)
    return even


def _crossed(arms: Indices, draws: Indices) -> tuple[Indices, Indices]:
    """Returns every arm with every draw."""
    return np.repeat(arms, draws.size), np.tile(draws, arms.size)


def _mixed(plan: ItemPlan, arms: Indices, offset: float, drawn: int) -> tuple[Indices, Indices]:
    """Returns some items tried with all of `arms`, followed by single trials, which have an item each."""
    alone = plan.alone
    shared = math.floor(plan.size * plan.shared + offset)
    pairs = _crossed(arms, np.arange(drawn, drawn + shared))
    single = spread(alone, max(math.ceil(plan.size * float(alone.sum())), 1), offset)
    return np.concatenate([pairs[0], single]), np.concatenate([pairs[1], drawn + shared + np.arange(single.size)])


class Offer(NamedTuple):
    """What a choice of arms to try together promises."""

    trials: float
    """Number of trials until all rivals are beaten, if the beliefs are right; less where they teach."""
    together: Mask
    omega: Vector
    """Shares of the arms in these trials."""


def _offers(outlook: ItemOutlook, leader: int, needs: Vector) -> Iterator[Offer]:
    """Yields what it promises to try the leader together with its nearest rivals, so many of them, and so many times as
    often as each of the others. A rival that is beaten is not tried again."""
    rivals = np.flatnonzero(needs)
    rivals = rivals[np.argsort(-outlook.mu[rivals], kind="stable")]
    taught = np.where(outlook.data.together[leader, rivals] < LEARNT, TEACHING, 1.0)
    with np.errstate(divide="ignore"):
        together = needs[rivals] / _growth(outlook, leader, rivals, True, np.ones(rivals.size))
        sizes = sorted({0, rivals.size, *(2**k for k in range(rivals.size.bit_length()))})
        for times in TIMES:
            apart = needs[rivals] / _growth(outlook, leader, rivals, False, np.full(rivals.size, times))
            for n in sizes:
                shared, single = together[:n].max(initial=0.0), apart[n:].max(initial=0.0)
                lead = max(shared, times * single)
                omega = np.zeros(needs.size)
                omega[rivals[:n]], omega[rivals[n:]], omega[leader] = shared, apart[n:], lead
                mask = np.zeros(needs.size, dtype=bool)
                mask[rivals[:n]] = mask[leader] = n > 0
                promised = float((taught * together)[:n].sum() + apart[n:].sum() + lead)
                promised *= PLAIN if n == rivals.size else 1.0
                total = float(omega.sum())
                yield Offer(promised, mask, omega / total if math.isfinite(total) else omega)


def _leads(outlook: ItemOutlook, leader: int, rivals: Indices) -> Vector:
    """Returns how far the leader is ahead of rivals, up to the tolerance: the root of the mean of the square under the
    beliefs, so that a tie by chance does not seem to take for ever."""
    apart = outlook.mu[leader] - outlook.mu[rivals] + outlook.problem.tolerance
    C = outlook.posterior_covariance
    variance = C[leader, leader] + np.diag(C)[rivals] - 2 * C[leader, rivals]
    leads: Vector = np.sqrt(np.maximum(apart, 0.0) ** 2 + np.maximum(variance, 0.0))
    return leads


def _growth(outlook: ItemOutlook, leader: int, rivals: Indices, shared: bool, times: Vector) -> Vector:
    """Returns by how much the account against each rival grows with one trial of it, if the beliefs are right.

    Every rival is considered with the leader alone, which is tried so many `times` for each trial of the rival: if
    `shared` once on the same item, and otherwise on other items.
    """
    assert outlook.ends is not None, "outcomes have a range"
    C, mu = outlook.covariance, outlook.mu
    lead = _leads(outlook, leader, rivals)
    own, theirs, both = C[leader, leader], C[rivals, rivals], C[rivals, leader]
    # U of (18.6) in the order leader, rival: entries u, v and, beside the diagonal, w.
    joint = np.stack([theirs, np.full(rivals.size, own), -both]) / (own * theirs - both**2) if shared else 0.0
    apart = np.stack([(times - shared) / own, (1.0 - shared) / theirs, np.zeros(rivals.size)])
    u, v, w = joint + apart
    steep = lead / (u + v + 2 * w)
    first, second = (v + w) * steep, -(u + w) * steep  # m - lambda of the leader and of the rival
    nothing = np.zeros(rivals.size)
    kinds = [(times - shared, first / own, nothing)]
    if shared:
        a, b, c = np.asarray(joint)
        kinds.append((np.ones(rivals.size), a * first + c * second, c * first + b * second))
    else:
        kinds.append((np.ones(rivals.size), nothing, second / theirs))
    gain, risk, worst = np.zeros((3, rivals.size))
    for n, h, k in kinds:
        promise = h * first + k * second
        gain += n * promise
        risk += n * (h**2 * own + k**2 * theirs + 2 * h * k * both + promise**2)
        level = h * (mu[leader] - first) + k * (mu[rivals] - second)
        loss = level - least(np.stack([h, k], axis=1), outlook.ends)
        worst = np.maximum(worst, np.where(n > 0, loss, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.minimum(np.minimum(gain / risk, 1.0), (1 - LEAST_PAYOFF) / worst)
    growth: Vector = np.where(lead > 0, scale * gain - scale**2 * risk / 2, 0.0)
    return growth
