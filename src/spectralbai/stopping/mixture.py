"""The split mixture: a proved rule that uses the graph and needs no blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from spectralbai.arrays import Vector
from spectralbai.errors import InvalidInput
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.memory import Memory
from spectralbai.problem import Problem
from spectralbai.responder import Responder
from spectralbai.spectral import decompose
from spectralbai.stopping.contract import StoppingRule
from spectralbai.stopping.integrals import log_integrals, lone_integrals
from spectralbai.stopping.reading import LikelihoodReading
from spectralbai.stopping.region import Region, graph_penalties, lone_penalties, number_of_tests

PRIOR_SCALES = (1 / 16, 1.0, 8.0, 64.0)
"""Grid of prior precisions of the roughness, in units of rank / R; the smallest one detects that R is too small."""

PAIR_SHARE = 0.1
"""Part of the risk spent on comparing arms two by two, as if there were no graph. The threshold of the test on the
graph grows with all of its arms. Where the graph helps little, the comparisons of two arms decide first, so that the
graph does no harm (theory 6.9)."""

SPLIT_EVIDENCE = 1.5
"""The prior is frozen as soon as the evidence against every challenger is larger than this, in nats."""


@dataclass(frozen=True, eq=False)
class Split(Memory):
    """The split: the moment when the prior was frozen."""

    kind: ClassVar[str] = "split"

    data: Data | None = None
    """The results up to the split; None before the split."""


@dataclass(frozen=True)
class Mixture(StoppingRule[Split]):
    """The split mixture: proved for any sampling rule and sub-Gaussian noise (theory, section 6).

    The prior is the posterior of a Gaussian mixture at the split, so it depends on earlier results only; statistic and
    threshold use later results only. With up to two components the test is on the whole graph at risk delta. With
    more, challenger i is tested on the results of its component and of the best arm's component; the risk is shared by
    the tests that could go wrong if i is best (theory 6.7). A small part of the risk goes to comparisons of two arms
    that ignore the graph (theory 6.9). A challenger is beaten as soon as one of its tests beats it.
    """

    tests_R: ClassVar[bool] = True

    name: str = "mixture"
    reference: str = "Ville's inequality; docs/theory.md, section 6"
    proved: bool = True
    mean_range: tuple[float, float] | None = None
    """Interval that the means are known to lie in, if any; the default is the range of the outcomes, if known. It
    shapes the prior; the rule stays valid even if the interval is wrong."""

    def check(self, problem: Problem) -> None:
        if problem.by_component:
            raise InvalidInput(
                "`stopping` = 'mixture' needs one R for all components, got one for each; use stopping='betting'"
            )

    def start(self, problem: Problem) -> Split:
        return Split()

    def observe(self, memory: Split, block: Block | None, evidence: Evidence, decided: bool = False) -> Split:
        if memory.data is not None:
            return memory
        # The rule is valid for every choice of the split that depends on earlier results only.
        responses = evidence.responses
        lead = responses.value - responses.misfit
        ready = lead > SPLIT_EVIDENCE or responses.misfit > evidence.problem.n_arms + 10
        return Split(evidence.data) if ready else memory

    def read(self, memory: Split, evidence: Evidence) -> LikelihoodReading:
        responses, split = evidence.responses, memory.data
        if split is None or split.samples == evidence.samples:
            statistic = responses.cost[responses.challengers] - responses.misfit
            return LikelihoodReading.plain(evidence.best, statistic, penalty=math.inf)
        problem, best = evidence.problem, evidence.best
        later = evidence.data.since(split)
        decomposition, means = decompose(problem, later.counts), later.means
        components, u = decomposition.components, decomposition.u
        before, level = split.counts / problem.sigma**2, self._level(problem, evidence.origin)
        prior_R = float(components.radii[0])
        integrals = log_integrals(components, before, split.means, u, means, prior_R, level, np.array(PRIOR_SCALES))
        total_misfit = decomposition.misfit(means, components.radii)
        R = max(prior_R, evidence.doubtful_roughness)
        total_penalty = -float(integrals.sum())
        allowed, allowed_alone = graph_penalties(integrals, components.sizes), None
        if integrals.size <= 2:
            cost = decomposition.respond(means, best, np.array([R]), problem.tolerance).cost
            rows = np.flatnonzero(np.isfinite(cost))
            statistic = cost[rows]
            penalty, misfit = np.full(rows.size, total_penalty), np.full(rows.size, total_misfit)
        else:
            cost, misfit = decomposition.respond_pairs(means, best, R, problem.tolerance)
            rows = np.flatnonzero(np.isfinite(cost))
            statistic, misfit = cost[rows], misfit[rows]
            component, home = components.of_arm[rows], components.of_arm[best]
            tests = number_of_tests(components.sizes)[component]
            penalty = np.log(tests) - integrals[home] - np.where(component == home, 0.0, integrals[component])
        if not problem.unstructured:
            penalty = penalty - math.log1p(-PAIR_SHARE)
            alone = lone_integrals(before, split.means, u, means, level)
            both = u[best] * (u[rows] / np.maximum(u[best] + u[rows], np.finfo(float).tiny))
            plain = 0.5 * both * np.maximum(means[best] - means[rows] + problem.tolerance, 0.0) ** 2
            fee = math.log((problem.n_arms - 1) / PAIR_SHARE) - alone[best] - alone[rows]
            better = plain - fee > statistic - penalty
            statistic, penalty, misfit = (
                np.where(better, *each) for each in ((plain, statistic), (fee, penalty), (0.0, misfit))
            )
            allowed, allowed_alone = allowed - math.log1p(-PAIR_SHARE), lone_penalties(alone) - math.log(PAIR_SHARE)
        region = Region(decomposition, R, means, allowed, allowed_alone)
        return LikelihoodReading(evidence.best, statistic, penalty, misfit, total_misfit, total_penalty, region)

    def knowing(self, mean_range: tuple[float, float]) -> Self:
        return replace(self, mean_range=mean_range)

    def growth(self, problem: Problem, mu: Vector, best: int, allocation: Vector) -> float:
        return Responder(problem, mu, best).respond(allocation).value

    def _level(self, problem: Problem, origin: float) -> tuple[float, float]:
        """Returns (precision, centre) of the prior on each mean: flat unless their range is known."""
        known = self.mean_range or problem.outcome_range
        if known is None:
            return 0.0, 0.0
        low, high = known
        return (2 / (high - low)) ** 2, (low + high) / 2 - origin
