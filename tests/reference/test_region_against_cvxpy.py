"""Confidence intervals of the mixture against a cone solver, from the event itself: one problem per arm, side and
possible best arm."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Vector
from spectralbai.evidence.blocks import Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.spectral import Components
from spectralbai.stopping import LikelihoodReading, Mixture
from spectralbai.stopping.integrals import log_integrals, lone_integrals
from spectralbai.stopping.mixture import PRIOR_SCALES, Split

DELTA = 0.1
SHARE, PAIR_SHARE = 0.9, 0.1
SHAPES = {
    "one component": (5,),
    "two arms": (2,),
    "two components": (3, 2),
    "two components, one a lone arm": (4, 1),
    "three components": (2, 1, 3),
    "four components, three lone arms": (1, 1, 2, 1),
}


@dataclass(frozen=True)
class Case:
    """A problem and what was seen, arms in the order of components; every arm by itself where the graph says
    nothing."""

    problem: Problem
    evidence: Evidence
    split: Data
    sizes: tuple[int, ...]
    u: Vector
    means: Vector
    R: float

    @property
    def parts(self) -> list[slice]:
        ends = np.cumsum(self.sizes).tolist()
        return [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]

    @property
    def integrals(self) -> Vector:
        """The log integrals per component: tested by themselves elsewhere."""
        split = self.split
        return log_integrals(
            Components.from_problem(self.problem),
            split.counts / self.problem.sigma**2,
            split.means,
            self.u,
            self.means,
            float(self.problem.R),
            (0.0, 0.0),
            np.array(PRIOR_SCALES),
        )

    @property
    def alone(self) -> Vector:
        split = self.split
        return lone_integrals(split.counts / self.problem.sigma**2, split.means, self.u, self.means, (0.0, 0.0))


def case(shape: str, seed: int, R: float | None = None, roughness: float = 1.0) -> Case:
    """Returns random data; R is a multiple of S(mu), unless given, and `roughness` how much rougher the true means
    are than it says."""
    rng = np.random.default_rng(seed)
    sizes = SHAPES[shape]
    n_arms, first, edges = sum(sizes), 0, []
    for size in sizes:
        for b in range(first + 1, first + size):
            edges += [
                (a, b, float(10 ** rng.uniform(-0.5, 0.5))) for a in range(first, b) if a == b - 1 or rng.random() < 0.3
            ]
        first += size
    graph, mu = Graph.from_edges(n_arms, edges), rng.standard_normal(n_arms)
    R = graph.smoothness(mu) * float(rng.uniform(1.0, 1.5)) if R is None else R
    problem = Problem(graph, R, sigma=10 ** rng.uniform(-0.3, 0.3, n_arms))
    mu = roughness * mu
    before, later = rng.integers(1, 6, n_arms).astype(float), np.ceil(10 ** rng.uniform(0, 2.5, n_arms))
    later[rng.random(n_arms) < 0.2] = 0.0
    later[np.cumsum(sizes) - 1] += 1.0  # some in every component
    sums = [n * mu + np.sqrt(n) * problem.sigma * rng.standard_normal(n_arms) for n in (before, later)]
    split, data = Data.of_sums(before, sums[0]), Data.of_sums(before + later, sums[0] + sums[1])
    evidence = Evidence(problem, data, int(np.argmax(data.means)), 0.0)
    means = data.since(split).means
    if problem.unstructured:
        sizes = (1,) * n_arms
    return Case(problem, evidence, split, sizes, later / problem.sigma**2, means, max(R, evidence.doubtful_roughness))


def reach(case: Case, arm: int, budgets: list[tuple[list[slice], float]]) -> tuple[float, float]:
    """Returns the least and largest lam[arm] with S(lam) <= R such that the results of each list of parts cost at
    most its budget."""
    lam = cp.Variable(case.u.size)
    root = np.sqrt(case.u)
    constraints = []
    for parts, budget in budgets:
        kept = np.concatenate([np.arange(case.u.size)[part] for part in parts])
        constraints.append(cp.norm(cp.multiply(root[kept], lam[kept] - case.means[kept])) <= math.sqrt(2 * budget))
    if not case.problem.unstructured:
        a, b = case.problem.graph.pairs.T
        constraints.append(
            cp.norm(cp.multiply(np.sqrt(case.problem.graph.weights), lam[a] - lam[b])) <= math.sqrt(case.R)
        )
    ends = []
    for side in (cp.Minimize, cp.Maximize):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "may be inaccurate": the comparison decides
            ends.append(float(cp.Problem(side(lam[arm]), constraints).solve(solver=cp.CLARABEL)))
    return ends[0], ends[1]


def event_on_components(case: Case) -> list[list[tuple[list[slice], float]]]:
    """Returns, for each possible component of the best arm, what the event says: lists of components and what they
    may cost."""
    logs, parts, n = case.integrals, case.parts, len(case.sizes)
    share = 1.0 if case.problem.unstructured else SHARE
    if n <= 2:
        return [[(parts, -math.log(share * DELTA) - logs.sum())]]
    events = []
    for home in range(n):
        tests: list[list[int]] = [[home, c] for c in range(n) if c != home]
        if case.sizes[home] >= 2:
            tests.append([home])
        events.append(
            [([parts[c] for c in test], math.log(len(tests) / (share * DELTA)) - logs[test].sum()) for test in tests]
        )
    return events


def allowed(case: Case, d: int) -> float:
    """Returns the most that the results of component d can cost in any of these events, the others costing nothing."""
    most = []
    for event in event_on_components(case):
        mine = [budget for parts, budget in event if case.parts[d] in parts]
        most.append(min(mine))
    return max(most)


def event_on_pairs(case: Case, arm: int) -> float:
    """Returns the most that the results of an arm can cost in the event on pairs of arms, whichever arm is best."""
    logs = case.alone
    most: list[float] = []
    for best in range(logs.size):
        others = [i for i in range(logs.size) if i != best] if arm == best else [arm]
        most.append(min(math.log((logs.size - 1) / (PAIR_SHARE * DELTA)) - logs[best] - logs[i] for i in others))
    return max(most)


def expected(case: Case, arm: int) -> tuple[float, float]:
    """Returns the ends of one interval, each component by itself with more than two."""
    d = next(k for k, part in enumerate(case.parts) if arm in range(part.start, part.stop))
    if len(case.sizes) <= 2:
        low, high = reach(case, arm, event_on_components(case)[0])
    else:
        low, high = reach(case, arm, [([case.parts[d]], allowed(case, d))])
    if not case.problem.unstructured and case.u[arm] > 0:
        half = math.sqrt(2 * event_on_pairs(case, arm) / case.u[arm])
        low, high = max(low, case.means[arm] - half), min(high, case.means[arm] + half)
    return low, high


def read(case: Case) -> LikelihoodReading:
    return Mixture().read(Split(case.split), case.evidence)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("R", [None, math.inf])
def test_intervals_hold_the_exact_ones_and_are_hardly_wider(shape: str, seed: int, R: float | None) -> None:
    at = case(shape, seed, R)
    ends = read(at).intervals(DELTA)
    assert ends is not None
    for arm in range(at.u.size):
        if math.isinf(ends[1][arm] - ends[0][arm]):
            assert at.problem.unstructured and at.u[arm] == 0, (
                "only what neither results nor neighbours tell is unknown"
            )
            continue
        low, high = expected(at, arm)
        width = high - low
        assert ends[0][arm] <= low + 1e-5 * width and ends[1][arm] >= high - 1e-5 * width
        assert ends[1][arm] - ends[0][arm] <= 1.005 * width


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("shape", ["three components", "four components, three lone arms"])
def test_with_more_than_two_components_the_intervals_hold_the_event_whichever_arm_is_best(
    shape: str, seed: int
) -> None:
    """The event joins components, and its constraints depend on where the best arm is; the union over all cases is
    covered."""
    at = case(shape, seed)
    reading = read(at)
    assert reading.region is not None
    low, high = (end.copy() for end in reading.region.intervals(DELTA) or ())
    for event in event_on_components(at):
        for arm in range(at.u.size):
            ends = reach(at, arm, event)
            half = math.sqrt(2 * event_on_pairs(at, arm) / at.u[arm]) if at.u[arm] > 0 else math.inf
            assert low[arm] <= max(ends[0], at.means[arm] - half) + 1e-5
            assert high[arm] >= min(ends[1], at.means[arm] + half) - 1e-5


@pytest.mark.parametrize("shape", ["one component", "two components", "three components"])
def test_where_R_is_doubtful_intervals_too_are_at_the_roughness_of_the_data(shape: str) -> None:
    at = next(
        at
        for at in (case(shape, seed, R=0.05, roughness=0.4) for seed in range(100))
        if at.R > 0.05 and read(at).intervals(DELTA)
    )
    ends = read(at).intervals(DELTA)
    assert ends is not None
    for arm in range(at.u.size):
        low, high = expected(at, arm)
        assert ends[1][arm] - ends[0][arm] == pytest.approx(high - low, rel=5e-3)
