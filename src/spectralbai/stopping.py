"""Stopping rules: when the evidence that an arm is right is worth a risk delta, and which rules are proved.

A rule compares a statistic per challenger with a threshold; one reading of the data serves all risks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numba import njit
from scipy.special import chdtri

from spectralbai.checks import Indices, Matrix, Vector
from spectralbai.intervals import graph_intervals, plain_widths
from spectralbai.oracle import Oracle, Responses
from spectralbai.problem import Problem
from spectralbai.secular import misfit_and_roughness, respond_all, respond_pairs
from spectralbai.spectrum import decompose

SPLIT_EVIDENCE = 1.5
"""The mixture's prior is frozen at the first check with this much evidence against every challenger."""

PRIOR_SCALES = (1 / 16, 1.0, 8.0, 64.0)
"""Grid of prior precisions of the roughness, in units of rank / R; the vague one sees that R is too small."""

STIFFEST = 1e10
"""Limit on kappa trace(L) / total weight before the split: nearly rigid, and still far from singular."""

PAIR_SHARE = 0.1
"""Part of the risk spent on comparing arms two by two, as if there were no graph. The threshold on the graph pays for all of
its arms at once; where it says little, this is what decides, and the graph does no harm (theory 6.9)."""

SUSPICION = 0.2
"""Where the misfit is larger than it would be with this probability if R were right and every direction rough, the
challengers get the benefit of the doubt: they are tested at the roughness of the data instead. This can only delay a
decision. It makes decisions on the strength of a wrong R rare; nothing can exclude them before R is refuted."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Counts and sums of the results received up to some time."""

    counts: Vector
    sums: Vector

    @property
    def means(self) -> Vector:
        """Empirical means, 0 where there are no results."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)

    def since(self, earlier: Snapshot) -> Snapshot:
        """Returns the results received after `earlier`."""
        return Snapshot(self.counts - earlier.counts, self.sums - earlier.sums)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a stopping rule may look at: results received, the arm to defend, and the results up to the split."""

    problem: Problem
    data: Snapshot
    best: int
    """The arm recommended: the best of the constrained estimate."""
    split: Snapshot | None
    """Results up to the time the mixture's prior was frozen; None before."""
    origin: float
    """What was subtracted from every outcome."""

    @property
    def samples(self) -> float:
        return float(self.data.counts.sum())

    @cached_property
    def responses(self) -> Responses:
        """Costs of all challengers on all results."""
        oracle = Oracle(self.problem, self.data.means, self.best)
        return oracle.respond(self.data.counts[oracle.blocks.order])

    @property
    def doubtful_roughness(self) -> float:
        """The roughness of the results where it makes R doubtful; 0 where it does not."""
        rank = self.problem.n_arms - (self.responses.oracle.blocks.offsets.size - 1)
        if rank == 0 or self.responses.misfit <= 0.5 * float(chdtri(rank, SUSPICION)):
            return 0.0
        at, blocks = self.responses, self.responses.oracle.blocks
        u = at.omega / at.oracle.sigma**2
        return float(misfit_and_roughness(self.problem.R, at.oracle.mu, u, at.basis, at.theta, at.rough, blocks.offsets)[1])

    @property
    def splits_here(self) -> bool:
        """Whether the mixture's prior should be frozen now. Any stopping time will do: the rule is valid for all."""
        lead = self.responses.value - self.responses.misfit
        return lead > SPLIT_EVIDENCE or self.responses.misfit > self.problem.n_arms + 10


class Reading(Protocol):
    """What a rule makes of the data at one time."""

    @property
    def arm(self) -> int:
        """The arm defended."""
        ...

    def consistent(self, delta: float) -> bool:
        """Whether the data agree with R; false with probability at most delta if they do."""
        ...

    def decided(self, delta: float) -> bool:
        """Whether every challenger is beaten, by data that agree with R."""
        ...

    def least_beaten(self, delta: float) -> tuple[float, float]:
        """Returns (statistic, threshold) of the challenger least beaten; (inf, 0) if no challenger can win."""
        ...


@dataclass(frozen=True, eq=False)
class LikelihoodReading:
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


@dataclass(frozen=True, eq=False)
class IntervalReading:
    """Estimates, and half the widths of their confidence intervals as a function of delta."""

    means: Vector
    tolerance: float
    widths: Callable[[float], Vector]

    @property
    def arm(self) -> int:
        return int(np.argmax(self.means))

    def consistent(self, delta: float) -> bool:
        return True

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


