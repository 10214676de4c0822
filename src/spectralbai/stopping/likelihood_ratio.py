"""Likelihood ratios against thresholds that grow with time: the rules of the papers, not proved.

They are those of Gaussian outcomes; for outcomes in a range, clicks too, sigma is half of the range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.reading import LikelihoodReading, Reading


@dataclass(frozen=True)
class LikelihoodRatio(StoppingRule[Memory]):
    """The constrained likelihood ratio, cost_i - misfit, against a threshold that grows with time. Not proved."""

    proved: bool = False
    iterated_logarithm: bool = field(kw_only=True)

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def read(self, memory: Memory, evidence: Evidence) -> Reading:
        responses, t = evidence.responses, evidence.samples
        statistic = responses.cost[responses.challengers] - responses.misfit
        alternatives = 2 * t * (evidence.problem.n_arms - 1)
        penalty = math.log1p(math.log(t)) if self.iterated_logarithm else math.log(alternatives)
        return LikelihoodReading(evidence.best, statistic, penalty)

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return Responder(problem, mu, best).respond(allocation).value


@dataclass(frozen=True)
class PrintedRule(LikelihoodRatio):
    """The rule as printed in the paper: its statistic ignores the smoothness, so the graph does not help it."""

    def read(self, memory: Memory, evidence: Evidence) -> Reading:
        data = evidence.data
        best = int(np.argmax(np.where(data.counts > 0, data.means, -np.inf)))
        return super().read(memory, replace(evidence, problem=_without_graph(evidence.problem), best=best))

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return super().growth(_without_graph(problem), mu, best, allocation)


_without_graph = lru_cache(maxsize=32)(Problem.without_graph)
