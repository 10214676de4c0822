"""Readings: what a stopping rule concludes from the data at one time. One reading serves all risks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spectralbai.arrays import Indices, Mask, Vector


class Reading(ABC):
    """What a stopping rule concludes from the data at one time."""

    arm: int
    """The leader."""

    def recommended(self, delta: float) -> int:
        """Returns the arm to recommend at this risk."""
        return self.arm

    @property
    def tests_R(self) -> bool:
        """Whether the rule tests if the data agree with R, and has started to."""
        return False

    def consistent(self, delta: float) -> bool:
        """Whether the data agree with R. Each rule documents the risk that this is False although R holds."""
        return True

    @abstractmethod
    def decided(self, delta: float) -> bool:
        """Whether every challenger is beaten, by data that agree with R."""

    @abstractmethod
    def least_beaten(self, delta: float) -> tuple[float, float]:
        """Returns (statistic, threshold) of the challenger that is closest to winning; (inf, 0) if none can win."""

    def candidates(self, delta: float) -> Indices | None:
        """Returns the candidates, the arms that are not eliminated; None if the rule does not eliminate arms."""
        return None

    def lacking(self, delta: float) -> Vector | None:
        """Returns what is missing to eliminate each arm, in nats; at most 0 for eliminated arms.

        None if the rule does not eliminate arms one by one.
        """
        return None

    def needed(self, delta: float) -> Mask | None:
        """Returns which arms are still needed: those of comparisons that are not settled; None as for `lacking`."""
        return None

    def intervals(self, delta: float) -> tuple[Vector, Vector] | None:
        """Returns the ends of intervals that contain all means, at all times at once, with probability 1 - delta.

        None if the rule claims no intervals: they are not proved, it is too early, or the data contradict R.
        """
        return None


@dataclass(frozen=True, eq=False)
class LikelihoodReading(Reading):
    """The statistic of each challenger at one time; the threshold of all is log(1/delta) + penalty."""

    arm: int
    statistic: Vector
    penalty: float

    def decided(self, delta: float) -> bool:
        return bool((self.statistic > self.penalty - math.log(delta)).all())

    def least_beaten(self, delta: float) -> tuple[float, float]:
        if not self.statistic.size:
            return math.inf, 0.0
        return float(self.statistic.min()), self.penalty - math.log(delta)


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
        means = np.where(np.isinf(widths), 0.0, self.means)  # arms without results have mean -inf here
        return means - widths, means + widths