class StoppingRule(Protocol):
    """A named stopping rule."""

    @property
    def name(self) -> str: ...
    @property
    def proved(self) -> bool:
        """Whether its risk is proved to be at most delta."""
        ...

    @property
    def reference(self) -> str: ...

    def read(self, evidence: Evidence) -> Reading:
        """Returns what the rule makes of the evidence."""
        ...


@dataclass(frozen=True)
class LikelihoodRatio:
    """The constrained likelihood ratio, cost_i - misfit, against a threshold that grows with time. Not proved."""

    name: str
    reference: str
    iterated_logarithm: bool
    proved: bool = False

    def read(self, evidence: Evidence) -> Reading:
        responses = evidence.responses
        statistic = responses.cost[responses.challengers] - responses.misfit
        return _plain_reading(evidence, evidence.best, statistic, self.iterated_logarithm)


@dataclass(frozen=True)
class PrintedRule:
    """The rule as the paper prints it: an unconstrained statistic, which cannot profit from the graph."""

    name: str = "paper-printed"
    reference: str = "[KG20], eq. (5): log(2t(K-1)/delta)"
    proved: bool = False

    def read(self, evidence: Evidence) -> Reading:
        problem, data = evidence.problem, evidence.data
        best = int(np.argmax(np.where(data.counts > 0, data.means, -np.inf)))
        if (data.counts == 0).any():
            return _plain_reading(evidence, best, np.zeros(problem.n_arms - 1), False)
        oracle = Oracle(_without_graph(problem), data.means, best)
        responses = oracle.respond(data.counts[oracle.blocks.order])
        return _plain_reading(evidence, best, responses.cost[responses.challengers], False)


@lru_cache(maxsize=32)
def _without_graph(problem: Problem) -> Problem:
    return Problem(problem.graph, math.inf, problem.sigma, problem.tolerance)


def _plain_reading(evidence: Evidence, arm: int, statistic: Vector, iterated_logarithm: bool) -> Reading:
    t = evidence.samples
    penalty = math.log1p(math.log(t)) if iterated_logarithm else math.log(2 * t * (evidence.problem.n_arms - 1))
    return LikelihoodReading(arm, statistic, np.full(statistic.size, penalty), np.zeros(statistic.size), 0.0, math.inf)


