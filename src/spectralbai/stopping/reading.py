"""What a rule makes of the data at one time: one reading serves all risks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectralbai.checks import Indices, Vector
from spectralbai.stopping.region import Region


class Reading(ABC):
    """What a rule makes of the data at one time."""

    arm: int
    """The arm defended."""

    def recommended(self, delta: float) -> int:
        """Returns the arm to recommend at this risk."""
        return self.arm

    @property
    def tests_R(self) -> bool:
        """Whether the rule asks if the data agree with R, and has begun to."""
        return False

    def consistent(self, delta: float) -> bool:
        """Whether the data agree with R; with what risk this is False though R holds, each rule says."""
        return True

    @abstractmethod
    def decided(self, delta: float) -> bool:
        """Whether every challenger is beaten, by data that agree with R."""

    @abstractmethod
    def least_beaten(self, delta: float) -> tuple[float, float]:
        """Returns (statistic, threshold) of the challenger least beaten; (inf, 0) if no challenger can win."""

    def candidates(self, delta: float) -> Indices | None:
        """Returns the arms that may still be best; None where the rule keeps no such set."""
        return None

    def lacking(self, delta: float) -> Vector | None:
        """Returns what is missing to eliminate each arm, in nats; at most 0 for eliminated arms.

        None where the rule does not eliminate arms one by one.
        """
        return None

    def intervals(self, delta: float) -> tuple[Vector, Vector] | None:
        """Returns the ends of intervals that hold all means, at all times at once, with probability 1 - delta.

        None where nothing is claimed: nothing is proved, or not yet, or the data contradict R.
        """
        return None


@dataclass(frozen=True, eq=False)
class LikelihoodReading(Reading):
    """Statistics and penalties per challenger at one time; thresholds are log(1/delta) + penalty."""

    arm: int
    """The arm defended."""
    statistic: Vector
    penalty: Vector
    misfit: Vector
    """What the best smooth explanation costs, on the data and at the R of each challenger's test."""
    total_misfit: float
    """The same on all data of the rule, with its own penalty: above its threshold the data contradict R."""
    total_penalty: float
    region: Region | None = None
    """Where the true means lie, if the rule is proved and its prior frozen."""

    @property
    def tests_R(self) -> bool:
        return self.region is not None and bool((self.region.decomposition.rough > 0).any())

    def consistent(self, delta: float) -> bool:
        return self.total_misfit <= self.total_penalty - math.log(delta)

    def decided(self, delta: float) -> bool:
        threshold = self.penalty - math.log(delta)
        return self.consistent(delta) and bool(((self.statistic > threshold) & (self.misfit <= threshold)).all())

    def least_beaten(self, delta: float) -> tuple[float, float]:
        if not self.statistic.size:
            return math.inf, 0.0
        penalty = np.where(np.isinf(self.penalty), 0.0, self.penalty)  # infinite for all before the split
        i = int(np.argmin(self.statistic - penalty))
        return float(self.statistic[i]), float(self.penalty[i] - math.log(delta))

    def intervals(self, delta: float) -> tuple[Vector, Vector] | None:
        return self.region.intervals(delta) if self.region is not None and self.consistent(delta) else None


@dataclass(frozen=True, eq=False)
class IntervalReading(Reading):
    """Estimates, and half the widths of their confidence intervals as a function of delta."""

    arm: int
    means: Vector
    tolerance: float
    widths: Callable[[float], Vector]

    def decided(self, delta: float) -> bool:
        statistic, threshold = self.least_beaten(delta)
        return statistic > threshold

    def least_beaten(self, delta: float) -> tuple[float, float]:
        widths = self.widths(delta)
        if np.isinf(widths).any():
            return 0.0, math.inf
        others = np.delete(np.arange(self.means.size), self.arm)
        statistic = self.means[self.arm] - self.means[others] + self.tolerance
        threshold = widths[self.arm] + widths[others]
        i = int(np.argmax(threshold - statistic))
        return float(statistic[i]), float(threshold[i])

    def intervals(self, delta: float) -> tuple[Vector, Vector] | None:
        widths = self.widths(delta)
        means = np.where(np.isinf(widths), 0.0, self.means)  # -inf where nothing was seen
        return means - widths, means + widths
