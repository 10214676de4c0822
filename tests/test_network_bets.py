"""Bets on large graphs, tested where they can fail: on tight nulls, and with mistakes that the tests must notice.

The true means are the closest to the estimate under which the rival is no worse than the leader, so that what a bet is
charged with is all that it can win on average. Bets have full size. The wealth then reaches 1/delta almost as often as
Ville's inequality allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from spectralbai import Graph, Problem
from spectralbai.arrays import Indices, Matrix, Vector
from spectralbai.evidence.blocks import Block, Data
from spectralbai.evidence.evidence import Evidence
from spectralbai.evidence.network_outlook import NetworkOutlook
from spectralbai.spectral import Components, Decomposition
from spectralbai.spectral.metric import Comparisons
from spectralbai.spectral.network import Columns, Network
from spectralbai.spectral.network_metric import NetworkMetric, _Choice
from spectralbai.stopping.bets import BetTable
from spectralbai.stopping.network_bets import NetworkTable
from verification.coverage import least_rate

DELTA, ALARM, TIGHT = 0.2, 0.24, 0.1
"""The risk of the null, the crossing rate from which a rule is called wrong, and the least rate of a tight null."""
RUNS, BLOCKS = 2000, 120
SURE = 1e6
"""Results of each arm behind the estimate: so many that bets have full size."""

CHAIN = [(a, a + 1) for a in range(5)]
GRAPHS = {
    "path": Graph.from_edges(6, CHAIN),
    "grid": Graph.from_edges(9, [(a, a + 1) for a in range(9) if a % 3 != 2] + [(a, a + 3) for a in range(6)]),
    "star": Graph.from_edges(6, [(0, a) for a in range(1, 6)]),
    "two components": Graph.from_edges(7, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)]),
}
EVERY_GRAPH = pytest.mark.parametrize("name", GRAPHS)
EVERY_NOISE = pytest.mark.parametrize("binary", [False, True], ids=["gaussian", "binary"])


@dataclass(frozen=True)
class Null:
    """A leader, and a rival that is as good as it."""

    name: str
    binary: bool
    table: type[NetworkTable] = NetworkTable

    @property
    def graph(self) -> Graph:
        return GRAPHS[self.name]

    @cached_property
    def problem(self) -> Problem:
        """R allows the estimate, and hardly more."""
        R = 1.2 * self.graph.roughness(self.nu)
        return Problem.bounded(self.graph, R, binary=True) if self.binary else Problem(self.graph, R)

    @cached_property
    def nu(self) -> Vector:
        """The estimate: one arm above all others, and off by a common level."""
        scale = 0.1 if self.binary else 1.0
        nu = np.linspace(0.0, 0.3, self.graph.n_arms)
        nu[self.leader] = 1.0
        return scale * nu + (0.45 if self.binary else 3.0)

    @property
    def leader(self) -> int:
        return 1

    @property
    def rival(self) -> int:
        return self.graph.n_arms - 1

    @cached_property
    def mu(self) -> Vector:
        """The means closest to the estimate under which the rival is not worse, from dense matrices."""
        to = Components.from_problem(self.problem)
        everywhere = Decomposition.of(to, np.ones(self.graph.n_arms), np.ones(self.graph.n_arms))
        return self.nu - everywhere.respond(self.nu, self.leader, to.radii, 0.0).gap[self.rival]

    @cached_property
    def data(self) -> Data:
        counts = np.full(self.graph.n_arms, SURE)
        return Data(counts, counts * self.nu, counts * (self.nu if self.binary else self.nu**2))

    def pay(self, counts: Vector, outcomes: Vector) -> float:
        """Returns the log payoff of the bet against the rival."""
        block = Block(np.repeat(np.arange(counts.size), counts.astype(int)), outcomes, self.data, self.leader)
        outlook = NetworkOutlook(Evidence(self.problem, self.data, self.leader, 0.0), Network.on(self.problem))
        return float(self.table(block, outlook).against_arms(self.leader, 0.0)[self.rival])

    def payoffs(self, counts: Vector) -> tuple[float, Vector]:
        """Returns the log payoff if all results are 0, and what a result 1 of each arm adds to it: it is affine in the
        sums of the results."""
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int)
        nothing = np.zeros(int(counts.sum()))
        base, slopes = self.pay(counts, nothing), np.zeros(counts.size)
        for arm in np.flatnonzero(counts).tolist():
            outcomes = nothing.copy()
            outcomes[first[arm]] = 1.0
            slopes[arm] = self.pay(counts, outcomes) - base
        return base, slopes

    def sums(self, rng: np.random.Generator, counts: Vector, runs: int) -> Matrix:
        if self.binary:
            return rng.binomial(counts.astype(int), self.mu, (runs, counts.size)).astype(np.float64)
        return counts * self.mu + np.sqrt(counts) * rng.standard_normal((runs, counts.size))

    @property
    def plans(self) -> tuple[Vector, ...]:
        """Counts of the blocks, in turn; some do not pull the rival."""
        n, size = self.graph.n_arms, 16 if self.binary else 2
        even, without = np.full(n, float(size)), np.full(n, float(size))
        without[self.rival] = 0.0
        return even, 2 * even, even, without


def crossings(null: Null) -> int:
    """Returns in how many runs the wealth against the rival reaches 1/delta."""
    rng = np.random.default_rng(0)
    made = [null.payoffs(counts) for counts in null.plans]
    wealth, peak = np.zeros(RUNS), np.zeros(RUNS)
    for k in range(BLOCKS):
        counts, (base, slopes) = null.plans[k % len(made)], made[k % len(made)]
        wealth += base + null.sums(rng, counts, RUNS) @ slopes
        peak = np.maximum(peak, wealth)
    return int((peak >= -math.log(DELTA)).sum())


def is_wrong(failures: int) -> bool:
    """Whether a rule counts as wrong: its rate is above delta by much more than chance explains."""
    return failures > ALARM * RUNS and least_rate(failures, RUNS) > DELTA


@EVERY_NOISE
@EVERY_GRAPH
def test_the_wealth_against_an_arm_as_good_as_the_leader_crosses_about_as_often_as_it_may(
    name: str, binary: bool
) -> None:
    crossed = crossings(Null(name, binary))
    print(crossed / RUNS)
    assert not is_wrong(crossed) and least_rate(crossed, RUNS) <= DELTA
    assert crossed > TIGHT * RUNS, "the null should be tight: a loose one shows no mistake"
