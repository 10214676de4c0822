"""A stopping rule, a sampling rule and a policy of the two, in a file that gives them names when it is imported."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.policy import POLICIES, Policy
from spectralbai.problem import Problem
from spectralbai.sampling import SamplingRule, Tracker, View
from spectralbai.stopping import RULES, Reading, StoppingRule


@dataclass(frozen=True)
class LeadReading(Reading):
    """How far the leader is ahead, in standard deviations."""

    arm: int
    lead: float
    samples: int

    def decided(self, delta: float) -> bool:
        statistic, threshold = self.least_beaten(delta)
        return statistic > threshold

    def least_beaten(self, delta: float) -> tuple[float, float]:
        return self.lead, math.sqrt(2 * math.log(2 * self.samples**2 / delta))


@dataclass(frozen=True)
class Lead(StoppingRule[Memory]):
    """Stops once the average of one arm is far above all others."""

    name: str = "own-lead"
    reference: str = "an example"
    proved: bool = False

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def read(self, memory: Memory, evidence: Evidence) -> Reading:
        data, sigma = evidence.data, evidence.problem.sigma
        means = np.where(data.counts > 0, data.means, -np.inf)
        arm = int(np.argmax(means))
        if not data.counts.all():
            return LeadReading(arm, 0.0, evidence.samples)
        spread = np.sqrt(sigma**2 / data.counts + sigma[arm] ** 2 / data.counts[arm])
        leads = np.delete((means[arm] - means) / spread, arm)
        return LeadReading(arm, float(leads.min()), evidence.samples)


@dataclass(frozen=True)
class LeaderHalf(Tracker):
    """Half of the pulls to the leader, the rest in equal parts."""

    def allocation(self, view: View) -> Vector:
        omega = np.full(view.problem.n_arms, 0.5 / (view.problem.n_arms - 1))
        omega[view.evidence.best] = 0.5
        return omega


@dataclass(frozen=True, eq=False)
class Own(Policy):
    """Both together."""

    stopping: str | StoppingRule[Any] = "own-lead"
    sampling: SamplingRule[Any] = field(default=LeaderHalf(), kw_only=True)


RULES["own-lead"] = Lead()
POLICIES["own"] = Own
