"""The race: it plans every block so that the accounts that still lack wealth grow fastest (theory, section 13)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectralbai.allocation.closed_form import balance
from spectralbai.allocation.fixed_bets import improve
from spectralbai.allocation.interior_point import opening, opening_allocation, search
from spectralbai.arrays import Indices, Mask, Vector
from spectralbai.compiled import njit
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import extended
from spectralbai.evidence.memory import Memory
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.evidence.outlook import CatalogueOutlook, Outlook
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.sampling import network_race
from spectralbai.sampling.catalogue_race import aim
from spectralbai.sampling.contract import Rng, SamplingRule, View, least_block
from spectralbai.sampling.optimal import TIED
from spectralbai.sampling.tracking import floor, project_on_floor
from spectralbai.spectral import Catalogue, Network
from spectralbai.spectral.large_components import LARGE
from spectralbai.ties import first_largest

PLAN_TOL, PLAN_STEPS = 0.05, 30
"""Relative gap up to which a plan is solved, and the largest number of steps for it."""
MANY_ARMS, FEW_STEPS = 200, 7
"""With more arms than the first, steps are slow, and plans use at most the second number of them. These few
reached 95 % of the best value on all instances tried."""
LARGE_STEPS, START_SHARE = 2, 0.3
"""Number of steps of a plan for more than `LARGE` arms, by another method; it starts from the last plan with this part
of even shares."""
OPTIMISM = 0.15
"""Part of the pulls for the rival with the highest upper bound, as long as that bound exceeds the leader's mean."""
HOPEFUL = 16
"""In a catalogue this part is for this many rivals: arms of a category that have few results are all alike."""
FLOOR_SHARE = 1 / 3
"""Every racing arm gets at least this part of the exploration floor of [GK16]."""
RACE_SHARE = 0.03
"""Size of a block of the race, as a part of all pulls before it."""
AHEAD = 1.2
"""A block has at most this times the number of pulls that the slowest account is expected to need."""
LEARNT = 2.5
"""About how many nats bets on the difference from the control lose because they are mixed over stakes."""
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class RacePlan(Memory):
    """The plan of the next block."""

    kind: ClassVar[str] = "race"

    omega: Vector
    """Shares of the arms."""
    size: int
    """Number of pulls."""