@dataclass(frozen=True)
class Mixture:
    """The split mixture: proved for any sampling rule and sub-Gaussian noise, by Ville's inequality (theory, section 6).

    The prior is the posterior of a Gaussian mixture at the split, a function of earlier results only; statistic and
    threshold use later results only. With up to two components the test is on the whole graph at risk delta. With
    more, challenger i is tested on the results of its component and that of the best arm, at the risk shared by the
    tests that could go wrong if i is best (theory 6.7). A small part of the risk goes to comparisons of two arms that
    ignore the graph (theory 6.9); each challenger is beaten by whichever test beats it first.
    """

    name: str = "mixture"
    reference: str = "Ville's inequality; docs/theory.md, section 6"
    proved: bool = True
    mean_range: tuple[float, float] | None = None
    """Interval known to hold the means, if any: informs the prior, never the validity."""

    def read(self, evidence: Evidence) -> Reading:
        responses = evidence.responses
        if evidence.split is None:
            rows = responses.challengers
            statistic = responses.cost[rows] - responses.misfit
            return LikelihoodReading(evidence.best, statistic, np.full(rows.size, math.inf), np.zeros(rows.size), 0.0, math.inf)
        problem, blocks = evidence.problem, responses.oracle.blocks
        later = evidence.data.since(evidence.split)
        order = blocks.order
        sigma, counts, means = problem.sigma[order], later.counts[order], later.means[order]
        u = counts / sigma**2
        before = evidence.split.counts[order] / sigma**2
        integrals = log_integrals(
            before, evidence.split.means[order], u, means, problem.R, self._level(evidence.origin), blocks.offsets,
            blocks.ends, blocks.weights, blocks.edge_offsets, np.array(PRIOR_SCALES),
        )  # fmt: skip
        best = int(blocks.position[evidence.best])
        basis, theta, rough = decompose(u, blocks.offsets, blocks.ends, blocks.weights, blocks.edge_offsets)
        total_misfit = misfit_and_roughness(problem.R, means, u, basis, theta, rough, blocks.offsets)[0]
        R = max(problem.R, evidence.doubtful_roughness)
        total_penalty = -float(integrals.sum())
        if integrals.size <= 2:
            cost = respond_all(
                best, R, problem.tolerance, means, u, basis, theta, rough, blocks.offsets, blocks.component, np.zeros(u.size)
            )[4]
            rows = np.flatnonzero(np.isfinite(cost))
            statistic = cost[rows]
            penalty, misfit = np.full(rows.size, total_penalty), np.full(rows.size, total_misfit)
        else:
            cost, misfit = respond_pairs(best, R, problem.tolerance, means, u, basis, theta, rough, blocks.offsets, blocks.component)
            rows = np.flatnonzero(np.isfinite(cost))
            statistic, misfit = cost[rows], misfit[rows]
            component = blocks.component[rows]
            sizes = np.diff(blocks.offsets)
            tests = integrals.size - 1 + (sizes[component] >= 2)
            home = blocks.component[best]
            penalty = np.log(tests) - integrals[home] - np.where(component == home, 0.0, integrals[component])
        if not problem.unstructured:
            penalty = penalty - math.log1p(-PAIR_SHARE)
            alone = lone_integrals(before, evidence.split.means[order], u, means, self._level(evidence.origin))
            both = u[best] * (u[rows] / np.maximum(u[best] + u[rows], np.finfo(float).tiny))
            plain = 0.5 * both * np.maximum(means[best] - means[rows] + problem.tolerance, 0.0) ** 2
            fee = math.log((problem.n_arms - 1) / PAIR_SHARE) - alone[best] - alone[rows]
            better = plain - fee > statistic - penalty
            statistic, penalty, misfit = (np.where(better, *each) for each in ((plain, statistic), (fee, penalty), (0.0, misfit)))
        return LikelihoodReading(evidence.best, statistic, penalty, misfit, total_misfit, total_penalty)

    def _level(self, origin: float) -> tuple[float, float]:
        """Returns (precision, centre) of the prior on each mean: flat unless their range is known."""
        if self.mean_range is None:
            return 0.0, 0.0
        low, high = self.mean_range
        return (2 / (high - low)) ** 2, (low + high) / 2 - origin


@dataclass(frozen=True)
class Intervals:
    """Stop once the confidence interval of one arm is above all others, up to the tolerance: the rule of LUCB and GRUB."""

    name: str
    reference: str
    with_graph: bool
    proved: bool = True

    def read(self, evidence: Evidence) -> Reading:
        problem, data = evidence.problem, evidence.data
        if not self.with_graph:
            means = np.where(data.counts > 0, data.means, -np.inf)
            return IntervalReading(means, problem.tolerance, lambda delta: plain_widths(data.counts, problem.sigma, delta))
        return IntervalReading(
            graph_intervals(problem, data.counts, data.means, 0.5)[0],
            problem.tolerance,
            lambda delta: graph_intervals(problem, data.counts, data.means, delta)[1],
        )


def lone_integrals(before: Vector, means_before: Vector, u: Vector, means: Vector, level: tuple[float, float]) -> Vector:
    """Returns what `log_integrals` gives for arms without edges, one entry per arm; -inf without results before the split."""
    precision, middle = level
    p = before + precision
    known = p > 0
    m = (before * means_before + precision * middle)[known] / p[known]
    logs = np.full(u.size, -np.inf)
    logs[known] = -0.5 * np.log1p(u[known] / p[known]) - 0.5 * u[known] * (p[known] / (u[known] + p[known])) * (means[known] - m) ** 2
    return logs


RULES: dict[str, StoppingRule] = {
    rule.name: rule
    for rule in (
        Mixture(),
        LikelihoodRatio("paper", "[KG20]: constrained statistic, log(2t(K-1)/delta)", iterated_logarithm=False),
        PrintedRule(),
        LikelihoodRatio("gk16", "[GK16], heuristic: log((1 + log t)/delta)", iterated_logarithm=True),
        Intervals("intervals", "mixtures per arm; docs/theory.md, section 8", with_graph=False),
        Intervals("graph-intervals", "self-normalised bound; docs/theory.md, section 8", with_graph=True),
    )
}
"""The stopping rules by name."""


