"""The race on items: which options are tried on which items next (theory, section 18)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.evidence.blocks import extended, ranks_of
from spectralbai.evidence.item_outlook import ItemOutlook
from spectralbai.evidence.item_rows import LEAST_PAYOFF, least
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.outlook import Outlook
from spectralbai.problem import Problem
from spectralbai.sampling.contract import Rng, SamplingRule, View, least_block
from spectralbai.sampling.race import GOLDEN, RACE_SHARE, aimed, explored, spread

LEAST_ITEMS, ITEM_SHARE = 4, 0.06
"""The number of items in a block of the full design is the larger of two: a minimum, and a part of all items before."""
LEVELS = 4
"""In the nested design an arm is tried on all items of the block, on half of them, on a quarter, and so on: so many
different numbers of items."""
LEARNT, TEACHING = 4, 0.8
"""Until arms were tried together on the first number of items, trials on the same items may promise to be more by the
second: they teach how outcomes of an item go together, and without them the run would never learn it."""
WORTHWHILE, ALIKE = 1.25, 0.3
"""Later, if the believed correlation of arms is below the second number, they must promise to be fewer by the first."""
LIMITED = 2.0
"""If the range of the outcomes makes a run longer than by this factor, the shares of the race do not fit."""
Design = Literal["full", "single", "nested"]
FORMS: tuple[tuple[Design, int], ...] = (
    ("full", 1),
    *((design, times) for design in ("nested", "single") for times in (2, 4, 8)),
    ("single", 1),
)
"""The designs that are compared, and how many times as often as its rivals the leader is tried."""


@dataclass(frozen=True, eq=False)
class ItemPlan(Memory):
    """How the next items are tried.

    With the full design all arms are tried on the same items, with the single design every trial has an item of its
    own, and with the nested one an arm with fewer trials is tried on the first of the items only.
    """

    kind: ClassVar[str] = "item plan"

    omega: Vector
    """Shares of the arms in the trials."""
    design: Design
    size: int
    """Number of trials of the next block; the full design counts items instead (`LEAST_ITEMS`)."""


@dataclass(frozen=True)
class ItemRacing(SamplingRule[ItemPlan]):
    """Tries the arms that are still needed: the leaders that have accounts, and those that one of them has not beaten.

    With fresh items the design of every block is the one that promises to take the fewest trials. A list is always
    tried by the full design: its bets need arms that were tried on every item so far (theory 18.4).
    """

    uses_delta: ClassVar[bool] = True
    on_items: ClassVar[bool] = True

    def start(self, problem: Problem) -> ItemPlan:
        return ItemPlan(np.full(problem.n_arms, 1 / problem.n_arms), "full", 0)

    def plan(self, memory: ItemPlan, view: View) -> ItemPlan:
        assert view.needed is not None and view.lacking is not None, "a race has a rule that says what it needs"
        outlook, leader = Outlook.on(view.evidence), view.evidence.best
        assert isinstance(outlook, ItemOutlook), "problems with items have beliefs about items"
        needed = view.needed.copy()
        needed[list(view.withdrawn)] = False
        full = ItemPlan(_even(needed), "full", 0)
        needs = np.where(view.lacking > 0, np.maximum(view.lacking, 1.0), 0.0)
        needs[leader] = 0.0
        alone = view.problem.outcome_range is not None  # otherwise bets must cancel the effect of an item
        if view.problem.items is None or view.problem.items.n is not None or not alone or not needs.any():
            return full
        pairs = np.ix_(needed, needed)
        alike = float((outlook.covariance[pairs] / np.outer(outlook.sigma, outlook.sigma)[pairs]).mean())
        if float(outlook.data.together[pairs].min()) < LEARNT:
            factor = TEACHING
        else:
            factor = WORTHWHILE if alike < ALIKE else 1.0
        offers = [_offer(outlook, leader, needs, *form) for form in FORMS]
        offer = min(offers, key=lambda offer: offer.trials * (1.0 if offer.design == "single" else factor))
        if offer.design == "full" or math.isinf(offer.trials):
            return full
        if offer.design == "single":
            offer = _unlimited(outlook, leader, needs) or offer
        omega = explored(offer.omega, outlook, leader, needs > 0, view.evidence.samples)
        omega[list(view.withdrawn)] = 0.0
        return ItemPlan(omega / omega.sum(), offer.design, least_block(omega.size, view.evidence.samples, RACE_SHARE))

    def trials(self, memory: ItemPlan, view: View, issued: Vector, drawn: int) -> tuple[Indices, Indices]:
        items = view.problem.items
        assert items is not None, "only called where the problem has items"
        if memory.design != "full":
            counts = _counts(memory, float(issued.sum()) * GOLDEN % 1.0)
            arms = np.repeat(np.arange(counts.size), counts)
            return arms, drawn + (np.arange(arms.size) if memory.design == "single" else ranks_of(arms))
        arms = np.flatnonzero(memory.omega)
        # Where arms were tried on items of their own, a part of all items would be most of the trials so far.
        before = min(drawn, int(issued.sum()) / arms.size)
        size = max(LEAST_ITEMS, math.ceil(ITEM_SHARE * before))
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
        omega = memory.omega.copy()
        omega[arm] = 0.0
        return ItemPlan(omega / omega.sum() if omega.any() else omega, memory.design, memory.size)

    def join(self, memory: ItemPlan, n_arms: int) -> ItemPlan:
        omega = extended(memory.omega * (memory.omega.size / n_arms), n_arms, 1 / n_arms)
        return ItemPlan(omega, "full", memory.size)

    def shares(self, memory: ItemPlan, view: View) -> Vector:
        return memory.omega


def _even(arms: Mask) -> Vector:
    """Returns the same share for each of these arms."""
    shares = arms.astype(np.float64)
    even: Vector = shares / max(shares.sum(), 1.0)
    return even


def _crossed(arms: Indices, draws: Indices) -> tuple[Indices, Indices]:
    """Returns every arm with every draw."""
    return np.repeat(arms, draws.size), np.tile(draws, arms.size)


def _counts(plan: ItemPlan, offset: float) -> Indices:
    """Returns the number of trials of each arm in a block of a plan other than the full one."""
    counts = np.bincount(spread(plan.omega.copy(), plan.size, offset), minlength=plan.omega.size)
    if plan.design == "nested":
        most = int(counts.max())
        levels = np.unique([math.ceil(most / 2**k) for k in range(LEVELS)])
        counts = np.where(counts > 0, levels[np.searchsorted(levels, counts)], 0)
    return counts.astype(np.intp)


class Offer(NamedTuple):
    """What a design promises."""

    trials: float
    """Number of trials until all rivals are beaten, if the beliefs are right."""
    design: Design
    omega: Vector
    """Shares of the arms in these trials."""


def _offer(outlook: ItemOutlook, leader: int, needs: Vector, design: Design, times: int) -> Offer:
    """Returns what a design promises if the leader is tried so many times as often as the rival that needs most. A
    rival that is beaten is not tried again."""
    rivals = np.flatnonzero(needs)
    growth = _growth(outlook, leader, rivals, design != "single", np.full(rivals.size, float(times)))
    with np.errstate(divide="ignore"):
        trials = needs[rivals] / growth
    omega = np.zeros(needs.size)
    omega[rivals] = trials
    omega[leader] = times * trials.max()
    total = float(omega.sum())
    return Offer(total, design, omega / total if math.isfinite(total) else omega)


def _unlimited(outlook: ItemOutlook, leader: int, needs: Vector) -> Offer | None:
    """Returns the best shares of the single design as if the range did not limit bets; None if it limits them."""
    rivals = np.flatnonzero(needs)
    omega, gain = aimed(outlook, leader, needs)
    if gain <= 0 or not (omega[rivals].all() and omega[leader]):
        return None
    growth = _growth(outlook, leader, rivals, False, omega[leader] / omega[rivals])
    with np.errstate(divide="ignore"):
        trials = float((needs[rivals] / growth / omega[rivals]).max())
    return Offer(trials, "single", omega) if trials * gain < LIMITED else None


def _growth(outlook: ItemOutlook, leader: int, rivals: Indices, shared: bool, times: Vector) -> Vector:
    """Returns by how much the account against each rival grows with one trial of it, if the beliefs are right.

    Every rival is considered with the leader alone, which is tried so many `times` for each trial of the rival: if
    `shared` once on the same item, and otherwise on other items.
    """
    assert outlook.ends is not None, "outcomes have a range"
    C, mu = outlook.covariance, outlook.mu
    lead = np.maximum(mu[leader] - mu[rivals] + outlook.problem.tolerance, 0.0)
    V = outlook._posterior[1]
    lead = np.sqrt(lead**2 + np.maximum(V[leader,leader]+np.diag(V)[rivals]-2*V[leader,rivals],0.0))
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