@dataclass(frozen=True)
class Racing(SamplingRule[RacePlan]):
    """Plans each block at the omega that maximises the minimum over racing arms i of f_i(omega) / r_i (theory 13.1).

    r_i is what the account against arm i still lacks, in nats. So pulls go where wealth is missing; an eliminated arm
    is pulled only if its results also say something about others. A part of the pulls goes to the rival with the
    highest upper bound, as long as that exceeds the leader's mean: otherwise, with a wrong leader in a group of similar
    arms, nearly all pulls would go to that group, and hardly any to the other arms.
    """

    uses_delta: ClassVar[bool] = True

    control: int | None = None
    """The arm that others are compared with, which gets pulls even after it was eliminated."""
    control_share: float | None = None
    """The least part of the pulls that it gets; None: see `_with_control`."""

    def start(self, problem: Problem) -> RacePlan:
        return RacePlan(np.full(problem.n_arms, 1 / problem.n_arms), least_block(_options(problem), 0, RACE_SHARE))

    def plan(self, memory: RacePlan, view: View) -> RacePlan:
        if view.lacking is None:
            raise InvalidInput("`stopping` must be a rule that says what each arm lacks, such as betting, for a race")
        outlook, samples = Outlook.on(view.evidence), view.evidence.samples
        leader = view.evidence.best
        needs = np.where(view.lacking > 0, np.maximum(view.lacking, 1.0), 0.0)
        needs[leader] = 0.0
        racing = needs > 0
        if isinstance(outlook, CatalogueOutlook):
            allowed = np.ones(needs.size, dtype=bool)
            allowed[list(view.withdrawn)] = False
            omega, gain, options = aim(outlook, leader, needs, allowed, samples, FLOOR_SHARE)
            shares = _with_optimism(omega, outlook, leader, racing)
        else:
            allowed = np.ones(needs.size, dtype=bool)
            allowed[list(view.withdrawn)] = False
            omega, gain = aimed(outlook, leader, needs, memory.omega, allowed)
            options = _options(view.problem)
            shares = explored(omega, outlook, leader, racing, samples)
        size, least = least_block(options, samples, RACE_SHARE), least_block(options, 0, RACE_SHARE)
        if gain > 0:
            size = max(least, min(size, math.ceil(AHEAD / gain)))
        if self.control is not None:
            shares = _with_control(shares, self.control, self.control_share, gain, outlook, leader, view.deltas[0])
        if view.withdrawn:
            shares[list(view.withdrawn)] = 0.0
            if shares.sum() <= 0:
                shares[leader] = 1.0
            shares /= shares.sum()
        return RacePlan(shares, size)

    def block_size(self, memory: RacePlan, view: View, issued: int) -> int:
        if issued == view.evidence.samples:
            return memory.size
        # This block is opened ahead, while results are missing. Its size grows with all pulls handed out, so that few
        # blocks are open even if results take long to arrive.
        return max(memory.size, least_block(_options(view.problem), issued, RACE_SHARE))

    def pulls(self, memory: RacePlan, view: View, issued: Vector, n: int, rng: Rng = None) -> Indices:
        return spread(memory.omega.copy(), n, float(issued.sum()) * GOLDEN % 1.0)

    def without(self, memory: RacePlan, arm: int) -> RacePlan:
        omega = memory.omega.copy()
        omega[arm] = 0.0
        # If the arm had all the pulls, omega is now 0. There is an estimate then, and the policy makes a new plan.
        return RacePlan(omega / omega.sum() if omega.any() else omega, memory.size)

    def join(self, memory: RacePlan, n_arms: int) -> RacePlan:
        return RacePlan(extended(memory.omega * (memory.omega.size / n_arms), n_arms, 1 / n_arms), memory.size)

    def shares(self, memory: RacePlan, view: View) -> Vector:
        return memory.omega


def _options(problem: Problem) -> int:
    """Returns the number of units that share a block before there is a plan: categories of a catalogue, else arms."""
    catalogue = Catalogue.of(problem)
    if Network.of(problem) is not None:
        return min(problem.n_arms, network_race.OPTIONS)
    return problem.n_arms if catalogue is None else catalogue.n_categories


def aimed(
    outlook: Outlook, leader: int, needs: Vector, before: Vector | None = None, allowed: Mask | None = None
) -> tuple[Vector, float]:
    """Returns the allocation that fills the accounts soonest, and the part of what is needed that one pull brings.

    Where arms are many, the search starts from `before`, the last plan, if it is given, and only arms that are
    `allowed` get shares.
    """
    problem, mu, racing = outlook.problem, outlook.mu, needs > 0
    sigma = outlook.sigma
    beaten = mu[racing] < mu[leader] + problem.tolerance - 1e-7 * sigma.max()
    if isinstance(outlook, NetworkOutlook):
        if racing.any() and beaten.all() and before is not None and allowed is not None:
            return network_race.aim(outlook, leader, needs, allowed, before)
        return _evenly(outlook, leader, racing), 0.0
    responder = Responder(problem, mu, leader, sigma, outlook.radii)
    if mu.size > LARGE and not problem.unstructured and racing.any() and beaten.all():
        start = opening_allocation(responder)
        if before is not None:
            start = START_SHARE * start + (1 - START_SHARE) * before
        return improve(responder, needs, start, LARGE_STEPS)
    renumbered, ordered = responder.renumbered(), responder.components.ordered(needs)
    first = opening(renumbered)
    if racing.any() and TIED < first.cost[ordered > 0].min() < np.inf:
        if problem.unstructured:
            return balance(responder, needs)
        steps = PLAN_STEPS if mu.size <= MANY_ARMS else FEW_STEPS
        found = search(renumbered, PLAN_TOL, steps, needs=ordered, first=first)
        omega = responder.components.restored(found.best.omega)
        cost = responder.components.restored(found.best.cost)
        return omega, float((cost[racing] / needs[racing]).min())
    return _evenly(outlook, leader, racing), 0.0