@njit(cache=True)
def log_integrals(
    before: Vector,
    means_before: Vector,
    u: Vector,
    means: Vector,
    R: float,
    level: tuple[float, float],
    offsets: Indices,
    ends: Indices,
    weights: Vector,
    edge_offsets: Indices,
    scales: Vector,
) -> Vector:
    """Returns, per component, log of the integral of exp(-sum_a u_a (means_a - lam_a)^2 / 2) over the frozen prior.

    The prior is a mixture over k of N(m_k, P_k^-1) with P_k = kappa_k L + diag(before), kappa_k = scales_k rank / R, the
    posterior of a flat level and roughness precision kappa_k given the results before the split, weighted by how
    well kappa_k explains them (theory 6.4-6.6).
    """
    precision, middle = level
    n_components = offsets.size - 1
    result = np.zeros(n_components)
    for c in range(n_components):
        low = offsets[c]
        size = offsets[c + 1] - low
        centre = 0.0
        total = 0.0
        for a in range(low, low + size):
            centre += before[a] * means_before[a]
            total += before[a]
        centre /= total  # only differences of means enter: measure them from here
        if size == 1:
            p = before[low] + precision
            m = precision * (middle - centre) / p
            result[c] = -0.5 * np.log1p(u[low] / p) - 0.5 * u[low] * p / (u[low] + p) * (means[low] - centre - m) ** 2
            continue
        trace = 0.0
        laplacian = np.zeros((size, size))
        for edge in range(edge_offsets[c], edge_offsets[c + 1]):
            a, b, w = ends[edge, 0] - low, ends[edge, 1] - low, weights[edge]
            trace += 2.0 * w
            laplacian[a, a] += w
            laplacian[b, b] += w
            laplacian[a, b] -= w
            laplacian[b, a] -= w
        fits = np.empty(scales.size)
        logs = np.empty(scales.size)
        for k in range(scales.size):
            kappa = min(scales[k] * (size - 1) / R, STIFFEST * total / trace)
            # before the split: evidence of kappa, and the posterior mean m
            matrix = np.empty((size, size))
            pull = np.empty(size)
            for a in range(size):
                for j in range(size):
                    matrix[a, j] = kappa * laplacian[a, j]
                matrix[a, a] += before[low + a] + precision
                pull[a] = before[low + a] * (means_before[low + a] - centre) + precision * (middle - centre)
            factor = np.linalg.cholesky(matrix)
            m, logdet = _solve_factored(factor, pull)
            fit = 0.0
            for a in range(size):
                fit += before[low + a] * (means_before[low + a] - centre - m[a]) ** 2 + precision * (middle - centre - m[a]) ** 2
            for edge in range(edge_offsets[c], edge_offsets[c + 1]):
                fit += kappa * weights[edge] * (m[ends[edge, 0] - low] - m[ends[edge, 1] - low]) ** 2
            fits[k] = 0.5 * (size - 1) * np.log(kappa) - 0.5 * logdet - 0.5 * fit
            # after the split: the integral of this member
            for a in range(size):
                matrix[a, a] += u[low + a]
                pull[a] += u[low + a] * (means[low + a] - centre)
            lam, logdet_after = _solve_factored(np.linalg.cholesky(matrix), pull)
            fit = 0.0
            for a in range(size):
                fit += u[low + a] * (means[low + a] - centre - lam[a]) ** 2
                fit += (before[low + a] + precision) * (lam[a] - m[a]) ** 2
            for edge in range(edge_offsets[c], edge_offsets[c + 1]):
                a, b = ends[edge, 0] - low, ends[edge, 1] - low
                fit += kappa * weights[edge] * (lam[a] - m[a] - lam[b] + m[b]) ** 2
            logs[k] = fits[k] - 0.5 * (logdet_after - logdet) - 0.5 * fit
        result[c] = _log_sum_exp(logs) - _log_sum_exp(fits)
    return result


@njit(cache=True)
def _log_sum_exp(x: Vector) -> float:
    top = x.max()
    return float(top + np.log(np.exp(x - top).sum()))


@njit(cache=True)
def _solve_factored(factor: Matrix, rhs: Vector) -> tuple[Vector, float]:
    """Returns the solution of C C' x = rhs and log det(C C')."""
    x = rhs.copy()
    logdet = 0.0
    for a in range(x.size):
        for j in range(a):
            x[a] -= factor[a, j] * x[j]
        x[a] /= factor[a, a]
        logdet += 2.0 * np.log(factor[a, a])
    for a in range(x.size - 1, -1, -1):
        x[a] /= factor[a, a]
        for j in range(a):
            x[j] -= factor[a, j] * x[a]
    return x, logdet
