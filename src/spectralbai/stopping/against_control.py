"""Comparison of every arm with a control, by bets on the difference of their means; it stops nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, extended
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.noise import Pools
from spectralbai.noise.sub_gaussian import FIRST_RESULTS
from spectralbai.problem import Problem
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.reading import Reading

STAKES = 0.9 * 0.5 ** np.arange(12)
"""The stakes that are mixed in (20.4), all below 1. The best one is the difference divided by the variance, if both
are in units of the range of the outcomes."""
STEPS = 60
"""Number of bisections, which give the ends of an interval to within 1e-17 of the range."""


@dataclass(frozen=True, eq=False)
class Contrasts(Memory):
    """What bets on the differences have brought, and what they refute."""

    kind: ClassVar[str] = "contrasts"

    weight: Vector
    """The sum of the weights of the blocks, (n_arms,)."""
    up: Matrix
    """The logarithm of the wealth of each stake if every arm is bet to be better than the control and the difference is
    0, (n_stakes, n_arms); without a range of outcomes one row, the weighted sum of the differences."""
    down: Matrix
    """The same if every arm is bet to be worse."""
    low: Vector
    """All smaller differences between the mean of an arm and that of the control are refuted, (n_arms,)."""
    high: Vector
    """All larger ones are."""

    @property
    def ends(self) -> tuple[Vector, Vector]:
        """The ends of the intervals; where they have crossed, nothing is claimed."""
        crossed = self.low > self.high
        return np.where(crossed, -np.inf, self.low), np.where(crossed, np.inf, self.high)


@dataclass(frozen=True, eq=False)
class ContrastReading(Reading):
    """The comparison at one time: the ends of intervals for the mean of each arm minus that of the control."""

    arm: int
    low: Vector
    high: Vector

    def decided(self, delta: float) -> bool:
        return False

    def least_beaten(self, delta: float) -> tuple[float, float]:
        return 0.0, math.inf


@dataclass(frozen=True)
class AgainstControl(StoppingRule[Contrasts]):
    """Bets on the difference between each arm and the control, both ways and for every value that it may have.

    All values that bets refute are outside of the interval. With probability 1 - delta the intervals of all arms, and
    one for the mean of the control, hold at all times at once (theory, section 20). They use only what the arm and the
    control showed in the same blocks, and no graph.
    """

    bets: ClassVar[bool] = True

    name: str = "against-control"
    reference: str = "docs/theory.md, section 20"
    proved: bool = True
    control: int = 0
    """The arm that the others are compared with."""
    delta: float = 0.05
    """The risk of all intervals together."""

    def start(self, problem: Problem) -> Contrasts:
        n_arms, rows = problem.n_arms, 1 if problem.outcome_range is None else STAKES.size
        nothing = np.zeros((rows, n_arms))
        return Contrasts(np.zeros(n_arms), nothing, nothing, np.full(n_arms, -np.inf), np.full(n_arms, np.inf))

    def observe(self, memory: Contrasts, block: Block | None, evidence: Evidence, decided: bool = False) -> Contrasts:
        assert block is not None, "a rule that bets is only used on blocks"
        n = block.counts
        if n.size <= self.control or not n[self.control]:
            return memory
        arms = np.flatnonzero(n)
        arms = arms[arms != self.control]
        bet = _sums if evidence.problem.outcome_range is None else _bounded
        weight, up, down = bet(block, evidence, self.control, arms)
        total, ups, downs = memory.weight.copy(), memory.up.copy(), memory.down.copy()
        total[arms] += weight
        ups[:, arms] += up
        downs[:, arms] += down
        return self._refuted(replace(memory, weight=total, up=ups, down=downs), evidence.problem)

    def read(self, memory: Contrasts, evidence: Evidence) -> ContrastReading:
        return ContrastReading(self.control, *memory.ends)

    def withdraw(self, memory: Contrasts, arm: int) -> Contrasts:
        return memory

    def join(self, memory: Contrasts, problem: Problem, before: Problem) -> Contrasts:
        n_arms = problem.n_arms
        weight, up, down = (extended(each, n_arms, 0.0) for each in (memory.weight, memory.up, memory.down))
        # There are more comparisons now, and each must share the risk with more others.
        anew = Contrasts(weight, up, down, np.full(n_arms, -np.inf), np.full(n_arms, np.inf))
        return self._refuted(anew, problem)

    def base(self, evidence: Evidence) -> tuple[float, float]:
        """Returns the ends of an interval for the mean of the control, minus the origin, within the same risk."""
        alone = Pools(np.array([self.control]), np.array([0]), np.array([1 / evidence.problem.n_arms]))
        data = evidence.data
        low, high = evidence.problem.noise.pooled_ends(
            alone, data.counts, data.sums, data.squares, evidence.origin, self.delta
        )
        return float(low[0]), float(high[0])

    def _refuted(self, memory: Contrasts, problem: Problem) -> Contrasts:
        """Returns the memory with all that its wealth refutes outside of the intervals."""
        seen = np.flatnonzero(memory.weight)
        goal = math.log(2 * memory.weight.size / self.delta)  # two ends of each difference, and of the control's mean
        weight = memory.weight[seen]
        if problem.outcome_range is None:
            sigma = problem.sigma[: memory.weight.size]
            first = FIRST_RESULTS / (sigma[seen] ** 2 + sigma[self.control] ** 2)
            # Both ends are refuted by one account, which may use the risk of two.
            room = 2 * (goal - math.log(2)) + np.log1p(weight / first)
            centre, radius = memory.up[0, seen] / weight, np.sqrt((weight + first) * room) / weight  # (20.3)
            found = centre - radius, centre + radius
        else:
            width = problem.outcome_range[1] - problem.outcome_range[0]
            least, most = _least(weight, memory.up[:, seen], goal), -_least(weight, memory.down[:, seen], goal)
            found = width * least, width * most
        low, high = memory.low.copy(), memory.high.copy()
        low[seen], high[seen] = np.maximum(low[seen], found[0]), np.minimum(high[seen], found[1])
        return replace(memory, low=low, high=high)


def _sums(block: Block, evidence: Evidence, control: int, arms: Indices) -> tuple[Vector, Matrix, Matrix]:
    """Returns the weight of a block, and the weighted differences in it (theory 20.2)."""
    variances, n = evidence.problem.sigma**2, block.counts
    means = np.bincount(block.arms, block.outcomes, n.size)[[control, *arms]] / n[[control, *arms]]
    weight = 1 / (variances[arms] / n[arms] + variances[control] / n[control])
    total = (weight * (means[1:] - means[0]))[None, :]
    return weight, total, -total


def _bounded(block: Block, evidence: Evidence, control: int, arms: Indices) -> tuple[Vector, Matrix, Matrix]:
    """Returns the weight of a block, and what it adds to the logarithm of the wealth of each stake, for bets that the
    arms are better than the control and that they are worse (theory 20.4)."""
    assert evidence.problem.outcome_range is not None, "only called for outcomes in a range"
    low, high = (end - evidence.origin for end in evidence.problem.outcome_range)
    centres = _centres(block, low, high)
    x, n = (block.outcomes - low) / (high - low) - centres[block.arms], block.counts
    weight = n[arms] * n[control] / (n[arms] + n[control])
    up, down = np.zeros((STAKES.size, arms.size)), np.zeros((STAKES.size, arms.size))
    of_control, times = np.unique(x[block.arms == control], return_counts=True)
    for column, arm in enumerate(arms.tolist()):
        own, often = np.unique(x[block.arms == arm], return_counts=True)
        for values, counted, bet in (
            (own, often, weight[column] / n[arm]),
            (of_control, times, -weight[column] / n[control]),
        ):
            step = np.outer(STAKES * bet, values)
            up[:, column] += np.log1p(step) @ counted
            down[:, column] += np.log1p(-step) @ counted
        apart = weight[column] * (centres[arm] - centres[control]) * STAKES
        up[:, column] += apart
        down[:, column] -= apart
    return weight, up, down


def _centres(block: Block, low: float, high: float) -> Vector:
    """Returns numbers near the means of the arms, in units of the range, from what was seen before the block."""
    data = block.data
    pooled = (data.sums.sum() + (low + high) / 2) / (data.counts.sum() + 1)
    centres: Vector = (data.sums + pooled) / (data.counts + 1)
    return np.clip((centres - low) / (high - low), 0.0, 1.0)


def _least(weight: Vector, up: Matrix, goal: float) -> Vector:
    """Returns, per arm, the number such that all smaller differences are refuted, in units of the range."""
    low, high = np.full(weight.size, -1.0), np.full(weight.size, 1.0)
    for _ in range(STEPS):
        middle = (low + high) / 2
        wealth = np.logaddexp.reduce(up - np.outer(STAKES, weight * middle), axis=0) - math.log(STAKES.size)  # (20.5)
        low, high = np.where(wealth >= goal, middle, low), np.where(wealth >= goal, high, middle)
    return np.where(low > -1.0, low, -np.inf)