def _evenly(outlook: Outlook, leader: int, racing: Mask) -> Vector:
    """Returns equal shares of the leader and of the racing arms that are not below it."""
    level = outlook.mu[leader] - 1e-7 * outlook.sigma.max() - outlook.problem.tolerance
    tied = (outlook.mu >= level) & racing
    tied[leader] = True
    shares: Vector = tied / tied.sum()
    return shares


def explored(omega: Vector, outlook: Outlook, leader: int, racing: Mask, samples: int) -> Vector:
    """Returns the allocation with extra shares for the most promising rival and for every racing arm (13.2, 13.3)."""
    shares = np.array(_with_optimism(omega, outlook, leader, racing))
    open_arms = np.array(racing)
    open_arms[leader] = True
    mass = shares[open_arms].sum()
    if open_arms.sum() > 1 and mass > 0:
        least = FLOOR_SHARE * floor(omega.size, samples)
        shares[open_arms] = mass * project_on_floor(shares[open_arms] / mass, least)
    return shares


def _with_control(
    shares: Vector, control: int, least: float | None, gain: float, outlook: Outlook, leader: int, delta: float
) -> Vector:
    """Returns the shares with that of the control raised to `least`, or so far that its comparison with the leader will
    not be slower than the slowest account, which grows by `gain` of what it lacks per pull (theory 20.7)."""
    if least is None:
        if leader == control:
            return shares
        spread = float(outlook.variances[[leader, control]].mean())
        counts = outlook.evidence.data.counts[[leader, control]]
        precision = float(counts.prod() / max(counts.sum(), 1.0)) / spread
        # One standard deviation less than estimated, so that a control with few results is not taken for clearly worse.
        gap = float(outlook.mu[leader] - outlook.mu[control]) - 1 / math.sqrt(max(precision, 1e-300))
        goal = math.log(2 * shares.size / delta) + LEARNT
        known = max(gap, 0.0) ** 2 * precision / 2
        # The precision of the difference per pull that brings what is missing in the time of the slowest account.
        wanted = max(goal - known, 1.0) * gain * 2 * spread / gap**2 if gap > 0 and gain > 0 else math.inf
        ahead = float(shares[leader])
        least = wanted * ahead / (ahead - wanted) if 2 * wanted < ahead else ahead
        least /= 1 + least - shares[control]  # the share of the leader shrinks with all others
    if shares[control] >= least:
        return shares
    others = 1 - shares[control]
    shares = shares * ((1 - least) / others) if others > 0 else shares
    shares[control] = least
    return shares


def _with_optimism(omega: Vector, outlook: Outlook, leader: int, racing: Mask) -> Vector:
    """Returns the allocation with an extra share for the rival with the highest upper bound, or several in a catalogue,
    as far as these exceed the leader's mean (13.2, 17.19)."""
    upper, level = outlook.hopes(leader)
    upper[~racing] = -np.inf
    rivals: list[int] = []
    for _ in range(HOPEFUL if isinstance(outlook, CatalogueOutlook) else 1):
        rival = first_largest(upper)
        if upper[rival] <= level:
            break
        rivals.append(rival)
        upper[rival] = -np.inf
    if rivals:
        omega = (1 - OPTIMISM) * omega
        omega[rivals] += OPTIMISM / len(rivals)
    return omega


@njit
def spread(omega: Vector, n: int, offset: float) -> Indices:
    """Returns n pulls in the proportions `omega`, each arm rounded up or down, and evenly mixed.

    This is systematic sampling: arm a gets one pull for each whole number between n times the cumulated shares before
    and after it. `offset` in [0, 1) shifts these, so that over many blocks with different offsets small shares are
    rounded up often enough.
    """
    arms = np.empty(n, dtype=np.intp)
    place = np.empty(n)
    total = omega.sum()
    last = np.flatnonzero(omega)[-1]
    before = 0
    share = 0.0
    for a in range(omega.size):
        share += omega[a]
        # The last arm with a share must end at exactly n, despite rounding errors.
        after = n if a >= last else int(np.floor(share / total * n + offset))
        for k in range(before, after):
            arms[k] = a
            place[k] = (k - before + 0.5) / (after - before)
        before = after
    return arms[np.argsort(place, kind="mergesort")]
