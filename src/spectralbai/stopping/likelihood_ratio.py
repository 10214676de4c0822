"""Likelihood ratios against thresholds that grow with time: the rules of the papers, not proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from spectralbai.checks import Vector
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
        responses = evidence.responses
        statistic = responses.cost[responses.challengers] - responses.misfit
        return _plain_reading(evidence, evidence.best, statistic, self.iterated_logarithm)

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return closest_cost(problem, mu, best, allocation)


@dataclass(frozen=True)
class PrintedRule(StoppingRule[Memory]):
    """The rule as printed in the paper: its statistic ignores the smoothness, so the graph does not help it."""

    name: str = "paper-printed"
    reference: str = "[KG20], eq. (5): log(2t(K-1)/delta)"
    proved: bool = False

    def start(self, problem: Problem) -> Memory:
        return Memory()

    def read(self, memory: Memory, evidence: Evidence) -> Reading:
        problem, data = evidence.problem, evidence.data
        best = int(np.argmax(np.where(data.counts > 0, data.means, -np.inf)))
        if (data.counts == 0).any():
            return _plain_reading(evidence, best, np.zeros(problem.n_arms - 1), False)
        responses = Responder(_without_graph(problem), data.means, best).respond(data.counts)
        return _plain_reading(evidence, best, responses.cost[responses.challengers], False)

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return closest_cost(_without_graph(problem), mu, best, allocation)


def closest_cost(problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
    """Returns how fast likelihood ratios grow: the cost per trial of the closest alternative to `mu` (theory 2.2)."""
    return Responder(problem, mu, best).respond(allocation).value


@lru_cache(maxsize=32)
def _without_graph(problem: Problem) -> Problem:
    return problem.without_graph()


def _plain_reading(evidence: Evidence, arm: int, statistic: Vector, iterated_logarithm: bool) -> Reading:
    t = evidence.samples
    penalty = math.log1p(math.log(t)) if iterated_logarithm else math.log(2 * t * (evidence.problem.n_arms - 1))
    return LikelihoodReading.plain(arm, statistic, penalty)
